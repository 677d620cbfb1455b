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
    each_piece(bytes, |text, malformed| {
        out.push_str(text);
        if malformed > 0 {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    });
}

/// How many of `bytes` stand before what is at this offset of that text.
pub fn bytes_before(bytes: &[u8], offset: usize) -> usize {
    let (mut before, mut left) = (0, offset);
    each_piece(bytes, |text, malformed| {
        let taken = text.len().min(left);
        (before, left) = (before + taken, left - taken);
        if left > 0 {
            (before, left) = (before + malformed, left.saturating_sub(char::REPLACEMENT_CHARACTER.len_utf8()));
        }
    });
    before
}

/// Calls with each text that is valid and the length of the malformed sequence behind it, 0 behind the last.
fn each_piece(bytes: &[u8], mut use_piece: impl FnMut(&str, usize)) {
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(text) => return use_piece(text, 0),
            Err(e) => {
                let (valid, bad) = rest.split_at(e.valid_up_to());
                let len = malformed(bad);
                use_piece(std::str::from_utf8(valid).unwrap_or(""), len);
                rest = bad.get(len..).unwrap_or(&[]);
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
    use super::{bytes_before, decode_like_java, is_utf8};

    #[test]
    fn a_place_in_the_text_is_one_in_the_bytes() {
        for bytes in [&b"ab, x"[..], b"\xff\xffa\xed\xa0\x80\xc3, x", b"\xe2\x82\xf0\x9f\x98, x\xff", b"\xff"] {
            let mut text = String::new();
            decode_like_java(bytes, &mut text);
            assert_eq!(bytes_before(bytes, text.len()), bytes.len());
            let Some(at) = text.find('x') else { continue };
            assert_eq!(Some(bytes_before(bytes, at)), bytes.iter().position(|&b| b == b'x'), "{bytes:?}");
        }
    }

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
