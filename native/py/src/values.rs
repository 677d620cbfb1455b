//! Values for Python: JSON, Variants and z85, a batch at a time.

use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use arrow_schema::DataType;
use mica_kernel::batch::cast::cast_column;
use mica_kernel::batch::decimals::Operator;
use mica_kernel::batch::edit::{self, Edit};
use mica_kernel::batch::{bounds, decimals, late, nested, place, stats, values};
use mica_kernel::json::{DuplicateKeys, ParseOptions};
use mica_kernel::path::Step;
use mica_kernel::text::zone::Zone;
use mica_kernel::{Code, Error, Result};
use pyo3::prelude::*;

use crate::batch::rows;
use crate::error::{raise, run};
use crate::handed::made;
use crate::request::{PathStep, steps};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(json_to_variant, m)?)?;
    m.add_function(wrap_pyfunction!(try_json_to_variant, m)?)?;
    m.add_function(wrap_pyfunction!(edit_variants, m)?)?;
    m.add_function(wrap_pyfunction!(traces, m)?)?;
    m.add_function(wrap_pyfunction!(variant_to_json, m)?)?;
    m.add_function(wrap_pyfunction!(type_texts, m)?)?;
    m.add_function(wrap_pyfunction!(cast, m)?)?;
    m.add_function(wrap_pyfunction!(fixed_offset, m)?)?;
    m.add_function(wrap_pyfunction!(without_late_types, m)?)?;
    m.add_function(wrap_pyfunction!(may_hold_late_types, m)?)?;
    m.add_function(wrap_pyfunction!(calculate, m)?)?;
    m.add_function(wrap_pyfunction!(stats_leaves, m)?)?;
    m.add_function(wrap_pyfunction!(all_bounds, m)?)?;
    m.add_function(wrap_pyfunction!(bounds_variants, m)?)?;
    m.add_function(wrap_pyfunction!(decode_z85, m)?)?;
    m.add_function(wrap_pyfunction!(encode_z85, m)?)?;
    m.add_function(wrap_pyfunction!(validate, m)?)?;
    m.add_function(wrap_pyfunction!(settle_nested, m)?)?;
    Ok(())
}

/// The options of the JSON parser as Python spells them.
pub fn parse_options(py: Python<'_>, duplicate_keys: &str, max_size: usize) -> PyResult<ParseOptions> {
    let refuse = |message: String| raise(py, &Error::new(Code::InvalidArgument, message));
    let duplicate_keys = match duplicate_keys {
        "error" => DuplicateKeys::Error,
        "last" => DuplicateKeys::LastWins,
        other => return Err(refuse(format!("duplicate_keys is \"error\" or \"last\", not {other:?}"))),
    };
    if max_size > 128 << 20 {
        return Err(refuse(format!("max_size may be 128 MiB at most, not {max_size} bytes")));
    }
    Ok(ParseOptions { duplicate_keys, max_size, ..ParseOptions::default() })
}

type Batch = PyArrowType<RecordBatch>;

fn each(
    py: Python<'_>,
    batch: Batch,
    work: impl FnOnce(&RecordBatch) -> Result<RecordBatch> + Send,
) -> PyResult<Batch> {
    made(py, move || work(&batch.0))
}

/// Column 0 (JSON as strings or binary) as the variant column `v`; nulls stay null.
#[pyfunction]
#[pyo3(signature = (batch, *, duplicate_keys = "error", max_size = 16 << 20))]
fn json_to_variant(py: Python<'_>, batch: Batch, duplicate_keys: &str, max_size: usize) -> PyResult<Batch> {
    let options = parse_options(py, duplicate_keys, max_size)?;
    each(py, batch, move |b| values::json_to_variant(b, options))
}

/// Column 0 (JSON as strings) as the variant column `v`, as Spark's parse_json reads it, and the mask `failed`.
#[pyfunction]
fn try_json_to_variant(py: Python<'_>, batch: Batch) -> PyResult<Batch> {
    let options = ParseOptions { max_size: 128 << 20, ignore_rest: true, ..ParseOptions::default() };
    each(py, batch, move |b| values::try_json_to_variant(b, options))
}

/// Column 0 (an unshredded variant) changed at these paths, with column 1, if any, as the new value: `v` and `failed`.
#[pyfunction]
#[pyo3(signature = (batch, name, paths, *, flag = true))]
fn edit_variants(py: Python<'_>, batch: Batch, name: &str, paths: Vec<Vec<PathStep>>, flag: bool) -> PyResult<Batch> {
    let edit = Edit::parse(name, flag).map_err(|e| raise(py, &e))?;
    let paths: Vec<Vec<Step>> = paths.into_iter().map(steps).collect();
    each(py, batch, move |b| edit::edit(b, edit, &paths))
}

/// Where a path stands in column 0 (an unshredded variant): `value` and `name`.
#[pyfunction]
fn traces(py: Python<'_>, batch: Batch, path: Vec<PathStep>) -> PyResult<Batch> {
    let path = steps(path);
    each(py, batch, move |b| place::traces(b, &path))
}

