//! Lengths of a page, packed by their differences (Parquet, Encodings.md, "DELTA_BINARY_PACKED").
//!
//! The library's encoder takes numbers of any type, one by one, as 64 bits each. Lengths have 32: a block of them is
//! subtracted, compared and packed at once. The blocks are those of the library, byte for byte.

use crate::parquet::bits::{pack, push_signed, push_unsigned, width};

/// Differences of a block, and of each part of it that has a width of its own.
const BLOCK: usize = 128;
const PART: usize = 32;
const PARTS: usize = BLOCK / PART;

#[derive(Default)]
pub struct Lengths {
    first: i32,
    /// The last one that is packed, if any is, and those after it.
    waiting: Vec<i32>,
    /// Differences that are packed, and their blocks.
    packed: usize,
    blocks: Vec<u8>,
}

impl Lengths {
    #[inline]
    pub fn push(&mut self, length: usize) {
        self.waiting.push(length as i32);
    }

    /// Packs all full blocks.
    pub fn pack(&mut self) {
        if self.packed == 0
            && let Some(&first) = self.waiting.first()
        {
            self.first = first;
        }
        let mut done = 0;
        while let Some(block) = self.waiting.get(done..done + BLOCK + 1) {
            pack_block(block, &mut self.blocks);
            done += BLOCK;
        }
        self.waiting.drain(..done);
        self.packed += done;
    }

    /// Bytes of the blocks that are packed.
    pub fn bytes(&self) -> usize {
        self.blocks.len()
    }

    /// Writes them all; the next page has none yet.
    pub fn take(&mut self, page: &mut Vec<u8>) {
        self.pack();
        for number in [BLOCK, PARTS, self.packed + self.waiting.len()] {
            push_unsigned(number as u64, page);
        }
        push_signed(self.first.into(), page);
        page.append(&mut self.blocks);
        if self.waiting.len() > 1 {
            pack_block(&self.waiting, page);
        }
        self.waiting.clear();
        (self.first, self.packed) = (0, 0);
    }
}

/// Packs the differences of these, up to a block of them.
fn pack_block(lengths: &[i32], out: &mut Vec<u8>) {
    let mut block = [0i32; BLOCK];
    let count = lengths.len().saturating_sub(1).min(BLOCK);
    for (slot, pair) in block.iter_mut().zip(lengths.windows(2)) {
        *slot = pair[1].wrapping_sub(pair[0]);
    }
    let differences = block.get_mut(..count).unwrap_or(&mut []);
    let least = differences.iter().copied().min().unwrap_or(0);
    push_signed(least.into(), out);
    let widths = out.len();
    out.extend_from_slice(&[0; PARTS]);
    differences.iter_mut().for_each(|difference| *difference = difference.wrapping_sub(least));
    for (at, part) in block.as_chunks::<PART>().0.iter().enumerate().take(count.div_ceil(PART)) {
        // What is beyond the last is 0. Of any, the highest bit is all that counts.
        let bits = part.iter().fold(0, |bits, &difference| bits | difference as u32);
        let width = width(bits as usize);
        if let Some(slot) = out.get_mut(widths + at) {
            *slot = width as u8;
        }
        pack(&part.map(|difference| difference as u32), width, out);
    }
}

#[cfg(test)]
mod tests {
    use parquet::basic::Encoding;

    use super::super::library::{page, random};
    use super::Lengths;
    use crate::parquet::packed::numbers;

    /// The library's encoder is the measure.
    #[test]
    fn lengths_are_packed_as_by_the_library() {
        let (mut next, mut ours) = (random(7), Lengths::default());
        for case in 0..400 {
            let most = [1, 2, 40, 70_000, i32::MAX as u64][case % 5];
            let mut lengths = Vec::new();
            for _ in 0..1 + next(4) {
                let some: Vec<i32> = (0..next([2, 40, 130, 700][case / 5 % 4])).map(|_| next(most) as i32).collect();
                some.iter().for_each(|&length| ours.push(length as usize));
                lengths.extend(some);
                ours.pack();
            }
            let (mut bytes, mut read) = (Vec::new(), Vec::new());
            ours.take(&mut bytes);
            numbers(&bytes, |some: &[i32]| read.extend_from_slice(some)).unwrap();
            assert_eq!(read, lengths, "case {case}");
            if !lengths.is_empty() {
                assert_eq!(bytes, page(&lengths, Encoding::DELTA_BINARY_PACKED), "case {case}");
            }
        }
    }
}
