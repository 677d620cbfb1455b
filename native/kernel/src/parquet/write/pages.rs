//! Pages on their way from the Parquet library to the file: compressed, and with their checksums.
//!
//! The library would set up a compressor for each column of each row group, and writes no checksums. So it is told not
//! to compress, and its pages are collected here: one compressor serves the file, each header gets the size of its page
//! and the CRC of it as it is stored (parquet.thrift, `PageHeader.crc`), and what is known of the chunk counts the bytes.

use std::collections::VecDeque;
use std::fmt::{Debug, Formatter};
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::arrow::arrow_writer::{PageKey, PageStore, PageStoreArgs, PageStoreFactory};
use parquet::basic::Compression;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::error::{Code, Error};
use crate::parquet::bits::push_signed;
use crate::parquet::page_header::page_header;
use crate::parquet::thrift::{Fields, Walker};
use crate::parquet::unpacked::MAX_PAGE_BYTES;
use crate::parquet::write::codec::Codec;

/// The pages of one column chunk, each a header and its bytes.
#[derive(Debug, Default, Clone)]
pub struct Pages {
    dictionary: Option<(Bytes, Bytes)>,
    data: Vec<(Bytes, Bytes)>,
    /// As they are stored, headers included; and before compression.
    bytes: usize,
    plain: usize,
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
            pages.add(&chunk.slice(..header.length), body, header.uncompressed)?;
            chunk = chunk.slice(header.length + header.compressed..);
        }
        Ok(pages)
    }

    /// A page as it is stored, which took `plain` bytes before it was compressed.
    pub fn add(&mut self, header: &Bytes, body: Bytes, plain: usize) -> Result<()> {
        if plain > MAX_PAGE_BYTES {
            let message = format!(
                "a value, or what a row has in a list or map, takes a page of {plain} bytes, more than the \
                 {MAX_PAGE_BYTES} that a file can be read with"
            );
            return Err(ParquetError::External(Box::new(Error::new(Code::TooLarge, message))));
        }
        let (is_dictionary, header) = sealed(header, &body).ok_or_else(broken)?;
        self.bytes += header.len() + body.len();
        self.plain += header.len() + plain;
        if is_dictionary {
            self.dictionary = Some((header, body));
        } else {
            self.data.push((header, body));
        }
        Ok(())
    }

    /// A page with this body; the library writes its header.
    pub fn add_page(&mut self, page: Page, body: &[u8], compressor: &mut Compressor) -> Result<()> {
        let mut header = TrackedWrite::new(Vec::new());
        SerializedPageWriter::new(&mut header).write_page(CompressedPage::new(page, body.len()))?;
        self.add(&header.into_inner()?.into(), compressor.compress(body)?, body.len())
    }

    /// As they are stored.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The chunk for `append_column`, and what is known of it: the dictionary first, then the data pages.
    pub fn close(self, mut close: ColumnCloseResult) -> Result<(Chunk, ColumnCloseResult)> {
        let size = |page: &(Bytes, Bytes)| page.0.len() + page.1.len();
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
        close.metadata = close
            .metadata
            .into_builder()
            .set_dictionary_page_offset(self.dictionary.as_ref().map(|_| 0))
            .set_data_page_offset(begin)
            .set_total_compressed_size(self.bytes as i64)
            .set_total_uncompressed_size(self.plain as i64)
            .build()?;
        let blobs = self.dictionary.into_iter().chain(self.data).flat_map(|(header, body)| [header, body]);
        Ok((Chunk { blobs: blobs.collect(), bytes: self.bytes }, close))
    }
}

/// What is known of a chunk, under another name.
pub fn renamed(meta: &ColumnChunkMetaData, column: &ColumnDescPtr) -> Result<ColumnChunkMetaData> {
    let mut made = ColumnChunkMetaData::builder(column.clone())
        .set_compression_codec(meta.compression_codec())
        .set_encodings_mask(*meta.encodings_mask())
        .set_total_compressed_size(meta.compressed_size())
        .set_total_uncompressed_size(meta.uncompressed_size())
        .set_num_values(meta.num_values())
        .set_dictionary_page_offset(meta.dictionary_page_offset())
        .set_data_page_offset(meta.data_page_offset())
        .set_unencoded_byte_array_data_bytes(meta.unencoded_byte_array_data_bytes())
        .set_repetition_level_histogram(meta.repetition_level_histogram().cloned())
        .set_definition_level_histogram(meta.definition_level_histogram().cloned());
    if let Some(statistics) = meta.statistics() {
        made = made.set_statistics(statistics.clone());
    }
    if let Some(stats) = meta.page_encoding_stats() {
        made = made.set_page_encoding_stats(stats.clone());
    }
    made.build()
}

