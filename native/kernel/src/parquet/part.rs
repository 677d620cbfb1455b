//! A part of a file in memory, as the Parquet library reads it.

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

/// A part of a file in memory, at its place there.
pub struct Part {
    pub start: u64,
    pub bytes: Bytes,
}

impl Part {
    pub(super) fn from(&self, start: u64) -> Bytes {
        let at = start.saturating_sub(self.start).min(self.bytes.len() as u64);
        self.bytes.slice(at as usize..)
    }
}

impl Length for Part {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Part {
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
