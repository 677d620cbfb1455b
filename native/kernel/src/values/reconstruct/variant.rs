//! A row as the bytes of a Variant, in the smallest widths. A container's header is written when all that is in it is;
//! room is left for one as wide as that of the last object or array of its level, and what is in it moves where that
//! was wrong.

use crate::codec::known::RowNames;
use crate::codec::primitive::{Header, MAX_SHORT_STRING, decimal_width, id, uint_width};
use crate::error::Result;
use crate::limits::{MAX_BYTES, check_room};
use crate::values::leaf::{Leaf, LeafValues};
use crate::values::level::Level;
use crate::values::reconstruct::walk::Writer;

/// The bytes of a header that are made at once.
const BLOCK: usize = 32;

/// Containers of a level that are told apart by how many children they have.
const KINDS: usize = 16;

/// Bytes that are made ready at once.
const STEP: usize = 16 << 10;

/// Texts up to this many bytes are copied in one piece, those up to as many more in two.
const PIECE: usize = 32;

#[derive(Default)]
pub struct VariantBytes {
    /// What is written, and behind it bytes that are ready to be written over: bringing memory into the cache in steps
    /// is faster than line by line.
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
    /// By level and number of children: the width of the offsets in the last container of that kind.
    widths: Vec<[u8; KINDS]>,
}

pub struct Open {
    header: Header,
    level: usize,
    start: usize,
    /// Where the next field id goes.
    id: usize,
    /// Where the offsets begin, where the next one goes, and where the values begin.
    offsets: usize,
    offset: usize,
    body: usize,
}

impl VariantBytes {
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.truncate(self.len);
        self.bytes
    }

    /// The next N bytes, whatever is in them, if so many are ready.
    #[inline(always)]
    fn room<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        self.bytes.get_mut(self.len..).and_then(|rest| rest.first_chunk_mut())
    }

    /// Makes the bytes up to this place ready.
    #[inline(always)]
    pub(super) fn reach(&mut self, end: usize) {
        if self.bytes.len() < end {
            self.more(end);
        }
    }

    #[cold]
    #[inline(never)]
    fn more(&mut self, end: usize) {
        self.bytes.resize(end + STEP, 0);
    }

    #[inline(always)]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.reach(end);
        self.bytes[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }

    #[inline(always)]
    fn fixed<const N: usize>(&mut self, id: u8, bytes: [u8; N]) {
        self.put(&[id << 2]);
        self.put(&bytes);
    }

    #[inline(always)]
    pub(super) fn text(&mut self, all: &[u8], start: usize, end: usize) {
        let len = end - start;
        if !(len <= PIECE && self.piece::<PIECE, { PIECE + 1 }>(all, start, len)
            || len <= MAX_SHORT_STRING && self.piece::<{ 2 * PIECE }, { 2 * PIECE + 1 }>(all, start, len))
        {
            self.other_text(&all[start..end]);
        }
    }

    /// A short string, copied with what is behind it; whether there is enough behind it and room for that.
    #[inline(always)]
    fn piece<const N: usize, const ROOM: usize>(&mut self, all: &[u8], start: usize, len: usize) -> bool {
        let piece = all.get(start..).and_then(|rest| rest.first_chunk::<N>());
        let room = self.room::<ROOM>();
        let (Some(piece), Some(room)) = (piece, room) else { return false };
        room[0] = (len as u8) << 2 | 1;
        room[1..].copy_from_slice(piece);
        self.len += 1 + len;
        true
    }

    fn other_text(&mut self, text: &[u8]) {
        if text.len() <= MAX_SHORT_STRING {
            self.put(&[(text.len() as u8) << 2 | 1]);
        } else {
            self.fixed(id::STRING, (text.len() as u32).to_le_bytes());
        }
        self.put(text);
    }

    #[inline(always)]
    fn open(&mut self, level: &Level, count: usize, largest: Option<u32>) -> Open {
        if self.widths.len() <= level.number {
            self.widths.resize(level.number + 1, [1; KINDS]);
        }
        let mut header = Header::new(count, largest, 0);
        header.offset_width = self.widths[level.number][count % KINDS].into();
        let start = self.len;
        let id = start + if header.large { 5 } else { 2 };
        let offsets = id + count * header.id_width.unwrap_or(0);
        let body = offsets + (count + 1) * header.offset_width;
        if body - start <= BLOCK
            && let Some(room) = self.room()
        {
            *room = [0; BLOCK];
        } else {
            self.reach(body);
            self.bytes[start..body].fill(0);
        }
        self.len = body;
        // The first offset is 0, as the bytes are.
        Open { header, level: level.number, start, id, offsets, offset: offsets + header.offset_width, body }
    }

    /// Writes the offsets again, in another width, and moves what is behind them.
    #[inline(never)]
    fn widen(&mut self, open: &mut Open, width: usize) {
        let old = open.header.offset_width;
        let written = (open.offset - open.offsets) / old;
        let body = open.offsets + (open.header.count + 1) * width;
        if width > old {
            self.move_body(open.body, body);
            // From the last one on: none is written over before it is read.
            (0..written).rev().for_each(|number| self.rewrite(open.offsets, number, old, width));
        } else {
            (0..written).for_each(|number| self.rewrite(open.offsets, number, old, width));
            self.move_body(open.body, body);
        }
        open.header.offset_width = width;
        open.offset = open.offsets + written * width;
        open.body = body;
        self.widths[open.level][open.header.count % KINDS] = width as u8;
    }

    fn rewrite(&mut self, offsets: usize, number: usize, old: usize, width: usize) {
        let mut offset = [0; 4];
        let (from, to) = (offsets + number * old, offsets + number * width);
        offset[..old].copy_from_slice(&self.bytes[from..from + old]);
        self.bytes[to..to + width].copy_from_slice(&offset[..width]);
    }

    fn move_body(&mut self, from: usize, to: usize) {
        let len = self.len + to - from;
        self.reach(len);
        self.bytes.copy_within(from..self.len, to);
        self.len = len;
    }
}

