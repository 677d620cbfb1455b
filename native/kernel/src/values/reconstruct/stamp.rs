//! A row by its template: each value is written where it stays, its offset before it. Objects get offsets as wide as in
//! the widest row of the template so far; where one byte is enough, what is in them moves.

use crate::codec::known::RowNames;
use crate::codec::primitive::MAX_SHORT_STRING;
use crate::codec::simple::is_simple;
use crate::error::Result;
use crate::values::leaf::Leaf;
use crate::values::reconstruct::leaves::Leaves;
use crate::values::reconstruct::template::{DEPTH, HEAD, ObjectHead, Other, Step, Template};
use crate::values::reconstruct::variant::VariantBytes;
use crate::values::reconstruct::walk::Writer;

/// Texts up to this many bytes are copied in one piece, those up to as many more in two.
const PIECE: usize = 32;

/// An object that is not closed yet.
#[derive(Clone, Copy, Default)]
struct Frame {
    /// Where the values begin, and where the next offset goes.
    body: usize,
    offset: usize,
    /// Of an offset.
    width: usize,
}

/// How a try at a row ended.
enum Tried {
    Written,
    /// Some objects turned out to need offsets of two bytes, and have them from now on.
    Wider,
    /// An object needs offsets of more than two bytes, which templates do not have.
    TooLarge,
}

