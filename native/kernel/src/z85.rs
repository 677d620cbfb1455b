//! Z85, in which Delta's log holds Variant bounds: four bytes are five letters. Written with zero padding to a
//! multiple of four (what delta-spark demands); read with a short tail as in ascii85 too (the RFC's own example).

use crate::error::{Code, Error, Result};

const LETTERS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(4) {
        let mut block = [0; 4];
        block.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        let number = u32::from_be_bytes(block);
        for power in [85u32.pow(4), 85u32.pow(3), 85u32.pow(2), 85, 1] {
            out.push(LETTERS.get((number / power % 85) as usize).copied().unwrap_or(b'0'));
        }
    }
}

pub fn decode(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    for (block, letters) in text.chunks(5).enumerate() {
        if letters.len() == 1 {
            return Err(bad(block * 5, "a Z85 text ends with a lone letter"));
        }
        let mut number = 0u64;
        for i in 0..5 {
            let digit = match letters.get(i) {
                Some(&letter) => digit(letter).ok_or_else(|| bad(block * 5 + i, "a letter is none of Z85's"))?,
                // The missing letters of a tail count as the highest, so that cutting rounds to the right bytes.
                None => 84,
            };
            number = number * 85 + digit as u64;
        }
        let number = u32::try_from(number).map_err(|_| bad(block * 5, "five Z85 letters exceed four bytes"))?;
        out.extend(number.to_be_bytes().iter().take(letters.len() - 1));
    }
    Ok(())
}

fn digit(letter: u8) -> Option<u8> {
    LETTERS.iter().position(|l| *l == letter).map(|p| p as u8)
}

fn bad(at: usize, message: &str) -> Error {
    Error::new(Code::MalformedVariant, message).offset(at as u64)
}