impl Writer for VariantBytes {
    type Open = Open;

    fn written(&self) -> usize {
        self.len
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn get(&self, start: usize, end: usize) -> &[u8] {
        self.bytes.get(start..end).unwrap_or(&[])
    }

    /// Makes memory ready for the next rows. The rows to come are like those before if memory lacks.
    #[inline]
    fn ready(&mut self, start: usize, done: usize, left: usize) {
        if self.len + STEP / 2 > self.bytes.len() {
            let needed = self.len + STEP;
            if needed > self.bytes.capacity() {
                let more = (self.len - start) / done.max(1) * left;
                let more = (more + more / 8).max(self.len / 4).min(MAX_BYTES);
                self.bytes.reserve_exact(needed + more - self.bytes.len());
            }
            self.bytes.resize(needed, 0);
        }
    }

    #[inline]
    fn null(&mut self) {
        self.put(&[id::NULL << 2]);
    }

    #[inline(always)]
    fn leaf(&mut self, leaf: &Leaf, slot: usize) {
        match &leaf.values {
            LeafValues::String(a) => {
                let ends = a.value_offsets();
                self.text(a.value_data(), ends[slot] as usize, ends[slot + 1] as usize);
            }
            LeafValues::Coded(a) => {
                let (ends, code) = (a.texts.value_offsets(), a.codes.value(slot) as usize);
                self.text(a.texts.value_data(), ends[code] as usize, ends[code + 1] as usize);
            }
            _ => self.other_leaf(leaf, slot),
        }
    }

    fn value(&mut self, _: RowNames<'_>, value: &[u8]) -> Result<()> {
        self.put(value);
        Ok(())
    }

    #[inline]
    fn open_object(&mut self, level: &Level, count: usize, largest: u32) -> Open {
        self.open(level, count, Some(largest))
    }

    fn open_array(&mut self, level: &Level, count: usize) -> Open {
        self.open(level, count, None)
    }

    #[inline(always)]
    fn field(&mut self, open: &mut Open, _: usize, id: u32, name: &[u8]) {
        self.residual_field(open, id, name);
    }

    #[inline(always)]
    fn residual_field(&mut self, open: &mut Open, id: u32, _: &[u8]) {
        let width = open.header.id_width.unwrap_or(0);
        if width == 1 {
            self.bytes[open.id] = id as u8;
        } else {
            self.bytes[open.id..open.id + width].copy_from_slice(&id.to_le_bytes()[..width]);
        }
        open.id += width;
    }

    fn element(&mut self, _: &mut Open) {}

    #[inline(always)]
    fn end(&mut self, open: &mut Open) -> Result<()> {
        let end = self.len - open.body;
        match open.header.offset_width {
            1 if end <= 0xff => self.bytes[open.offset] = end as u8,
            2 if end <= 0xffff => {
                self.bytes[open.offset..open.offset + 2].copy_from_slice(&(end as u16).to_le_bytes());
            }
            _ => self.end_far(open, end)?,
        }
        open.offset += open.header.offset_width;
        Ok(())
    }

    #[inline(always)]
    fn close(&mut self, open: &mut Open) {
        let width = uint_width(self.len - open.body);
        if width != open.header.offset_width {
            self.widen(open, width);
        }
        let Open { header, start, .. } = *open;
        self.bytes[start] = header.first();
        self.bytes[start + 1] = header.count as u8;
        if header.large {
            self.bytes[start + 1..start + 5].copy_from_slice(&(header.count as u32).to_le_bytes());
        }
    }
}

impl VariantBytes {
    #[cold]
    fn end_far(&mut self, open: &mut Open, end: usize) -> Result<()> {
        check_room(self.len)?;
        let needed = uint_width(end);
        if needed > open.header.offset_width {
            self.widen(open, needed);
        }
        let width = open.header.offset_width;
        self.bytes[open.offset..open.offset + width].copy_from_slice(&(end as u32).to_le_bytes()[..width]);
        Ok(())
    }

