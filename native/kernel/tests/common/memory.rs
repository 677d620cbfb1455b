//! A file in memory: what tests and the fuzzer open.

use std::ops::Range;

use bytes::Bytes;
use mica_kernel::Result;
use mica_kernel::parquet::source::Source;

pub struct Memory(pub Bytes);

impl Source for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        Ok(ranges.iter().map(|r| self.0.slice(r.start as usize..r.end as usize)).collect())
    }
}
