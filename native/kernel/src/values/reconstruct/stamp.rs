//! A row by its template: each value is written where it stays, its offset before it. Objects get offsets as wide as in
//! the widest row of the template so far; where one byte is enough, what is in them moves.

use crate::codec::known::RowNames;
use crate::codec::primitive::MAX_SHORT_STRING;
use crate::codec::simple::is_simple;
use crate::error::Result;
use crate::values::reconstruct::leaves::Leaves;
use crate::values::reconstruct::template::{DEPTH, HEAD, ObjectHead, Other, Step, Template};
use crate::values::reconstruct::variant::VariantBytes;
use crate::values::reconstruct::walk::Writer;

/// Short strings are copied in one piece of so many bytes, with what is behind them.
const PIECE: usize = 64;

/// The most bytes that are in an object with offsets of two.
const LARGEST: u32 = 0xffff;

/// An object that is not closed yet.
#[derive(Clone, Copy, Default)]
struct Frame {
    /// Where the values begin, and where the next offset goes.
    body: u32,
    offset: u32,
    /// Of an offset.
    width: u32,
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
        (slot, names): (usize, &RowNames<'_>),
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
        (slot, names): (usize, &RowNames<'_>),
        other: &mut impl FnMut(&mut Self, &Other) -> Result<()>,
    ) -> Result<Tried> {
        let Template { steps, heads, others, .. } = template;
        let mut tried = Tried::Written;
        let mut at = self.len as u32;
        // The row itself has no offset: two bytes are written that its own first bytes replace.
        self.reach(self.len + 2);
        let (mut body, mut offset, mut width) = (at, at, 0);
        let mut frames = [Frame::default(); DEPTH];
        let mut depth = 0;
        let mut out: &mut [u8] = &mut self.bytes;
        for &step in steps.iter() {
            if let Step::Close(number) = step {
                let size = at - body;
                match width {
                    1 if size <= 0xff => {
                        if let Some([last]) = room(out, offset) {
                            *last = size as u8;
                        }
                    }
                    2 if size > 0xff && size <= LARGEST => put(out, offset, size as u16),
                    2 if size <= 0xff => {
                        let Some(head) = heads.get(number as usize) else { continue };
                        at = narrow(out, body as usize, at as usize, head) as u32;
                    }
                    _ => {
                        if size > LARGEST {
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
            put(out, offset, (at - body) as u16);
            offset += width;
            match step {
                Step::Text(number) => {
                    let Some(texts) = leaves.texts.get(number as usize) else { continue };
                    let Some(&[start, end]) = chunk(&texts.ends, slot as u32) else { continue };
                    let (start, len) = (start as u32, (end - start) as u32);
                    if len <= MAX_SHORT_STRING as u32
                        && let Some(piece) = chunk::<PIECE, _>(&texts.bytes, start)
                        && let Some(room) = room::<{ PIECE + 1 }>(out, at)
                    {
                        room[0] = (len as u8) << 2 | 1;
                        room[1..].copy_from_slice(piece);
                        at += 1 + len;
                    } else if len <= LARGEST {
                        self.len = at as usize;
                        self.far_text(&texts.bytes, start as usize, end as usize);
                        (at, out) = (self.len as u32, &mut self.bytes);
                    } else {
                        return Ok(Tried::TooLarge);
                    }
                }
                Step::Eight(number) => {
                    let Some(eights) = leaves.eights.get(number as usize) else { continue };
                    let Some(value) = eights.values.as_chunks::<8>().0.get(slot) else { continue };
                    if let Some(room) = room::<9>(out, at) {
                        room[0] = eights.first;
                        room[1..].copy_from_slice(value);
                        at += 9;
                    } else {
                        self.len = at as usize;
                        self.put(&[eights.first]);
                        self.put(value);
                        (at, out) = (self.len as u32, &mut self.bytes);
                    }
                }
                Step::Open(number) => {
                    let Some(head) = heads.get(number as usize) else { continue };
                    frames[depth % DEPTH] = Frame { body, offset, width };
                    depth += 1;
                    width = head.width as u32;
                    offset = at + head.len as u32;
                    body = offset + (head.count as u32 + 1) * width;
                    if out.len() < body as usize + HEAD {
                        self.reach(body as usize + HEAD);
                        out = &mut self.bytes;
                    }
                    if head.len <= HEAD
                        && let Some(bytes) = head.first_bytes()
                        && let Some(room) = room::<HEAD>(out, at)
                    {
                        *room = *bytes;
                    } else if let Some(room) = out.get_mut(at as usize..offset as usize) {
                        room.copy_from_slice(head.bytes());
                    }
                    at = body;
                }
                Step::Leaf(_) | Step::Residual(_) | Step::Other(_) => {
                    self.len = at as usize;
                    self.far_step(step, leaves, others, (slot, names), other)?;
                    if self.len - at as usize > LARGEST as usize {
                        return Ok(Tried::TooLarge);
                    }
                    (at, out) = (self.len as u32, &mut self.bytes);
                }
                Step::Close(_) => {}
            }
        }
        self.len = at as usize;
        Ok(tried)
    }

    /// A step whose value is not copied in a piece of a fixed size.
    #[inline(never)]
    fn far_step(
        &mut self,
        step: Step,
        leaves: &Leaves,
        others: &[Other],
        (slot, names): (usize, &RowNames<'_>),
        other: &mut impl FnMut(&mut Self, &Other) -> Result<()>,
    ) -> Result<()> {
        match step {
            Step::Leaf(number) => {
                if let Some(leaf) = leaves.others.get(number as usize) {
                    self.leaf(leaf, slot);
                }
            }
            Step::Residual(number) => {
                let Some(level) = others.get(number as usize) else { return Ok(()) };
                let values = leaves.residuals.get(level.residual as usize);
                let value = values.and_then(|values| values.get(slot));
                match value.filter(|value| is_simple(names, value)) {
                    Some(value) => self.put(value),
                    None => other(self, level)?,
                }
            }
            Step::Other(number) => {
                if let Some(level) = others.get(number as usize) {
                    other(self, level)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn far_text(&mut self, all: &[u8], start: usize, end: usize) {
        self.text(all, start, end);
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
fn put(out: &mut [u8], at: u32, number: u16) {
    if let Some(room) = room(out, at) {
        *room = number.to_le_bytes();
    }
}

/// The N bytes from this place on. A place of four bytes needs one comparison: nothing that is added to it overflows.
#[inline(always)]
fn room<const N: usize>(out: &mut [u8], at: u32) -> Option<&mut [u8; N]> {
    let at = at as usize;
    out.get_mut(at..at + N)?.first_chunk_mut()
}

#[inline(always)]
fn chunk<const N: usize, T>(all: &[T], at: u32) -> Option<&[T; N]> {
    let at = at as usize;
    all.get(at..at + N)?.first_chunk()
}
