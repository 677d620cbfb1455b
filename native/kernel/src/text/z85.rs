//! z85: bytes as text, four bytes as five characters (ZeroMQ RFC 32).
//!
//! What is written is the strict form, padded with zeros to a multiple of four bytes: delta-spark rejects any other. A
//! short tail as in ascii85 is read too, which the example of Delta's RFC "Variant Shredding" has.

const ALPHABET: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
const INVALID: u8 = 255;
const CODES: [u8; 256] = codes();

const fn codes() -> [u8; 256] {
    let mut found = [INVALID; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        found[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    found
}

/// Appends the text of the bytes.
pub fn encode(bytes: &[u8], out: &mut String) {
    for chunk in bytes.chunks(4) {
        let mut four = [0; 4];
        four[..chunk.len()].copy_from_slice(chunk);
        let mut number = u32::from_be_bytes(four);
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = ALPHABET[(number % 85) as usize];
            number /= 85;
        }
        out.extend(digits.map(char::from));
    }
}

/// Appends the bytes of a text, strict or with a short tail; false, and nothing of use, for any other text.
pub fn decode(text: &[u8], out: &mut Vec<u8>) -> bool {
    out.reserve(text.len() / 5 * 4 + 4);
    let groups = text.chunks_exact(5);
    let tail = groups.remainder();
    for group in groups {
        let Some(four) = decode_group(group) else { return false };
        out.extend_from_slice(&four);
    }
    match tail.len() {
        0 => true,
        1 => false,
        // A tail of n characters encodes n - 1 bytes; the missing characters count as the highest digit.
        n => {
            let mut group = [b'#'; 5];
            group[..n].copy_from_slice(tail);
            let Some(four) = decode_group(&group) else { return false };
            out.extend_from_slice(&four[..n - 1]);
            true
        }
    }
}

/// Decodes texts that begin alike: what a text shares with the one before it is not decoded again.
#[derive(Default)]
pub struct Decoder {
    text: Vec<u8>,
    bytes: Vec<u8>,
}

impl Decoder {
    /// The bytes of a text, as `decode` has them.
    pub fn decode(&mut self, text: &[u8]) -> Option<&[u8]> {
        let groups = same_groups(&self.text, text);
        self.text.truncate(5 * groups);
        self.bytes.truncate(4 * groups);
        let rest = text.get(5 * groups..)?;
        if !decode(rest, &mut self.bytes) {
            self.text.clear();
            return None;
        }
        self.text.extend_from_slice(rest);
        Some(&self.bytes)
    }
}

/// How many groups of five characters two texts begin with alike.
fn same_groups(left: &[u8], right: &[u8]) -> usize {
    let same = |size: usize, from: usize| {
        let pairs =
            left.get(from..).unwrap_or(&[]).chunks_exact(size).zip(right.get(from..).unwrap_or(&[]).chunks_exact(size));
        pairs.take_while(|(left, right)| left == right).count()
    };
    let many = 8 * same(40, 0);
    many + same(5, 5 * many)
}

fn decode_group(group: &[u8]) -> Option<[u8; 4]> {
    let mut number = 0u64;
    let mut wrong = false;
    for &character in group {
        let code = CODES[character as usize];
        wrong |= code == INVALID;
        number = number * 85 + code as u64;
    }
    if wrong { None } else { u32::try_from(number).ok().map(u32::to_be_bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoder_gives_what_each_text_gives_alone() {
        let mut text = String::new();
        encode(&(0..120).collect::<Vec<u8>>(), &mut text);
        let other = format!("{}0{}", &text[..50], &text[51..]);
        let mut decoder = Decoder::default();
        for text in [&text, &text, &text[..75], &text, &other, &text[..52], "", &text, "ab cd", &text[..3], &text] {
            assert_eq!(decoder.decode(text.as_bytes()).map(<[u8]>::to_vec), decoded(text), "{text}");
        }
    }

    fn decoded(text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(text.as_bytes(), &mut out).then_some(out)
    }

    #[test]
    fn the_example_of_the_rfc() {
        let mut text = String::new();
        encode(&[0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B], &mut text);
        assert_eq!(text, "HelloWorld");
        assert_eq!(decoded("HelloWorld"), Some(vec![0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]));
    }

    #[test]
    fn texts_that_are_none() {
        for text in ["H", "Hello!a\"cd", "#####", "%nSc1", "HelloW", "Hell\u{e9}"] {
            assert_eq!(decoded(text), None, "{text}");
        }
        assert_eq!(decoded("%nSc0"), Some(vec![255; 4]));
        assert_eq!(decoded("Hell"), Some(vec![0x86, 0x4F, 0xD2]));
    }
}
