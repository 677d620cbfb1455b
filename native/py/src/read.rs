//! Reading for Python: reconstruction and extraction on Arrow batches, and Parquet files.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_data::ArrayData;
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use arrow_schema::{DataType, Schema};
use bytes::Bytes;
use mica_kernel::check::Check;
use mica_kernel::infer::Limits;
use mica_kernel::layout::Layout;
use mica_kernel::layout::recognise::Early;
use mica_kernel::parquet::bloom::May;
use mica_kernel::parquet::file::FileReader;
use mica_kernel::parquet::rows::Rows;
use mica_kernel::parquet::search::Search;
use mica_kernel::parquet::source::{HeldFile, LocalFile, Source};
use mica_kernel::read::batch;
use mica_kernel::read::items::{masks_of, without_masks};
use mica_kernel::read::scan::{ScanOptions, ScanStep};
use mica_kernel::read::texts::Texts;
use mica_kernel::read::together::{Files, FilesScan};
use mica_kernel::values::nested::unshredded_field;
use mica_kernel::{Code, Error, Result};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyList};

use crate::error::run;
use crate::fetched::Callback;
use crate::handed::{Handed, made};
use crate::request::{self, Request};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyFileReader>()?;
    m.add_class::<PyScan>()?;
    m.add_class::<PyCheck>()?;
    m.add_function(wrap_pyfunction!(unshred, m)?)?;
    m.add_function(wrap_pyfunction!(unshredded_schema, m)?)?;
    m.add_function(wrap_pyfunction!(extract, m)?)?;
    Ok(())
}

/// The batch with every variant column unshredded.
#[pyfunction]
fn unshred(py: Python<'_>, batch: PyArrowType<RecordBatch>) -> PyResult<PyArrowType<RecordBatch>> {
    made(py, move || batch::unshred(&batch.0))
}

/// The schema of such batches, unshredded.
#[pyfunction]
fn unshredded_schema(schema: PyArrowType<Schema>) -> PyArrowType<Schema> {
    PyArrowType(batch::unshredded_schema(&schema.0))
}

/// Columns and cast paths of a batch whose variants are in either layout.
#[pyfunction]
#[pyo3(signature = (batch, items, *, timezone = "UTC"))]
fn extract(
    py: Python<'_>,
    batch: PyArrowType<RecordBatch>,
    items: Vec<Request>,
    timezone: &str,
) -> PyResult<PyArrowType<RecordBatch>> {
    let items = request::items(py, items)?;
    made(py, move || batch::extract(&batch.0, &items, timezone))
}

/// How columns of the early layout are recognised: a bool (by their fields, or not at all), or paths of names.
fn parse_early(given: &Bound<'_, PyAny>) -> PyResult<Early> {
    Ok(match given.extract::<bool>() {
        Ok(true) => Early::Recognise,
        Ok(false) => Early::Deny,
        Err(_) => Early::These(given.extract()?),
    })
}

/// One Parquet file: a local path, its bytes, or a size and a function that fetches byte ranges. Or several, by their
/// paths or bytes, as if they were one; what is said of a file (its schema, tree, cost, ...) is said of the first.
#[pyclass(name = "FileReader", module = "mica._native", frozen)]
pub struct PyFileReader {
    files: Files,
}

impl PyFileReader {
    pub fn file(&self) -> &Arc<FileReader> {
        self.files.first()
    }
}

