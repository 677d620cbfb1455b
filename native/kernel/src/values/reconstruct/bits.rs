//! One bit a slot of a column, read in blocks of 64 slots and turned around: by slot, one bit a column.

use arrow_buffer::{BooleanBuffer, NullBuffer};

/// Slots of a block, and columns of a group.
pub const BLOCK: usize = 64;

/// One bit a slot of a column.
pub enum Bits {
    Nowhere,
    Everywhere,
    Where(Vec<u64>),
}

impl Bits {
    #[inline]
    pub fn block(&self, number: usize) -> u64 {
        match self {
            Bits::Nowhere => 0,
            Bits::Everywhere => u64::MAX,
            Bits::Where(blocks) => blocks.get(number).copied().unwrap_or(0),
        }
    }

    /// Where nothing is null, of nulls that may be absent.
    pub fn valid(nulls: Option<&NullBuffer>) -> Self {
        match nulls {
            None => Bits::Everywhere,
            Some(nulls) if nulls.null_count() == 0 => Bits::Everywhere,
            Some(nulls) if nulls.null_count() == nulls.len() => Bits::Nowhere,
            Some(nulls) => Bits::Where(blocks(nulls.inner())),
        }
    }

    pub fn or(self, other: Bits) -> Self {
        match (self, other) {
            (Bits::Everywhere, _) | (_, Bits::Everywhere) => Bits::Everywhere,
            (Bits::Nowhere, one) | (one, Bits::Nowhere) => one,
            (Bits::Where(one), Bits::Where(other)) => Bits::each(one, &other, |a, b| a | b),
        }
    }

    pub fn and(self, other: &Bits) -> Self {
        match (self, other) {
            (Bits::Nowhere, _) | (_, Bits::Nowhere) => Bits::Nowhere,
            (one, Bits::Everywhere) => one,
            (Bits::Everywhere, Bits::Where(other)) => Bits::Where(other.clone()),
            (Bits::Where(one), Bits::Where(other)) => Bits::each(one, other, |a, b| a & b),
        }
    }

    pub fn and_not(self, other: &Bits) -> Self {
        match (self, other) {
            (one, Bits::Nowhere) => one,
            (Bits::Nowhere, _) | (_, Bits::Everywhere) => Bits::Nowhere,
            (Bits::Everywhere, Bits::Where(other)) => Bits::Where(other.iter().map(|bits| !bits).collect()),
            (Bits::Where(one), Bits::Where(other)) => Bits::each(one, other, |a, b| a & !b),
        }
    }

    fn each(mut one: Vec<u64>, other: &[u64], of: impl Fn(u64, u64) -> u64) -> Self {
        one.iter_mut().zip(other).for_each(|(one, other)| *one = of(*one, *other));
        Bits::Where(one)
    }
}

fn blocks(bits: &BooleanBuffer) -> Vec<u64> {
    bits.bit_chunks().iter_padded().collect()
}

/// From so many columns on all are turned at once, whatever their number.
const MANY: usize = 24;

/// The columns of a block as rows: bit n of a row is that of column n.
pub fn turn(columns: &[u64], rows: &mut [u64; BLOCK]) {
    *rows = [0; BLOCK];
    if columns.len() < MANY {
        for (number, columns) in columns.chunks(8).enumerate() {
            turn_eight(columns, 8 * number, rows);
        }
    } else if columns.iter().any(|&column| column != 0) {
        rows.iter_mut().zip(columns).for_each(|(row, &column)| *row = column);
        swap::<32>(rows, 0x0000_0000_ffff_ffff);
        swap::<16>(rows, 0x0000_ffff_0000_ffff);
        swap::<8>(rows, 0x00ff_00ff_00ff_00ff);
        swap::<4>(rows, 0x0f0f_0f0f_0f0f_0f0f);
        swap::<2>(rows, 0x3333_3333_3333_3333);
        swap::<1>(rows, 0x5555_5555_5555_5555);
    }
}

/// At most eight columns as bits of the rows from this one on.
fn turn_eight(columns: &[u64], first: usize, rows: &mut [u64; BLOCK]) {
    if columns.iter().all(|&column| column == 0) {
        return;
    }
    let mut bytes = [[0; 8]; 8];
    bytes.iter_mut().zip(columns).for_each(|(bytes, column)| *bytes = column.to_le_bytes());
    for (eight, rows) in rows.chunks_mut(8).enumerate() {
        let turned = transposed(u64::from_le_bytes(bytes.map(|column| column[eight]))).to_le_bytes();
        rows.iter_mut().zip(turned).for_each(|(row, bits)| *row |= u64::from(bits) << first);
    }
}

/// Eight bytes of eight bits, rows as columns (Hacker's Delight, 7-3).
fn transposed(mut bits: u64) -> u64 {
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
        let swapped = (bits ^ (bits >> shift)) & mask;
        bits ^= swapped ^ (swapped << shift);
    }
    bits
}

/// Of squares of 2N by 2N bits those of N by N that are not on the diagonal, each for the other.
#[inline(always)]
fn swap<const N: usize>(words: &mut [u64; BLOCK], mask: u64) {
    for square in words.chunks_exact_mut(2 * N) {
        let (low, high) = square.split_at_mut(N);
        for (low, high) in low.iter_mut().zip(high) {
            let swapped = ((*low >> N) ^ *high) & mask;
            *low ^= swapped << N;
            *high ^= swapped;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, turn};

    #[test]
    fn columns_become_rows() {
        let mut next = 1_u64;
        let columns: [u64; BLOCK] = std::array::from_fn(|_| {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            next
        });
        for count in 0..=BLOCK {
            let mut rows = [7; BLOCK];
            turn(&columns[..count], &mut rows);
            for (number, row) in rows.into_iter().enumerate() {
                let bits = (0..count).fold(0, |bits, column| bits | (columns[column] >> number & 1) << column);
                assert_eq!(row, bits);
            }
        }
    }
}
