//! Guessing keys: events repeat their keys in the same order, so after a key the two that followed it before are
//! compared first, and only a wrong guess costs a scan and a hash.

use crate::json::scan::string_stop;
use crate::names::{Mark, Names};

/// Up to fifteen bytes of a key and its closing quote, for one comparison; `len` is 0 when the key is longer.
#[derive(Clone, Copy, Default)]
struct Short {
    text: u128,
    mask: u128,
    len: u8,
}

/// Equals nothing: a key that JSON must escape is never raw text up to a quote.
const NEVER: Short = Short { text: 1, mask: 0, len: 1 };

#[derive(Default)]
pub struct KeyGuess {
    mark: Mark,
    short: Vec<Short>,
    /// For each key (0: the start of a document, then id + 1), the keys that followed it, newest first.
    next: Vec<[u32; 2]>,
    last: usize,
}

const UNKNOWN: u32 = u32::MAX;

impl KeyGuess {
    /// A document begins: what was learned about ids is dropped if the interner has forgotten any.
    pub fn start(&mut self, names: &Names) {
        if self.mark != names.mark() {
            let kept = names.unchanged(self.mark).min(self.short.len());
            self.mark = names.mark();
            self.short.truncate(kept);
            self.next.resize(kept + 1, [UNKNOWN; 2]);
        }
        self.last = 0;
    }

    /// The key that was read last, as a number: 0 for none, then id + 1.
    pub fn resume(&mut self, last: usize) {
        self.last = last;
    }

    /// If the key that starts at `at` (after its quote) is one of those expected, its id and the place after
    /// its closing quote.
    #[inline(always)]
    pub fn guess(&mut self, bytes: &[u8], at: usize, names: &Names) -> Option<(u32, usize)> {
        let [first, second] = *self.next.get(self.last)?;
        if let Some(end) = self.matches(first, bytes, at, names) {
            self.last = first as usize + 1;
            return Some((first, end));
        }
        let end = self.matches(second, bytes, at, names)?;
        if let Some(next) = self.next.get_mut(self.last) {
            next.swap(0, 1);
        }
        self.last = second as usize + 1;
        Some((second, end))
    }

    #[inline(always)]
    fn matches(&self, id: u32, bytes: &[u8], at: usize, names: &Names) -> Option<usize> {
        let short = self.short.get(id as usize)?;
        if short.len > 0
            && let Some(block) = bytes.get(at..).and_then(|b| b.first_chunk::<16>())
        {
            let same = u128::from_le_bytes(*block) & short.mask == short.text;
            return same.then_some(at + short.len as usize);
        }
        if short.mask == 0 && short.len > 0 {
            return None;
        }
        let name = names.get(id).as_bytes();
        let end = at + name.len();
        (bytes.get(at..end) == Some(name) && bytes.get(end) == Some(&b'"')).then_some(end + 1)
    }

    /// Remembers which key came, for the next document.
    #[cold]
    pub fn learn(&mut self, id: u32, names: &Names) {
        while self.short.len() <= id as usize {
            self.short.push(short(names.get(self.short.len() as u32)));
            self.next.push([UNKNOWN; 2]);
        }
        if let Some(next) = self.next.get_mut(self.last) {
            *next = [id, next[0]];
        }
        self.last = id as usize + 1;
    }
}

fn short(name: &str) -> Short {
    let len = name.len() + 1;
    if string_stop(name.as_bytes(), 0) < name.len() {
        return NEVER;
    }
    if len > 16 {
        return Short::default();
    }
    let mut block = [0u8; 16];
    for (to, from) in block.iter_mut().zip(name.bytes().chain([b'"'])) {
        *to = from;
    }
    let mask = if len == 16 { u128::MAX } else { (1u128 << (len * 8)) - 1 };
    Short { text: u128::from_le_bytes(block), mask, len: len as u8 }
}