/// Whether it is a dictionary's, and the header with the size and the checksum of its page. One that has a checksum
/// stays as it is.
fn sealed(header: &Bytes, body: &[u8]) -> Option<(bool, Bytes)> {
    let mut walker = Walker::new(header);
    let mut fields = Fields::default();
    let mut page_type = None;
    let mut size_at = 0;
    loop {
        let at = header.len() - walker.left();
        let (id, kind) = walker.field(&mut fields)??;
        match id {
            1 => page_type = Some(walker.int()?),
            2 => walker.skip(kind)?,
            3 => {
                size_at = at;
                walker.skip(kind)?;
            }
            4 => return Some((page_type? == 2, header.clone())),
            _ => {
                let mut out = Vec::with_capacity(header.len() + 8);
                out.extend_from_slice(&header[..size_at]);
                push_next_i32(&mut out, i32::try_from(body.len()).ok()?);
                push_next_i32(&mut out, crc32fast::hash(body) as i32);
                out.push(((id - 4) as u8) << 4 | header[at] & 15);
                out.extend_from_slice(&header[at + 1..]);
                return Some((page_type? == 2, out.into()));
            }
        }
    }
}

/// The field after the last, an i32.
fn push_next_i32(out: &mut Vec<u8>, value: i32) {
    out.push(0x15);
    push_signed(value.into(), out);
}

/// The compressor of a file.
pub struct Compressor {
    codec: Codec,
    room: Vec<u8>,
    /// Room for a page that is not compressed yet: whoever takes it gives it back.
    pub plain: Vec<u8>,
}

impl Compressor {
    pub fn new(compression: Compression) -> Result<Self> {
        Ok(Compressor { codec: Codec::new(compression)?, room: Vec::new(), plain: Vec::new() })
    }

    pub fn compress(&mut self, plain: &[u8]) -> Result<Bytes> {
        Ok(Bytes::copy_from_slice(self.codec.compress(plain, &mut self.room)?))
    }
}

impl Debug for Compressor {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
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
#[derive(Debug, Clone)]
pub struct Collector {
    columns: Arc<Mutex<Vec<Collected>>>,
    compressor: Arc<Mutex<Compressor>>,
}

type Collected = Arc<Mutex<Pages>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collector {
    pub fn new(compression: Compression) -> Result<Self> {
        let compressor = Arc::new(Mutex::new(Compressor::new(compression)?));
        Ok(Collector { columns: Arc::default(), compressor })
    }

    /// The pages of the row group, whose columns have been closed.
    pub fn take(&self) -> Vec<Pages> {
        let columns = std::mem::take(&mut *locked(&self.columns));
        columns.into_iter().map(|pages| std::mem::take(&mut *locked(&pages))).collect()
    }

    /// Bytes that compression has saved in the row group so far.
    pub fn saved(&self) -> usize {
        let saved = |pages: &Collected| {
            let pages = locked(pages);
            pages.plain.saturating_sub(pages.bytes)
        };
        locked(&self.columns).iter().map(saved).sum()
    }

    pub fn compressor(&self) -> MutexGuard<'_, Compressor> {
        locked(&self.compressor)
    }
}

impl PageStoreFactory for Collector {
    fn create(&self, _args: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        let pages = Collected::default();
        locked(&self.columns).push(pages.clone());
        Ok(Box::new(Store { pages, header: None, compressor: self.compressor.clone() }))
    }
}

/// Takes pages as the library hands them over, a header and its page by turns, and gives none back: whoever wrote them
/// has the collector.
struct Store {
    pages: Collected,
    header: Option<Bytes>,
    compressor: Arc<Mutex<Compressor>>,
}

impl PageStore for Store {
    fn put(&mut self, blob: Bytes) -> Result<PageKey> {
        match self.header.take() {
            None => self.header = Some(blob),
            Some(header) => {
                let plain = blob.len();
                let body = locked(&self.compressor).compress(&blob)?;
                locked(&self.pages).add(&header, body, plain)?;
            }
        }
        Ok(PageKey::new(0))
    }

    fn take(&mut self, _key: PageKey) -> Result<Bytes> {
        Err(ParquetError::General("pages are taken from the collector".into()))
    }

    fn memory_size(&self) -> usize {
        locked(&self.pages).bytes
    }
}
