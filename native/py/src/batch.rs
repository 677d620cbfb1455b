//! Rows that one call of the kernel made and another takes. Through pyarrow they would come back as anybody's: every
//! text and every offset of them would be validated again.

use arrow_array::RecordBatch;
use arrow_pyarrow::{FromPyArrow, ToPyArrow};
use mica_kernel::rows::Rows;
use pyo3::prelude::*;

use crate::error::run;
use crate::handed::own;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Batch>()
}

/// Rows of the kernel, with the names that pyarrow has for what both can do.
#[pyclass(module = "mica._native", frozen)]
pub struct Batch(pub Rows);

#[pymethods]
impl Batch {
    /// Takes pyarrow's rows over, once for all slices of them.
    #[new]
    fn new(batch: &Bound<'_, PyAny>) -> PyResult<Batch> {
        Ok(Batch(Rows::from(&RecordBatch::from_pyarrow_bound(batch)?)))
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.0.len()
    }

    /// Bytes of its rows, about.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.schema().to_pyarrow(py)
    }

    /// Rows from `offset` on, so many or to the last; nothing is copied.
    #[pyo3(signature = (offset=0, length=None))]
    fn slice(&self, offset: usize, length: Option<usize>) -> Batch {
        Batch(self.0.slice(offset, length.unwrap_or(usize::MAX)))
    }

    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        own(run(py, || self.0.to_batch())?).to_pyarrow(py)
    }
}

/// The rows of a batch of the kernel's or pyarrow's.
pub fn rows(batch: &Bound<'_, PyAny>) -> PyResult<Rows> {
    match batch.cast::<Batch>() {
        Ok(ours) => Ok(ours.get().0.clone()),
        Err(_) => Ok(Rows::from(&RecordBatch::from_pyarrow_bound(batch)?)),
    }
}
