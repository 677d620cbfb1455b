//! A leaf that bounds are asked of, as the file has it: the leaf column of its values, and the residuals in which its
//! value may hide.

use arrow_schema::DataType;

use crate::error::{Code, Error, Result};
use crate::item::{Item, ItemKind};
use crate::layout::Layout;
use crate::layout::standard::is_variant;
use crate::parquet::file::FileReader;
use crate::parquet::level::{LevelColumns, layout};
use crate::parquet::residuals::hides_above;
use crate::parquet::schema::Node;
use crate::path::{Step, levels};

/// A leaf as the file has it.
pub(crate) struct Resolved {
    /// The leaf column that holds the values; `None` when no row has any (the path is not typed) or when the
    /// path ends on an object or array.
    pub typed: Option<usize>,
    pub data_type: DataType,
    /// Residuals that must hold nothing of the path, by their leaf columns.
    pub residuals: Vec<usize>,
    /// Whether they are `untyped_value`s, whose bounds tell Variant nulls from everything else.
    pub early: bool,
    /// A column without bounds whose leaf tells nulls from values (a whole variant).
    pub nulls_only: bool,
    /// The path lies where the file's shape cannot say anything.
    pub opaque: bool,
}

pub(crate) fn resolve(file: &FileReader, item: &Item) -> Result<Resolved> {
    let node = file.find(&item.column).ok_or_else(|| {
        let name = item.column.join(".");
        Error::new(Code::InvalidArgument, format!("{} has no column {name}", file.name())).path(name)
    })?;
    Ok(match &item.kind {
        ItemKind::Whole | ItemKind::Moved(_) | ItemKind::There => resolve_column(node),
        ItemKind::Path { steps, .. } => resolve_path(node, steps, hides_above(&item.column, node, file.metadata())),
    })
}

const OPAQUE: Resolved = Resolved {
    typed: None,
    data_type: DataType::Null,
    residuals: Vec::new(),
    early: false,
    nulls_only: false,
    opaque: true,
};

fn resolve_column(node: &Node) -> Resolved {
    if node.is_leaf() {
        let data_type = node.field.data_type().clone();
        return Resolved { typed: Some(node.leaves.start), data_type, ..OPAQUE }.clear();
    }
    match node.child("metadata") {
        Some(metadata) if is_variant(&node.field) && metadata.is_leaf() => {
            Resolved { typed: Some(metadata.leaves.start), nulls_only: true, ..OPAQUE }.clear()
        }
        _ => OPAQUE,
    }
}

impl Resolved {
    fn clear(self) -> Self {
        Resolved { opaque: false, ..self }
    }
}

/// `above`: residuals of the levels above may hold the path too.
fn resolve_path(column: &Node, steps: &[Step], above: bool) -> Resolved {
    let layout = layout(column);
    let early = layout == Layout::Early;
    let levels = levels(LevelColumns::of(column, layout), steps);
    // Steps out of the levels reached: an element has no bounds of its own.
    if steps.iter().take(levels.len()).any(|step| matches!(step, Step::Index(_))) {
        return OPAQUE;
    }
    let whole = levels.len() > steps.len();
    let Some(last) = levels.last() else { return OPAQUE };
    let held = if above { &levels[..] } else { std::slice::from_ref(last) };
    let residuals = held.iter().filter_map(|level| level.residual).map(|v| v.leaves.start).collect();
    match last.leaf {
        // The field can only be in the residuals.
        _ if !whole => Resolved { residuals, early, ..OPAQUE }.clear(),
        _ if last.object.is_some() || last.array.is_some() => OPAQUE,
        Some(leaf) => {
            let data_type = leaf.field.data_type().clone();
            Resolved { typed: Some(leaf.leaves.start), data_type, residuals, early, ..OPAQUE }.clear()
        }
        None => Resolved { residuals, early, ..OPAQUE }.clear(),
    }
}
