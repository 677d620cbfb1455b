//! Decompresses zstd in contexts that are used again: each thread keeps one.
//!
//! Making a context asks the processor for its features (`CPUID`), which a virtual machine intercepts. With a context
//! for each column chunk, as the library has them, that was a quarter of the time that files of some hundred rows took.

use std::cell::Cell;
use std::io::{Error, ErrorKind, Result};

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

thread_local! {
    static KEPT: Cell<Option<Decoder<'static>>> = const { Cell::new(None) };
}

/// A context that returns to its thread.
pub struct Lent(Option<Decoder<'static>>);

impl Lent {
    /// A context at the begin of a frame.
    pub fn new() -> Result<Self> {
        let mut decoder = match KEPT.take() {
            Some(decoder) => decoder,
            None => Decoder::new()?,
        };
        decoder.reinit()?;
        Ok(Lent(Some(decoder)))
    }
}

impl Operation for Lent {
    fn run<C: zstd::zstd_safe::WriteBuf + ?Sized>(
        &mut self,
        input: &mut InBuffer<'_>,
        output: &mut OutBuffer<'_, C>,
    ) -> Result<usize> {
        self.0.as_mut().map_or(Err(ErrorKind::NotFound.into()), |decoder| decoder.run(input, output))
    }

    fn reinit(&mut self) -> Result<()> {
        self.0.as_mut().map_or(Ok(()), Operation::reinit)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        KEPT.set(self.0.take());
    }
}

/// Appends what the frames hold, at most `most` bytes and what was there.
pub fn append(packed: &[u8], values: &mut Vec<u8>, most: usize) -> Result<()> {
    let size = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
    let size = size.map_or(packed.len() * 4, |size| usize::try_from(size).unwrap_or(usize::MAX));
    values.reserve(size.min(most));
    let end = values.len().saturating_add(most);
    let mut decoder = Lent::new()?;
    let mut input = InBuffer::around(packed);
    loop {
        let before = values.len();
        // 0 at the end of a frame, otherwise how many bytes it would like next.
        let more = decoder.run(&mut input, &mut OutBuffer::around_pos(values, before))?;
        if more == 0 && input.pos() == packed.len() {
            return Ok(());
        }
        if values.len() > end {
            return Err(Error::other(format!("it has more than {most} bytes")));
        }
        if values.len() == values.capacity() {
            values.reserve(values.len().max(packed.len()).max(1));
        } else if values.len() == before && input.pos() == packed.len() {
            return Err(Error::new(ErrorKind::UnexpectedEof, "a zstd frame ends too early"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8], most: usize) -> Result<Vec<u8>> {
        let mut values = b"before".to_vec();
        append(packed, &mut values, most)?;
        Ok(values.split_off(6))
    }

    #[test]
    fn frames_are_decompressed_with_and_without_a_stated_size_one_or_several() -> Result<()> {
        let text = b"abcdefgh".repeat(100_000);
        let stated = zstd::bulk::compress(&text, 3)?;
        let streamed = zstd::stream::encode_all(&text[..], 3)?;
        for (packed, times) in [(stated.clone(), 1), (streamed.clone(), 1), ([stated, streamed].concat(), 2)] {
            assert_eq!(unpacked(&packed, text.len() * 3)?, text.repeat(times));
        }
        assert_eq!(unpacked(&zstd::bulk::compress(b"", 3)?, 1)?, b"");
        Ok(())
    }

    #[test]
    fn a_frame_that_is_cut_damaged_or_too_large_is_an_error_and_the_next_one_is_read() -> Result<()> {
        let text = b"abcdefgh".repeat(100_000);
        for packed in [zstd::bulk::compress(&text, 3)?, zstd::stream::encode_all(&text[..], 3)?] {
            assert!(unpacked(&packed[..packed.len() - 1], text.len()).is_err());
            assert!(unpacked(&packed, 1000).is_err());
            assert!(unpacked(b"no frame at all", 1000).is_err());
            assert_eq!(unpacked(&packed, text.len())?, text);
        }
        Ok(())
    }
}
