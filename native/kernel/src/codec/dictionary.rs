//! The metadata of a row: its own names only, sorted by unsigned UTF-8 bytes (rules 5 and 10), in the smallest
//! widths. Rows of one shape share one dictionary, so that its bytes repeat and compress.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::codec::primitive::{push_uint, uint_width};
use crate::error::{Code, Error, Result};
use crate::names::{Mark, NO_NAME, Names};
use crate::tape::TapeView;

const ABSENT: u32 = u32::MAX;

/// Metadata bytes with the way from the ids of [`Names`] to field ids.
#[derive(Default, Clone)]
pub struct Dictionary {
    metadata: Vec<u8>,
    /// Names in the order of field ids.
    fields: Vec<u32>,
    /// By name id: field id, and place among the names in byte order.
    slots: Vec<(u32, u32)>,
}

impl Dictionary {
    /// Sorted metadata over these names, each given once.
    pub fn sorted(mut fields: Vec<u32>, names: &Names) -> Result<Self> {
        fields.sort_unstable_by(|a, b| names.get(*a).as_bytes().cmp(names.get(*b).as_bytes()));
        let text: usize = fields.iter().map(|id| names.get(*id).len()).sum();
        if text > u32::MAX as usize {
            return Err(Error::new(Code::TooLarge, "the field names of one value take more than 4 GiB"));
        }
        let width = uint_width(text.max(fields.len()));
        let mut metadata = Vec::with_capacity(1 + (fields.len() + 2) * width + text);
        metadata.push(0x11 | ((width - 1) as u8) << 6);
        push_uint(&mut metadata, fields.len(), width);
        let mut offset = 0;
        push_uint(&mut metadata, 0, width);
        for id in &fields {
            offset += names.get(*id).len();
            push_uint(&mut metadata, offset, width);
        }
        for id in &fields {
            metadata.extend_from_slice(names.get(*id).as_bytes());
        }
        Ok(Self::over(metadata, fields, names))
    }

    /// A dictionary that exists already: `metadata` was validated, `fields` are its names by field id.
    pub fn over(metadata: Vec<u8>, fields: Vec<u32>, names: &Names) -> Self {
        let mut order: Vec<u32> = (0..fields.len() as u32).collect();
        let name = |field: u32| names.get(fields.get(field as usize).copied().unwrap_or(NO_NAME)).as_bytes();
        order.sort_by(|a, b| name(*a).cmp(name(*b)));
        let mut slots = Vec::new();
        for (rank, field) in order.iter().enumerate() {
            let Some(&id) = fields.get(*field as usize) else { continue };
            if slots.len() <= id as usize {
                slots.resize(id as usize + 1, (ABSENT, ABSENT));
            }
            // A name that stands twice keeps its first field id: the sort is stable.
            if let Some(slot) = slots.get_mut(id as usize).filter(|s: &&mut (u32, u32)| s.0 == ABSENT) {
                *slot = (*field, rank as u32);
            }
        }
        Dictionary { metadata, fields, slots }
    }

    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// The names by field id.
    pub fn fields(&self) -> &[u32] {
        &self.fields
    }

    /// Field id and rank (place in byte order) of a name; `None` if the dictionary lacks it.
    #[inline(always)]
    pub fn field(&self, name: u32) -> Option<(u32, u32)> {
        self.slots.get(name as usize).copied().filter(|slot| slot.0 != ABSENT)
    }
}

/// How many dictionaries are kept before all are forgotten, and how many bytes they take together.
const MAX_DICTIONARIES: usize = 1024;
const MAX_BYTES: usize = 8 << 20;

/// Dictionaries of the rows seen lately, found by the names of a row in order of first sight.
#[derive(Default)]
pub struct DictionaryCache {
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
    entries: Vec<(Vec<u32>, Dictionary)>,
    bytes: usize,
    seen: Vec<u64>,
    serial: u64,
    row: Vec<u32>,
    mark: Mark,
}

impl DictionaryCache {
    pub fn new() -> Self {
        Self::default()
    }

    /// The dictionary of all names in the subtree at `at`.
    pub fn of(&mut self, view: &TapeView, at: usize) -> Result<&Dictionary> {
        self.collect(view, at);
        if self.mark != view.names.mark() || self.entries.len() >= MAX_DICTIONARIES || self.bytes > MAX_BYTES {
            self.mark = view.names.mark();
            self.table.clear();
            self.entries.clear();
            self.bytes = 0;
        }
        let (row, entries, hasher) = (&self.row, &self.entries, &self.hasher);
        let hash = hasher.hash_one(row);
        let key = |i: u32| entries.get(i as usize).map(|e| &e.0);
        let found = self.table.find(hash, |&i| key(i) == Some(row)).copied();
        let index = match found {
            Some(index) => index as usize,
            None => {
                let dictionary = Dictionary::sorted(self.row.clone(), view.names)?;
                let index = self.entries.len();
                self.bytes += dictionary.metadata.len() + 8 * (dictionary.slots.len() + dictionary.fields.len());
                self.entries.push((self.row.clone(), dictionary));
                let (entries, hasher) = (&self.entries, &self.hasher);
                let rehash = |&i: &u32| hasher.hash_one(entries.get(i as usize).map_or(&[][..], |e| &e.0));
                self.table.insert_unique(hash, index as u32, rehash);
                index
            }
        };
        let missing = || Error::new(Code::InvalidArgument, "a dictionary was lost");
        self.entries.get(index).map(|e| &e.1).ok_or_else(missing)
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
