//! The metadata dictionary of each row: one base, shared byte for byte by most rows of a file, and for a row with
//! other names the base with those appended.
//!
//! The base is sorted and says so; with names appended the sorted bit is cleared (rule 5). It holds every name of
//! the tree, so every field name of a row, shredded or not, is in its metadata (rule 20).

use crate::codec::primitive::{push_uint, uint_width};
use crate::names::Names;

const NONE: u32 = u32::MAX;
const SORTED: u8 = 1 << 4;

#[derive(Default)]
pub struct Dictionary {
    /// Name ids of the base, by name.
    base: Vec<u32>,
    base_bytes: Vec<u8>,
    /// By name id: the id in the dictionary of the row at hand.
    ids: Vec<u32>,
    /// Name ids that the row at hand adds.
    extra: Vec<u32>,
}

impl Dictionary {
    /// A dictionary with the base of these names; `base` holds name ids in any order.
    pub fn new(names: &Names, mut base: Vec<u32>) -> Self {
        base.sort_by_key(|&id| names.get(id).as_bytes());
        base.dedup();
        let mut ids = vec![NONE; base.iter().max().map_or(0, |&most| most as usize + 1)];
        for (id, &name) in base.iter().enumerate() {
            if let Some(slot) = ids.get_mut(name as usize) {
                *slot = id as u32;
            }
        }
        let mut base_bytes = Vec::new();
        write(names, &base, SORTED, &mut base_bytes);
        Dictionary { base, base_bytes, ids, extra: Vec::new() }
    }

    /// The dictionary id of a name; a name that the base lacks is added for this row.
    #[inline]
    pub fn id(&mut self, name: u32) -> u32 {
        match self.ids.get(name as usize) {
            Some(&id) if id != NONE => id,
            _ => self.add(name),
        }
    }

    #[cold]
    fn add(&mut self, name: u32) -> u32 {
        let id = (self.base.len() + self.extra.len()) as u32;
        self.extra.push(name);
        let at = name as usize;
        if at >= self.ids.len() {
            self.ids.resize(at + 1, NONE);
        }
        if let Some(slot) = self.ids.get_mut(at) {
            *slot = id;
        }
        id
    }

    pub fn base_bytes(&self) -> &[u8] {
        &self.base_bytes
    }

    pub fn has_extra(&self) -> bool {
        !self.extra.is_empty()
    }

    /// Writes the metadata of the row at hand and forgets what it added.
    pub fn finish_row(&mut self, names: &Names, out: &mut Vec<u8>) {
        if self.extra.is_empty() {
            out.extend_from_slice(&self.base_bytes);
            return;
        }
        let base = self.base.len();
        self.base.extend_from_slice(&self.extra);
        write(names, &self.base, 0, out);
        self.base.truncate(base);
        for name in self.extra.drain(..) {
            if let Some(slot) = self.ids.get_mut(name as usize) {
                *slot = NONE;
            }
        }
    }
}

/// Metadata of version 1: header, size, offsets, the names' bytes.
fn write(names: &Names, ids: &[u32], flags: u8, out: &mut Vec<u8>) {
    let text: usize = ids.iter().map(|&id| names.get(id).len()).sum();
    let width = uint_width(text.max(ids.len()));
    out.push(1 | flags | (width as u8 - 1) << 6);
    push_uint(out, ids.len(), width);
    let mut end = 0;
    push_uint(out, end, width);
    for &id in ids {
        end += names.get(id).len();
        push_uint(out, end, width);
    }
    for &id in ids {
        out.extend_from_slice(names.get(id).as_bytes());
    }
}
