//! Numbers of few bits in runs: of one that is repeated, or packed by eights (Parquet, Encodings.md, "Run Length Encoding /
//! Bit-Packing Hybrid"). They are the codes of a dictionary, and levels of one bit: whether a value is there.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use crate::parquet::bits::unsigned;
use crate::parquet::unpack::unpack;

/// Numbers that are unpacked together, at most.
const SOME: usize = 32;

/// Runs of numbers of one width, and how far they are read; each call gets the same bytes.
struct Runs {
    width: usize,
    /// The next byte.
    at: usize,
    run: Run,
}

enum Run {
    Equal {
        number: u32,
        left: u64,
    },
    /// Up to this byte.
    Packed {
        left: u64,
        end: usize,
    },
}

impl Runs {
    fn new(width: usize, at: usize) -> Self {
        Runs { width, at, run: Run::Equal { number: 0, left: 0 } }
    }

    /// The run that is read, or the next one if nothing of it is left; `None` where there is none.
    fn run(&mut self, bytes: &[u8]) -> Option<&mut Run> {
        if let Run::Equal { left: 0, .. } | Run::Packed { left: 0, .. } = self.run {
            self.next(bytes)?;
        }
        Some(&mut self.run)
    }

    fn next(&mut self, bytes: &[u8]) -> Option<()> {
        let (rest, header) = unsigned(bytes.get(self.at..)?)?;
        let (start, length) = (bytes.len() - rest.len(), header >> 1);
        if header & 1 == 0 {
            let (stored, _) = rest.split_at_checked(self.width.div_ceil(8))?;
            let number = stored.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
            self.at = start + stored.len();
            self.run = Run::Equal { number, left: length };
        } else {
            // What fills the last group of eight need not be there.
            let there = usize::try_from(length).unwrap_or(usize::MAX).saturating_mul(self.width).min(rest.len());
            let numbers = (there as u64 * 8).checked_div(self.width as u64).unwrap_or(u64::MAX);
            self.at = start;
            self.run = Run::Packed { left: numbers.min(length.saturating_mul(8)), end: start + there };
        }
        let (Run::Equal { left, .. } | Run::Packed { left, .. }) = self.run;
        (left > 0).then_some(())
    }
}

/// The codes of a page.
pub struct Codes {
    runs: Runs,
    /// Unpacked codes that nobody took yet.
    some: [u32; SOME],
    waiting: Range<usize>,
}

impl Codes {
    /// The codes from this byte on, which says their width.
    pub fn open(bytes: &[u8], at: usize) -> Option<Self> {
        let width = usize::from(*bytes.get(at)?);
        (width <= 32).then(|| Codes { runs: Runs::new(width, at + 1), some: [0; SOME], waiting: 0..0 })
    }

    /// Appends the next `count` codes; `None` where there are fewer.
    pub fn take(&mut self, bytes: &[u8], count: usize, out: &mut Vec<u32>) -> Option<()> {
        let all = out.len() + count;
        while out.len() < all {
            let wanted = all - out.len();
            if !self.waiting.is_empty() {
                let start = self.waiting.start;
                self.waiting.start = self.waiting.end.min(start + wanted);
                out.extend_from_slice(self.some.get(start..self.waiting.start)?);
                continue;
            }
            let width = self.runs.width;
            match self.runs.run(bytes)? {
                Run::Equal { number, left } => {
                    let taken = (*left).min(wanted as u64);
                    out.resize(out.len() + taken as usize, *number);
                    *left -= taken;
                }
                Run::Packed { left, end } => {
                    let (there, end) = ((*left).min(SOME as u64), *end);
                    *left -= there;
                    // What is behind the run is no code of it, and not taken.
                    let some = unpack(bytes.get(self.runs.at..)?, width);
                    self.runs.at = (self.runs.at + 4 * width).min(end);
                    let now = wanted.min(there as usize);
                    out.extend_from_slice(&some[..now]);
                    if now < there as usize {
                        (self.some, self.waiting) = (some, now..there as usize);
                    }
                }
            }
        }
        Some(())
    }
}

/// Levels of one bit.
pub struct Bits {
    runs: Runs,
    end: usize,
    /// Bits of the next byte that were taken.
    bit: usize,
}

impl Bits {
    /// The levels in these bytes.
    pub fn new(at: Range<usize>) -> Self {
        Bits { runs: Runs::new(1, at.start), end: at.end, bit: 0 }
    }

