//! Parts of a file in memory, as the Parquet library reads them.

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

/// A part of a file.
pub struct Part {
    pub start: u64,
    pub bytes: Bytes,
    /// Its pages, if they are compressed: where in it each begins behind its header, and how long it says to be before
    /// compression.
    pub stated: Vec<(usize, usize)>,
}

/// Parts of a file in their order.
pub struct Parts {
    parts: Vec<Part>,
    /// Pages by the address of what is behind their header: the library hands out these very bytes without their
    /// place.
    stated: Vec<(usize, usize)>,
}

impl Parts {
    pub fn new(mut parts: Vec<Part>) -> Self {
        parts.sort_by_key(|part| part.start);
        let mut stated = Vec::new();
        for part in &parts {
            let begin = part.bytes.as_ptr() as usize;
            stated.extend(part.stated.iter().map(|(at, size)| (begin + at, *size)));
        }
        stated.sort_unstable();
        Parts { parts, stated }
    }

    pub fn one(start: u64, bytes: Bytes) -> Self {
        Parts::new(vec![Part { start, bytes, stated: Vec::new() }])
    }

    /// How long a page says to be before compression, of which these are the bytes behind the header; `None` where
    /// nobody looked at it.
    pub fn stated(&self, page: &Bytes) -> Option<usize> {
        let at = self.stated.binary_search_by_key(&(page.as_ptr() as usize), |(begin, _)| *begin).ok()?;
        self.stated.get(at).map(|(_, size)| *size)
    }

    /// The bytes from `start` on, to the end of the part that holds it.
    fn from(&self, start: u64) -> Bytes {
        let at = self.parts.partition_point(|part| part.start <= start);
        let Some(Part { start: first, bytes, .. }) = at.checked_sub(1).and_then(|at| self.parts.get(at)) else {
            return Bytes::new();
        };
        bytes.slice((start - first).min(bytes.len() as u64) as usize..)
    }
}

impl Length for Parts {
    fn len(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.start + part.bytes.len() as u64)
    }
}

impl ChunkReader for Parts {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.from(start).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let found = self.from(start);
        if found.len() < length {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are not in memory")));
        }
        Ok(found.slice(..length))
    }
}