impl VariantBytes {
    /// Whether the row fits; `other` writes what has no step of its own.
    pub fn stamp(
        &mut self,
        template: &mut Template,
        leaves: &Leaves,
        (slot, names): (usize, RowNames<'_>),
        mut other: impl FnMut(&mut Self, &Other) -> Result<()>,
    ) -> Result<bool> {
        let start = self.len;
        // Wider offsets of an object can make those around it too large for theirs: once for each level of depth.
        for _ in 0..=DEPTH {
            match self.stamp_once(template, leaves, (slot, names), &mut other)? {
                Tried::Written => return Ok(true),
                Tried::Wider => self.len = start,
                Tried::TooLarge => break,
            }
        }
        self.len = start;
        Ok(false)
    }

    #[inline(always)]
    fn stamp_once(
        &mut self,
        template: &mut Template,
        leaves: &Leaves,
        (slot, names): (usize, RowNames<'_>),
        other: &mut impl FnMut(&mut Self, &Other) -> Result<()>,
    ) -> Result<Tried> {
        let Template { steps, heads, others, .. } = template;
        let mut tried = Tried::Written;
        let mut at = self.len;
        // The row itself has no offset: two bytes are written that its own first bytes replace.
        self.reach(at + 2);
        let (mut body, mut offset, mut width) = (at, at, 0);
        let mut frames = [Frame::default(); DEPTH];
        let mut depth = 0;
        let mut out: &mut [u8] = &mut self.bytes;
        for &step in steps.iter() {
            if let Step::Close(number) = step {
                let size = at - body;
                match width {
                    1 if size <= 0xff => {
                        if let Some(last) = out.get_mut(offset) {
                            *last = size as u8;
                        }
                    }
                    2 if size > 0xff && size <= 0xffff => put(out, offset, (size as u16).to_le_bytes()),
                    2 if size <= 0xff => {
                        let Some(head) = heads.get(number as usize) else { continue };
                        at = narrow(out, body, at, head);
                    }
                    _ => {
                        if size > 0xffff {
                            return Ok(Tried::TooLarge);
                        }
                        tried = Tried::Wider;
                        if let Some(head) = heads.get_mut(number as usize) {
                            head.set_width(2);
                        }
                    }
                }
                depth -= 1;
                Frame { body, offset, width } = frames[depth % DEPTH];
                continue;
            }
            put(out, offset, ((at - body) as u16).to_le_bytes());
            offset += width;
            match step {
                Step::Text(number) => {
                    let Some(texts) = leaves.texts.get(number as usize) else { continue };
                    let ends = texts.ends.get(slot..).and_then(|ends| ends.first_chunk::<2>());
                    let Some(&[start, end]) = ends else { continue };
                    let (start, end) = (start as usize, end as usize);
                    let len = end - start;
                    if len <= PIECE
                        && let Some(piece) = texts.bytes.get(start..).and_then(|b| b.first_chunk::<PIECE>())
                        && let Some(room) = out.get_mut(at..).and_then(|b| b.first_chunk_mut::<{ PIECE + 1 }>())
                    {
                        room[0] = (len as u8) << 2 | 1;
                        room[1..].copy_from_slice(piece);
                        at += 1 + len;
                    } else if len <= MAX_SHORT_STRING
                        && let Some(piece) = texts.bytes.get(start..).and_then(|b| b.first_chunk::<{ 2 * PIECE }>())
                        && let Some(room) = out.get_mut(at..).and_then(|b| b.first_chunk_mut::<{ 2 * PIECE + 1 }>())
                    {
                        room[0] = (len as u8) << 2 | 1;
                        room[1..].copy_from_slice(piece);
                        at += 1 + len;
                    } else {
                        self.len = at;
                        self.far_text(&texts.bytes, start, end);
                        (at, out) = (self.len, &mut self.bytes);
                    }
                }
                Step::Eight(number) => {
                    let Some(eights) = leaves.eights.get(number as usize) else { continue };
                    let Some(value) = eights.values.as_chunks::<8>().0.get(slot) else { continue };
                    if let Some(room) = out.get_mut(at..).and_then(|b| b.first_chunk_mut::<9>()) {
                        room[0] = eights.first;
                        room[1..].copy_from_slice(value);
                        at += 9;
                    } else {
                        self.len = at;
                        self.put(&[eights.first]);
                        self.put(value);
                        (at, out) = (self.len, &mut self.bytes);
                    }
                }
                Step::Leaf(number) => {
                    self.len = at;
                    if let Some(leaf) = leaves.others.get(number as usize) {
                        self.far_leaf(leaf, slot);
                    }
                    (at, out) = (self.len, &mut self.bytes);
                }
                Step::Residual(number) => {
                    let Some(level) = others.get(number as usize) else { continue };
                    let values = leaves.residuals.get(level.residual as usize);
                    let value = values.and_then(|values| values.get(slot));
                    self.len = at;
                    match value.filter(|value| is_simple(names, value)) {
                        Some(value) => self.put(value),
                        None => other(self, level)?,
                    }
                    (at, out) = (self.len, &mut self.bytes);
                }
                Step::Other(number) => {
                    self.len = at;
                    if let Some(level) = others.get(number as usize) {
                        other(self, level)?;
                    }
                    (at, out) = (self.len, &mut self.bytes);
                }
                Step::Open(number) => {
                    let Some(head) = heads.get(number as usize) else { continue };
                    frames[depth % DEPTH] = Frame { body, offset, width };
                    depth += 1;
                    width = head.width;
                    offset = at + head.len;
                    body = offset + (head.count + 1) * width;
                    if out.len() < body + HEAD {
                        self.reach(body + HEAD);
                        out = &mut self.bytes;
                    }
                    if head.len <= HEAD
                        && let Some(bytes) = head.first_bytes()
                        && let Some(room) = out.get_mut(at..).and_then(|b| b.first_chunk_mut::<HEAD>())
                    {
                        *room = *bytes;
                    } else if let Some(room) = out.get_mut(at..offset) {
                        room.copy_from_slice(head.bytes());
                    }
                    at = body;
                }
                Step::Close(_) => {}
            }
        }
        self.len = at;
        Ok(tried)
    }

    #[cold]
    #[inline(never)]
    fn far_text(&mut self, all: &[u8], start: usize, end: usize) {
        self.text(all, start, end);
    }

    #[inline(never)]
    fn far_leaf(&mut self, leaf: &Leaf, slot: usize) {
        self.leaf(leaf, slot);
    }
}

/// Offsets of two bytes as offsets of one; gives where the values end.
#[inline(never)]
fn narrow(out: &mut [u8], body: usize, end: usize, head: &ObjectHead) -> usize {
    let Some(object) = out.get_mut(body - 2 * (head.count + 1) - head.len..end) else { return end };
    object[0] = head.narrow_first();
    let offsets = &mut object[head.len..];
    for at in 0..head.count {
        offsets[at] = offsets[2 * at];
    }
    offsets[head.count] = (end - body) as u8;
    offsets.copy_within(2 * (head.count + 1).., head.count + 1);
    end - (head.count + 1)
}

#[inline(always)]
fn put(out: &mut [u8], at: usize, bytes: [u8; 2]) {
    if let Some(room) = out.get_mut(at..).and_then(|room| room.first_chunk_mut::<2>()) {
        *room = bytes;
    }
}
