//! A row as JSON text, spelled as `json/print.rs` spells a Variant, with no Variant in between.

use crate::codec::known::RowNames;
use crate::copy::push;
use crate::error::Result;
use crate::json::print::{push_quoted, push_scalar};
use crate::json::variant::ResidualPrinter;
use crate::limits::check_room;
use crate::text::zone::Zone;
use crate::values::leaf::{Leaf, LeafValues};
use crate::values::level::Level;
use crate::values::reconstruct::walk::Writer;

pub struct JsonText {
    bytes: Vec<u8>,
    zone: Zone,
    residual: ResidualPrinter,
    /// By number of the field's level: a comma, its name, quoted, and the colon.
    keys: Vec<Vec<u8>>,
}

impl JsonText {
    /// `zone` is that of instants.
    pub fn new(zone: Zone) -> Self {
        JsonText { bytes: Vec::new(), zone, residual: ResidualPrinter::default(), keys: Vec::new() }
    }

    /// A scalar of a leaf that is not null.
    fn scalar(&mut self, leaf: &Leaf, slot: usize) {
        push_scalar(&mut self.bytes, &leaf.scalar(slot), &self.zone);
    }

    #[cold]
    fn key(&mut self, level: usize, name: &[u8]) {
        if self.keys.len() <= level {
            self.keys.resize_with(level + 1, Vec::new);
        }
        let key = &mut self.keys[level];
        key.push(b',');
        push_quoted(key, name);
        key.push(b':');
    }

    fn next(&mut self, open: &mut Open) {
        if open.begun {
            self.bytes.push(b',');
        }
        open.begun = true;
    }
}

pub struct Open {
    end: u8,
    begun: bool,
}

impl Writer for JsonText {
    type Open = Open;

    fn written(&self) -> usize {
        self.bytes.len()
    }

    fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    fn get(&self, start: usize, end: usize) -> &[u8] {
        self.bytes.get(start..end).unwrap_or(&[])
    }

    fn null(&mut self) {
        self.bytes.extend_from_slice(b"null");
    }

    #[inline(always)]
    fn leaf(&mut self, leaf: &Leaf, slot: usize) {
        match &leaf.values {
            LeafValues::String(texts) => push_quoted(&mut self.bytes, texts.value(slot).as_bytes()),
            _ => self.scalar(leaf, slot),
        }
    }

    fn value(&mut self, names: RowNames<'_>, value: &[u8]) -> Result<()> {
        self.residual.print(names, value, &self.zone, &mut self.bytes)
    }

    fn open_object(&mut self, _: &Level, _: usize, _: u32) -> Open {
        self.bytes.push(b'{');
        Open { end: b'}', begun: false }
    }

    fn open_array(&mut self, _: &Level, _: usize) -> Open {
        self.bytes.push(b'[');
        Open { end: b']', begun: false }
    }

    #[inline(always)]
    fn field(&mut self, open: &mut Open, level: usize, _: u32, name: &[u8]) {
        if self.keys.get(level).is_none_or(Vec::is_empty) {
            self.key(level, name);
        }
        let key = self.keys.get(level).map_or(&[][..], |key| key);
        push(&mut self.bytes, if open.begun { key } else { key.get(1..).unwrap_or(&[]) });
        open.begun = true;
    }

    fn residual_field(&mut self, open: &mut Open, _: u32, name: &[u8]) {
        self.next(open);
        push_quoted(&mut self.bytes, name);
        self.bytes.push(b':');
    }

    fn element(&mut self, open: &mut Open) {
        self.next(open);
    }

    #[inline]
    fn end(&mut self, _: &mut Open) -> Result<()> {
        check_room(self.bytes.len())
    }

    fn close(&mut self, open: &mut Open) {
        self.bytes.push(open.end);
    }
}
