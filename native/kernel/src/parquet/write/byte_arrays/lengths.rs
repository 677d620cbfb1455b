//! Lengths of a page, packed by their differences (Parquet, Encodings.md, "DELTA_BINARY_PACKED").
//!
//! The library's encoder takes numbers of any type, one by one, as 64 bits each. Lengths have 32: a block of them is
//! subtracted, compared and packed at once. The blocks are those of the library, byte for byte.

use parquet::util::bit_util::num_required_bits;

use crate::parquet::varint::{push_signed, push_unsigned};

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
        let width = num_required_bits(bits.into());
        if let Some(slot) = out.get_mut(widths + at) {
            *slot = width;
        }
        pack_part(part, width.into(), out);
    }
}

/// Packs numbers of so many bits: as many words as a number has bits.
fn pack_part(part: &[i32; PART], width: u32, out: &mut Vec<u8>) {
    let (mut word, mut filled) = (0u64, 0);
    for &number in part {
        word |= u64::from(number as u32) << filled;
        filled += width;
        if filled >= u32::BITS {
            out.extend_from_slice(&(word as u32).to_le_bytes());
            word >>= u32::BITS;
            filled -= u32::BITS;
        }
    }
}

#[cfg(test)]
mod tests {
    use parquet::data_type::Int32Type;
    use parquet::encodings::encoding::{DeltaBitPackEncoder, Encoder};

    use super::Lengths;

    /// The library's encoder is the measure.
    #[test]
    fn lengths_are_packed_as_by_the_library() {
        let mut state = 7u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut ours, mut library) = (Lengths::default(), DeltaBitPackEncoder::<Int32Type>::new());
        for case in 0..400 {
            let most = [1, 2, 40, 70_000, i32::MAX as u64][case % 5];
            for _ in 0..next(4) {
                let lengths: Vec<i32> = (0..next([2, 40, 130, 700][case / 5 % 4])).map(|_| next(most) as i32).collect();
                lengths.iter().for_each(|&length| ours.push(length as usize));
                ours.pack();
                library.put(&lengths).unwrap();
                assert_eq!(ours.bytes(), library.estimated_data_encoded_size());
            }
            let mut page = Vec::new();
            ours.take(&mut page);
            assert_eq!(page, library.flush_buffer().unwrap(), "case {case}");
        }
    }
}
