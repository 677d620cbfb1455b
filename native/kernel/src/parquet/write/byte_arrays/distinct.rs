//! The dictionary of a chunk: its distinct values in the order in which they came, each as a dictionary page stores it
//! (Parquet, Encodings.md, "PLAIN").

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Bytes of a value's length.
const LENGTH: usize = 4;

#[derive(Default)]
pub struct Distinct {
    page: Vec<u8>,
    /// Where each ends in the page.
    ends: Vec<usize>,
    hashes: Vec<u64>,
    codes: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Distinct {
    /// The code of a value, which is the next if it is new.
    #[inline]
    pub fn code(&mut self, value: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(value);
        let Distinct { page, ends, hashes, codes, .. } = self;
        let is_same = |&code: &u32| {
            let code = code as usize;
            hashes.get(code) == Some(&hash) && of(page, ends, code) == value
        };
        if let Some(&code) = codes.find(hash, is_same) {
            return code;
        }
        let code = ends.len() as u32;
        page.extend_from_slice(&(value.len() as u32).to_le_bytes());
        page.extend_from_slice(value);
        ends.push(page.len());
        hashes.push(hash);
        codes.insert_unique(hash, code, |&code| hashes.get(code as usize).copied().unwrap_or(0));
        code
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

fn of<'a>(page: &'a [u8], ends: &[usize], code: usize) -> &'a [u8] {
    let begin = code.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |&end| end) + LENGTH;
    ends.get(code).and_then(|&end| page.get(begin..end)).unwrap_or(&[])
}
