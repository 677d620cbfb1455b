//! Which leaf columns an item needs in one row group: the fewest that can answer it.
//!
//! - A `value` that is null in every row of the row group (by the footer) is not read; see [`all_null`].
//! - Below a shredded object the residuals of the levels above are not read for a field that is shredded: a
//!   residual holds no shredded field (rules 32, 35, 38).
//! - A path that leaves the shredded tree needs the residual of the level where it leaves, and the metadata.
//! - Whether a variant is null is asked of one leaf.
//! - The typed leaf of a path is not read where none of its values matters (`Item::untyped_in`).
//! - Early columns of other writers: the residuals above may hold any field (`residuals.rs`), and one leaf of each
//!   shape on the way says what a row has typed.

use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::item::{Item, ItemKind, Target};
use crate::layout::Layout;
use crate::layout::standard::{METADATA, is_variant};
use crate::parquet::file::FileReader;
use crate::parquet::level::{LevelColumns, layout};
use crate::parquet::one_bit::MAX_LEVEL;
use crate::parquet::residuals::hides_above;
use crate::parquet::schema::Node;
use crate::path::{Step, levels};

/// Whether a leaf column is null in every row of the row group, by the footer. A footer that says so of a chunk too large
/// to hold nothing but nulls is not believed, nor one whose bounds or size statistics tell of values.
pub fn all_null(group: &RowGroupMetaData, leaf: usize) -> bool {
    let Some(column) = group.columns().get(leaf) else { return false };
    let Some(statistics) = column.statistics() else { return false };
    let Some(nulls) = statistics.null_count_opt() else { return false };
    let values = column.num_values();
    let tells_of_values = statistics.min_bytes_opt().is_some()
        || statistics.max_bytes_opt().is_some()
        || column.unencoded_byte_array_data_bytes().is_some_and(|bytes| bytes > 0)
        || highest(column).is_some_and(|count| count > 0);
    values >= 0 && nulls == values as u64 && column.uncompressed_size() <= 1024 + values / 2 && !tells_of_values
}

/// How many rows have the highest definition level, which is that of values (SizeStatistics).
fn highest(column: &ColumnChunkMetaData) -> Option<i64> {
    column.definition_level_histogram()?.values().last().copied()
}

/// The leaves of some items, sorted, each once.
pub fn leaves<'a>(file: &FileReader, items: impl Iterator<Item = &'a Item>, index: usize) -> Vec<usize> {
    let mut leaves = Vec::new();
    let Some(group) = file.metadata().row_groups().get(index) else { return leaves };
    for item in items {
        let Some(node) = file.find(&item.column) else { continue };
        match &item.kind {
            ItemKind::Whole => whole(node, group, &mut leaves),
            ItemKind::Moved(_) => leaves.extend(node.leaves.clone()),
            ItemKind::There => leaves.push(node.child("metadata").unwrap_or(node).leaves.start),
            ItemKind::Path { steps, .. } => {
                let before = leaves.len();
                path(node, steps, hides_above(&item.column, node, file.metadata()), group, &mut leaves);
                if item.untyped_in.contains(&index)
                    && let Some(typed) = typed_leaf(node, steps)
                {
                    let of_item = leaves.split_off(before);
                    leaves.extend(of_item.into_iter().filter(|&leaf| leaf != typed));
                }
            }
        }
    }
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

/// Whether nobody asks where the structs around the leaves (sorted) of these items are null: each item is a plain column,
/// whether a variant is there, which its metadata say, or the values of a path in a typed leaf or a residual. No residual
/// is read of a level of which more is read than its typed leaf: whether that has an object would matter. A root without a
/// value is the Variant null (rule 26) or, in a row that is null, nothing: only the struct around tells, and only a cast
/// does not ask.
pub fn alone<'a>(file: &FileReader, mut items: impl Iterator<Item = &'a Item>, leaves: &[usize]) -> bool {
    let alike = |item: &Item| {
        let Some(node) = file.find(&item.column) else { return true };
        match &item.kind {
            ItemKind::Whole => item.column.len() == 1 && node.is_leaf(),
            ItemKind::Moved(_) => false,
            ItemKind::There => node.child(METADATA).is_some_and(|metadata| !metadata.field.is_nullable()),
            ItemKind::Path { steps, target } => {
                let standard = layout(node) == Layout::Standard;
                let tells = !steps.is_empty() || matches!(target, Target::Type(_));
                standard && tells && of_values(LevelColumns::of(node, Layout::Standard), steps, leaves)
            }
        }
    };
    !leaves.is_empty() && file.legacy.is_none() && single(file, leaves) && items.all(alike)
}

