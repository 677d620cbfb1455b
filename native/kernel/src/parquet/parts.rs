//! Parts of a file in memory, as the Parquet library reads them.

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

/// Parts of a file: where each begins, in order, and its bytes.
pub struct Parts(Vec<(u64, Bytes)>);

impl Parts {
    pub fn new(mut parts: Vec<(u64, Bytes)>) -> Self {
        parts.sort_by_key(|(start, _)| *start);
        Parts(parts)
    }

    pub fn one(start: u64, bytes: Bytes) -> Self {
        Parts(vec![(start, bytes)])
    }

    /// The bytes from `start` on, to the end of the part that holds it.
    fn from(&self, start: u64) -> Bytes {
        let at = self.0.partition_point(|(first, _)| *first <= start);
        let Some((first, bytes)) = at.checked_sub(1).and_then(|at| self.0.get(at)) else { return Bytes::new() };
        bytes.slice((start - first).min(bytes.len() as u64) as usize..)
    }
}

impl Length for Parts {
    fn len(&self) -> u64 {
        self.0.last().map_or(0, |(start, bytes)| start + bytes.len() as u64)
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