#[pymethods]
impl PyFileReader {
    #[new]
    #[pyo3(signature = (
        *, name, path = None, size = None, fetch = None, data = None, variants = vec![], early = None, more = vec![],
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        name: String,
        path: Option<String>,
        size: Option<u64>,
        fetch: Option<Py<PyAny>>,
        data: Option<PyBackedBytes>,
        variants: Vec<Vec<String>>,
        early: Option<&Bound<'_, PyAny>>,
        more: Vec<(String, Option<u64>, Option<PyBackedBytes>)>,
    ) -> PyResult<Self> {
        let early = early.map_or(Ok(Early::Deny), parse_early)?;
        let files = run(py, move || {
            let source: Box<dyn Source> = match (path, data, fetch, size) {
                (Some(path), None, None, size) => Box::new(LocalFile::open(&path, &name, size)?),
                (None, Some(data), None, size) => Box::new(HeldFile::new(Bytes::from_owner(data), &name, size)?),
                (None, None, Some(fetch), Some(size)) => Box::new(Callback { name, size, fetch }),
                _ => {
                    let message = "a FileReader takes a path, data, or fetch and size";
                    return Err(Error::new(Code::InvalidArgument, message));
                }
            };
            let more = more.into_iter().map(|(name, size, data)| -> mica_kernel::Result<Box<dyn Source>> {
                Ok(match data {
                    Some(data) => Box::new(HeldFile::new(Bytes::from_owner(data), &name, size)?),
                    None => Box::new(LocalFile::open(&name, &name, size)?),
                })
            });
            Files::open(std::iter::once(Ok(source)).chain(more), &variants, &early)
        })?;
        Ok(PyFileReader { files })
    }

    /// The columns as a scan gives them, variants unshredded: Arrow's C interface takes no types as deep as a
    /// shredded column may be.
    #[getter]
    fn schema(&self) -> PyArrowType<Schema> {
        let schema = self.file().schema();
        let fields: Vec<_> = schema.fields().iter().map(unshredded_field).collect();
        PyArrowType(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }

    /// Where the rows of each file end that is read, of those that were given: the others have other columns.
    #[getter]
    fn ends(&self) -> Vec<u64> {
        self.files.ends().collect()
    }

    #[getter]
    fn num_rows(&self) -> u64 {
        self.files.num_rows()
    }

    #[getter]
    fn created_by(&self) -> Option<String> {
        self.file().metadata().file_metadata().created_by().map(str::to_string)
    }

    #[getter]
    fn key_value_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for pair in self.file().metadata().file_metadata().key_value_metadata().into_iter().flatten() {
            dict.set_item(&pair.key, &pair.value)?;
        }
        Ok(dict)
    }

    #[getter]
    fn bytes_read(&self) -> u64 {
        self.files.bytes_read()
    }

    /// Row groups: row_group, first_row, rows, bytes.
    fn row_groups(&self, py: Python<'_>) -> PyResult<PyArrowType<RecordBatch>> {
        run(py, || self.files.row_groups()).map(PyArrowType)
    }

    /// What the file says of its leaves outside of variants, in their order, beyond Arrow's types.
    fn annotations(&self) -> Vec<Option<&'static str>> {
        self.file().annotations()
    }

    /// Per row group the leaves that may hold something, their names joined by dots.
    fn held_leaves(&self) -> Vec<Vec<String>> {
        self.file().held_leaves()
    }

    /// Whether the leaf may equal any value of column 0, for each row group: "no" for certain, "yes", or "untyped" where
    /// only what is in the residual may. Row groups that hold no row of `ranges` are not asked.
    #[pyo3(signature = (leaf, values, *, ranges = None))]
    fn may_contain(
        &self,
        py: Python<'_>,
        leaf: Request,
        values: PyArrowType<RecordBatch>,
        ranges: Option<Vec<(u64, u64)>>,
    ) -> PyResult<Vec<&'static str>> {
        let leaf = request::items(py, vec![leaf])?.remove(0);
        let ranges = ranges.map(parse_ranges);
        let found = run(py, move || match values.0.columns() {
            [values, ..] => self.files.may_contain(&leaf, values, ranges.as_ref()),
            [] => Err(Error::new(Code::InvalidArgument, "may_contain asks about the values of column 0")),
        })?;
        let names = found.into_iter().map(|may| match may {
            May::NotBe => "no",
            May::Be => "yes",
            May::BeUntyped => "untyped",
        });
        Ok(names.collect())
    }

    /// Those of the ranges of rows in which the leaf may equal a value of column 0, by the bytes of its pages.
    fn search(
        &self,
        py: Python<'_>,
        leaf: Request,
        values: PyArrowType<RecordBatch>,
        ranges: Vec<(u64, u64)>,
    ) -> PyResult<Vec<(u64, u64)>> {
        let leaf = request::items(py, vec![leaf])?.remove(0);
        let ranges = parse_ranges(ranges);
        let found = run(py, move || match values.0.columns() {
            [values, ..] => self.files.search(&leaf, &mut Search::new(values.clone()), &ranges),
            [] => Err(Error::new(Code::InvalidArgument, "search looks for the values of column 0")),
        })?;
        Ok(found.into_iter().map(|range| (range.start, range.end)).collect())
    }

    /// What is wrong with the file's variants, as an iterator of batches; `limit` of each kind are kept.
    #[pyo3(signature = (*, limit = 100))]
    fn check(&self, limit: u64) -> PyCheck {
        PyCheck { check: Mutex::new(Check::new(self.file().clone(), limit)) }
    }

    /// How a variant column is shredded: its tree, and whether the layout is the early one. `None` where the file lacks
    /// the column, or its tree nests deeper than trees are inferred.
    fn tree<'py>(&self, py: Python<'py>, column: Vec<String>) -> PyResult<Option<(Bound<'py, PyAny>, bool)>> {
        let found = run(py, || {
            let Some((layout, tree)) = self.file().tree(&column)? else { return Ok(None) };
            let too_deep = tree.depth() > Limits::default().max_depth;
            if too_deep { Ok(None) } else { Ok(Some((tree.to_arrow()?, layout == Layout::Early))) }
        })?;
        found.map(|(tree, early)| Ok((tree.to_pyarrow(py)?, early))).transpose()
    }

    /// Per node of every variant column: column, path, type, typed_rows, residual_rows, other_rows, typed_bytes,
    /// residual_bytes.
    fn inspect(&self, py: Python<'_>) -> PyResult<PyArrowType<RecordBatch>> {
        run(py, || self.file().inspect()).map(PyArrowType)
    }

    /// Per row group or page: row_group, first_row, rows and, by the item's name, min, max, null_count, usable.
    /// Row groups that hold no row of `ranges` are left out. A batch for each run of files in which the types are the same.
    #[pyo3(signature = (leaves, *, pages = false, ranges = None))]
    fn bounds(
        &self,
        py: Python<'_>,
        leaves: Vec<Request>,
        pages: bool,
        ranges: Option<Vec<(u64, u64)>>,
    ) -> PyResult<Vec<PyArrowType<RecordBatch>>> {
        let (leaves, ranges) = (request::items(py, leaves)?, ranges.map(parse_ranges));
        let found = run(py, || self.files.bounds(&leaves, pages, ranges.as_ref()))?;
        Ok(found.into_iter().map(PyArrowType).collect())
    }

    /// What the items take in the rows of `ranges`: (row groups, rows, pages, bytes).
    #[pyo3(signature = (items, *, ranges = None))]
    fn cost(
        &self,
        py: Python<'_>,
        items: Vec<Request>,
        ranges: Option<Vec<(u64, u64)>>,
    ) -> PyResult<(u64, u64, u64, u64)> {
        let (items, ranges) = (request::items(py, items)?, ranges.map(parse_ranges));
        let cost = run(py, || self.file().cost(&items, ranges.as_ref()))?;
        Ok((cost.row_groups, cost.rows, cost.pages, cost.bytes))
    }

    /// The items of the rows, or of those that pass: the filter's items are then handed out first, to be judged, but for
    /// batches in which its texts decide: items by number and the texts of which each must be one, and whether the
    /// filter asks nothing else. Without `masks` a batch in which no cast failed comes without those of failed casts.
    #[pyo3(signature = (
        items, *, filter = vec![], texts = (vec![], false), ranges = None, limit = None, max_rows = 65_536, max_bytes = 64 << 20,
        timezone = "UTC", masks = true,
    ))]
    #[allow(clippy::too_many_arguments)]
    fn scan(
        &self,
        py: Python<'_>,
        items: Vec<Request>,
        filter: Vec<Request>,
        texts: (Vec<(usize, Vec<String>)>, bool),
        ranges: Option<Vec<(u64, u64)>>,
        limit: Option<u64>,
        max_rows: usize,
        max_bytes: usize,
        timezone: &str,
        masks: bool,
    ) -> PyResult<PyScan> {
        let options = ScanOptions {
            ranges: ranges.map(parse_ranges),
            limit,
            texts: Texts::new(texts.0, texts.1),
            max_rows,
            max_bytes,
            timezone: timezone.to_string(),
        };
        let (items, filter) = (request::items(py, items)?, request::items(py, filter)?);
        let scan = run(py, || self.files.scan(&items, &filter, &options))?;
        let columns =
            |items: &[_]| Columns { masks: if masks { vec![] } else { masks_of(items) }, ..Default::default() };
        let most = if self.file().plans() { 0 } else { GIVEN_BYTES };
        let steps = Mutex::new(Steps { scan, held: None, most });
        Ok(PyScan { steps, rows: columns(&items), judged: columns(&filter) })
    }
}

