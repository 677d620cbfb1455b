//! Numbers of seven bits a byte, the lowest first (Parquet, Encodings.md, "ULEB128"; Thrift's compact protocol).

/// A number of seven bits a byte, and what follows it.
pub fn unsigned(bytes: &[u8]) -> Option<(&[u8], u64)> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(9) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some((bytes.get(at + 1..)?, value));
        }
    }
    None
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
