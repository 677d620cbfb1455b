//! Values that stand in a `value` column: validated first, then copied as bytes (they use the row's metadata,
//! rule 16, so nothing in them changes).
//!
//! Validation is one walk over a work list, whatever the depth; `children` has the rules. Containers nest to the depth
//! that the decoder takes (rule 18), those of the shredded levels above the value counted.
//! Object ids out of order are the one fault that is healed (DuckDB 2.0 writes them): their offsets need not be
//! monotonic (rule 11), so sorting the header in place is enough.

use crate::codec::children::{Children, id};
use crate::codec::head::{Head, check_scalar, cut, fault, head, is_container, length, number, too_deep};
use crate::codec::known::RowNames;
use crate::error::{Code, Error, Result};
use crate::limits::MAX_VALUE_DEPTH;
use crate::text::utf8::is_utf8;

/// A field of a residual object: its id, and where its value lies.
#[derive(Debug, Clone, Copy)]
pub struct FieldSpan {
    pub id: u32,
    pub start: u32,
    pub end: u32,
    /// Some object of the value it came from has its ids out of order: it has to be [copied](Validator::copy).
    pub unsorted: bool,
}

#[derive(Default)]
pub struct Validator {
    /// Containers around the value: the depth of its level.
    above: usize,
    /// Containers to look into, and how many lie around each.
    work: Vec<(u32, u32)>,
    unsorted: Vec<u32>,
    /// Field ids to sort.
    ids: Vec<u32>,
    pairs: Vec<(u32, u32)>,
}

impl Validator {
    /// From here on values stand this deep.
    pub fn at_depth(&mut self, above: usize) -> &mut Self {
        self.above = above;
        self
    }

    /// Validates the value and appends it, object ids sorted.
    pub fn copy(&mut self, names: RowNames<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.validate(names, value)?;
        if !self.unsorted.is_empty() {
            self.check_disjoint(value)?;
        }
        let start = out.len();
        out.extend_from_slice(value);
        let copied = &mut out[start..];
        for at in std::mem::take(&mut self.unsorted) {
            self.sort_head(names, copied, at as usize)?;
        }
        Ok(())
    }

    /// Validates an object and appends its fields to `entries`, sorted by name.
    pub fn open_object(&mut self, names: RowNames<'_>, value: &[u8], entries: &mut Vec<FieldSpan>) -> Result<()> {
        self.validate(names, value)?;
        let unsorted = !self.unsorted.is_empty();
        let head = head(value, 0)?;
        let first = entries.len();
        for index in 0..head.count {
            let id = id(value, &head, index)?;
            let start =
                head.body + number(value, head.offsets + index * head.offset_width, head.offset_width)? as usize;
            let end = start + length(value, start)?;
            entries.push(FieldSpan { id, start: start as u32, end: end as u32, unsorted });
        }
        if unsorted && let Some(new) = entries.get_mut(first..) {
            names.sort(new, |field| field.id);
        }
        Ok(())
    }

    /// Checks every rule of the encoding (6 to 16) and notes the objects whose ids are out of order.
    pub fn validate(&mut self, names: RowNames<'_>, value: &[u8]) -> Result<()> {
        self.walk(names, value, false)
    }

    /// The objects of the value validated last whose ids are out of order, by their first bytes.
    pub fn unsorted(&self) -> &[u32] {
        &self.unsorted
    }

    /// The same for a value of which one path is wanted: a primitive of an unknown type inside it spoils itself and
    /// nothing beside it (rule 7), so it is passed over here, and refused by whoever reads it.
    pub fn validate_around_unknown(&mut self, names: RowNames<'_>, value: &[u8]) -> Result<()> {
        self.walk(names, value, true)
    }