/// Whether no list is around the leaves, and no more groups than `one_bit` knows.
pub fn single(file: &FileReader, leaves: &[usize]) -> bool {
    let schema = file.metadata().file_metadata().schema_descr();
    leaves.iter().all(|&leaf| {
        let column = schema.column(leaf);
        column.max_rep_level() == 0 && column.max_def_level() <= MAX_LEVEL
    })
}

/// Whether a path ends in a typed leaf or a residual, and on the way to it no residual is read.
fn of_values(root: LevelColumns<'_>, steps: &[Step], leaves: &[usize]) -> bool {
    let levels = levels(root, steps);
    let read = |node: &Node| node.has_any(leaves);
    levels.iter().enumerate().all(|(depth, level)| {
        let ends = depth == steps.len();
        let below = level.object.is_some_and(read) || level.array.is_some_and(read);
        !(ends && (level.object.is_some() || level.array.is_some())) && !(below && level.residual.is_some_and(read))
    })
}

/// The typed leaf that a path of keys leads to, in the standard layout.
fn typed_leaf(column: &Node, steps: &[Step]) -> Option<usize> {
    let keys = steps.iter().all(|step| matches!(step, Step::Key(_)));
    let standard = Some(column).filter(|column| keys && layout(column) == Layout::Standard)?;
    let levels = levels(LevelColumns::of(standard, Layout::Standard), steps);
    levels.get(steps.len())?.leaf.map(|leaf| leaf.leaves.start)
}

/// Every leaf of a whole column, without the residuals that hold nothing.
fn whole(node: &Node, group: &RowGroupMetaData, leaves: &mut Vec<usize>) {
    let early = layout(node) == Layout::Early;
    if is_variant(&node.field) && (early || node.child("metadata").is_some()) {
        leaves.extend(node.child("metadata").map_or(0..0, |m| m.leaves.clone()));
        let before = leaves.len();
        level(node, layout(node), group, leaves);
        // Something must say which rows are null.
        if early && leaves.len() == before {
            leaves.extend(node.leaves.clone().take(1));
        }
    } else if node.is_struct() {
        for child in &node.children {
            whole(child, group, leaves);
        }
    } else {
        leaves.extend(node.leaves.clone());
    }
}

/// The leaves under one level of a variant, `metadata` left out.
fn level(node: &Node, layout: Layout, group: &RowGroupMetaData, leaves: &mut Vec<usize>) {
    let columns = LevelColumns::of(node, layout);
    let held = residual(&columns, group, leaves) && layout == Layout::Standard;
    if let Some(object) = columns.object {
        let before = leaves.len();
        for field in &object.children {
            let before = leaves.len();
            level(field, layout, group, leaves);
            // A residual may not hold the field (rule 35), not even where nothing else does: its name has to be known.
            if held && leaves.len() == before {
                leaves.extend(field.leaves.clone().take(1));
            }
        }
        // The group itself says that there is an object, be it empty: one leaf must carry that.
        if leaves.len() == before {
            leaves.extend(object.leaves.clone().take(1));
        }
    }
    for typed in columns.array.iter().chain(&columns.leaf) {
        leaves.extend(typed.leaves.clone());
    }
}

/// The residual of a level, unless it holds nothing; whether it does.
fn residual(columns: &LevelColumns, group: &RowGroupMetaData, leaves: &mut Vec<usize>) -> bool {
    match columns.residual {
        Some(value) if !all_null(group, value.leaves.start) => {
            leaves.extend(value.leaves.clone());
            true
        }
        _ => false,
    }
}

/// The leaves for one path of a variant column. `above`: residuals of the levels above a shredded field may hold it
/// too, and no field may be in both places.
fn path(column: &Node, steps: &[Step], above: bool, group: &RowGroupMetaData, leaves: &mut Vec<usize>) {
    let layout = layout(column);
    let metadata = || column.child("metadata").map_or(0..0, |m| m.leaves.clone());
    let levels = levels(LevelColumns::of(column, layout), steps);
    let mut hidden = false;
    for (at, columns) in levels.iter().enumerate().take(steps.len()) {
        let leaves_here = at + 1 == levels.len();
        let held = (above || leaves_here) && residual(columns, group, leaves);
        hidden |= above && held;
        if hidden {
            let typed = [columns.object, columns.array, columns.leaf];
            leaves.extend(typed.into_iter().flatten().filter_map(|typed| typed.leaves.clone().next()));
        }
        if leaves_here {
            if held {
                leaves.extend(metadata());
            }
            return;
        }
    }
    let Some(columns) = levels.last() else { return };
    let first = leaves.len();
    level(columns.group, layout, group, leaves);
    // The dictionary is needed where anything but one typed leaf is read.
    let value = columns.residual.map(|v| v.leaves.start);
    if columns.leaf.is_none() || leaves[first..].iter().any(|leaf| Some(*leaf) == value) {
        leaves.extend(metadata());
    }
}
