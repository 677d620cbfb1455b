//! The children of an object or array, checked as a walk passes them (rules 10, 12, 15 and 20): every walk over the bytes
//! of a value that was not validated before goes through here.
//!
//! The lengths of the children may not sum to more than the body, so bytes that point twice at the same child cannot
//! multiply the work.

use crate::codec::head::{Head, fault, number};
use crate::error::Result;

/// The children that are left.
pub struct Children {
    pub head: Head,
    /// Children that were begun.
    pub begun: usize,
    /// Bytes of the body that no child has taken yet.
    left: usize,
}

impl Children {
    #[inline]
    pub fn of(head: Head) -> Self {
        Self { head, begun: 0, left: head.end - head.body }
    }

    /// The offset of the next child.
    #[inline]
    pub fn begin(&mut self, value: &[u8]) -> Result<Option<usize>> {
        if self.begun == self.head.count {
            return Ok(None);
        }
        let child = Self::offset(value, &self.head, self.begun)?;
        self.begun += 1;
        Ok(Some(child))
    }

    /// The offset of child number `index`.
    #[inline]
    pub fn offset(value: &[u8], head: &Head, index: usize) -> Result<usize> {
        let at = head.offsets + index * head.offset_width;
        let child = head.body + number(value, at, head.offset_width)? as usize;
        if child >= head.end {
            return Err(fault(15, at, "an offset points beyond its object or array"));
        }
        Ok(child)
    }

    /// The child at `child` ends at `end`.
    #[inline]
    pub fn took(&mut self, child: usize, end: usize) -> Result<()> {
        match self.left.checked_sub(end - child) {
            Some(left) if end <= self.head.end => self.left = left,
            _ => return Err(fault(15, child, "a child reaches beyond its object or array")),
        }
        Ok(())
    }
}

/// The field id number `index` of an object.
#[inline]
pub fn id(value: &[u8], head: &Head, index: usize) -> Result<u32> {
    number(value, head.ids + index * head.id_width, head.id_width)
}

/// Whether the ids of an object are in the order of their names (rule 11). Every id is in the metadata (rule 20), and
/// no name comes twice (rule 12). `key` orders ids as their names; `ids` is room to sort them.
#[inline]
pub fn check_ids<K: Ord>(
    value: &[u8],
    at: usize,
    head: &Head,
    ids: &mut Vec<u32>,
    key: impl Fn(u32) -> Option<K>,
) -> Result<bool> {
    let mut ascending = true;
    let mut last = None;
    for index in 0..head.count {
        let id = id(value, head, index)?;
        let own = key(id);
        if own.is_none() {
            let message = format!("an object has the field id {id}, which is not in the metadata");
            return Err(fault(20, head.ids + index * head.id_width, message));
        }
        ascending &= last < own;
        last = own;
    }
    if !ascending {
        ids.clear();
        for index in 0..head.count {
            ids.push(id(value, head, index)?);
        }
        ids.sort_unstable_by_key(|&id| key(id));
        if ids.windows(2).any(|pair| key(pair[0]) == key(pair[1])) {
            return Err(fault(12, at, "an object has the same field twice"));
        }
    }
    Ok(ascending)
}
