//! Numbers that are packed by their differences (Parquet, Encodings.md, "DELTA_BINARY_PACKED").

use std::ops::Range;

use crate::parquet::bits::{signed, unsigned};
use crate::parquet::unpack::{Sum, unpack, unpack_sums};

/// Numbers that are handed on together, at most.
pub const SOME: usize = 32;

/// What numbers are kept in: differences beyond its width wrap.
pub trait Integer: Copy + Default + TryFrom<i64> {
    const BITS: usize;

    /// Unpacks differences of this width, at most its own, zeros where bytes are missing, and adds them up: each is this
    /// much more, and the first follows `last`.
    fn unpack(bytes: &[u8], width: usize, least: Self, last: Self, out: &mut [Self; SOME]);
}

impl Integer for i32 {
    const BITS: usize = 32;

    fn unpack(bytes: &[u8], width: usize, least: Self, mut last: Self, out: &mut [Self; SOME]) {
        for (number, difference) in out.iter_mut().zip(unpack(bytes, width)) {
            last = last.wrapping_add(least.wrapping_add(difference as i32));
            *number = last;
        }
    }
}

impl Integer for i64 {
    const BITS: usize = 64;

    fn unpack(bytes: &[u8], width: usize, least: Self, last: Self, out: &mut [Self; SOME]) {
        unpack_sums(bytes, width, out, Sum { least, last });
    }
}

/// Packed numbers, and how far they are read; each call gets the same bytes.
pub struct Packed<N> {
    /// The next byte.
    at: usize,
    /// The parts of a block, and the numbers of a part.
    parts: usize,
    per_part: u64,
    /// Numbers that were not read.
    left: u64,
    last: N,
    is_first: bool,
    least: N,
    /// Where the widths of the block's next parts are, and what is left of the part that is read.
    widths: Range<usize>,
    width: usize,
    of_part: u64,
}

impl<N: Integer> Packed<N> {
    /// The numbers from this byte on; `None` where they are damaged.
    pub fn open(bytes: &[u8], at: usize) -> Option<Self> {
        let (rest, block) = unsigned(bytes.get(at..)?)?;
        let (rest, parts) = unsigned(rest)?;
        let (rest, left) = unsigned(rest)?;
        let (rest, first) = signed(rest)?;
        let per_part = block.checked_div(parts)?;
        if per_part == 0 || block % 128 != 0 || block % parts != 0 || per_part % SOME as u64 != 0 {
            return None;
        }
        let last = if left > 0 { N::try_from(first).ok()? } else { N::default() };
        Some(Packed {
            at: bytes.len() - rest.len(),
            parts: parts.try_into().ok()?,
            per_part,
            left,
            last,
            is_first: true,
            least: N::default(),
            widths: 0..0,
            width: 0,
            of_part: 0,
        })
    }

    /// The next numbers, the first of all alone, and how many they are: 0 after the last; `None` where they are damaged.
    #[inline]
    pub fn some(&mut self, bytes: &[u8], out: &mut [N; SOME]) -> Option<usize> {
        if self.left == 0 {
            return Some(0);
        }
        if self.is_first {
            self.is_first = false;
            self.left -= 1;
            out[0] = self.last;
            return Some(1);
        }
        if self.of_part == 0 {
            self.next_part(bytes)?;
        }
        let count = self.left.min(SOME as u64) as usize;
        let rest = bytes.get(self.at..).unwrap_or(&[]);
        // What is behind the last number may be missing.
        if rest.len() * 8 < count * self.width {
            return None;
        }
        N::unpack(rest, self.width, self.least, self.last, out);
        self.last = out[SOME - 1];
        self.at += 4 * self.width;
        self.of_part -= SOME as u64;
        self.left -= count as u64;
        Some(count)
    }

    fn next_part(&mut self, bytes: &[u8]) -> Option<()> {
        if self.widths.is_empty() {
            let (rest, least) = signed(bytes.get(self.at..)?)?;
            self.least = N::try_from(least).ok()?;
            let start = bytes.len() - rest.len();
            self.widths = start..start.checked_add(self.parts)?;
            bytes.get(self.widths.clone())?;
            self.at = self.widths.end;
        }
        self.width = usize::from(*bytes.get(self.widths.next()?)?);
        self.of_part = self.per_part;
        (self.width <= N::BITS).then_some(())
    }
}

/// Hands on the numbers that these bytes begin with, the first alone; `None` where they are damaged.
pub fn numbers<N: Integer>(bytes: &[u8], mut take: impl FnMut(&[N])) -> Option<()> {
    let (mut packed, mut some) = (Packed::open(bytes, 0)?, [N::default(); SOME]);
    loop {
        match packed.some(bytes, &mut some)? {
            0 => return Some(()),
            count => take(some.get(..count)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::numbers;

    fn read(bytes: &[u8]) -> Option<Vec<i32>> {
        let mut found = Vec::new();
        numbers(bytes, |some| found.extend_from_slice(some)).map(|()| found)
    }

    /// The example of the specification: 7, 5, 3, 1, 2, 3, 4, 5, differences of -2 and 1, in a block of 128 in four parts.
    #[test]
    fn the_example_of_the_specification_is_read() {
        let mut bytes = vec![0x80, 0x01, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111];
        assert_eq!(read(&bytes), Some(vec![7, 5, 3, 1, 2, 3, 4, 5]));
        bytes.extend([0; 6]);
        assert_eq!(read(&bytes), Some(vec![7, 5, 3, 1, 2, 3, 4, 5]));
    }

    #[test]
    fn what_is_damaged_has_no_numbers() {
        assert_eq!(read(&[0x80, 0x01, 4, 0, 0]), Some(vec![]));
        for damaged in [
            &[][..],
            &[0x80, 0x01, 0, 2, 0, 0, 0],
            &[0, 4, 2, 0, 0, 0, 0, 0, 0],
            &[0x80, 0x01, 8, 2, 0, 0, 0],
            &[0x80, 0x01, 4, 2, 0, 0, 33, 0, 0, 0, 1, 1, 1, 1, 1],
            &[0x80, 0x01, 4, 2, 0, 0, 1, 0, 0, 0],
            &[0x80, 0x01, 4, 2, 0, 0, 0, 0],
        ] {
            assert_eq!(read(damaged), None, "{damaged:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_stop_it(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let (mut count, mut wide) = (0, 0);
            let _ = numbers(&[&[0x80, 0x01, 4, 40][..], &bytes].concat(), |some: &[i32]| count += some.len());
            let _ = numbers(&[&[0x80, 0x01, 4, 200, 1][..], &bytes].concat(), |some: &[i64]| wide += some.len());
            prop_assert!(count <= 40 && wide <= 200);
        }
    }
}