/// A running check: batches of kind, rule, path, row_group, row and found.
#[pyclass(name = "Check", module = "mica._native", frozen)]
struct PyCheck {
    check: Mutex<Check>,
}

#[pymethods]
impl PyCheck {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyArrowType<RecordBatch>>> {
        let next = || self.check.lock().unwrap_or_else(PoisonError::into_inner).next_batch();
        Ok(run(py, next)?.map(PyArrowType))
    }

    /// How many there were so far: kind, rule, count.
    fn totals(&self, py: Python<'_>) -> PyResult<PyArrowType<RecordBatch>> {
        run(py, || self.check.lock().unwrap_or_else(PoisonError::into_inner).totals()).map(PyArrowType)
    }
}

/// A running scan.
#[pyclass(name = "Scan", module = "mica._native", frozen)]
struct PyScan {
    steps: Mutex<Steps>,
    /// Rows that passed, and rows to be judged: each kind has columns of its own.
    rows: Columns,
    judged: Columns,
}

/// How batches of the same columns are handed to Python.
#[derive(Default)]
struct Columns {
    handed: Handed,
    /// Masks that are left out where no cast failed.
    masks: Vec<usize>,
}

/// The steps of a scan. Rows that passed are given several batches at once: the work of Python between two batches finds
/// nothing of its own in the core's cache.
struct Steps {
    scan: FilesScan,
    /// What came after the batches that were given last.
    held: Option<Result<Option<ScanStep>>>,
    /// At most so many bytes of several batches are given at once.
    most: usize,
}

