//! What may be asked of a file: refused before a row is read.

use parquet::basic::Type as PhysicalType;

use crate::error::{Code, Error, Result};
use crate::item::{Item, ItemKind};
use crate::layout::Layout;
use crate::layout::standard::is_variant;
use crate::parquet::file::FileReader;
use crate::parquet::level::layout;
use crate::parquet::schema::Node;

/// Whether the file has the column of an item, in a form that is known.
pub fn check(file: &FileReader, item: &Item) -> Result<()> {
    let name = item.path();
    let Some(node) = file.find(&item.column) else {
        return Err(Error::new(Code::InvalidArgument, format!("{} has no column {name}", file.name())).path(name));
    };
    if matches!(item.kind, ItemKind::Path { .. } | ItemKind::There) && !node.is_struct() {
        return Err(Error::new(
            Code::CorruptFile,
            format!("the column {name} of {} is {}, not a variant", file.name(), node.field.data_type()),
        )
        .path(name));
    }
    refuse_int96(file, node)?;
    refuse_unknown(file, node, &name)
}

/// INT96 is a timestamp in plain columns and no type that a variant can be shredded to (rule 21).
fn refuse_int96(file: &FileReader, node: &Node) -> Result<()> {
    if !is_variant(&node.field) {
        return node.children.iter().try_for_each(|child| refuse_int96(file, child));
    }
    let schema = file.metadata().file_metadata().schema_descr();
    match node.leaves.clone().find(|&leaf| schema.column(leaf).physical_type() == PhysicalType::INT96) {
        None => Ok(()),
        Some(leaf) => {
            let path = schema.column(leaf).path().string();
            Err(Error::new(Code::MalformedShredding, format!("{path} of {} is INT96", file.name())).rule(21).path(path))
        }
    }
}

/// What stands beside `value` and `typed_value` under another name would be passed over, and its rows would read as
/// null: a layout that is not known is refused (rules 1, 44). A projection would never see it.
fn refuse_unknown(file: &FileReader, node: &Node, path: &str) -> Result<()> {
    if !is_variant(&node.field) {
        let below = |child: &Node| refuse_unknown(file, child, &format!("{path}.{}", child.field.name()));
        return node.children.iter().try_for_each(below);
    }
    if layout(node) == Layout::Early {
        return Ok(()); // It was checked when it was recognised.
    }
    // Each group with the place of the one around it: a path is spelled only for an error.
    let mut groups = vec![(node, None)];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let (group, _) = groups[at];
        for child in &group.children {
            match child.field.name().as_str() {
                "typed_value" if child.is_struct() || child.is_list() => {
                    open.extend(groups.len()..groups.len() + child.children.len());
                    groups.extend(child.children.iter().map(|below| (below, Some(at))));
                }
                "metadata" if at == 0 => {}
                "typed_value" if !child.is_leaf() => {
                    let path = format!("{path}{}.typed_value", path_within(&groups, at));
                    let message = format!(
                        "{path} of {} is {}, to which no variant is shredded",
                        file.name(),
                        child.field.data_type()
                    );
                    return Err(Error::new(Code::MalformedShredding, message).rule(21).path(path));
                }
                "value" | "typed_value" => {}
                name if name.starts_with('_') => {}
                name => {
                    let path = format!("{path}{}", path_within(&groups, at));
                    let message = format!(
                        "{path} of {} has the field {name:?}, which is not metadata, value or typed_value",
                        file.name()
                    );
                    return Err(Error::new(Code::MalformedShredding, message).rule(1).path(path));
                }
            }
        }
    }
    Ok(())
}

/// The path from the first group to the one at `at`.
fn path_within(groups: &[(&Node, Option<usize>)], mut at: usize) -> String {
    let mut steps = Vec::new();
    while let Some((group, Some(around))) = groups.get(at) {
        let holds = |typed: &&Node| typed.children.iter().any(|below| std::ptr::eq(below, *group));
        let in_list = groups[*around].0.children.iter().find(holds).is_some_and(Node::is_list);
        steps.push(format!(".typed_value.{}", if in_list { "list.element" } else { group.field.name() }));
        at = *around;
    }
    steps.into_iter().rev().collect()
}
