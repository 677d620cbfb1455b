//! Whether bytes are UTF-8: the strings of Variants are mostly short and ASCII, which is told without a call. And what
//! becomes of those that are not: U+FFFD exactly as Java's decoder does it, because Spark's `parse_json` sees its input
//! through that decoder. It differs from Rust's in one place: an encoded surrogate is one fault, not three.

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

/// The text of `bytes`, each malformed sequence replaced.
pub fn decode_like_java(bytes: &[u8], out: &mut String) {
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(text) => return out.push_str(text),
            Err(e) => {
                let (valid, bad) = rest.split_at(e.valid_up_to());
                out.push_str(std::str::from_utf8(valid).unwrap_or(""));
                out.push(char::REPLACEMENT_CHARACTER);
                rest = bad.get(malformed(bad)..).unwrap_or(&[]);
            }
        }
    }
}

fn continues(byte: Option<&u8>) -> bool {
    byte.is_some_and(|b| b & 0xc0 == 0x80)
}

/// Length of the malformed sequence that `bytes` begins with.
fn malformed(bytes: &[u8]) -> usize {
    let second = bytes.get(1);
    match bytes.first() {
        Some(0xe0) if second.is_some_and(|b| b & 0xe0 == 0x80) => 1,
        Some(0xe0..=0xef) if continues(second) => 2 + continues(bytes.get(2)) as usize,
        Some(0xf0) if second.is_some_and(|b| *b < 0x90) => 1,
        Some(0xf4) if second.is_some_and(|b| *b > 0x8f) => 1,
        Some(0xf0..=0xf4) if continues(second) => 2 + continues(bytes.get(2)) as usize,
        _ => 1,
    }
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
