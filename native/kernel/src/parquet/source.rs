//! Where a file's bytes come from: byte ranges in, bytes out. The kernel does no network I/O; whoever opens a
//! remote file gives a [`Source`] that fetches.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use bytes::Bytes;

use crate::error::{Code, Error, Result};
use crate::parquet::identity::Identity;

/// A file of known size. All ranges of one call are wanted together.
pub trait Source: Send + Sync {
    /// What errors call the file.
    fn name(&self) -> &str;
    fn size(&self) -> u64;
    fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// How much of the file's end is fetched first; what the footer has beyond it takes another request.
    fn tail(&self) -> u64 {
        32 << 10
    }

    /// Which file it is and in which state, if that can be told for certain.
    fn identity(&self) -> Option<Identity> {
        None
    }

    /// Whether it helps to know what will be fetched next.
    fn plans(&self) -> bool {
        false
    }

    /// These ranges will be fetched together soon. They may be asked for while others are decoded.
    fn announce(&self, _ranges: &[Range<u64>]) {}
}

/// A file on a local disk.
pub struct LocalFile {
    file: File,
    name: String,
    size: u64,
    identity: Option<Identity>,
}

impl LocalFile {
    /// Opens `path`. When the caller knows the size (from a log), another one is an error: the file changed.
    pub fn open(path: &str, name: &str, size: Option<u64>) -> Result<Self> {
        let fail = |e: std::io::Error| {
            let code = if e.kind() == std::io::ErrorKind::NotFound { Code::CorruptFile } else { Code::Io };
            Error::new(code, format!("{name} cannot be opened: {e}"))
        };
        // Before it is opened: to open a FIFO is to wait for somebody who writes to it.
        let meta = std::fs::metadata(path).map_err(fail)?;
        if !meta.is_file() {
            let what = if meta.is_dir() { "a directory" } else { "a pipe or a device" };
            return Err(Error::new(Code::Io, format!("{name} is {what}, not a Parquet file")));
        }
        let file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        check_size(name, meta.len(), size)?;
        Ok(LocalFile { identity: Identity::of(name, &meta), file, name: name.to_string(), size: meta.len() })
    }
}

fn check_size(name: &str, found: u64, expected: Option<u64>) -> Result<()> {
    match expected {
        Some(expected) if expected != found => Err(Error::new(
            Code::CorruptFile,
            format!("{name} has {found} bytes, expected {expected}: it was truncated or changed"),
        )),
        _ => Ok(()),
    }
}

impl Source for LocalFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn identity(&self) -> Option<Identity> {
        self.identity.clone()
    }

    fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges
            .iter()
            .map(|range| {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                self.file.read_exact_at(&mut bytes, range.start).map_err(|e| {
                    let code = match e.kind() {
                        std::io::ErrorKind::UnexpectedEof => Code::CorruptFile,
                        _ => Code::Io,
                    };
                    Error::new(
                        code,
                        format!("{} cannot be read at bytes {}..{}: {e}", self.name, range.start, range.end),
                    )
                })?;
                Ok(Bytes::from(bytes))
            })
            .collect()
    }
}

/// A file whose bytes are all there.
pub struct HeldFile {
    bytes: Bytes,
    name: String,
}

impl HeldFile {
    /// When the caller knows the size (from a log), another one is an error: the file changed.
    pub fn new(bytes: Bytes, name: &str, size: Option<u64>) -> Result<Self> {
        check_size(name, bytes.len() as u64, size)?;
        Ok(HeldFile { bytes, name: name.to_string() })
    }
}

impl Source for HeldFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let found = ranges.iter().map(|range| {
            let part = self.bytes.get(range.start as usize..range.end as usize);
            part.map(|part| self.bytes.slice_ref(part)).ok_or_else(|| {
                let (start, end) = (range.start, range.end);
                Error::new(Code::CorruptFile, format!("{} has no bytes {start}..{end}", self.name))
            })
        });
        found.collect()
    }
}

/// Ranges nearer to each other than this are fetched as one: a request costs more than the bytes between.
const GAP: u64 = 16 << 10;

/// Announces what [`fetch`] will ask the source for.
pub fn announce(source: &dyn Source, ranges: &[Range<u64>]) -> Result<()> {
    let (merged, _) = merged(source, ranges)?;
    source.announce(&merged);
    Ok(())
}

/// Fetches ranges, merging neighbours, and gives one buffer for each range asked for. `read` counts bytes fetched.
pub fn fetch(source: &dyn Source, ranges: &[Range<u64>], read: &mut u64) -> Result<Vec<Bytes>> {
    let (merged, home) = merged(source, ranges)?;
    let buffers = source.fetch(&merged)?;
    if buffers.len() != merged.len() || buffers.iter().zip(&merged).any(|(b, r)| b.len() as u64 != r.end - r.start) {
        return Err(Error::new(
            Code::CorruptFile,
            format!("{} returned fewer bytes than requested: it was truncated or changed", source.name()),
        ));
    }
    *read += merged.iter().map(|r| r.end - r.start).sum::<u64>();
    Ok(ranges
        .iter()
        .zip(home)
        .map(|(range, at)| {
            let start = merged[at].start;
            buffers[at].slice((range.start - start) as usize..(range.end - start) as usize)
        })
        .collect())
}

/// Ranges with their neighbours, in order, and in which of them each range is.
fn merged(source: &dyn Source, ranges: &[Range<u64>]) -> Result<(Vec<Range<u64>>, Vec<usize>)> {
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_by_key(|&i| ranges[i].start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    let mut home = vec![0; ranges.len()];
    for i in order {
        let range = &ranges[i];
        if range.start > range.end || range.end > source.size() {
            return Err(Error::new(
                Code::CorruptFile,
                format!(
                    "the footer of {} points to bytes {}..{}, but the file has {}",
                    source.name(),
                    range.start,
                    range.end,
                    source.size()
                ),
            ));
        }
        match merged.last_mut() {
            Some(last) if range.start <= last.end + GAP => last.end = last.end.max(range.end),
            _ => merged.push(range.clone()),
        }
        home[i] = merged.len() - 1;
    }
    Ok((merged, home))
}
