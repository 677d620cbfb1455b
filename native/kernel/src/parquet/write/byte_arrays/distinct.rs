//! The dictionary of a chunk: its distinct values in the order in which they came, each as a dictionary page stores it
//! (Parquet, Encodings.md, "PLAIN").

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Bytes of a value's length.
const LENGTH: usize = 4;
/// A column of so few values has them at hand before they are hashed.
const FEW: usize = 64;

#[derive(Default)]
pub struct Distinct {
    page: Vec<u8>,
    /// Where each ends in the page.
    ends: Vec<usize>,
    /// Half of each hash beside its code, so that other values are passed over without a look at their bytes.
    codes: HashTable<(u32, u32)>,
    /// By length and last byte, the code of the last one.
    recent: Vec<u32>,
    hasher: DefaultHashBuilder,
}

impl Distinct {
    /// The code of a value, which is the next if it is new.
    #[inline]
    pub fn code(&mut self, value: &[u8]) -> u32 {
        if self.ends.len() > FEW {
            return self.find(value);
        }
        let slot = (value.len() + 31 * usize::from(value.last().copied().unwrap_or(0))) % FEW;
        if let Some(&code) = self.recent.get(slot)
            && self.is(code, value)
        {
            return code;
        }
        let code = self.find(value);
        self.recent.resize(FEW, code);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = code;
        }
        code
    }

    /// The same by its hash.
    fn find(&mut self, value: &[u8]) -> u32 {
        let half = self.hasher.hash_one(value) as u32;
        let is_same = |&(other, code): &(u32, u32)| other == half && self.is(code, value);
        if let Some(&(_, code)) = self.codes.find(spread(half), is_same) {
            return code;
        }
        let code = self.ends.len() as u32;
        self.page.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.page.extend_from_slice(value);
        self.ends.push(self.page.len());
        self.codes.insert_unique(spread(half), (half, code), |&(half, _)| spread(half));
        code
    }

    /// Whether the code is this value's.
    #[inline]
    fn is(&self, code: u32, value: &[u8]) -> bool {
        let code = code as usize;
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

    /// The dictionary page.
    pub fn page(&self) -> &[u8] {
        &self.page
    }

    /// Forgets the values and keeps the room for others.
    pub fn clear(&mut self) {
        self.page.clear();
        self.ends.clear();
        self.codes.clear();
        self.recent.clear();
    }
}

/// The table takes bits from both ends of a hash.
fn spread(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
