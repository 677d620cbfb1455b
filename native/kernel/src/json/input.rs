//! Where bytes come from: a local file, whole or from a place on, or whatever the caller feeds; plain, gzip (any
//! number of members: see `gzip`) or zstd (any number of frames). A stream that ends inside a member or frame is an error.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use crate::error::{Code, Error, Result};
use crate::json::gzip::Gzip;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

/// What became of a wish for more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    Some,
    /// Fed input has run dry: the caller feeds or finishes.
    Dry,
    End,
}

pub struct Input {
    source: Source,
    codec: Codec,
    read: u64,
    /// No more bytes will come.
    over: bool,
    ended: bool,
}

enum Source {
    /// The chunk read last, and how much of it is decoded.
    File {
        file: File,
        chunk: Vec<u8>,
        at: usize,
    },
    Fed {
        bytes: Vec<u8>,
        at: usize,
        finished: bool,
    },
}

enum Codec {
    Plain,
    Gzip(Gzip),
    /// `open`: inside of a frame. `held`: the decoder may hold more than it has given.
    Zstd {
        decoder: ZstdDecoder<'static>,
        open: bool,
        held: bool,
        out: Vec<u8>,
    },
}

const PLAIN_CHUNK: usize = 1 << 20;
/// Compressed bytes taken at once: gzip makes at most about a thousand bytes of one.
const PACKED_CHUNK: usize = 16 << 10;
/// Decompressed bytes made at once, about: zstd makes any number of one.
const UNPACKED_CHUNK: usize = 4 << 20;

impl Input {
    /// Reads the file from the byte `start` on.
    pub fn open(path: &str, start: u64, compression: Compression) -> Result<Self> {
        let name = |e: std::io::Error| Error::new(Code::Io, format!("cannot read {path}: {e}"));
        // Before it is opened: to open a FIFO is to wait for somebody who writes to it.
        let meta = std::fs::metadata(path).map_err(name)?;
        if !meta.is_file() {
            let what = if meta.is_dir() { "a directory" } else { "a pipe or a device" };
            return Err(Error::new(Code::Io, format!("cannot read {path}: it is {what}")));
        }
        let mut file = File::open(path).map_err(name)?;
        if start > 0 {
            file.seek(SeekFrom::Start(start)).map_err(name)?;
        }
        Self::new(Source::File { file, chunk: Vec::new(), at: 0 }, compression)
    }

    pub fn fed(compression: Compression) -> Result<Self> {
        Self::new(Source::Fed { bytes: Vec::new(), at: 0, finished: false }, compression)
    }

    fn new(source: Source, compression: Compression) -> Result<Self> {
        let codec = match compression {
            Compression::None => Codec::Plain,
            Compression::Gzip => Codec::Gzip(Gzip::default()),
            Compression::Zstd => {
                Codec::Zstd { decoder: ZstdDecoder::new()?, open: false, held: false, out: vec![0; 1 << 17] }
            }
        };
        Ok(Input { source, codec, read: 0, over: false, ended: false })
    }

