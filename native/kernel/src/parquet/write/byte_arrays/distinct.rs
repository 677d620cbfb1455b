//! The dictionary of a chunk: its distinct values in the order in which they came, each as a dictionary page stores it
//! (Parquet, Encodings.md, "PLAIN").

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Bytes of a value's length.
const LENGTH: usize = 4;
/// Values that are looked for before they are hashed: a column of few has them all here.
const RECENT: usize = 64;

#[derive(Default)]
pub struct Distinct {
    page: Vec<u8>,
    /// Where each ends in the page.
    ends: Vec<usize>,
    hashes: Vec<u64>,
    codes: HashTable<u32>,
    /// By length and last byte, the code of the last one.
    recent: Vec<u32>,
    hasher: DefaultHashBuilder,
}

impl Distinct {
    /// The code of a value, which is the next if it is new.
    #[inline]
    pub fn code(&mut self, value: &[u8]) -> u32 {
        let slot = (value.len() + 31 * usize::from(value.last().copied().unwrap_or(0))) % RECENT;
        if let Some(&code) = self.recent.get(slot)
            && self.is(code as usize, value)
        {
            return code;
        }
        let code = self.find(value);
        self.recent.resize(RECENT, code);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = code;
        }
        code
    }

    /// The same by its hash.
    fn find(&mut self, value: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(value);
        let is_same = |&code: &u32| {
            let code = code as usize;
            self.hashes.get(code) == Some(&hash) && self.is(code, value)
        };
        if let Some(&code) = self.codes.find(hash, is_same) {
            return code;
        }
        let Distinct { page, ends, hashes, codes, .. } = self;
        let code = ends.len() as u32;
        page.extend_from_slice(&(value.len() as u32).to_le_bytes());
        page.extend_from_slice(value);
        ends.push(page.len());
        hashes.push(hash);
        codes.insert_unique(hash, code, |&code| hashes.get(code as usize).copied().unwrap_or(0));
        code
    }

    /// Whether the code is this value's.
    #[inline]
    fn is(&self, code: usize, value: &[u8]) -> bool {
        let begin = code.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&end| end) + LENGTH;
        self.ends.get(code).is_some_and(|&end| self.page.get(begin..end) == Some(value))
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of the dictionary page.
    pub fn bytes(&self) -> usize {
        self.page.len()
    }

    pub fn into_page(self) -> Vec<u8> {
        self.page
    }
}