    /// Which of the next `count` values are there; `None` where there are fewer levels, or others.
    pub fn take(&mut self, bytes: &[u8], count: usize) -> Option<BooleanBuffer> {
        let bytes = bytes.get(..self.end)?;
        let mut bits = BooleanBufferBuilder::new(count);
        while bits.len() < count {
            let wanted = (count - bits.len()) as u64;
            match self.runs.run(bytes)? {
                Run::Equal { number: 2.., .. } => return None,
                Run::Equal { number, left } => {
                    let taken = (*left).min(wanted);
                    bits.append_n(taken as usize, *number == 1);
                    *left -= taken;
                }
                Run::Packed { left, end } => {
                    let (taken, end) = ((*left).min(wanted), *end);
                    *left -= taken;
                    let over = *left == 0;
                    let until = self.bit + taken as usize;
                    bits.append_packed_range(self.bit..until, bytes.get(self.runs.at..end)?);
                    (self.runs.at, self.bit) = if over { (end, 0) } else { (self.runs.at + until / 8, until % 8) };
                }
            }
        }
        Some(bits.build())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parquet::bits::{pack, push_unsigned};

    /// The numbers in runs: those of one value together, where `packs` does not say otherwise.
    fn written(numbers: &[u32], width: usize, mut packs: impl FnMut() -> bool) -> Vec<u8> {
        let (mut out, mut at) = (Vec::new(), 0);
        while at < numbers.len() {
            let equal = numbers[at..].iter().take_while(|number| **number == numbers[at]).count();
            if packs() {
                let mut groups = numbers[at..numbers.len().min(at + 40)].to_vec();
                at += groups.len();
                groups.resize(groups.len().div_ceil(8) * 8, 0);
                push_unsigned((groups.len() as u64 / 8) << 1 | 1, &mut out);
                pack(&groups, width, &mut out);
            } else {
                push_unsigned((equal as u64) << 1, &mut out);
                out.extend_from_slice(&numbers[at].to_le_bytes()[..width.div_ceil(8)]);
                at += equal;
            }
        }
        out
    }

    proptest! {
        #[test]
        fn codes_come_back_however_they_are_taken(
            wide in prop::collection::vec(prop_oneof![2 => Just(5u32), 1 => any::<u32>()], 0..400),
            width in 0usize..=32, seed in any::<u64>(), steps in prop::collection::vec(1usize..70, 1..9)
        ) {
            let codes: Vec<u32> = wide.iter().map(|code| (u64::from(*code) % (1 << width)) as u32).collect();
            let mut turns = seed;
            let runs = written(&codes, width, || { turns = turns.rotate_left(7).wrapping_mul(5); turns & 1 == 1 });
            let bytes = [&[9, width as u8], &runs[..]].concat();
            let mut read = Codes::open(&bytes, 1).unwrap_or_else(|| panic!("no width"));
            let mut found = Vec::new();
            for step in steps.iter().cycle() {
                let step = (*step).min(codes.len() - found.len());
                prop_assert_eq!(read.take(&bytes, step, &mut found), Some(()));
                if found.len() == codes.len() {
                    break;
                }
            }
            prop_assert_eq!(found, codes);
        }

        #[test]
        fn bits_come_back_however_they_are_taken(
            there in prop::collection::vec(any::<bool>(), 0..400), seed in any::<u64>(),
            steps in prop::collection::vec(1usize..70, 1..9)
        ) {
            let levels: Vec<u32> = there.iter().map(|there| u32::from(*there)).collect();
            let mut turns = seed;
            let bytes = written(&levels, 1, || { turns = turns.rotate_left(7).wrapping_mul(5); turns & 1 == 1 });
            let bytes = [&[7], &bytes[..]].concat();
            let (mut read, mut found) = (Bits::new(1..bytes.len()), Vec::new());
            for step in steps.iter().cycle() {
                let step = (*step).min(there.len() - found.len());
                let taken = read.take(&bytes, step);
                prop_assert_eq!(taken.as_ref().map(BooleanBuffer::len), Some(step));
                found.extend(taken.iter().flat_map(BooleanBuffer::iter));
                if found.len() == there.len() {
                    break;
                }
            }
            prop_assert_eq!(found, there);
            prop_assert_eq!(read.take(&bytes, 48), None);
        }

        #[test]
        fn no_bytes_stop_it(bytes in prop::collection::vec(any::<u8>(), 1..80), count in 0usize..200) {
            let mut out = Vec::new();
            let taken = Codes::open(&bytes, 0).and_then(|mut codes| codes.take(&bytes, count, &mut out));
            prop_assert!(taken.is_none() || out.len() == count);
            prop_assert!(Bits::new(0..bytes.len()).take(&bytes, count).is_none_or(|bits| bits.len() == count));
        }
    }
}
