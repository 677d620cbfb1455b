//! The early layout as types: a shredding tree ↔ the Arrow type of a variant column, and when a group is one.
//! Its text is "Shredding Overview" of the early Spark Variant: `object`, `array`, `typed_value`, `untyped_value`.
//!
//! ```text
//! variant column     optional group v            no annotation: the text has none
//!   untyped_value    optional binary             metadata and value in one; null where nothing is left over
//!   one or more of
//!     typed_value    optional, a leaf            the types of the standard's table (rule 21)
//!     object         optional group              of optional groups like this one, named as the keys
//!     array          optional LIST               list / optional group element, a group like this one
//! ```
//!
//! **When a group that nobody announced is an early column** ([`recognise`]): it is not annotated as a Variant, and
//! `untyped_value` (binary) stands in it beside one of the others; or `untyped_value`, `object` or `array` stand in
//! it, everything below obeys the table above, and nothing else is there. A struct that looks alike is denied, a
//! column of `typed_value` alone is forced, by whoever reads. Below the column every name counts: fields that
//! begin with `_` are ignored ("Backward and forward compatibility"), any other is an error that names it. The
//! children of `object` are keys of users, whatever they are called.

use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields};

use crate::error::{Code, Error, Result};
use crate::layout::standard::{ELEMENT, METADATA, TYPED_VALUE, VALUE, is_variant};
use crate::limits::MAX_TREE_DEPTH;
use crate::tree::{LeafType, Tree};

pub const UNTYPED_VALUE: &str = "untyped_value";
pub const OBJECT: &str = "object";
pub const ARRAY: &str = "array";

/// Whether a variant column's or level's fields are of the early layout; a lone `typed_value` is alike in both.
pub fn is_group(fields: &Fields) -> bool {
    if fields.iter().any(|f| f.name() == METADATA) {
        return false;
    }
    fields.iter().any(|f| matches!(f.name().as_str(), UNTYPED_VALUE | OBJECT | ARRAY))
        || !fields.is_empty() && fields.iter().all(|f| f.name() == TYPED_VALUE && !f.data_type().is_nested())
}

/// The fields of a level: `untyped_value` and, unless the tree is untyped, its typed place.
pub fn group_fields(tree: &Tree) -> Fields {
    let untyped = Arc::new(ArrowField::new(UNTYPED_VALUE, DataType::Binary, true));
    std::iter::once(untyped).chain(typed_field(tree)).collect()
}

/// The typed place of a level: `object`, `array` or `typed_value`.
pub fn typed_field(tree: &Tree) -> Option<FieldRef> {
    let (name, data_type) = if let Some(fields) = &tree.object {
        let group = |f: &crate::tree::Field| ArrowField::new(&f.name, DataType::Struct(group_fields(&f.tree)), true);
        (OBJECT, DataType::Struct(fields.iter().map(group).collect()))
    } else if let Some(element) = &tree.array {
        (ARRAY, DataType::List(element_field(element)))
    } else {
        (TYPED_VALUE, tree.leaf?.to_arrow())
    };
    Some(Arc::new(ArrowField::new(name, data_type, true)))
}

/// The element group of a shredded array.
pub fn element_field(element: &Tree) -> FieldRef {
    Arc::new(ArrowField::new(ELEMENT, DataType::Struct(group_fields(element)), true))
}

/// The footer's key under which mica says which early columns it shredded itself: `created_by` alone would speak for
/// a struct that was copied from another writer's file, too.
pub const SHREDDED_BY_MICA: &str = "mica.shredded_early";

/// The value of that key: each column's names from the top, one column a line; `None` where there is none.
pub fn shredded_columns(fields: &Fields) -> Option<String> {
    fn visit(fields: &Fields, names: &mut Vec<String>, out: &mut Vec<String>) {
        for field in fields {
            let DataType::Struct(children) = field.data_type() else { continue };
            names.push(field.name().clone());
            if !is_variant(field) {
                visit(children, names, out);
            } else if is_group(children) {
                out.push(spelled(names));
            }
            names.pop();
        }
    }
    let mut out = Vec::new();
    visit(fields, &mut Vec::new(), &mut out);
    (!out.is_empty()).then(|| out.join("\n"))
}

/// A column's names as they stand there: quoted and escaped, so that no two columns are spelled alike.
pub fn spelled(names: &[String]) -> String {
    format!("{names:?}")
}

/// The tree of an early column. Where a level has several shapes, the first of object, array and leaf: rows of the
/// others have no place in it.
pub fn tree_of(fields: &Fields, path: &str) -> Result<Tree> {
    check(fields, path)?;
    level_tree(fields)
}

