//! Numbers that are packed by their differences (Parquet, Encodings.md, "DELTA_BINARY_PACKED").

use crate::parquet::bits::{signed, unpack, unsigned};

/// Numbers that are handed on together, at most.
const SOME: u64 = 32;

/// Hands on the numbers that these bytes begin with, the first alone; `None` where they are damaged.
pub fn numbers(bytes: &[u8], mut take: impl FnMut(&[i32])) -> Option<()> {
    let (bytes, block) = unsigned(bytes)?;
    let (bytes, parts) = unsigned(bytes)?;
    let (bytes, mut left) = unsigned(bytes)?;
    let (mut bytes, first) = signed(bytes)?;
    let per_part = block.checked_div(parts)?;
    if per_part == 0 || block % 128 != 0 || block % parts != 0 || per_part % SOME != 0 {
        return None;
    }
    if left == 0 {
        return Some(());
    }
    let mut last = i32::try_from(first).ok()?;
    take(&[last]);
    left -= 1;
    while left > 0 {
        let (rest, least) = signed(bytes)?;
        let (least, (widths, rest)) = (i32::try_from(least).ok()?, rest.split_at_checked(parts.try_into().ok()?)?);
        bytes = rest;
        for width in
            widths.iter().flat_map(|&width| std::iter::repeat_n(usize::from(width), (per_part / SOME) as usize))
        {
            let count = left.min(SOME) as usize;
            // What is behind the last number may be missing.
            if width > 32 || bytes.len() * 8 < count * width {
                return None;
            }
            let (some, rest) = bytes.split_at_checked(4 * width).unwrap_or((bytes, &[]));
            let mut numbers = unpack(some, width).map(|difference| difference as i32);
            for number in &mut numbers {
                last = last.wrapping_add(least).wrapping_add(*number);
                *number = last;
            }
            take(numbers.get(..count)?);
            bytes = rest;
            left -= count as u64;
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
            let mut count = 0;
            let _ = numbers(&[&[0x80, 0x01, 4, 40][..], &bytes].concat(), |some| count += some.len());
            prop_assert!(count <= 40);
        }
    }
}
