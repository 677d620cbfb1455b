//! Pages compressed by Brotli (Parquet, Compression.md, "BROTLI").
//!
//! A crate of its own, because the library is generic: each crate that calls it compiles all of it again, and the kernel
//! would with the effort that its own loops are worth.

use std::io::{Error, Read, Result, Write};

/// Bytes that are taken at once, and the window that the authors of Brotli recommend: 4 MiB.
const BUFFER: usize = 4096;
const LOG_WINDOW: u32 = 22;

/// Appends the page compressed. `level` is 0 to 11.
pub fn compress(page: &[u8], level: u32, out: &mut Vec<u8>) -> Result<()> {
    let mut encoder = brotli::CompressorWriter::new(out, BUFFER, level, LOG_WINDOW);
    encoder.write_all(page)?;
    encoder.flush()
}

/// Appends what a page holds, at most `most` bytes.
pub fn decompress(packed: &[u8], out: &mut Vec<u8>, most: usize) -> Result<()> {
    let before = out.len();
    // One more tells that there are more.
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    brotli::Decompressor::new(packed, BUFFER).take(limit).read_to_end(out)?;
    if out.len() - before > most { Err(Error::other(format!("it has more than {most} bytes"))) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(page: &[u8], level: u32) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        compress(page, level, &mut out)?;
        Ok(out)
    }

    #[test]
    fn a_page_goes_there_and_back_at_every_level() -> Result<()> {
        let long = b"abcdefgh".repeat(50_000);
        for (level, page) in (0..=11).flat_map(|level| [&b""[..], b"x", &long].map(|page| (level, page))) {
            let mut out = b"before".to_vec();
            decompress(&packed(page, level)?, &mut out, page.len())?;
            assert_eq!(out, [b"before", page].concat());
        }
        Ok(())
    }

    #[test]
    fn a_page_that_is_cut_damaged_or_too_large_is_an_error() -> Result<()> {
        let page = packed(&b"abcdefgh".repeat(50_000), 5)?;
        let unpacked = |packed: &[u8], most| decompress(packed, &mut Vec::new(), most);
        assert!(unpacked(&page[..page.len() - 1], 1 << 20).is_err());
        assert!(unpacked(&page, 399_999).is_err());
        assert!(unpacked(&[0xff; 40], 1 << 20).is_err());
        unpacked(&page, 400_000)
    }
}
