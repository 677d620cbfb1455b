//! Batches that one call after another hands to Python: a schema crosses once, as long as the next batch has the same.

use std::sync::{Mutex, PoisonError};

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use arrow_schema::SchemaRef;
use mica_kernel::Result;
use pyo3::ffi::Py_uintptr_t;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::error::run;

/// The batch that the work makes, for pyarrow.
pub fn made(py: Python<'_>, work: impl FnOnce() -> Result<RecordBatch> + Send) -> PyResult<PyArrowType<RecordBatch>> {
    run(py, work).map(own).map(PyArrowType)
}

/// A batch of no rows is made anew: texts of which none is left may begin anywhere, and arrow-rs does not take such ones back.
pub fn own(batch: RecordBatch) -> RecordBatch {
    if batch.num_rows() == 0 { RecordBatch::new_empty(batch.schema()) } else { batch }
}

/// The schema of the batch that was handed over last, and pyarrow's.
#[derive(Default)]
pub struct Handed(Mutex<Option<(SchemaRef, Py<PyAny>)>>);

impl Handed {
    /// The batch for pyarrow.
    pub fn to_pyarrow<'py>(&self, py: Python<'py>, batch: RecordBatch) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.import(py, "pyarrow", "RecordBatch")?;
        let schema = self.schema(py, batch.schema_ref())?;
        let mut array = FFI_ArrowArray::new(&StructArray::from(own(batch)).into_data());
        class.call_method1(intern!(py, "_import_from_c"), (&raw mut array as Py_uintptr_t, schema))
    }

    /// The lock is not held while Python works: it may let another thread in, which may wait for the lock.
    fn schema<'py>(&self, py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyAny>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, made)) = last.as_ref().filter(|(last, _)| last == schema) {
            return Ok(made.bind(py).clone());
        }
        drop(last);
        let made = schema.to_pyarrow(py)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((schema.clone(), made.clone().unbind()));
        Ok(made)
    }
}