    fn other_leaf(&mut self, leaf: &Leaf, slot: usize) {
        match &leaf.values {
            LeafValues::String(_) | LeafValues::Coded(_) => {}
            LeafValues::Int64(a) => self.fixed(id::INT64, a.value(slot).to_le_bytes()),
            LeafValues::Boolean(a) => self.fixed(if a.value(slot) { id::TRUE } else { id::FALSE }, []),
            LeafValues::Int8(a) => self.fixed(id::INT8, a.value(slot).to_le_bytes()),
            LeafValues::Int16(a) => self.fixed(id::INT16, a.value(slot).to_le_bytes()),
            LeafValues::Int32(a) => self.fixed(id::INT32, a.value(slot).to_le_bytes()),
            LeafValues::Float(a) => self.fixed(id::FLOAT, a.value(slot).to_le_bytes()),
            LeafValues::Double(a) => self.fixed(id::DOUBLE, a.value(slot).to_le_bytes()),
            LeafValues::Date(a) => self.fixed(id::DATE, a.value(slot).to_le_bytes()),
            LeafValues::Micros(a, true) => self.fixed(id::TIMESTAMP, a.value(slot).to_le_bytes()),
            LeafValues::Micros(a, false) => self.fixed(id::TIMESTAMP_NTZ, a.value(slot).to_le_bytes()),
            LeafValues::Nanos(a, true) => self.fixed(id::TIMESTAMP_NANOS, a.value(slot).to_le_bytes()),
            LeafValues::Nanos(a, false) => self.fixed(id::TIMESTAMP_NTZ_NANOS, a.value(slot).to_le_bytes()),
            LeafValues::Time(a) => self.fixed(id::TIME, a.value(slot).to_le_bytes()),
            LeafValues::Decimal(a, _, scale) => {
                // In the column's own type: shredding widened the value, and the specification reads it back as that.
                let width = decimal_width(a.value(slot), *scale).max(leaf.width()) as usize;
                let id = match width {
                    4 => id::DECIMAL4,
                    8 => id::DECIMAL8,
                    _ => id::DECIMAL16,
                };
                self.fixed(id, [*scale]);
                self.put(&a.value(slot).to_le_bytes()[..width]);
            }
            LeafValues::Binary(a) => {
                self.fixed(id::BINARY, (a.value(slot).len() as u32).to_le_bytes());
                self.put(a.value(slot));
            }
            LeafValues::Uuid(a) => {
                self.fixed(id::UUID, []);
                self.put(a.value(slot));
            }
        }
    }
}
