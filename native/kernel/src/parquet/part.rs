//! A part of a file in memory, as the Parquet library reads it.

use std::io::Read;

use bytes::{Buf, Bytes};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

/// A part of a file in memory, at its place there.
pub struct Part {
    pub start: u64,
    pub bytes: Bytes,
}

impl Part {
    fn from(&self, start: u64) -> Bytes {
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
        let mut found = vec![0; length];
        self.get_read(start)?.read_exact(&mut found)?;
        Ok(found.into())
    }
}
