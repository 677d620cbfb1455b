//! What may be asked of a file: refused before a row is read.

use parquet::basic::Type as PhysicalType;

use crate::error::{Code, Error, Result};
use crate::item::{Item, ItemKind};
use crate::layout::Layout;
use crate::layout::standard::is_variant;
use crate::parquet::file::FileReader;
use crate::parquet::level::layout;
use crate::parquet::schema::{Node, find};

/// Whether the file has the column of an item, in a form that is known.
pub fn check(file: &FileReader, item: &Item) -> Result<()> {
    let name = item.path();
    let Some(node) = find(file.columns(), &item.column) else {
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
    let mut groups = vec![(node, path.to_string())];
    while let Some((group, path)) = groups.pop() {
        for child in &group.children {
            let name = child.field.name().as_str();
            match name {
                "typed_value" if child.is_struct() => {
                    groups.extend(child.children.iter().map(|f| (f, format!("{path}.{name}.{}", f.field.name()))));
                }
                "typed_value" if child.is_list() => {
                    groups.extend(child.children.iter().map(|e| (e, format!("{path}.{name}.list.element"))));
                }
                "metadata" if std::ptr::eq(group, node) => {}
                "value" | "typed_value" => {}
                name if name.starts_with('_') => {}
                name => {
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
