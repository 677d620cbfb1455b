//! Looking at many bytes at a time, in safe code: where a string ends, and how it reads without its escapes.

use wide::u8x16;

use crate::error::{Code, Error, Result};

/// Bytes that are looked at at once.
const BLOCK: usize = 16;

/// A bit for each byte of the block that is below 0x20, a quote or a backslash; that of the first is the lowest.
#[inline(always)]
fn special(block: &[u8; BLOCK]) -> u32 {
    let block = u8x16::new(*block);
    let control = block.min(u8x16::splat(0x1f)).cmp_eq(block);
    let special = block.cmp_eq(u8x16::splat(b'"')) | block.cmp_eq(u8x16::splat(b'\\')) | control;
    special.move_mask() as u32
}

#[inline(always)]
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*chunk))
}

/// The first place from `at` on that holds a quote, a backslash or a control character; the length if none does.
#[inline(always)]
pub fn string_stop(bytes: &[u8], at: usize) -> usize {
    let mut rest = bytes.get(at..).unwrap_or(&[]);
    while let Some((block, behind)) = rest.split_first_chunk() {
        let hits = special(block);
        if hits != 0 {
            return bytes.len() - rest.len() + hits.trailing_zeros() as usize;
        }
        rest = behind;
    }
    last_stop(bytes, at.max(bytes.len() - rest.len()))
}

/// The same where less than a block is left: in the last block, or of bytes that have none.
#[inline(always)]
fn last_stop(bytes: &[u8], at: usize) -> usize {
    let left = bytes.len().saturating_sub(at);
    let hits = match bytes.last_chunk::<BLOCK>() {
        Some(block) => special(block) >> (BLOCK - left),
        None => {
            let mut block = [b'"'; BLOCK];
            block.iter_mut().zip(bytes.get(at..).unwrap_or(&[])).for_each(|(to, &from)| *to = from);
            special(&block)
        }
    };
    at + left.min(hits.trailing_zeros() as usize)
}

/// Appends the text if nothing in it has to be escaped, which is looked at on the way; else appends nothing.
#[inline]
pub fn push_plain_text(out: &mut Vec<u8>, text: &[u8]) -> bool {
    let start = out.len();
    let mut hits = 0;
    // In blocks, the last of which may overlap the one before.
    if let Some(last) = text.last_chunk::<BLOCK>() {
        out.reserve(text.len() + BLOCK);
        for block in text.as_chunks::<BLOCK>().0 {
            hits |= special(block);
            out.extend_from_slice(block);
        }
        hits |= special(last);
        out.truncate(start + text.len() - BLOCK);
        out.extend_from_slice(last);
    } else if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        let mut block = [0; BLOCK];
        block[..8].copy_from_slice(first);
        block[8..].copy_from_slice(last);
        hits |= special(&block);
        out.extend_from_slice(first);
        out.truncate(start + text.len() - 8);
        out.extend_from_slice(last);
    } else {
        for &byte in text {
            hits |= u32::from(byte < 0x20 || byte == b'"' || byte == b'\\');
            out.push(byte);
        }
    }
    if hits != 0 {
        out.truncate(start);
    }
    hits == 0
}

/// Reads the rest of a string that has an escape: appends its text from `start` on to `out` and returns the
/// place after the closing quote. A surrogate without its partner is refused, as Spark's parser does.
#[cold]
pub fn unescape(bytes: &[u8], start: usize, out: &mut Vec<u8>) -> Result<usize> {
    let mut run = start;
    loop {
        let stop = string_stop(bytes, run);
        out.extend_from_slice(bytes.get(run..stop).unwrap_or(&[]));
        match bytes.get(stop) {
            Some(b'"') => return Ok(stop + 1),
            Some(b'\\') => run = escape(bytes, stop, out)?,
            _ => return Err(bad_string(bytes, stop)),
        }
    }
}

/// Reads the escape whose backslash stands at `at`; returns the place after it.
fn escape(bytes: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize> {
    let simple = match bytes.get(at + 1) {
        Some(b'"') => b'"',
        Some(b'\\') => b'\\',
        Some(b'/') => b'/',
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => {
            let first = hex(bytes, at + 2)?;
            let (code, end) = match first {
                0xd800..=0xdbff => {
                    let second = match (bytes.get(at + 6), bytes.get(at + 7)) {
                        (Some(b'\\'), Some(b'u')) => hex(bytes, at + 8)?,
                        _ => 0,
                    };
                    if !(0xdc00..=0xdfff).contains(&second) {
                        return Err(lone_surrogate(at, first));
                    }
                    (0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), at + 12)
                }
                _ => (first, at + 6),
            };
            let Some(character) = char::from_u32(code) else { return Err(lone_surrogate(at, first)) };
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(end);
        }
        Some(_) => return Err(bad(at, "a backslash in a string does not start a JSON escape".into())),
        None => return Err(bad(bytes.len(), "the text ends inside a string".into())),
    };
    out.push(simple);
    Ok(at + 2)
}

fn hex(bytes: &[u8], at: usize) -> Result<u32> {
    let mut value = 0;
    for i in at..at + 4 {
        let digit = bytes.get(i).and_then(|&b| (b as char).to_digit(16));
        let Some(digit) = digit else { return Err(bad(i, "\\u needs four hexadecimal digits".into())) };
        value = value * 16 + digit;
    }
    Ok(value)
}

fn lone_surrogate(at: usize, code: u32) -> Error {
    bad(at, format!("the surrogate \\u{code:04x} has no partner"))
}

/// What is wrong where a string stops at neither quote nor backslash.
#[cold]
pub fn bad_string(bytes: &[u8], at: usize) -> Error {
    match bytes.get(at) {
        Some(byte) => bad(at, format!("a control character (0x{byte:02x}) inside a string must be escaped")),
        None => bad(at, "the text ends inside a string".into()),
    }
}

#[cold]
pub fn bad(at: usize, message: String) -> Error {
    Error::new(Code::InvalidJson, message).offset(at as u64)
}

#[cfg(test)]
mod tests {
    use super::string_stop;

    #[test]
    fn a_string_stops_where_a_look_at_each_byte_says() {
        for (length, byte) in (0..40).flat_map(|length| (0..=255).map(move |byte| (length, byte))) {
            for place in 0..=length {
                let mut bytes = vec![0xff; length];
                // What is behind the stop, and before the place that is asked about, does not count.
                for at in [place, (place + 3) % 37, (place + 17) % 37] {
                    bytes.get_mut(at).into_iter().for_each(|slot| *slot = byte);
                }
                for from in [0, place.saturating_sub(1), place, length] {
                    let stops = |&at: &usize| matches!(bytes[at], b'"' | b'\\' | 0..0x20);
                    let expected = (from..length).find(stops).unwrap_or(length);
                    assert_eq!(string_stop(&bytes, from), expected, "{bytes:?} from {from}");
                }
            }
        }
    }
}
