//! What Python asks for: the dataclasses of `mica.variant.kernel.request`, read by their attributes.

use arrow::datatypes::DataType;
use arrow_pyarrow::PyArrowType;
use mica_kernel::infer::Limits as KernelLimits;
use mica_kernel::item::{Item, ItemKind, Target};
use mica_kernel::layout::Layout;
use mica_kernel::path::Step;
use mica_kernel::{Code, Error};
use pyo3::prelude::*;

use crate::error::raise;

/// A column, or a path into a Variant column.
#[derive(FromPyObject)]
pub struct Request {
    column: Vec<String>,
    /// Of the output column; its number where there is none.
    name: Option<String>,
    path: Option<Vec<PathStep>>,
    /// Of a path's values; Variants where there is none.
    #[pyo3(attribute("type"))]
    wanted: Option<PyArrowType<DataType>>,
    /// Of a whole column: the storage layout that it is given in, or unshredded.
    layout: Option<String>,
    /// Of a variant column: whether it is null, and nothing else of it.
    there: bool,
    /// Row groups in which no value of the typed leaf matters.
    untyped_in: Vec<usize>,
}

/// A key or a position.
#[derive(FromPyObject)]
pub enum PathStep {
    Key(String),
    Index(usize),
}

/// Steps as the kernel takes them.
pub fn steps(path: Vec<PathStep>) -> Vec<Step> {
    let steps = path.into_iter().map(|step| match step {
        PathStep::Key(key) => Step::Key(key),
        PathStep::Index(index) => Step::Index(index),
    });
    steps.collect()
}

impl Request {
    fn item(self, index: usize) -> mica_kernel::Result<Item> {
        let kind = match (self.path, self.layout) {
            (None, None) if self.there => ItemKind::There,
            (None, None) => ItemKind::Whole,
            (None, Some(name)) => ItemKind::Moved(layout(&name)?),
            (Some(path), _) => {
                let target = self.wanted.map_or(Target::Variant, |wanted| Target::Type(wanted.0));
                ItemKind::Path { steps: steps(path), target }
            }
        };
        let name = self.name.unwrap_or_else(|| index.to_string());
        Ok(Item { name, column: self.column, kind, untyped_in: self.untyped_in })
    }
}

/// Requests as the kernel takes them.
pub fn items(py: Python<'_>, requests: Vec<Request>) -> PyResult<Vec<Item>> {
    let items = requests.into_iter().enumerate().map(|(index, request)| request.item(index));
    items.collect::<mica_kernel::Result<_>>().map_err(|e| raise(py, &e))
}

/// A layout by its name.
pub fn layout(name: &str) -> mica_kernel::Result<Layout> {
    match name {
        "standard" => Ok(Layout::Standard),
        "early" => Ok(Layout::Early),
        other => Err(Error::new(Code::InvalidArgument, format!("the layout is standard or early, not {other:?}"))),
    }
}

/// Limits of inference.
#[derive(FromPyObject)]
pub struct Limits {
    max_fields: usize,
    max_depth: usize,
    min_share: f64,
    typed_share: f64,
    sample_rows: usize,
}

impl Limits {
    /// As the kernel takes them.
    pub fn checked(self, py: Python<'_>) -> PyResult<KernelLimits> {
        let limits = KernelLimits {
            max_fields: self.max_fields,
            max_depth: self.max_depth,
            min_share: self.min_share,
            typed_share: self.typed_share,
            sample_rows: self.sample_rows,
        };
        limits.check().map_err(|e| raise(py, &e))?;
        Ok(limits)
    }
}