/// What is given at once of a local file: what waits is small, and few calls are left. Of a file that is fetched each
/// batch is given as soon as it is there.
const GIVEN_BYTES: usize = 4 << 20;

enum Given {
    Judge(RecordBatch),
    Rows(Vec<RecordBatch>),
}

impl Steps {
    fn one(&mut self) -> Result<Option<ScanStep>> {
        self.held.take().unwrap_or_else(|| self.scan.step())
    }

    fn several(&mut self) -> Result<Option<Given>> {
        let (mut rows, mut bytes, mut last) = (Vec::new(), 0, 0);
        while bytes + last <= self.most {
            match self.one() {
                Ok(Some(ScanStep::Rows(batch))) => {
                    last = batch.get_array_memory_size();
                    bytes += last;
                    rows.push(batch);
                }
                Ok(Some(ScanStep::Judge(batch))) if rows.is_empty() => return Ok(Some(Given::Judge(batch))),
                other if rows.is_empty() => return other.map(|_| None),
                other => {
                    self.held = Some(other);
                    break;
                }
            }
        }
        Ok(Some(Given::Rows(rows)))
    }
}

#[pymethods]
impl PyScan {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// The next batch of a scan without a filter.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match run(py, || self.steps.lock().unwrap_or_else(PoisonError::into_inner).one())? {
            Some(ScanStep::Rows(batch)) => {
                let batch = run(py, || without_masks(batch, &self.rows.masks))?;
                self.rows.handed.to_pyarrow(py, batch).map(Some)
            }
            Some(ScanStep::Judge(_)) => Err(PyValueError::new_err("a scan with a filter is run by step and keep")),
            None => Ok(None),
        }
    }

    /// What comes next: (True, rows to be judged), after which `keep` is called, or (False, batches of rows that
    /// passed); None at the end.
    fn step<'py>(&self, py: Python<'py>) -> PyResult<Option<(bool, Bound<'py, PyAny>)>> {
        let next = || {
            let given = self.steps.lock().unwrap_or_else(PoisonError::into_inner).several()?;
            Ok(match given {
                Some(Given::Judge(batch)) => Some(Given::Judge(without_masks(batch, &self.judged.masks)?)),
                Some(Given::Rows(rows)) => {
                    let made = rows.into_iter().map(|batch| without_masks(batch, &self.rows.masks));
                    Some(Given::Rows(made.collect::<Result<_>>()?))
                }
                None => None,
            })
        };
        Ok(match run(py, next)? {
            Some(Given::Judge(batch)) => Some((true, self.judged.handed.to_pyarrow(py, batch)?)),
            Some(Given::Rows(rows)) => {
                let made = rows.into_iter().map(|batch| self.rows.handed.to_pyarrow(py, batch));
                Some((false, PyList::new(py, made.collect::<PyResult<Vec<_>>>()?)?.into_any()))
            }
            None => None,
        })
    }

    /// Says which of the rows to be judged pass: a mask of as many rows.
    fn keep(&self, py: Python<'_>, mask: PyArrowType<ArrayData>) -> PyResult<()> {
        if mask.0.data_type() != &DataType::Boolean {
            return Err(PyTypeError::new_err("a mask is a boolean array"));
        }
        let mask = BooleanArray::from(mask.0);
        run(py, || self.steps.lock().unwrap_or_else(PoisonError::into_inner).scan.keep(&mask))
    }
}

fn parse_ranges(ranges: Vec<(u64, u64)>) -> Rows {
    ranges.into_iter().map(|(start, end)| start..end).collect()
}
