//! Which leaf columns an item needs in one row group: the fewest that can answer it.
//!
//! - A `value` that is null in every row of the row group (by the footer) is not read; see [`all_null`].
//! - Below a shredded object the residuals of the levels above are not read for a field that is shredded: a
//!   residual holds no shredded field (rules 32, 35, 38).
//! - A path that leaves the shredded tree needs the residual of the level where it leaves, and the metadata.

use parquet::file::metadata::RowGroupMetaData;

use crate::extract::Step;
use crate::read::schema::Node;
use crate::standard::is_variant;

/// Whether a leaf column is null in every row of the row group, by the footer. A footer that says so of a
/// chunk too large to hold nothing but nulls is not believed.
pub fn all_null(group: &RowGroupMetaData, leaf: usize) -> bool {
    let Some(column) = group.columns().get(leaf) else { return false };
    let Some(nulls) = column.statistics().and_then(|s| s.null_count_opt()) else { return false };
    let values = column.num_values();
    values >= 0 && nulls == values as u64 && column.uncompressed_size() <= 1024 + values / 2
}

/// Every leaf of a whole column, without the residuals that hold nothing.
pub fn whole(node: &Node, group: &RowGroupMetaData, leaves: &mut Vec<usize>) {
    if is_variant(&node.field) && node.child("metadata").is_some() {
        if let Some(metadata) = node.child("metadata") {
            leaves.extend(metadata.leaves.clone());
        }
        level(node, group, leaves);
    } else if node.is_struct() {
        for child in &node.children {
            whole(child, group, leaves);
        }
    } else {
        leaves.extend(node.leaves.clone());
    }
}

/// The leaves under one level of a variant, `metadata` left out.
fn level(node: &Node, group: &RowGroupMetaData, leaves: &mut Vec<usize>) {
    if let Some(value) = node.child("value")
        && !all_null(group, value.leaves.start)
    {
        leaves.extend(value.leaves.clone());
    }
    let Some(typed) = node.child("typed_value") else { return };
    if typed.is_struct() {
        let before = leaves.len();
        for field in &typed.children {
            level(field, group, leaves);
        }
        // The group itself says that there is an object, be it empty: one leaf must carry that.
        if leaves.len() == before {
            leaves.extend(typed.leaves.clone().take(1));
        }
    } else {
        leaves.extend(typed.leaves.clone());
    }
}

/// The leaves for one path of a variant column.
pub fn path(column: &Node, steps: &[Step], group: &RowGroupMetaData, leaves: &mut Vec<usize>) {
    let mut node = column;
    for step in steps {
        let typed = node.child("typed_value");
        let next = match (step, typed) {
            (Step::Key(key), Some(typed)) if typed.is_struct() => typed.child(key),
            (Step::Index(_), Some(typed)) if typed.is_list() => typed.children.first(),
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => {
                if let Some(value) = node.child("value")
                    && !all_null(group, value.leaves.start)
                {
                    leaves.extend(value.leaves.clone());
                    leaves.extend(column.child("metadata").map_or(0..0, |m| m.leaves.clone()));
                }
                return;
            }
        }
    }
    let first = leaves.len();
    level(node, group, leaves);
    // The dictionary is needed where anything but one typed leaf is read.
    let typed_leaf = node.child("typed_value").is_some_and(|t| t.is_leaf());
    let value = node.child("value").map(|v| v.leaves.start);
    if !typed_leaf || leaves[first..].iter().any(|leaf| Some(*leaf) == value) {
        leaves.extend(column.child("metadata").map_or(0..0, |m| m.leaves.clone()));
    }
}