/// Column 0 (an unshredded variant) as the string column `json`.
#[pyfunction]
#[pyo3(signature = (batch, *, timezone = "UTC"))]
fn variant_to_json(py: Python<'_>, batch: Batch, timezone: &str) -> PyResult<Batch> {
    let zone = Zone::parse(timezone).map_err(|e| raise(py, &e))?;
    each(py, batch, move |b| values::variant_to_json(b, &zone))
}

/// Column 0 (an unshredded variant) without times, nanoseconds and UUIDs: as texts, or the first one is an error.
#[pyfunction]
#[pyo3(signature = (batch, *, as_text, timezone = "UTC"))]
fn without_late_types(py: Python<'_>, batch: Batch, as_text: bool, timezone: &str) -> PyResult<Batch> {
    let zone = Zone::parse(timezone).map_err(|e| raise(py, &e))?;
    each(py, batch, move |b| late::without_late_types(b, as_text, &zone))
}

/// Whether an unshredded variant of the batch may hold a time, nanoseconds or a UUID.
#[pyfunction]
fn may_hold_late_types(py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<bool> {
    let rows = rows(batch)?;
    run(py, || Ok(late::may_hold_late_types(&rows.to_batch()?)))
}

/// Column 0 (an unshredded variant) as the string column `type`, as Spark's schema_of_variant.
#[pyfunction]
fn type_texts(py: Python<'_>, batch: Batch) -> PyResult<Batch> {
    each(py, batch, values::type_texts)
}

/// Column 0 (of any plain type) as `values` of the type asked for and `failed`, by the rules of ANSI.
#[pyfunction]
#[pyo3(signature = (batch, wanted, *, timezone = "UTC"))]
fn cast(py: Python<'_>, batch: Batch, wanted: PyArrowType<DataType>, timezone: &str) -> PyResult<Batch> {
    let zone = Zone::parse(timezone).map_err(|e| raise(py, &e))?;
    each(py, batch, move |b| cast_column(b, &wanted.0, zone))
}

/// Seconds east of UTC of a zone that has one offset, None for others; raises for a zone that does not exist.
#[pyfunction]
fn fixed_offset(py: Python<'_>, timezone: &str) -> PyResult<Option<i32>> {
    Zone::parse(timezone).map(|zone| zone.fixed()).map_err(|e| raise(py, &e))
}

/// Columns 0 and 1 (decimals) with an operator between them, as `values` of that precision and scale and `failed`.
#[pyfunction]
fn calculate(py: Python<'_>, batch: Batch, operator: &str, precision: u8, scale: u8) -> PyResult<Batch> {
    let operator = Operator::parse(operator).map_err(|e| raise(py, &e))?;
    each(py, batch, move |b| decimals::calculate(b, operator, precision, scale))
}

/// What a leaf of statistics is read as: a type, or the path whose bounds are asked for.
#[derive(FromPyObject)]
enum LeafKind {
    Bounds(String),
    Value(PyArrowType<DataType>),
}

/// Leaves of column 0 (statistics as JSON), given by their keys and what they are read as: a column each.
#[pyfunction]
fn stats_leaves(py: Python<'_>, batch: Batch, leaves: Vec<(Vec<String>, LeafKind)>) -> PyResult<Batch> {
    let kind = |wanted| match wanted {
        LeafKind::Bounds(path) => stats::Kind::Bounds(path),
        LeafKind::Value(wanted) => stats::Kind::Value(wanted.0),
    };
    let leaves: Vec<stats::Leaf> = leaves.into_iter().map(|(keys, wanted)| (keys, kind(wanted))).collect();
    each(py, batch, move |b| stats::stats_leaves(b, &leaves))
}

/// The bounds of all Variant paths in column 0 (z85 texts), a row each.
#[pyfunction]
fn all_bounds(py: Python<'_>, batch: Batch) -> PyResult<Batch> {
    each(py, batch, bounds::all_bounds)
}

/// Column 0 (z85 texts of bounds) as Variants; null where a text is damaged.
#[pyfunction]
fn bounds_variants(py: Python<'_>, batch: Batch) -> PyResult<Batch> {
    each(py, batch, bounds::variants)
}

/// Column 0 (z85 texts) as bytes; null for other texts.
#[pyfunction]
fn decode_z85(py: Python<'_>, batch: Batch) -> PyResult<Batch> {
    each(py, batch, bounds::decode_z85)
}

/// Column 0 (binary) as z85 texts.
#[pyfunction]
fn encode_z85(py: Python<'_>, batch: Batch) -> PyResult<Batch> {
    each(py, batch, bounds::encode_z85)
}

/// Raises for the first row of column 0 that is no sound Variant.
#[pyfunction]
fn validate(py: Python<'_>, batch: Batch) -> PyResult<()> {
    run(py, move || values::validate(&batch.0))
}

/// The rows with the objects inside lists and maps in order, `None` where they are. Raises for the first unshredded
/// variant there that is malformed.
#[pyfunction]
fn settle_nested(py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<Option<Batch>> {
    let rows = rows(batch)?;
    Ok(run(py, || nested::settle_nested(&rows.to_batch()?))?.map(PyArrowType))
}
