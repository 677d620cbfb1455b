//! Numbers that are packed by their differences (Parquet, Encodings.md, "DELTA_BINARY_PACKED").

use crate::parquet::bits::{signed, unsigned};
use crate::parquet::unpack::{Sum, unpack, unpack_sums};

/// Numbers that are handed on together, at most.
const SOME: usize = 32;

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

/// Hands on the numbers that these bytes begin with, at most so many, the first alone; `None` where they are damaged.
pub fn numbers<N: Integer>(bytes: &[u8], most: usize, mut take: impl FnMut(&[N])) -> Option<()> {
    let (bytes, block) = unsigned(bytes)?;
    let (bytes, parts) = unsigned(bytes)?;
    let (bytes, stated) = unsigned(bytes)?;
    let (mut bytes, first) = signed(bytes)?;
    let per_part = block.checked_div(parts)?;
    if per_part == 0 || block % 128 != 0 || block % parts != 0 || per_part % SOME as u64 != 0 {
        return None;
    }
    let mut left = usize::try_from(stated).unwrap_or(usize::MAX).min(most);
    if left == 0 {
        return Some(());
    }
    let mut last = N::try_from(first).ok()?;
    take(&[last]);
    left -= 1;
    let mut some = [N::default(); SOME];
    while left > 0 {
        let (rest, least) = signed(bytes)?;
        let (least, (widths, rest)) = (N::try_from(least).ok()?, rest.split_at_checked(parts.try_into().ok()?)?);
        bytes = rest;
        for width in widths.iter().flat_map(|&width| std::iter::repeat_n(usize::from(width), per_part as usize / SOME))
        {
            let count = left.min(SOME);
            // What is behind the last number may be missing.
            if width > N::BITS || bytes.len() * 8 < count * width {
                return None;
            }
            N::unpack(bytes, width, least, last, &mut some);
            last = some[SOME - 1];
            if count == SOME {
                take(&some); // of a length that is known when it is compiled
            } else {
                take(some.get(..count)?);
            }
            bytes = bytes.get(4 * width..).unwrap_or(&[]);
            left -= count;
            if left == 0 {
                return Some(());
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::numbers;

    fn read(bytes: &[u8]) -> Option<Vec<i32>> {
        let mut found = Vec::new();
        numbers(bytes, 1000, |some| found.extend_from_slice(some)).map(|()| found)
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
            let _ = numbers(&[&[0x80, 0x01, 4, 40][..], &bytes].concat(), 1000, |some: &[i32]| count += some.len());
            let _ = numbers(&[&[0x80, 0x01, 4, 200, 1][..], &bytes].concat(), 70, |some: &[i64]| wide += some.len());
            prop_assert!(count <= 40 && wide <= 70);
        }
    }
}
