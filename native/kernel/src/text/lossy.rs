//! Bytes that are no UTF-8 become U+FFFD exactly as Java's decoder does it, because Spark's `parse_json` sees its
//! input through that decoder. It differs from Rust's in one place: an encoded surrogate is one fault, not three.

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
