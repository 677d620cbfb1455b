//! What a row of an early level may hold ("Parquet Layout", "Unshredded values", `ConstructVariant`):
//!
//! | typed_value, object, array | untyped_value  | meaning                                                       |
//! |----------------------------|----------------|---------------------------------------------------------------|
//! | none set                   | null           | missing (a field); Variant null anywhere else                 |
//! | none set                   | any value      | that value, an object or array too                            |
//! | one set                    | null           | that one                                                      |
//! | `object` set               | an object      | both: no field is in both, one that is missing in `object` is |
//! |                            |                | taken from `untyped_value`                                    |
//! | `typed_value` set          | Variant null   | Variant null: the pseudocode yields it, the table calls it    |
//! |                            |                | invalid (docs/decisions.md); never written                    |
//! | anything else              |                | refused                                                       |

use arrow_array::Array;

use crate::error::Result;
use crate::layout::early::malformed;
use crate::values::level::{Level, is_null};

/// What one row of a level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// `object`, `array` or `typed_value` alone, or nothing at all.
    Typed,
    /// `untyped_value` alone.
    Untyped,
    /// An object in two parts.
    Partial,
    /// A typed value that the Variant null beside it stands for.
    Null,
}

impl Level {
    /// The state of this row; `value` is the value part of its `untyped_value`, where that is set. Refuses what the
    /// table does.
    pub fn early_state(&self, at: usize, value: Option<&[u8]>) -> Result<State> {
        let leaf = self.leaf.as_ref().is_some_and(|l| l.array.is_valid(at));
        let object = self.object.as_ref().is_some_and(|o| !is_null(&o.nulls, at));
        let array = self.array.as_ref().is_some_and(|a| !is_null(&a.nulls, at));
        if leaf as u8 + object as u8 + array as u8 > 1 {
            let message = format!("{} has several of object, array and typed_value in one row", self.path);
            return Err(malformed(&self.path, message));
        }
        let Some(value) = value else { return Ok(State::Typed) };
        let refuse = |what: &str| {
            let message = format!("{} has both an untyped_value and {what}", self.path);
            Err(malformed(&self.path, message))
        };
        match value.first() {
            _ if array => refuse("an array"),
            Some(0) if leaf => Ok(State::Null),
            _ if leaf => refuse("a typed_value"),
            Some(header) if object && header & 3 == 2 => Ok(State::Partial),
            _ if object => refuse("an object, but the untyped_value is not an object"),
            _ => Ok(State::Untyped),
        }
    }

    /// Whether a row of this level could be refused although it has no `untyped_value`.
    pub fn has_several_shapes(&self) -> bool {
        self.leaf.is_some() as u8 + self.object.is_some() as u8 + self.array.is_some() as u8 > 1
    }
}
