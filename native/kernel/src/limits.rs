//! How deep things may nest: the text of the encoding has no limit, these are ours. And how much a column holds.

use crate::error::{Error, Result};

/// Objects and arrays around a value (rule 18).
pub const MAX_VALUE_DEPTH: usize = 1000;

/// Levels of a shredding tree. Deeper trees are refused wherever they come from: recursion over a tree is then safe
/// everywhere.
pub const MAX_TREE_DEPTH: usize = 100;

/// Bytes of one column of a batch: what Arrow's offsets can address.
pub const MAX_BYTES: usize = i32::MAX as usize;

/// Refuses more bytes than a column holds: names may be long and stand in any number of objects of a value, so that few
/// bytes become a long text.
#[inline]
pub fn check_room(bytes: usize) -> Result<()> {
    if bytes > MAX_BYTES { Err(Error::no_room()) } else { Ok(()) }
}
