//! The names of rows that are written: one base, shared byte for byte by many rows, and for a row with other names the
//! base with those appended.
//!
//! The base is sorted and says so; with names appended the sorted bit is cleared (rule 5). Every field name of a row,
//! shredded or not, is in its metadata (rule 20).

use crate::codec::metadata::write;
use crate::codec::recent::Recent;
use crate::names::{Mark, Names};
use crate::tape::TapeView;

const NONE: u32 = u32::MAX;

#[derive(Default)]
pub struct Dictionary {
    /// Name ids of the base, by name.
    base: Vec<u32>,
    base_bytes: Vec<u8>,
    /// By name id: the id in the dictionary of the row at hand.
    ids: Vec<u32>,
    /// Name ids that the row at hand adds.
    extra: Vec<u32>,
    /// Whether no row has other names than the base.
    complete: bool,
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
        write(names, &base, true, &mut base_bytes);
        Dictionary { base, base_bytes, ids, extra: Vec::new(), complete: false }
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

    /// Whether an id is one of the base, whose ids are in the order of their names.
    #[inline]
    pub fn is_base(&self, id: u32) -> bool {
        (id as usize) < self.base.len()
    }

    pub fn is_complete(&self) -> bool {
        self.complete
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
        write(names, &self.base, false, out);
        self.base.truncate(base);
        for name in self.extra.drain(..) {
            if let Some(slot) = self.ids.get_mut(name as usize) {
                *slot = NONE;
            }
        }
    }
}

/// Dictionaries of their own names for rows that share none: rows of one shape have the same one, so that its bytes
/// repeat and compress. They are found by the names of a row in order of first sight.
#[derive(Default)]
pub struct OwnDictionaries {
    recent: Recent<u32, Dictionary, { 8 << 20 }>,
    seen: Vec<u64>,
    serial: u64,
    row: Vec<u32>,
    mark: Mark,
    none: Dictionary,
}

impl OwnDictionaries {
    /// The dictionary of all names in the subtree at `at`, and of no others.
    pub fn of(&mut self, view: &TapeView, at: usize) -> &mut Dictionary {
        self.collect(view, at);
        if self.mark != view.names.mark() {
            self.mark = view.names.mark();
            self.recent.clear();
        }
        if !self.recent.find(&self.row) {
            let dictionary = Dictionary { complete: true, ..Dictionary::new(view.names, self.row.clone()) };
            let cost = dictionary.base_bytes.len() + 4 * (dictionary.ids.len() + 2 * self.row.len());
            self.recent.insert(&self.row, dictionary, cost);
        }
        self.recent.current_mut().unwrap_or(&mut self.none)
    }

    /// The distinct names of the row, in order of first sight.
    fn collect(&mut self, view: &TapeView, at: usize) {
        self.row.clear();
        self.serial += 1;
        if self.seen.len() < view.names.len() {
            self.seen.resize(view.names.len(), 0);
        }
        let end = view.nodes.get(at).map_or(at, |node| node.next(at));
        // The root's own name belongs to whatever stands above it.
        for node in view.nodes.get(at + 1..end).unwrap_or(&[]) {
            if let Some(seen) = self.seen.get_mut(node.name as usize)
                && *seen != self.serial
            {
                *seen = self.serial;
                self.row.push(node.name);
            }
        }
    }
}
