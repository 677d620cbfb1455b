//! What Python asks for: the dataclasses of `mica.variant.kernel.request`, read by their attributes.

use std::sync::Arc;

use arrow_pyarrow::{PyArrowType, ToPyArrow};
use arrow_schema::DataType;
use mica_kernel::infer::{Left, Limits as KernelLimits, Why, rules};
use mica_kernel::item::{Item, ItemKind, Target};
use mica_kernel::layout::Layout;
use mica_kernel::limits::MAX_TREE_DEPTH;
use mica_kernel::path::Step;
use mica_kernel::tree::Tree;
use mica_kernel::{Code, Error};
use pyo3::prelude::*;

use crate::columns;
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
    /// Whether a path's values are the texts of `to_json`.
    json: bool,
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
                let target = match self.wanted {
                    _ if self.json => Target::Json,
                    Some(wanted) => Target::Type(wanted.0),
                    None => Target::Variant,
                };
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
pub struct Limits<'py> {
    max_fields: usize,
    max_depth: usize,
    min_share: f64,
    typed_share: f64,
    sample_rows: usize,
    rules: Vec<Rule<'py>>,
}

/// What is wanted of the paths that match: `infer`, `skip`, a tree or a number of columns.
#[derive(FromPyObject)]
struct Rule<'py> {
    /// Kind (`name`, `glob`, `element` or `any`) and text of each step.
    steps: Vec<(String, String)>,
    wish: Wish<'py>,
}

#[derive(FromPyObject)]
enum Wish<'py> {
    Most(usize),
    Word(String),
    Tree(Bound<'py, PyAny>),
}

impl Limits<'_> {
    /// As the kernel takes them.
    pub fn checked(self, py: Python<'_>) -> PyResult<KernelLimits> {
        let rules = self.rules.into_iter().map(|rule| rule.checked(py)).collect::<PyResult<_>>()?;
        let limits = KernelLimits {
            max_fields: self.max_fields,
            max_depth: self.max_depth,
            min_share: self.min_share,
            typed_share: self.typed_share,
            sample_rows: self.sample_rows,
            rules: Arc::new(rules::Rules::new(rules)),
        };
        limits.check().map_err(|e| raise(py, &e))?;
        Ok(limits)
    }
}

impl Rule<'_> {
    fn checked(self, py: Python<'_>) -> PyResult<rules::Rule> {
        let other = |what: String| raise(py, &Error::new(Code::InvalidArgument, what));
        let step = |(kind, text): (String, String)| match kind.as_str() {
            "name" => Ok(rules::Step::Name(text)),
            "glob" => Ok(rules::Step::Glob(text)),
            "element" => Ok(rules::Step::Element),
            "any" => Ok(rules::Step::Any),
            _ => Err(other(format!("there is no step of the kind {kind:?}"))),
        };
        if self.steps.len() > MAX_TREE_DEPTH {
            return Err(other(format!("a rule has {MAX_TREE_DEPTH} steps at most")));
        }
        let wish = match self.wish {
            Wish::Most(most) => rules::Wish::Most(most),
            Wish::Word(word) if word == "infer" => rules::Wish::Infer,
            Wish::Word(word) if word == "skip" => rules::Wish::Skip,
            Wish::Word(word) => return Err(other(format!("there is no wish {word:?}"))),
            Wish::Tree(given) => rules::Wish::Type(columns::tree(py, &given)?),
        };
        Ok(rules::Rule { steps: self.steps.into_iter().map(step).collect::<PyResult<_>>()?, wish })
    }
}

/// A tree, and the paths that did not become typed columns: steps (`None`: elements), why, the rule.
pub type Inferred<'py> = (Bound<'py, PyAny>, Vec<(Vec<Option<String>>, &'static str, Option<usize>)>);

/// What the kernel inferred, for Python.
pub fn inferred<'py>(py: Python<'py>, (tree, left): (Tree, Vec<Left>)) -> PyResult<Inferred<'py>> {
    let tree = tree.to_arrow().map_err(|e| raise(py, &e))?.to_pyarrow(py)?;
    let left = left.into_iter().map(|one| {
        let path = one.path.into_iter().map(|place| match place {
            rules::Place::Name(name) => Some(name),
            rules::Place::Element => None,
        });
        let (why, rule) = match one.why {
            Why::Types => ("types", None),
            Why::Keys => ("keys", None),
            Why::Rare => ("rare", None),
            Why::Case => ("case", None),
            Why::Arrays => ("arrays", None),
            Why::Depth => ("depth", None),
            Why::Empty => ("empty", None),
            Why::Rule(rule) => ("rule", Some(rule)),
            Why::Most(rule) => ("most", rule),
        };
        (path.collect(), why, rule)
    });
    Ok((tree, left.collect()))
}
