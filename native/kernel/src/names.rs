//! Field names as small numbers: a name is hashed once where it is read, everything after compares ids.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::{DefaultHashBuilder, HashTable};

/// No name: the root of a row, or an element of an array.
pub const NO_NAME: u32 = u32::MAX;

/// Names kept between rows, and their bytes: keys without bounds must not cost memory without bounds. A row is bounded
/// itself, so that offsets of 32 bits suffice for what a row adds.
const MAX_NAMES: usize = 1 << 16;
const MAX_BYTES: usize = 8 << 20;

/// An interner of field names. Ids count from 0 in order of first sight and never change;
/// [`Names::truncate`] forgets the newest ones, so that unbounded keys cost bounded memory.
pub struct Names {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    text: String,
    ends: Vec<u32>,
    mark: Mark,
    floor: usize,
}

/// A state of an interner: see [`Names::unchanged`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    interner: u64,
    truncations: u64,
}

static INTERNERS: AtomicU64 = AtomicU64::new(1);

impl Default for Names {
    fn default() -> Self {
        Names {
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            text: String::new(),
            ends: Vec::new(),
            mark: Mark { interner: INTERNERS.fetch_add(1, Ordering::Relaxed), truncations: 0 },
            floor: 0,
        }
    }
}

impl Names {
    pub fn new() -> Self {
        Self::default()
    }

    /// The state now, for those who keep ids between rows.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Ids below this number mean what they meant at `mark`; none do if it was another interner's, or too long ago.
    pub fn unchanged(&self, mark: Mark) -> usize {
        if mark == self.mark {
            usize::MAX
        } else if mark.interner == self.mark.interner && mark.truncations + 1 == self.mark.truncations {
            self.floor
        } else {
            0
        }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether names should be forgotten before the next row.
    pub fn is_full(&self) -> bool {
        self.len() > MAX_NAMES || self.text.len() > MAX_BYTES
    }

    /// Bytes of all names together.
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// The name with this id; the empty text for an id that was never given.
    pub fn get(&self, id: u32) -> &str {
        slice(&self.text, &self.ends, id)
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        self.table.find(hash, |&id| slice(&self.text, &self.ends, id) == name).copied()
    }

    pub fn intern(&mut self, name: &str) -> u32 {
        let hash = self.hasher.hash_one(name);
        if let Some(&id) = self.table.find(hash, |&id| slice(&self.text, &self.ends, id) == name) {
            return id;
        }
        let id = self.ends.len() as u32;
        self.text.push_str(name);
        self.ends.push(self.text.len() as u32);
        let (text, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.table.insert_unique(hash, id, |&other| hasher.hash_one(slice(text, ends, other)));
        id
    }

    /// Forgets every name with an id of `len` or more.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.ends.len() {
            return;
        }
        self.mark.truncations += 1;
        self.floor = len;
        self.table.retain(|id| (*id as usize) < len);
        self.ends.truncate(len);
        let end = self.ends.last().copied().unwrap_or(0);
        self.text.truncate(end as usize);
        self.text.shrink_to(2 * MAX_BYTES);
    }
}

fn slice<'a>(text: &'a str, ends: &[u32], id: u32) -> &'a str {
    let id = id as usize;
    let Some(&end) = ends.get(id) else { return "" };
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &text[start as usize..end as usize]
}