    /// Bytes taken from the file or from what was fed, before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    pub fn feed(&mut self, more: &[u8]) -> Result<()> {
        match &mut self.source {
            Source::Fed { finished: true, .. } | Source::File { .. } => {
                Err(Error::new(Code::InvalidArgument, "this input does not accept bytes"))
            }
            Source::Fed { bytes, at, .. } => {
                bytes.drain(..*at);
                *at = 0;
                bytes.extend_from_slice(more);
                Ok(())
            }
        }
    }

    /// No more will be fed.
    pub fn finish(&mut self) {
        if let Source::Fed { finished, .. } = &mut self.source {
            *finished = true;
        }
    }

    /// True when a fill would find nothing and the end has not been announced.
    pub fn is_dry(&self) -> bool {
        !self.codec.holds() && matches!(&self.source, Source::Fed { bytes, at, finished: false } if *at >= bytes.len())
    }

    /// Appends some bytes to `out`; of a plain file at most `limit`.
    pub fn fill(&mut self, out: &mut Vec<u8>, limit: u64) -> Result<Filled> {
        let before = out.len();
        while out.len() == before {
            if self.ended {
                return Ok(Filled::End);
            }
            let packed = !matches!(self.codec, Codec::Plain);
            let size =
                if packed { PACKED_CHUNK } else { PLAIN_CHUNK.min(usize::try_from(limit).unwrap_or(PLAIN_CHUNK)) };
            let taken = match &mut self.source {
                // Plain bytes are read to where they stay.
                Source::File { file, .. } if !packed => {
                    out.reserve(size);
                    let count = file.by_ref().take(size as u64).read_to_end(out)?;
                    self.over = count == 0;
                    count
                }
                Source::File { file, chunk, at } => {
                    let mut count = 0;
                    if *at == chunk.len() && !self.codec.holds() {
                        chunk.resize(size, 0);
                        count = read_some(file, chunk)?;
                        chunk.truncate(count);
                        *at = 0;
                        self.over = count == 0;
                    }
                    *at += self.codec.decode(chunk.get(*at..).unwrap_or(&[]), out)?;
                    count
                }
                Source::Fed { bytes, at, finished } => {
                    let end = (*at + size).min(bytes.len());
                    if *at == end && !self.codec.holds() {
                        if !*finished {
                            return Ok(Filled::Dry);
                        }
                        self.over = true;
                    }
                    let count = self.codec.decode(bytes.get(*at..end).unwrap_or(&[]), out)?;
                    *at += count;
                    count
                }
            };
            self.read += taken as u64;
            if self.over {
                self.ended = true;
                self.codec.end(out)?;
            }
        }
        Ok(Filled::Some)
    }
}

fn read_some(file: &mut File, chunk: &mut [u8]) -> Result<usize> {
    loop {
        match file.read(chunk) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            other => return Ok(other?),
        }
    }
}

impl Codec {
    /// Whether there may be more without more input.
    fn holds(&self) -> bool {
        matches!(self, Codec::Zstd { held: true, .. })
    }

    /// Appends some of what the bytes become; how many of them were taken.
    fn decode(&mut self, packed: &[u8], out: &mut Vec<u8>) -> Result<usize> {
        match self {
            Codec::Plain => out.extend_from_slice(packed),
            Codec::Gzip(decoder) => decoder.decode(packed, out)?,
            Codec::Zstd { decoder, open, held, out: block } => {
                let mut input = InBuffer::around(packed);
                let most = out.len() + UNPACKED_CHUNK;
                while (input.pos() < packed.len() || *held) && out.len() < most {
                    let mut output = OutBuffer::around(block.as_mut_slice());
                    let hint = decoder.run(&mut input, &mut output).map_err(|e| corrupt(&e))?;
                    let made = output.pos();
                    out.extend_from_slice(block.get(..made).unwrap_or(&[]));
                    *open = hint != 0;
                    // A full block may hide more that the decoder still holds.
                    *held = *open && made == block.len();
                }
                return Ok(input.pos());
            }
        }
        Ok(packed.len())
    }

    /// Checks that the stream is whole.
    fn end(&mut self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Codec::Gzip(decoder) => decoder.end(out),
            Codec::Zstd { open: true, .. } => {
                Err(Error::new(Code::CorruptFile, "the zstd stream ends early: the file is truncated"))
            }
            _ => Ok(()),
        }
    }
}

fn corrupt(error: &std::io::Error) -> Error {
    Error::new(Code::CorruptFile, format!("the zstd stream is corrupt: {error}"))
}

/// How many lines of a local file end before this place.
pub fn newlines(path: &str, end: u64) -> Result<u64> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?.take(end));
    let mut count = 0;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(count);
        }
        count += memchr::memchr_iter(b'\n', chunk).count() as u64;
        let len = chunk.len();
        reader.consume(len);
    }
}
