//! The dictionary of a chunk: its distinct values in the order in which they came, each as a dictionary page stores it
//! (Parquet, Encodings.md, "PLAIN").
//!
//! A large dictionary does not fit the near caches, and waiting for memory takes longer than everything else. So values are
//! looked up in blocks: each step requests the memory of the whole block before the next step needs it.

use std::hash::BuildHasher;
use std::hint::black_box;

use hashbrown::DefaultHashBuilder;

use crate::copy::{push, same};

/// A column of so few values has them at hand before they are hashed.
const FEW: usize = 64;
/// Values that are looked up together.
const BLOCK: usize = 32;
/// The code of no value.
const NONE: u32 = u32::MAX;
/// Slots of the smallest table.
const MIN_SLOTS: usize = 256;

#[derive(Default)]
pub struct Distinct {
    page: Vec<u8>,
    entries: Vec<Entry>,
    slots: Vec<Slot>,
    /// By length and last byte, the code of the last one.
    recent: Vec<u32>,
    hasher: DefaultHashBuilder,
}

/// A value: its bytes in the dictionary page, and the last data page that has it.
#[derive(Clone, Copy)]
struct Entry {
    begin: usize,
    length: u32,
    page: u32,
}

/// Half of a value's hash beside its code, so that most other values are passed over without reading their bytes. Open
/// addressing: a value takes the first free slot from its hash's own on, and at least half of the slots are free.
#[derive(Clone, Copy)]
struct Slot {
    half: u32,
    code: u32,
}

const FREE: Slot = Slot { half: 0, code: NONE };

impl Distinct {
    /// Appends the codes of the values, a new one's is the next; `seen` gets those that the data page, whose number is
    /// above 0, has not had before. Gives the bytes of all.
    pub fn put<'v>(
        &mut self,
        values: impl Iterator<Item = &'v [u8]>,
        page: u32,
        codes: &mut Vec<u32>,
        mut seen: impl FnMut(&'v [u8]),
    ) -> i64 {
        let mut values = values.peekable();
        let mut bytes = 0;
        // The metadata of near rows are views of the same bytes: what lies at the same place is not looked at again.
        let mut last: (&[u8], u32) = (&[], NONE);
        let mut block: [&[u8]; BLOCK] = [&[]; BLOCK];
        while values.peek().is_some() {
            if self.entries.len() <= FEW {
                for value in values.by_ref().take(BLOCK) {
                    bytes += value.len() as i64;
                    let is_last = last.1 != NONE && std::ptr::eq(last.0, value);
                    let code = if is_last { last.1 } else { self.few(value) };
                    self.on(page, code, value, &mut seen);
                    last = (value, code);
                    codes.push(code);
                }
                continue;
            }
            let mut count = 0;
            for (to, value) in block.iter_mut().zip(&mut values) {
                bytes += value.len() as i64;
                *to = value;
                count += 1;
            }
            let block = block.get(..count).unwrap_or(&[]);
            let (halves, found) = self.look(block, last.0);
            for ((&value, half), found) in block.iter().zip(halves).zip(found) {
                let code = match last.1 {
                    code if code != NONE && std::ptr::eq(last.0, value) => code,
                    _ if self.is(found, value) => found,
                    _ => self.find(value, half),
                };
                self.on(page, code, value, &mut seen);
                last = (value, code);
                codes.push(code);
            }
        }
        bytes
    }

    /// Hashes of the values, and the codes of those that may be the same; `before` is the value before them.
    #[inline]
    fn look(&self, values: &[&[u8]], before: &[u8]) -> ([u32; BLOCK], [u32; BLOCK]) {
        let (mut halves, mut found) = ([0; BLOCK], [NONE; BLOCK]);
        let (mut before, mut half) = (before, None);
        for (to, &value) in halves.iter_mut().zip(values) {
            let known = half.filter(|_| std::ptr::eq(before, value));
            *to = known.unwrap_or_else(|| self.half(value));
            (before, half) = (value, Some(*to));
        }
        for (code, &half) in found.iter_mut().zip(halves.iter().take(values.len())) {
            *code = self.search(half, |_| true).unwrap_or(NONE);
        }
        let mut read = 0;
        for &code in found.iter().take(values.len()) {
            // Of no value the first one's: there is nothing to be guessed.
            let entry = self.entries.get(code as usize).or(self.entries.first());
            let (begin, end) = entry.map_or((0, 0), |entry| (entry.begin, entry.begin + entry.length as usize));
            read ^= self.page.get(begin).unwrap_or(&0) ^ self.page.get(end).unwrap_or(&0);
        }
        black_box(read);
        (halves, found)
    }

