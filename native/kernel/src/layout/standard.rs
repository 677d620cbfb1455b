//! The standard layout as types: a shredding tree ↔ the Arrow type of a variant column ↔ its Parquet schema.
//!
//! ```text
//! variant column   optional group v (VARIANT(1))      struct<metadata, value, typed_value>
//!   metadata       required binary                     one dictionary for all values below (rule 19)
//!   value          binary: optional when shredded, required when not (rule 2); always written
//!   typed_value    optional, by the tree:
//!     leaf           the type of the standard's table (rule 21)
//!     object         group of required groups {value, typed_value} (rule 34), named as the keys
//!     array          LIST: list / required group element {value, typed_value} (rule 29)
//! ```
//!
//! Fields are found by name, never by position. Reading tolerates what has one meaning only: a missing `value`,
//! wrong required/optional marks, large and view types. It refuses what has none.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields};

use crate::error::{Code, Error, Result};
use crate::limits::MAX_TREE_DEPTH;
use crate::tree::{Field, LeafType, Tree};

pub const METADATA: &str = "metadata";
pub const VALUE: &str = "value";
pub const TYPED_VALUE: &str = "typed_value";
/// The name of the repeated group's child, in Arrow and in Parquet.
pub const ELEMENT: &str = "element";

const EXTENSION_NAME: &str = "ARROW:extension:name";
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";
const VARIANT_EXTENSION: &str = "arrow.parquet.variant";

/// Whether a field is marked as a variant column.
pub fn is_variant(field: &ArrowField) -> bool {
    field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == VARIANT_EXTENSION)
        && matches!(field.data_type(), DataType::Struct(_))
}

/// Marks a struct field as a variant column, keeping its other metadata.
pub fn mark(field: ArrowField) -> ArrowField {
    let mut metadata: HashMap<String, String> = field.metadata().clone().into();
    metadata.insert(EXTENSION_NAME.into(), VARIANT_EXTENSION.into());
    metadata.insert(EXTENSION_METADATA.into(), String::new());
    field.with_metadata(metadata)
}

/// The fields of the column's struct with metadata as views (Arrow's `BinaryView`): rows that share one hold it once.
pub fn with_views(fields: &Fields) -> Fields {
    let viewed = |field: &FieldRef| match field.name().as_str() {
        METADATA => Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView)),
        _ => field.clone(),
    };
    fields.iter().map(viewed).collect()
}

/// The fields of the column's struct: `metadata`, `value` and, unless the tree is untyped, `typed_value`.
pub fn column_fields(tree: &Tree) -> Fields {
    let metadata = ArrowField::new(METADATA, DataType::Binary, false);
    let value = ArrowField::new(VALUE, DataType::Binary, !tree.is_untyped());
    let typed = typed_type(tree).map(|t| ArrowField::new(TYPED_VALUE, t, true));
    [metadata, value].into_iter().chain(typed).collect()
}

/// The fields of a group below the column: `value` and, unless the tree is untyped, `typed_value`.
pub fn group_fields(tree: &Tree) -> Fields {
    let value = ArrowField::new(VALUE, DataType::Binary, true);
    let typed = typed_type(tree).map(|t| ArrowField::new(TYPED_VALUE, t, true));
    std::iter::once(value).chain(typed).collect()
}

/// The type of `typed_value`; `None` for an untyped tree.
pub fn typed_type(tree: &Tree) -> Option<DataType> {
    if let Some(fields) = &tree.object {
        let group = |f: &Field| ArrowField::new(&f.name, DataType::Struct(group_fields(&f.tree)), false);
        Some(DataType::Struct(fields.iter().map(group).collect()))
    } else if let Some(element) = &tree.array {
        Some(DataType::List(element_field(element)))
    } else {
        tree.leaf.map(LeafType::to_arrow)
    }
}

/// The element group of a shredded array.
pub fn element_field(element: &Tree) -> FieldRef {
    Arc::new(ArrowField::new(ELEMENT, DataType::Struct(group_fields(element)), false))
}

