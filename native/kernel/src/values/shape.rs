//! What a level may hold beside what (the null table in `level`): the errors of those that hold something else.

use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::values::level::Level;

pub fn conflict(level: &Level, what: &str) -> Error {
    Error::new(Code::MalformedShredding, format!("{} has both a value and {what}", level.path))
        .rule(25)
        .path(&level.path)
}

/// A residual has a field that is shredded; `present`: whether the shredded one is there too.
pub fn in_both(level: &Level, name: &str, present: bool) -> Error {
    let message = format!("{} has the field {name:?}, which is also shredded", level.value_path());
    Error::new(Code::MalformedShredding, message).rule(if present { 37 } else { 35 }).path(level.value_path())
}

pub fn is_object(value: &[u8]) -> bool {
    value.first().is_some_and(|b| b & 3 == 2)
}

/// An object where objects are shredded, or an array where arrays are, must stand in `typed_value`; in the early
/// layout they need not.
pub fn check_shape(level: &Level, value: &[u8]) -> Result<()> {
    if level.layout == Layout::Early {
        return Ok(());
    }
    let basic = value.first().map(|b| b & 3);
    let (rule, what) = match basic {
        Some(2) if level.object.is_some() => (if is_empty_object(value) { 33 } else { 32 }, "an object"),
        Some(3) if level.array.is_some() => (30, "an array"),
        _ => return Ok(()),
    };
    Err(Error::new(
        Code::MalformedShredding,
        format!("{} has {what}, which this file shreds: typed_value must not be null", level.value_path()),
    )
    .rule(rule)
    .path(level.value_path()))
}

fn is_empty_object(value: &[u8]) -> bool {
    match value {
        [header, rest @ ..] if header >> 6 & 1 == 1 => rest.get(..4).is_some_and(|n| n == [0; 4]),
        [_, count, ..] => *count == 0,
        _ => false,
    }
}
