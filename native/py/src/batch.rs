//! Rows that one call of the kernel made and another takes. Through pyarrow they would come back as anybody's: every
//! text and every offset of them would be validated again.

use arrow::array::{Array, RecordBatch};
use arrow_pyarrow::{FromPyArrow, ToPyArrow};
use pyo3::prelude::*;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Batch>()
}

/// A record batch of the kernel, with the names that pyarrow has for what both can do.
#[pyclass(module = "mica._native", frozen)]
pub struct Batch(pub RecordBatch);

#[pymethods]
impl Batch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    /// Bytes of its rows, about.
    #[getter]
    fn nbytes(&self) -> usize {
        let bytes = |column: &dyn Array| column.to_data().get_slice_memory_size();
        let columns = self.0.columns().iter();
        columns.map(|column| bytes(column).unwrap_or_else(|_| column.get_array_memory_size())).sum()
    }

    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.schema().to_pyarrow(py)
    }

    /// Rows from `offset` on, so many or to the last; nothing is copied.
    #[pyo3(signature = (offset=0, length=None))]
    fn slice(&self, offset: usize, length: Option<usize>) -> Batch {
        let offset = offset.min(self.0.num_rows());
        let rest = self.0.num_rows() - offset;
        Batch(self.0.slice(offset, length.map_or(rest, |length| length.min(rest))))
    }

    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.to_pyarrow(py)
    }
}

/// The rows of a batch of the kernel's or pyarrow's.
pub fn rows(batch: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    match batch.cast::<Batch>() {
        Ok(ours) => Ok(ours.get().0.clone()),
        Err(_) => RecordBatch::from_pyarrow_bound(batch),
    }
}