    /// The code of a value, which is the next if it is new, while there are few.
    #[inline]
    fn few(&mut self, value: &[u8]) -> u32 {
        let slot = (value.len() + 31 * usize::from(value.last().copied().unwrap_or(0))) % FEW;
        if let Some(&code) = self.recent.get(slot)
            && self.is(code, value)
        {
            return code;
        }
        let code = self.find(value, self.half(value));
        self.recent.resize(FEW, code);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = code;
        }
        code
    }

    #[inline]
    fn half(&self, value: &[u8]) -> u32 {
        self.hasher.hash_one(value) as u32
    }

    /// The same of a value with this hash.
    fn find(&mut self, value: &[u8], half: u32) -> u32 {
        if self.slots.len() < 2 * (self.entries.len() + 1) {
            self.grow();
        }
        match self.search(half, |code| self.is(code, value)) {
            Ok(code) => code,
            Err(free) => {
                let code = self.entries.len() as u32;
                self.page.extend_from_slice(&(value.len() as u32).to_le_bytes());
                self.entries.push(Entry { begin: self.page.len(), length: value.len() as u32, page: 0 });
                push(&mut self.page, value);
                if let Some(slot) = self.slots.get_mut(free) {
                    *slot = Slot { half, code };
                }
                code
            }
        }
    }

    /// The first code of this hash that is the one, or the free slot behind all of them.
    #[inline]
    fn search(&self, half: u32, is_it: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = spread(half) & last;
        while let Some(slot) = self.slots.get(at).filter(|slot| slot.code != NONE) {
            if slot.half == half && is_it(slot.code) {
                return Ok(slot.code);
            }
            at = (at + 1) & last;
        }
        Err(at)
    }

    fn grow(&mut self) {
        let slots = vec![FREE; MIN_SLOTS.max(2 * self.slots.len())];
        for slot in std::mem::replace(&mut self.slots, slots) {
            if slot.code != NONE
                && let Err(free) = self.search(slot.half, |_| false)
                && let Some(to) = self.slots.get_mut(free)
            {
                *to = slot;
            }
        }
    }

    /// Whether the code is this value's.
    #[inline]
    fn is(&self, code: u32, value: &[u8]) -> bool {
        self.entries.get(code as usize).is_some_and(|&Entry { begin, length, .. }| {
            self.page.get(begin..begin + length as usize).is_some_and(|known| same(known, value))
        })
    }

    /// The data page has the value.
    #[inline]
    fn on<'v>(&mut self, page: u32, code: u32, value: &'v [u8], seen: &mut impl FnMut(&'v [u8])) {
        if let Some(entry) = self.entries.get_mut(code as usize)
            && std::mem::replace(&mut entry.page, page) != page
        {
            seen(value);
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
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
        self.entries.clear();
        self.slots.fill(FREE);
        self.recent.clear();
    }
}

/// The slot of a hash, in a table of any size.
fn spread(half: u32) -> usize {
    (u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::{Distinct, FEW};

    fn put(distinct: &mut Distinct, values: &[&[u8]], page: u32) -> (Vec<u32>, Vec<Vec<u8>>) {
        let (mut codes, mut seen) = (Vec::new(), Vec::new());
        let bytes = distinct.put(values.iter().copied(), page, &mut codes, |value| seen.push(value.to_vec()));
        assert_eq!(bytes, values.iter().map(|value| value.len() as i64).sum::<i64>());
        (codes, seen)
    }

    #[test]
    fn values_have_codes_in_the_order_in_which_they_came() {
        let texts: Vec<String> =
            (0..3000).map(|n| format!("{:0width$}", n * n % 1009, width = n * n % 1009 % 40)).collect();
        let values: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let mut order: Vec<&[u8]> = Vec::new();
        let mut code = |value| {
            let known = order.iter().position(|other| *other == value);
            known.unwrap_or_else(|| {
                order.push(value);
                order.len() - 1
            }) as u32
        };
        let expected: Vec<u32> = values.iter().map(|&value| code(value)).collect();
        let mut distinct = Distinct::default();
        for _ in 0..2 {
            let (first, seen) = put(&mut distinct, &values[..1000], 1);
            let (rest, seen_next) = put(&mut distinct, &values[1000..], 2);
            assert_eq!([first, rest].concat(), expected);
            let once = |values: &[&[u8]]| values.iter().collect::<std::collections::BTreeSet<_>>().len();
            assert_eq!((seen.len(), seen_next.len()), (once(&values[..1000]), once(&values[1000..])));
            let page: Vec<u8> = order.iter().flat_map(|v| [&(v.len() as u32).to_le_bytes(), *v].concat()).collect();
            assert_eq!((distinct.page(), distinct.len()), (page.as_slice(), order.len()));
            distinct.clear();
        }
    }

    #[test]
    fn values_of_one_hash_are_told_apart() {
        let mut distinct = Distinct::default();
        let texts: Vec<String> = (0..2 * FEW).map(|n| format!("value {n}")).collect();
        for (code, text) in texts.iter().enumerate() {
            assert_eq!(distinct.find(text.as_bytes(), 7), code as u32);
        }
        assert_eq!(distinct.find(b"value 5", 7), 5);
        // One that a look at the table takes for the first.
        let half = distinct.half(b"other");
        distinct.slots.iter_mut().for_each(|slot| slot.half = half);
        assert_eq!(put(&mut distinct, &[b"other", b"value 9", b"other"], 1).0, [128, 129, 128]);
    }
}