fn level_tree(fields: &Fields) -> Result<Tree> {
    let find = |name: &str| fields.iter().find(|f| f.name() == name).map(|f| f.data_type());
    if let Some(DataType::Struct(children)) = find(OBJECT) {
        let field = |f: &FieldRef| {
            let DataType::Struct(group) = f.data_type() else { return Ok(Tree::untyped()) };
            level_tree(group)
        };
        let fields = children
            .iter()
            .map(|f| Ok(crate::tree::Field { name: f.name().clone(), tree: field(f)? }))
            .collect::<Result<_>>()?;
        return Tree::object(fields);
    }
    if let Some(DataType::List(element) | DataType::LargeList(element)) = find(ARRAY)
        && let DataType::Struct(group) = element.data_type()
    {
        return Ok(Tree::array(level_tree(group)?));
    }
    find(TYPED_VALUE).map_or(Ok(Tree::untyped()), |leaf| LeafType::from_arrow(leaf).map(Tree::leaf))
}

/// Whether a column that nobody announced is an early one; an error where it claims to be and is not sound.
pub fn recognise(field: &ArrowField, path: &str) -> Result<bool> {
    let DataType::Struct(fields) = field.data_type() else { return Ok(false) };
    let has = |name: &str| fields.iter().find(|f| f.name() == name);
    if is_variant(field) || has(METADATA).is_some() && has(VALUE).is_some() {
        return Ok(false);
    }
    let untyped = has(UNTYPED_VALUE).is_some_and(|f| is_binary(f.data_type()));
    if untyped && [OBJECT, ARRAY, TYPED_VALUE].iter().any(|name| has(name).is_some()) {
        return check(fields, path).map(|()| true);
    }
    Ok((untyped || has(OBJECT).is_some() || has(ARRAY).is_some()) && check(fields, path).is_ok())
}

/// Refuses a group that is no level of the early layout.
pub fn check(fields: &Fields, path: &str) -> Result<()> {
    check_at(fields, path, 0)
}

fn check_at(fields: &Fields, path: &str, depth: usize) -> Result<()> {
    if depth > MAX_TREE_DEPTH {
        let message = format!("a shredded column nests more than {MAX_TREE_DEPTH} levels");
        return Err(Error::new(Code::TooDeep, message).path(path));
    }
    let mut known = Vec::new();
    for field in fields {
        let at = format!("{path}.{}", field.name());
        match (field.name().as_str(), field.data_type()) {
            (UNTYPED_VALUE, data_type) if is_binary(data_type) => {}
            (UNTYPED_VALUE, other) => return Err(wrong(&at, "binary", other)),
            (TYPED_VALUE, leaf) => {
                LeafType::from_arrow(leaf).map_err(|_| wrong(&at, "a type of a Variant", leaf))?;
            }
            (OBJECT, DataType::Struct(children)) => check_object(children, &at, depth)?,
            (OBJECT, other) => return Err(wrong(&at, "a group", other)),
            (ARRAY, DataType::List(element) | DataType::LargeList(element)) => {
                let at = format!("{at}.list.element");
                match element.data_type() {
                    DataType::Struct(group) => check_at(group, &at, depth + 1)?,
                    other => return Err(wrong(&at, "a group of the columns of a Variant", other)),
                }
            }
            (ARRAY, other) => return Err(wrong(&at, "a LIST of groups", other)),
            (name, _) if name.starts_with('_') => continue,
            (name, _) => return Err(unknown(path, name)),
        }
        if known.contains(field.name()) {
            return Err(malformed(path, format!("the group {path} has two fields named {}", field.name())));
        }
        known.push(field.name().clone());
    }
    if known.is_empty() {
        let message = format!("the group {path} has none of untyped_value, typed_value, object and array");
        return Err(malformed(path, message));
    }
    Ok(())
}

fn check_object(children: &Fields, path: &str, depth: usize) -> Result<()> {
    let mut names: Vec<&str> = children.iter().map(|f| f.name().as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(malformed(path, format!("{path} shreds the field {:?} twice", pair[0])));
    }
    children.iter().try_for_each(|child| {
        let at = format!("{path}.{}", child.name());
        match child.data_type() {
            DataType::Struct(group) => check_at(group, &at, depth + 1),
            other => Err(wrong(&at, "a group of the columns of a Variant", other)),
        }
    })
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

fn wrong(path: &str, wanted: &str, found: &DataType) -> Error {
    malformed(path, format!("{path} is {found}, but the early layout has {wanted}"))
}

/// "Any extra field names that do not start with an underscore should be assumed to be backwards incompatible."
pub fn unknown(path: &str, name: &str) -> Error {
    let message = format!("{path} has the field {name:?}, which is not untyped_value, typed_value, object or array");
    malformed(path, message)
}

pub fn malformed(path: &str, message: impl Into<String>) -> Error {
    Error::new(Code::MalformedShredding, message).path(path)
}
