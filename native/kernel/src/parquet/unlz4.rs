//! Decompresses the deprecated codec LZ4, whose framing Parquet does not specify (Compression.md, "LZ4").
//!
//! Hadoop's codec, Spark's too, writes blocks: the length of a block before compression, then its chunks, each behind its
//! compressed length. (The library takes a block for one chunk, and none for the last that is shorter than the one before.)
//! Old versions of Arrow wrote frames of LZ4's own, older ones bare LZ4.

use std::io::{Error, ErrorKind, Read, Result};

use lz4_flex::block::{DecompressError, decompress_into};
use lz4_flex::frame::FrameDecoder;

/// What a byte of LZ4 becomes at most.
const MOST_OF_A_BYTE: usize = 255;

/// The chunk of nothing, which arrow-rs writes for the values of a page of nulls (version 2), and Hadoop does not.
const NOTHING: [u8; 5] = [0, 0, 0, 1, 0];

/// Appends what a page holds, at most `most` bytes and what was there.
pub fn append(packed: &[u8], values: &mut Vec<u8>, most: usize) -> Result<()> {
    let before = values.len();
    let Err(error) = hadoop(packed, values, before + most) else { return Ok(()) };
    for other in [frame, bare] {
        values.truncate(before);
        if other(packed, values, before + most).is_ok() {
            return Ok(());
        }
    }
    Err(error)
}

fn wrong() -> Error {
    Error::new(ErrorKind::InvalidData, "a page of LZ4 is damaged")
}

/// Blocks of chunks; `most` is the length of `values` that is not exceeded.
fn hadoop(mut packed: &[u8], values: &mut Vec<u8>, most: usize) -> Result<()> {
    while !packed.is_empty() {
        let block = length(&mut packed)?;
        if block == 0 && packed == NOTHING {
            break;
        }
        let end = values.len().checked_add(block).filter(|&end| end <= most).ok_or_else(wrong)?;
        while values.len() < end {
            let chunk = length(&mut packed)?;
            let (chunk, rest) = packed.split_at_checked(chunk).ok_or_else(wrong)?;
            packed = rest;
            let start = values.len();
            values.resize(end.min(start + chunk.len() * MOST_OF_A_BYTE), 0);
            let made = decompress_into(chunk, &mut values[start..]).map_err(|_| wrong())?;
            values.truncate(start + made);
        }
    }
    Ok(())
}

fn length(packed: &mut &[u8]) -> Result<usize> {
    let (length, rest) = packed.split_first_chunk().ok_or_else(wrong)?;
    *packed = rest;
    Ok(u32::from_be_bytes(*length) as usize)
}

fn frame(packed: &[u8], values: &mut Vec<u8>, most: usize) -> Result<()> {
    let room = most - values.len();
    let read = FrameDecoder::new(packed).take(room as u64 + 1).read_to_end(values)?;
    if read > room { Err(wrong()) } else { Ok(()) }
}

fn bare(packed: &[u8], values: &mut Vec<u8>, most: usize) -> Result<()> {
    let (start, mut room) = (values.len(), packed.len());
    loop {
        room = room.saturating_mul(4).min(most - start);
        values.resize(start + room, 0);
        match decompress_into(packed, &mut values[start..]) {
            Ok(made) => {
                values.truncate(start + made);
                return Ok(());
            }
            Err(DecompressError::OutputTooSmall { .. }) if room < most - start => {}
            Err(_) => return Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lz4_flex::block::compress;
    use lz4_flex::frame::FrameEncoder;

    use super::*;

    fn appended(packed: &[u8], most: usize) -> Option<Vec<u8>> {
        let mut values = b"levels".to_vec();
        append(packed, &mut values, most).ok()?;
        values.strip_prefix(b"levels").map(<[u8]>::to_vec)
    }

    /// A block of these chunks.
    fn block(chunks: &[&[u8]]) -> Vec<u8> {
        let mut made = (chunks.iter().map(|chunk| chunk.len()).sum::<usize>() as u32).to_be_bytes().to_vec();
        for chunk in chunks {
            let packed = compress(chunk);
            made.extend((packed.len() as u32).to_be_bytes());
            made.extend(packed);
        }
        made
    }

    #[test]
    fn blocks_of_any_chunks_are_read() {
        let text: Vec<u8> = (0..9000_u32).flat_map(|n| (n / 3).to_le_bytes()).collect();
        let (first, second) = text.split_at(30_000);
        let (long, short) = (block(&[first]), block(&[second]));
        assert!(long.len() > 2 * short.len(), "the last one is shorter than the one before");
        for packed in
            [block(&[&text]), [long, short].concat(), block(&[first, second]), [block(&[]), block(&[&text])].concat()]
        {
            assert_eq!(appended(&packed, text.len()).as_ref(), Some(&text));
            assert_eq!(appended(&packed, text.len() - 1), None);
            assert_eq!(appended(&packed[..packed.len() - 1], text.len()), None);
        }
        assert_eq!(appended(b"", 0), Some(vec![]));
        // Of nothing, as arrow-rs writes it.
        assert_eq!(appended(&[0, 0, 0, 0, 0, 0, 0, 1, 0], 0), Some(vec![]));
    }

    #[test]
    fn frames_and_bare_lz4_are_read() -> Result<()> {
        let text = b"the same again, ".repeat(500);
        let mut encoder = FrameEncoder::new(Vec::new());
        encoder.write_all(&text)?;
        for packed in [encoder.finish()?, compress(&text)] {
            assert_eq!(appended(&packed, text.len()).as_ref(), Some(&text));
            assert_eq!(appended(&packed, text.len() - 1), None);
        }
        Ok(())
    }

    #[test]
    fn lengths_that_lie_are_errors() {
        for packed in [&[0, 0, 0, 9, 0, 0, 0, 0][..], &[0xff; 8], &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0], &[0, 0, 1]]
        {
            assert_eq!(appended(packed, 1 << 20), None, "{packed:?}");
        }
    }
}
