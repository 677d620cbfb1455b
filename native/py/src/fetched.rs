//! Files whose bytes Python fetches.

use std::ops::Range;

use bytes::Bytes;
use mica_kernel::parquet::source::Source;
use mica_kernel::{Code, Error};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A file whose bytes a Python object fetches: called with ranges, it returns their bytes; its `announce` is told which
/// ranges come next.
pub struct Callback {
    pub name: String,
    pub size: u64,
    pub fetch: Py<PyAny>,
}

impl Source for Callback {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn fetch(&self, ranges: &[Range<u64>]) -> mica_kernel::Result<Vec<Bytes>> {
        Python::attach(|py| {
            let pairs: Vec<(u64, u64)> = ranges.iter().map(|r| (r.start, r.end)).collect();
            let fetched = self.fetch.call1(py, (pairs,))?;
            fetched
                .bind(py)
                .try_iter()?
                .map(|part| {
                    let part = part?;
                    match part.cast::<PyBytes>() {
                        Ok(bytes) => Ok(Bytes::copy_from_slice(bytes.as_bytes())),
                        Err(_) => Ok(Bytes::from(part.extract::<Vec<u8>>()?)),
                    }
                })
                .collect::<PyResult<Vec<Bytes>>>()
        })
        .map_err(|e| Error::new(Code::Io, format!("{} cannot be read: {e}", self.name)))
    }

    /// A request of its own costs more than some bytes: footers and page indexes grow with their files.
    fn tail(&self) -> u64 {
        (self.size >> 7).clamp(32 << 10, 768 << 10)
    }

    fn plans(&self) -> bool {
        true
    }

    fn announce(&self, ranges: &[Range<u64>]) {
        let pairs: Vec<(u64, u64)> = ranges.iter().map(|r| (r.start, r.end)).collect();
        // What cannot be announced is fetched in its turn, and fails then if it must.
        let _ = Python::attach(|py| self.fetch.call_method1(py, "announce", (pairs,)).map(drop));
    }
}
