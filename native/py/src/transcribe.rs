//! A file out of the pages of another, for Python.

use mica_kernel::convert::pages::Transcription as Kernel;
use mica_kernel::parquet::write::{WriteOptions, parse_compression};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::columns::facts;
use crate::error::{raise, run};
use crate::guarded::Guarded;
use crate::read::PyFileReader;
use crate::request;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Transcription>()?;
    m.add_function(wrap_pyfunction!(transcribe, m)?)
}

/// The file's columns (name, nullable), all of them, in this layout as another file, page by page; None where that
/// takes more than pages. `path` must not exist; without one the bytes come from `take_bytes`.
#[pyfunction]
#[pyo3(signature = (file, columns, layout, *, path=None, compression="zstd", bloom_filters=None))]
fn transcribe(
    py: Python<'_>,
    file: &Bound<'_, PyFileReader>,
    columns: Vec<(String, bool)>,
    layout: &str,
    path: Option<String>,
    compression: &str,
    bloom_filters: Option<Vec<Vec<String>>>,
) -> PyResult<Option<Transcription>> {
    let file = file.get().file().clone();
    let layout = request::layout(layout).map_err(|e| raise(py, &e))?;
    let options = WriteOptions {
        compression: parse_compression(compression).map_err(|e| raise(py, &e))?,
        bloom_filters: bloom_filters.unwrap_or_default(),
        ..WriteOptions::default()
    };
    let made = run(py, || Kernel::new(file, &columns, layout, path.as_deref(), &options))?;
    Ok(made.map(|made| Transcription { inner: Guarded::new("file", made) }))
}

/// A file in the making.
#[pyclass(module = "mica._native", frozen)]
struct Transcription {
    inner: Guarded<Kernel>,
}

#[pymethods]
impl Transcription {
    /// Whether any column changes its layout; otherwise the file is copied.
    #[getter]
    fn moves(&self, py: Python<'_>) -> PyResult<bool> {
        self.inner.with(py, |inner| Ok(inner.moves()))
    }

    /// Whether a Variant of the file may hold a time, nanoseconds or a UUID: the answer "no" is certain.
    #[getter]
    fn may_hold_late_types(&self, py: Python<'_>) -> PyResult<bool> {
        self.inner.with(py, |inner| Ok(inner.may_hold_late_types()))
    }

    /// Writes the next row group; whether there was one. DOES_NOT_FIT where its pages hold what the footer denies.
    fn step(&self, py: Python<'_>) -> PyResult<bool> {
        self.inner.with(py, Kernel::step)
    }

    #[getter]
    fn bytes_written(&self, py: Python<'_>) -> PyResult<u64> {
        self.inner.with(py, |inner| Ok(inner.bytes_written()))
    }

    /// What was written since the last call, when there is no path.
    fn take_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.inner.with(py, Kernel::take_bytes)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Ends the file: what `FileWriter.close` gives.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = self.inner.with(py, Kernel::close)?;
        facts(py, &summary)
    }
}