    fn walk(&mut self, names: RowNames<'_>, value: &[u8], unknown: bool) -> Result<()> {
        self.unsorted.clear();
        self.work.clear();
        if value.len() > u32::MAX as usize {
            return Err(Error::new(Code::TooLarge, "one value exceeds 4 GiB"));
        }
        let first = if is_container(value, 0) { Some(head(value, 0)?) } else { None };
        let end = first.map_or_else(|| check_one(value, 0), |head| Ok(head.end))?;
        if end != value.len() {
            return Err(fault(15, end, "bytes follow the end of the value"));
        }
        if let Some(head) = first {
            self.check_children(names, value, (0, self.above as u32), head, unknown)?;
        }
        while let Some((at, around)) = self.work.pop() {
            self.check_children(names, value, (at, around), head(value, at as usize)?, unknown)?;
        }
        Ok(())
    }

    fn check_children(
        &mut self,
        names: RowNames<'_>,
        value: &[u8],
        (at, around): (u32, u32),
        head: Head,
        unknown: bool,
    ) -> Result<()> {
        if around as usize >= MAX_VALUE_DEPTH {
            return Err(too_deep(at as usize));
        }
        if head.object && !names.check_ids(value, at as usize, &head, &mut self.ids)? {
            self.unsorted.push(at);
        }
        let mut children = Children::of(head);
        while let Some(child) = children.begin(value)? {
            let end = match check_one(value, child) {
                Err(e) if unknown && e.rule == Some(7) => child + 1,
                end => end?,
            };
            children.took(child, end)?;
            if is_container(value, child) {
                self.work.push((child as u32, around + 1));
            }
        }
        Ok(())
    }

    /// No two children share bytes: the header that is sorted in place may be no part of another value.
    fn check_disjoint(&mut self, value: &[u8]) -> Result<()> {
        self.work.clear();
        self.work.push((0, 0));
        while let Some((at, _)) = self.work.pop() {
            if !is_container(value, at as usize) {
                continue;
            }
            let head = head(value, at as usize)?;
            self.pairs.clear();
            for index in 0..head.count {
                let offset = number(value, head.offsets + index * head.offset_width, head.offset_width)?;
                let child = head.body + offset as usize;
                self.pairs.push((child as u32, (child + length(value, child)?) as u32));
                self.work.push((child as u32, 0));
            }
            self.pairs.sort_unstable();
            if self.pairs.windows(2).any(|pair| pair[1].0 < pair[0].1) {
                return Err(fault(15, at as usize, "fields are out of order, and children share bytes"));
            }
        }
        Ok(())
    }

    /// Rewrites ids and offsets of the object at `at` in the order of the names.
    fn sort_head(&mut self, names: RowNames<'_>, value: &mut [u8], at: usize) -> Result<()> {
        let head = head(value, at)?;
        self.pairs.clear();
        for index in 0..head.count {
            let id = id(value, &head, index)?;
            let offset = number(value, head.offsets + index * head.offset_width, head.offset_width)?;
            self.pairs.push((id, offset));
        }
        names.sort(&mut self.pairs, |&(id, _)| id);
        for (index, (id, offset)) in self.pairs.iter().enumerate() {
            put(value, head.ids + index * head.id_width, head.id_width, *id);
            put(value, head.offsets + index * head.offset_width, head.offset_width, *offset);
        }
        Ok(())
    }
}

fn put(value: &mut [u8], at: usize, width: usize, number: u32) {
    if let Some(slot) = value.get_mut(at..at + width) {
        slot.copy_from_slice(&number.to_le_bytes()[..width]);
    }
}

/// Checks a primitive, or the head of a container; gives the end of the value.
#[inline]
fn check_one(value: &[u8], at: usize) -> Result<usize> {
    if let Some(first) = value.get(at).filter(|first| *first & 3 == 1) {
        let end = at + 1 + (first >> 2) as usize;
        let text = value.get(at + 1..end).ok_or_else(|| cut(at))?;
        return if is_utf8(text) { Ok(end) } else { Err(no_utf8(at)) };
    }
    let end = at + length(value, at)?;
    let bytes = value.get(at..end).ok_or_else(|| cut(at))?;
    let text = match bytes {
        [0x40, _, _, _, _, rest @ ..] => rest,
        _ => return check_scalar(bytes, at).map(|()| end),
    };
    if is_utf8(text) { Ok(end) } else { Err(no_utf8(at)) }
}

#[cold]
fn no_utf8(at: usize) -> Error {
    fault(6, at, "a string is not UTF-8")
}
