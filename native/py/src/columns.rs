//! Columns for Python: trees, shredding, and writing Parquet files.

use arrow_array::RecordBatch;
use arrow_pyarrow::{FromPyArrow, ToPyArrow};
use arrow_schema::{DataType, Schema};
use mica_kernel::convert::fit;
use mica_kernel::convert::shred::{infer_column, shred_batch, shred_rows};
use mica_kernel::infer::{Limits, steer};
use mica_kernel::layout::Layout;
use mica_kernel::parquet::write::{FileWriter as KernelWriter, Summary, WriteOptions, parse_compression};
use mica_kernel::tree::Tree;
use mica_kernel::{Code, Error};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::batch::{Batch, rows};
use crate::error::{raise, run};
use crate::guarded::Guarded;
use crate::handed::own;
use crate::request;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(infer, m)?)?;
    m.add_function(wrap_pyfunction!(self::steer_tree, m)?)?;
    m.add_function(wrap_pyfunction!(shred, m)?)?;
    m.add_function(wrap_pyfunction!(fitting_schema, m)?)?;
    m.add_function(wrap_pyfunction!(fit_batch, m)?)?;
    m.add_class::<FileWriter>()?;
    Ok(())
}

pub fn tree(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Tree> {
    let data_type = DataType::from_pyarrow_bound(given)?;
    let tree = Tree::from_arrow(&data_type).map_err(|e| raise(py, &e))?;
    let most = Limits::default().max_depth;
    if tree.depth() > most {
        let message = format!("a shredding schema may nest {most} levels at most: what lies deeper stays in value");
        return Err(raise(py, &Error::new(Code::TooDeep, message)));
    }
    Ok(tree)
}

/// The shredding tree of a variant column, from a sample of its rows, and the paths that did not become typed columns.
#[pyfunction]
#[pyo3(signature = (batch, column, limits=None))]
fn infer<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    column: Vec<String>,
    limits: Option<request::Limits>,
) -> PyResult<request::Inferred<'py>> {
    let batch = RecordBatch::from_pyarrow_bound(batch)?;
    let limits = limits.map_or(Ok(Limits::default()), |given| given.checked(py))?;
    request::inferred(py, run(py, || infer_column(&batch, &column, limits))?)
}

/// A file's tree as the rules of the limits leave it.
#[pyfunction]
#[pyo3(name = "steer")]
fn steer_tree<'py>(py: Python<'py>, tree: &Bound<'py, PyAny>, limits: request::Limits) -> PyResult<Bound<'py, PyAny>> {
    let (tree, limits) = (self::tree(py, tree)?, limits.checked(py)?);
    run(py, || steer(tree, &limits.rules)?.to_arrow())?.to_pyarrow(py)
}

/// The batch with variant columns in the standard or the early layout; `trees` maps columns (tuples of names, through
/// structs) to trees. The kernel's rows stay the kernel's.
#[pyfunction]
#[pyo3(signature = (batch, trees, *, early=false))]
fn shred<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    trees: &Bound<'py, PyDict>,
    early: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let layout = if early { Layout::Early } else { Layout::Standard };
    let mut wanted = Vec::new();
    for (column, data_type) in trees {
        wanted.push((column.extract()?, tree(py, &data_type)?));
    }
    if let Ok(ours) = batch.cast::<Batch>() {
        let rows = ours.get().0.clone();
        let made = run(py, || shred_rows(&rows, &wanted, layout))?;
        return Ok(Bound::new(py, Batch(made))?.into_any());
    }
    let batch = RecordBatch::from_pyarrow_bound(batch)?;
    own(run(py, || shred_batch(&batch, &wanted, layout))?).to_pyarrow(py)
}

/// The schema of a batch of early columns without the `untyped_value`s that no row of it needs.
#[pyfunction]
fn fitting_schema<'py>(py: Python<'py>, batch: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let batch = RecordBatch::from_pyarrow_bound(batch)?;
    run(py, || Ok(fit::fitting_schema(&batch)))?.to_pyarrow(py)
}

/// The batch in such a schema; an error names the value that has no place.
#[pyfunction]
fn fit_batch<'py>(
    py: Python<'py>,
    batch: &Bound<'py, PyAny>,
    schema: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (batch, schema) = (RecordBatch::from_pyarrow_bound(batch)?, Schema::from_pyarrow_bound(schema)?);
    own(run(py, || fit::fit(&batch, &schema))?).to_pyarrow(py)
}

/// Writes one Parquet file and gathers what the log needs of it.
#[pyclass(module = "mica._native")]
struct FileWriter {
    writer: Guarded<KernelWriter>,
}

#[pymethods]
impl FileWriter {
    /// `path` must not exist; without one the bytes come from `take_bytes`. Variant columns are those that the
    /// schema marks; `bloom_filters` lists Parquet column paths.
    #[new]
    #[pyo3(signature = (
        schema, *, path=None, compression="zstd", row_group_rows=None, page_rows=None, key_value_metadata=None,
        created_by=None, bloom_filters=None,
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        schema: &Bound<'_, PyAny>,
        path: Option<String>,
        compression: &str,
        row_group_rows: Option<usize>,
        page_rows: Option<usize>,
        key_value_metadata: Option<&Bound<'_, PyDict>>,
        created_by: Option<String>,
        bloom_filters: Option<Vec<Vec<String>>>,
    ) -> PyResult<Self> {
        let schema = Schema::from_pyarrow_bound(schema)?;
        let mut options = WriteOptions::default();
        options.compression = parse_compression(compression).map_err(|e| raise(py, &e))?;
        options.row_group_rows = row_group_rows.unwrap_or(options.row_group_rows);
        options.page_rows = page_rows.unwrap_or(options.page_rows);
        options.created_by = created_by.unwrap_or(options.created_by);
        options.bloom_filters = bloom_filters.unwrap_or_default();
        if let Some(metadata) = key_value_metadata {
            options.key_value_metadata =
                metadata.iter().map(|(k, v)| Ok((k.extract()?, v.extract()?))).collect::<PyResult<_>>()?;
        }
        let writer = run(py, || KernelWriter::new(schema.into(), path.as_deref(), options))?;
        Ok(FileWriter { writer: Guarded::new("writer", writer) })
    }

    fn write(&self, py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = rows(batch)?;
        self.writer.with(py, |writer| writer.write(rows))
    }

    /// Bytes of the file so far, an estimate of what is buffered included.
    #[getter]
    fn bytes_written(&self, py: Python<'_>) -> PyResult<u64> {
        self.writer.with(py, |writer| Ok(writer.bytes_written()))
    }

    #[getter]
    fn rows(&self, py: Python<'_>) -> PyResult<u64> {
        self.writer.with(py, |writer| Ok(writer.rows()))
    }

    /// What was written since the last call, when there is no path.
    fn take_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.writer.with(py, |writer| Ok(writer.take_bytes()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Ends the file: `{"rows", "size", "row_groups", "plain", "paths"}`, the last two record batches.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = self.writer.with(py, KernelWriter::close)?;
        facts(py, &summary)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a FileWriter cannot be pickled"))
    }
}

/// What is known of a file that was written.
pub fn facts<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("rows", summary.rows)?;
    out.set_item("size", summary.size)?;
    out.set_item("row_groups", summary.row_groups)?;
    out.set_item("plain", summary.bounds.plain.to_pyarrow(py)?)?;
    out.set_item("paths", summary.bounds.paths.to_pyarrow(py)?)?;
    Ok(out)
}
