//! Pages with their checksums. The Parquet library verifies them and writes none, so its pages are collected here on
//! their way: each header gets the CRC of its page, and what is known of the chunk counts the bytes that this takes
//! (parquet.thrift, `PageHeader.crc`: the standard CRC32 of the page as it is stored).

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::arrow::arrow_writer::{PageKey, PageStore, PageStoreArgs, PageStoreFactory};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::OffsetIndexBuilder;
use parquet::file::reader::{ChunkReader, Length};

use crate::parquet::page_header::page_header;
use crate::parquet::thrift::{Fields, Walker};

/// The pages of one column chunk, each a header and its bytes.
#[derive(Debug, Default)]
pub struct Pages {
    dictionary: Option<(Bytes, Bytes)>,
    data: Vec<(Bytes, Bytes)>,
    bytes: usize,
}

fn broken() -> ParquetError {
    ParquetError::General("a page that is being written has an invalid header".into())
}

impl Pages {
    /// The pages of a chunk as it is stored.
    pub fn of(mut chunk: Bytes) -> Result<Self> {
        let mut pages = Pages::default();
        while !chunk.is_empty() {
            let header = page_header(&chunk).ok_or_else(broken)?;
            let body = chunk.slice(header.length..header.length + header.compressed);
            pages.add(&chunk.slice(..header.length), body)?;
            chunk = chunk.slice(header.length + header.compressed..);
        }
        Ok(pages)
    }

    fn add(&mut self, header: &Bytes, body: Bytes) -> Result<()> {
        let (is_dictionary, header) = with_crc(header, &body).ok_or_else(broken)?;
        self.bytes += header.len() + body.len();
        if is_dictionary {
            self.dictionary = Some((header, body));
        } else {
            self.data.push((header, body));
        }
        Ok(())
    }

    /// The chunk for `append_column`, and what is known of it: the dictionary first, then the data pages.
    pub fn close(self, mut close: ColumnCloseResult) -> Result<(Chunk, ColumnCloseResult)> {
        let size = |page: &(Bytes, Bytes)| page.0.len() + page.1.len();
        let grown = self.bytes as i64 - close.metadata.compressed_size();
        let begin = self.dictionary.as_ref().map_or(0, size) as i64;
        if let Some(old) = close.offset_index.take() {
            let mut index = OffsetIndexBuilder::new();
            let locations = old.page_locations();
            if locations.len() != self.data.len() {
                return Err(ParquetError::General("the pages of a chunk differ from its index".into()));
            }
            let mut offset = begin;
            let ends = locations.iter().skip(1).map(|l| l.first_row_index).chain([close.rows_written as i64]);
            for (at, ((page, location), end)) in self.data.iter().zip(locations).zip(ends).enumerate() {
                index.append_row_count(end - location.first_row_index);
                index.append_offset_and_size(offset, size(page) as i32);
                let lengths = old.unencoded_byte_array_data_bytes();
                index.append_unencoded_byte_array_data_bytes(lengths.and_then(|l| l.get(at).copied()));
                offset += size(page) as i64;
            }
            close.offset_index = Some(index.build());
        }
        close.bytes_written = self.bytes as u64;
        let uncompressed = close.metadata.uncompressed_size() + grown;
        close.metadata = close
            .metadata
            .into_builder()
            .set_dictionary_page_offset(self.dictionary.as_ref().map(|_| 0))
            .set_data_page_offset(begin)
            .set_total_compressed_size(self.bytes as i64)
            .set_total_uncompressed_size(uncompressed)
            .build()?;
        let blobs = self.dictionary.into_iter().chain(self.data).flat_map(|(header, body)| [header, body]);
        Ok((Chunk { blobs: blobs.collect(), bytes: self.bytes }, close))
    }
}

/// Whether it is a dictionary's, and the header with the checksum of its page, which stands behind the sizes.
fn with_crc(header: &Bytes, body: &[u8]) -> Option<(bool, Bytes)> {
    let mut walker = Walker::new(header);
    let mut fields = Fields::default();
    let mut page_type = None;
    loop {
        let at = header.len() - walker.left();
        let (id, kind) = walker.field(&mut fields)??;
        match id {
            1 => page_type = Some(walker.int()?),
            2 | 3 => walker.skip(kind)?,
            4 => return Some((page_type? == 2, header.clone())),
            _ => {
                let crc = crc32fast::hash(body) as i32;
                let mut out = Vec::with_capacity(header.len() + 6);
                out.extend_from_slice(&header[..at]);
                out.push(0x15); // the next field, an i32
                let mut zigzag = (crc << 1 ^ crc >> 31) as u32;
                while zigzag >= 0x80 {
                    out.push(zigzag as u8 | 0x80);
                    zigzag >>= 7;
                }
                out.push(zigzag as u8);
                out.push(((id - 4) as u8) << 4 | header[at] & 15);
                out.extend_from_slice(&header[at + 1..]);
                return Some((page_type? == 2, out.into()));
            }
        }
    }
}

/// A chunk as a row group takes it.
pub struct Chunk {
    blobs: VecDeque<Bytes>,
    bytes: usize,
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.bytes as u64
    }
}

impl ChunkReader for Chunk {
    type T = Blobs;

    fn get_read(&self, _start: u64) -> Result<Blobs> {
        Ok(Blobs(self.blobs.clone()))
    }

    fn get_bytes(&self, _start: u64, _length: usize) -> Result<Bytes> {
        Err(ParquetError::General("a chunk that is being written is read from its start".into()))
    }
}

/// Blobs one after the other.
pub struct Blobs(VecDeque<Bytes>);

impl Read for Blobs {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.0.front().is_some_and(Bytes::is_empty) {
            self.0.pop_front();
        }
        let Some(first) = self.0.front_mut() else { return Ok(0) };
        let taken = first.split_to(first.len().min(out.len()));
        out[..taken.len()].copy_from_slice(&taken);
        Ok(taken.len())
    }
}

/// Where the pages of the row group in the making are collected, by column.
#[derive(Debug, Default, Clone)]
pub struct Collector {
    columns: Arc<Mutex<Vec<Collected>>>,
}

type Collected = Arc<Mutex<Pages>>;

impl Collector {
    /// The pages of the row group, whose columns have been closed.
    pub fn take(&self) -> Vec<Pages> {
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        let take = |pages: Collected| std::mem::take(&mut *pages.lock().unwrap_or_else(PoisonError::into_inner));
        std::mem::take(&mut *columns).into_iter().map(take).collect()
    }
}

impl PageStoreFactory for Collector {
    fn create(&self, _args: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        let pages = Collected::default();
        self.columns.lock().unwrap_or_else(PoisonError::into_inner).push(pages.clone());
        Ok(Box::new(Store { pages, header: None }))
    }
}

/// Takes pages as the library hands them over, a header and its page by turns, and gives none back: whoever wrote them
/// has the collector.
struct Store {
    pages: Collected,
    header: Option<Bytes>,
}

impl PageStore for Store {
    fn put(&mut self, blob: Bytes) -> Result<PageKey> {
        match self.header.take() {
            None => self.header = Some(blob),
            Some(header) => self.pages.lock().unwrap_or_else(PoisonError::into_inner).add(&header, blob)?,
        }
        Ok(PageKey::new(0))
    }

    fn take(&mut self, _key: PageKey) -> Result<Bytes> {
        Err(ParquetError::General("pages are taken from the collector".into()))
    }

    fn memory_size(&self) -> usize {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}
