//! Numbers of one width side by side, 32 at once (Parquet, Encodings.md, "Bit-packed"). There is a function for each width: the
//! places and the shifts of its numbers are constants, and none waits for the one before.

/// 32 numbers of so many bits, at most 32, from four times as many bytes; zeros where bytes are missing.
pub fn unpack(bytes: &[u8], width: usize) -> [u32; 32] {
    let mut numbers = [0; 32];
    if let Some(unpacker) = UNPACKERS.get(width) {
        match bytes.get(..4 * width + BEHIND) {
            Some(stored) => unpacker(stored, &mut numbers),
            None => unpacker(&filled(bytes, width), &mut numbers),
        }
    }
    numbers
}

/// The sums of 32 numbers of so many bits, at most 64, from four times as many bytes; zeros where bytes are missing.
pub fn unpack_sums(bytes: &[u8], width: usize, sums: &mut [i64; 32], sum: Sum) {
    match (SUMMERS.get(width), bytes.get(..4 * width + BEHIND)) {
        (Some(summer), Some(stored)) => summer(stored, sums, sum),
        (Some(summer), None) => summer(&filled(bytes, width), sums, sum),
        (None, _) => {
            let (stored, mut last) = (filled(bytes, width), sum.last);
            for (at, number) in sums.iter_mut().enumerate() {
                let (start, shift) = (at * width / 8, at * width % 8);
                // A number of more than 56 bits may end in the ninth byte.
                let high = u128::from(stored.get(start + 8).copied().unwrap_or(0)) << 64;
                let word = ((u128::from(word_at(&stored, start)) | high) >> shift) as u64;
                last = sum.next(last, word & u64::MAX.checked_shr(64 - width as u32).unwrap_or(0));
                *number = last;
            }
        }
    }
}

/// The bytes of 32 numbers, and zeros.
fn filled(bytes: &[u8], width: usize) -> [u8; 4 * 64 + BEHIND] {
    let mut filled = [0; 4 * 64 + BEHIND];
    let there = bytes.len().min(4 * width.min(64));
    filled[..there].copy_from_slice(&bytes[..there]);
    filled
}

/// How numbers are added up: each is so much more than the one before, and `least`.
#[derive(Clone, Copy)]
pub struct Sum {
    pub least: i64,
    pub last: i64,
}

impl Sum {
    fn next(self, last: i64, more: u64) -> i64 {
        last.wrapping_add(self.least.wrapping_add(more as i64))
    }
}

fn word_at(bytes: &[u8], start: usize) -> u64 {
    bytes.get(start..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

/// Whoever finds a number by itself reads so many bytes from the one that it begins in.
const BEHIND: usize = size_of::<u64>();

fn unpack_of<const WIDTH: usize>(stored: &[u8], numbers: &mut [u32; 32]) {
    each::<WIDTH, _>(stored, numbers, |number| number as u32);
}

fn sum_of<const WIDTH: usize>(stored: &[u8], sums: &mut [i64; 32], sum: Sum) {
    let mut last = sum.last;
    each::<WIDTH, _>(stored, sums, |number| {
        last = sum.next(last, number);
        last
    });
}

#[inline(always)]
fn each<const WIDTH: usize, N>(stored: &[u8], out: &mut [N; 32], mut take: impl FnMut(u64) -> N) {
    for (eight, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let Some(stored) = stored.get(eight * WIDTH..eight * WIDTH + WIDTH + BEHIND) else { return };
        for (at, number) in out.iter_mut().enumerate() {
            *number = take(word_at(stored, at * WIDTH / 8) >> (at * WIDTH % 8) & ((1 << WIDTH) - 1));
        }
    }
}

type Unpacker = fn(&[u8], &mut [u32; 32]);
type Summer = fn(&[u8], &mut [i64; 32], Sum);

macro_rules! of_widths {
    ($function:ident, $($width:literal)*) => { [$($function::<$width>),*] };
}

#[rustfmt::skip]
const UNPACKERS: [Unpacker; 33] = of_widths!(unpack_of,
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
);

#[rustfmt::skip]
const SUMMERS: [Summer; 57] = of_widths!(sum_of,
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parquet::bits::pack;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(wide in prop::array::uniform32(any::<u32>()), width in 0usize..=32) {
            let numbers = wide.map(|number| (u64::from(number) % (1 << width)) as u32);
            let mut bytes = vec![7];
            pack(&numbers, width, &mut bytes);
            prop_assert_eq!(bytes.len(), 1 + 4 * width);
            prop_assert_eq!(unpack(&bytes[1..], width), numbers);
            prop_assert_eq!(unpack(&[&bytes[1..], &[0xff; 20]].concat(), width), numbers);
            let (short, zeros) = (&bytes[1..1 + 2 * width], vec![0; 2 * width]);
            prop_assert_eq!(unpack(short, width), unpack(&[short, &zeros].concat(), width));
            let mut eight = Vec::new();
            pack(&numbers[..8], width, &mut eight);
            prop_assert_eq!(&eight, &bytes[1..=width]);
        }

        #[test]
        fn numbers_of_any_width_are_unpacked(
            wide in prop::array::uniform32(any::<u64>()), width in 0usize..=64, cut in 0usize..300
        ) {
            let numbers = wide.map(|number| number & u64::MAX.checked_shr(64 - width as u32).unwrap_or(0));
            let mut bytes = vec![0u8; 4 * width];
            for (at, number) in numbers.iter().enumerate() {
                for bit in (0..width).filter(|bit| number >> bit & 1 == 1) {
                    bytes[(at * width + bit) / 8] |= 1 << ((at * width + bit) % 8);
                }
            }
            let sums = |numbers: [u64; 32]| {
                let mut last = 5i64;
                numbers.map(|number| {
                    last = last.wrapping_add(number as i64).wrapping_sub(7);
                    last
                })
            };
            let unpacked = |bytes: &[u8]| {
                let mut sums = [0; 32];
                unpack_sums(bytes, width, &mut sums, Sum { least: -7, last: 5 });
                sums
            };
            prop_assert_eq!(unpacked(&bytes), sums(numbers));
            prop_assert_eq!(unpacked(&[&bytes[..], &[0xff; 20]].concat()), sums(numbers));
            let (short, mut filled) = (&bytes[..cut.min(bytes.len())], bytes.clone());
            filled[short.len()..].fill(0);
            prop_assert_eq!(unpacked(short), unpacked(&filled));
        }
    }
}
