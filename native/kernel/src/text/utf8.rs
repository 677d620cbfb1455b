//! Whether bytes are UTF-8: the strings of Variants are mostly short and ASCII, which is told without a call.

#[inline]
pub fn is_utf8(bytes: &[u8]) -> bool {
    is_ascii(bytes) || simdutf8::basic::from_utf8(bytes).is_ok()
}

/// Eight bytes at a time, the last eight again where they do not fill up.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = bytes.as_chunks::<8>();
    let all = words.iter().fold(0, |all, word| all | u64::from_le_bytes(*word));
    let tail = match bytes.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |all, byte| all | u64::from(*byte)),
    };
    (all | tail) & HIGH == 0
}

#[cfg(test)]
mod tests {
    use super::is_utf8;

    #[test]
    fn it_agrees_with_the_standard_library() {
        for len in 0..40 {
            let ascii = vec![b'x'; len];
            assert!(is_utf8(&ascii));
            for at in 0..len {
                for bad in [&b"\xff"[..], b"\x80", "é".as_bytes(), "€".as_bytes(), "😀".as_bytes(), b"\xed\xa0\x80"]
                {
                    let mut bytes = ascii.clone();
                    bytes.splice(at..(at + bad.len()).min(len), bad.iter().copied());
                    assert_eq!(is_utf8(&bytes), std::str::from_utf8(&bytes).is_ok(), "{bytes:?}");
                    bytes.truncate(len);
                    assert_eq!(is_utf8(&bytes), std::str::from_utf8(&bytes).is_ok(), "{bytes:?}");
                }
            }
        }
    }
}