/// Refuses trees that the standard layout cannot spell: several shapes at one level, or an object without fields.
pub fn check_tree(tree: &Tree) -> Result<()> {
    let shapes = tree.object.is_some() as u8 + tree.array.is_some() as u8 + tree.leaf.is_some() as u8;
    if shapes > 1 {
        let message = "the standard layout shreds one of object, array and leaf at a level, not several";
        return Err(Error::new(Code::UnsupportedType, message));
    }
    if let Some(fields) = &tree.object {
        if fields.is_empty() {
            return Err(Error::new(
                Code::UnsupportedType,
                "a shredded object needs at least one field: Parquet has no empty groups",
            ));
        }
        for field in fields {
            if field.name.contains('\0') {
                let message = format!("the key {:?} cannot be shredded: column names cannot contain NUL", field.name);
                return Err(Error::new(Code::UnsupportedType, message).path(&field.name));
            }
            check_tree(&field.tree).map_err(|e| e.path(&field.name))?;
        }
    }
    if let Some(element) = &tree.array {
        check_tree(element)?;
    }
    if let Some(LeafType::Decimal { precision, scale }) = tree.leaf
        && (precision == 0 || precision > 38 || scale > precision)
    {
        let message =
            format!("decimal({precision},{scale}) is not a decimal type of Variants, which have 1 to 38 digits");
        return Err(Error::new(Code::UnsupportedType, message).rule(8));
    }
    Ok(())
}

/// The tree of a variant column's Arrow type, unshredded or in the standard layout.
pub fn tree_of(data_type: &DataType) -> Result<Tree> {
    let DataType::Struct(fields) = data_type else {
        return Err(malformed(1, format!("a variant column is a struct, not {data_type}")));
    };
    let Some(metadata) = child(fields, METADATA)? else {
        return Err(malformed(2, "a variant column has no field metadata"));
    };
    binary(metadata, 2)?;
    group_tree(fields, true, 0)
}

fn group_tree(fields: &Fields, is_column: bool, depth: usize) -> Result<Tree> {
    if depth > MAX_TREE_DEPTH {
        let message = format!("a shredded column nests more than {MAX_TREE_DEPTH} levels");
        return Err(Error::new(Code::TooDeep, message));
    }
    if let Some(other) = fields.iter().find(|f| {
        let name = f.name().as_str();
        name != VALUE && name != TYPED_VALUE && !(is_column && name == METADATA)
    }) {
        let message = format!("a variant group has only value and typed_value, found {:?}", other.name());
        return Err(malformed(1, message));
    }
    let value = child(fields, VALUE)?;
    if let Some(value) = value {
        binary(value, 2)?;
    }
    match child(fields, TYPED_VALUE)? {
        Some(typed) => typed_tree(typed.data_type(), depth),
        None if value.is_some() => Ok(Tree::untyped()),
        None => Err(malformed(29, "a variant group has neither value nor typed_value")),
    }
}

fn typed_tree(data_type: &DataType, depth: usize) -> Result<Tree> {
    match data_type {
        DataType::Struct(fields) => {
            let field = |f: &FieldRef| {
                let DataType::Struct(group) = f.data_type() else {
                    let message = "a field of a shredded object is a group of value and typed_value";
                    return Err(malformed(34, message).path(f.name()));
                };
                let tree = group_tree(group, false, depth + 1).map_err(|e| within(e, f.name()))?;
                Ok(Field { name: f.name().clone(), tree })
            };
            let fields = fields.iter().map(field).collect::<Result<Vec<_>>>()?;
            Tree::object(fields).map_err(|e| Error { code: Code::MalformedShredding, ..e })
        }
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => {
            let DataType::Struct(group) = element.data_type() else {
                let message = "the element of a shredded array is a group of value and typed_value";
                return Err(malformed(29, message).path(ELEMENT));
            };
            Ok(Tree::array(group_tree(group, false, depth + 1).map_err(|e| within(e, "[*]"))?))
        }
        leaf => LeafType::from_arrow(leaf).map(Tree::leaf).map_err(|e| Error { code: Code::MalformedShredding, ..e }),
    }
}

fn within(mut error: Error, name: &str) -> Error {
    error.path = Some(match error.path.take() {
        Some(rest) => format!("{name}.{rest}"),
        None => name.to_owned(),
    });
    error
}

/// The one child with this name; two of them have no single meaning.
fn child<'a>(fields: &'a Fields, name: &str) -> Result<Option<&'a FieldRef>> {
    let mut found = fields.iter().filter(|f| f.name() == name);
    let first = found.next();
    if found.next().is_some() {
        return Err(malformed(1, format!("a variant group has the field {name} twice")));
    }
    Ok(first)
}

fn binary(field: &ArrowField, rule: u8) -> Result<()> {
    match field.data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(()),
        DataType::Dictionary(_, of)
            if matches!(**of, DataType::Binary | DataType::LargeBinary | DataType::BinaryView) =>
        {
            Ok(())
        }
        other => Err(malformed(rule, format!("{} of a variant group is binary, not {other}", field.name()))),
    }
}

fn malformed(rule: u8, message: impl Into<String>) -> Error {
    Error::new(Code::MalformedShredding, message).rule(rule)
}
