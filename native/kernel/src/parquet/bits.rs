//! Numbers of few bits: seven bits a byte, the lowest first (Parquet, Encodings.md, "ULEB128"; Thrift's compact protocol),
//! and numbers of one width side by side (Encodings.md, "Bit-packed").

/// A number of seven bits a byte, and what follows it.
pub fn unsigned(bytes: &[u8]) -> Option<(&[u8], u64)> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some((bytes.get(at + 1..)?, value));
        }
    }
    None
}

/// A number that may be negative, and what follows it (zigzag).
pub fn signed(bytes: &[u8]) -> Option<(&[u8], i64)> {
    let (rest, value) = unsigned(bytes)?;
    Some((rest, from_zigzag(value)))
}

/// The number that is written so: 0, 1, 2, 3 are 0, -1, 1, -2.
pub fn from_zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends a number of seven bits a byte.
pub fn push_unsigned(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number that may be negative: those near 0 are short (zigzag).
pub fn push_signed(value: i64, out: &mut Vec<u8>) {
    push_unsigned((value << 1 ^ value >> 63) as u64, out);
}

/// The bits that this number takes, and all below it.
pub fn width(most: usize) -> usize {
    (usize::BITS - most.leading_zeros()) as usize
}

/// Appends a multiple of eight numbers of so many bits: each eight are as many bytes as a number has bits.
pub fn pack(numbers: &[u32], width: usize, out: &mut Vec<u8>) {
    let end = out.len() + numbers.len() / 8 * width;
    let (mut word, mut filled) = (0u64, 0);
    for &number in numbers {
        word |= u64::from(number) << filled;
        filled += width as u32;
        if filled >= u32::BITS {
            out.extend_from_slice(&(word as u32).to_le_bytes());
            word >>= u32::BITS;
            filled -= u32::BITS;
        }
    }
    out.extend_from_slice(&(word as u32).to_le_bytes());
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_of_seven_bits_a_byte_come_back(value in any::<i64>(), rest in any::<u8>()) {
            let mut bytes = Vec::new();
            push_signed(value, &mut bytes);
            bytes.push(rest);
            prop_assert_eq!(signed(&bytes), Some((&[rest][..], value)));
        }
    }

    #[test]
    fn a_width_is_that_of_the_highest_number() {
        assert_eq!([0, 1, 2, 3, 4, 255, 256, usize::MAX].map(width), [0, 1, 2, 2, 3, 8, 9, 64]);
    }
}
