//! One Parquet file: row groups and pages sized for skipping, encodings chosen on the first batch, statistics and
//! page index in the footer, and what the log needs to know at the end.
//!
//! Memory is bounded by the row group being built: rows and encoded bytes both end one.

pub mod bounds;
mod byte_arrays;
mod codec;
mod digits;
pub mod encoding;
pub(crate) mod floats;
mod groups;
pub(crate) mod null_pages;
pub(crate) mod pages;
mod room;
pub mod schema;
mod sparse;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};

use arrow_buffer::NullBuffer;
use arrow_schema::SchemaRef;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use crate::error::{Code, Error, Result};
use crate::layout::early::{SHREDDED_BY_MICA, shredded_columns};
use crate::parquet::write::bounds::{Bounds, STATISTICS_BYTES};
use crate::parquet::write::digits::{check_digits, decimal_columns};
use crate::parquet::write::encoding::{Choice, Role, choose};
use crate::parquet::write::groups::RowGroups;
use crate::parquet::write::schema::parquet_schema;
use crate::rows::{Column, Rows};

#[derive(Debug, Clone)]
pub struct WriteOptions {
    pub compression: Compression,
    pub row_group_rows: usize,
    /// Encoded bytes that end a row group.
    pub row_group_bytes: usize,
    pub page_rows: usize,
    pub page_bytes: usize,
    /// Bytes of a dictionary page, before compression, that end the dictionary.
    pub dictionary_bytes: usize,
    pub key_value_metadata: Vec<(String, String)>,
    pub created_by: String,
    /// Parquet paths of leaves that get a bloom filter: `["v", "typed_value", "id", "typed_value"]`.
    pub bloom_filters: Vec<Vec<String>>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            compression: Compression::ZSTD(ZstdLevel::default()),
            row_group_rows: 64 << 10,
            row_group_bytes: 64 << 20,
            page_rows: 16 << 10,
            page_bytes: 192 << 10,
            dictionary_bytes: 4 << 20,
            key_value_metadata: Vec::new(),
            created_by: format!("mica version {}", env!("CARGO_PKG_VERSION")),
            bloom_filters: Vec::new(),
        }
    }
}

/// `none`, `snappy`, `lz4` (raw), `gzip`, `brotli` or `zstd`, the last three with a level if wanted: `zstd(3)`.
pub fn parse_compression(text: &str) -> Result<Compression> {
    let unknown = || {
        let message = format!(
            "unknown compression {text:?}: use none, snappy, lz4, gzip, brotli or zstd, or zstd(3) for a level"
        );
        Error::new(Code::InvalidArgument, message)
    };
    let (name, level) = match text.split_once('(') {
        Some((name, rest)) => {
            let level: i32 = rest.strip_suffix(')').and_then(|n| n.parse().ok()).ok_or_else(unknown)?;
            (name, Some(level))
        }
        None => (text, None),
    };
    let unsigned = |level: i32| u32::try_from(level).map_err(|_| unknown());
    Ok(match (name.to_ascii_lowercase().as_str(), level) {
        ("none" | "uncompressed", None) => Compression::UNCOMPRESSED,
        ("snappy", None) => Compression::SNAPPY,
        ("lz4" | "lz4_raw", None) => Compression::LZ4_RAW,
        ("gzip", None) => Compression::GZIP(GzipLevel::default()),
        ("gzip", Some(level)) => Compression::GZIP(GzipLevel::try_new(unsigned(level)?).map_err(|_| unknown())?),
        ("brotli", None) => Compression::BROTLI(BrotliLevel::default()),
        ("brotli", Some(level)) => Compression::BROTLI(BrotliLevel::try_new(unsigned(level)?).map_err(|_| unknown())?),
        ("zstd", None) => Compression::ZSTD(ZstdLevel::default()),
        ("zstd", Some(level)) => Compression::ZSTD(ZstdLevel::try_new(level).map_err(|_| unknown())?),
        _ => return Err(unknown()),
    })
}

/// Rows that are held back before the encodings are chosen: enough that what repeats among near rows is told from what
/// repeats anywhere. Bytes in memory, too, for rows that are large.
const SAMPLE_ROWS: u64 = 24 << 10;
const SAMPLE_BYTES: usize = 24 << 20;
/// What rows take in memory to what they take encoded, about.
const MEMORY_TO_DISK: usize = 4;

/// Where the bytes go.
pub(crate) enum Sink {
    File(BufWriter<File>),
    Memory(Vec<u8>),
}

impl Sink {
    /// A new file at `path`, which must not exist, or memory.
    pub(crate) fn open(path: Option<&str>) -> Result<Sink> {
        let Some(path) = path else { return Ok(Sink::Memory(Vec::new())) };
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let file = file.map_err(|e| Error::new(Code::Io, format!("cannot create {path}: {e}")))?;
        Ok(Sink::File(BufWriter::with_capacity(1 << 20, file)))
    }

    /// What is in memory.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        match self {
            Sink::Memory(buffer) => std::mem::take(buffer),
            Sink::File(_) => Vec::new(),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Sink::File(file) => file.write(bytes),
            Sink::Memory(buffer) => buffer.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Memory(_) => Ok(()),
        }
    }
}

/// What is known of a file once it is written.
pub struct Summary {
    pub rows: u64,
    pub size: u64,
    pub row_groups: usize,
    pub bounds: Bounds,
}

pub struct FileWriter {
    schema: SchemaRef,
    options: WriteOptions,
    descriptor: SchemaDescriptor,
    /// Until the first rows have come.
    sink: Option<Sink>,
    /// The first rows, until they suffice to choose encodings by.
    waiting: Vec<Rows>,
    waiting_bytes: usize,
    writer: Option<RowGroups<Sink>>,
    /// Positions and null counts of columns that no footer counts.
    counted: Vec<(Vec<usize>, i64)>,
    /// Positions of columns with decimals.
    decimals: Vec<usize>,
    rows: u64,
    /// What a closed writer in memory has still to hand out.
    rest: Vec<u8>,
}

impl FileWriter {
    /// A new file at `path`, which must not exist, or bytes in memory for [`FileWriter::take_bytes`].
    pub fn new(schema: SchemaRef, path: Option<&str>, options: WriteOptions) -> Result<Self> {
        let descriptor = parquet_schema(&schema)?;
        for (name, value) in [
            ("row_group_rows", options.row_group_rows),
            ("row_group_bytes", options.row_group_bytes),
            ("page_rows", options.page_rows),
            ("page_bytes", options.page_bytes),
            ("dictionary_bytes", options.dictionary_bytes),
        ] {
            if value == 0 {
                return Err(Error::new(Code::InvalidArgument, format!("{name} must be above 0")));
            }
        }
        let sink = Sink::open(path)?;
        let counted = bounds::counted_columns(&schema).into_iter().map(|at| (at, 0)).collect();
        Ok(FileWriter {
            decimals: decimal_columns(schema.fields()),
            schema,
            options,
            descriptor,
            sink: Some(sink),
            waiting: Vec::new(),
            waiting_bytes: 0,
            writer: None,
            counted,
            rows: 0,
            rest: Vec::new(),
        })
    }

    pub fn write(&mut self, rows: impl Into<Rows>) -> Result<()> {
        let rows = rows.into();
        self.check(&rows)?;
        if rows.is_empty() {
            return Ok(());
        }
        for &at in &self.decimals {
            let field = self.schema.field(at);
            check_digits(field.data_type(), &rows.columns()[at], field.name())?;
        }
        for (at, count) in &mut self.counted {
            *count += null_count(rows.columns(), at) as i64;
        }
        self.rows += rows.len() as u64;
        match &mut self.writer {
            Some(writer) => writer.write(&rows).map_err(failed),
            None => {
                // Counted once: many small batches may wait.
                self.waiting_bytes += rows.bytes();
                self.waiting.push(rows);
                let few = self.rows < SAMPLE_ROWS && self.waiting_bytes < SAMPLE_BYTES;
                if few { Ok(()) } else { self.start() }
            }
        }
    }

    fn check(&self, rows: &Rows) -> Result<()> {
        let (ours, theirs) = (self.schema.fields(), rows.schema());
        let same = ours.len() == theirs.fields().len()
            && ours
                .iter()
                .zip(theirs.fields())
                .all(|(a, b)| a.name() == b.name() && a.data_type().equals_datatype(b.data_type()));
        if same {
            return Ok(());
        }
        let message =
            format!("the batch has another schema than the file: {} instead of {}", rows.schema(), self.schema);
        Err(Error::new(Code::InvalidArgument, message))
    }

    /// Opens the Parquet writer and hands it what has waited.
    fn start(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let WriteOptions { row_group_rows, dictionary_bytes, .. } = self.options;
        let choices = match waiting.first().zip(waiting.last()) {
            Some((first, last)) => choose(first, last, row_group_rows, dictionary_bytes)?,
            None => Vec::new(),
        };
        let sink = self.sink.take().ok_or_else(closed)?;
        let properties = self.properties(&choices);
        let mut writer =
            RowGroups::new(sink, self.schema.clone(), &self.descriptor, properties, self.options.compression)
                .map_err(failed)?;
        for rows in &waiting {
            writer.write(rows).map_err(failed)?;
        }
        self.writer = Some(writer);
        Ok(())
    }

    fn properties(&self, choices: &[Choice]) -> WriterProperties {
        let options = &self.options;
        let metadata = options.key_value_metadata.iter().map(|(k, v)| KeyValue::new(k.clone(), v.clone()));
        let early = shredded_columns(self.schema.fields()).map(|named| KeyValue::new(SHREDDED_BY_MICA.into(), named));
        let metadata: Vec<KeyValue> = metadata.filter(|pair| pair.key != SHREDDED_BY_MICA).chain(early).collect();
        let mut properties = WriterProperties::builder()
            .set_created_by(options.created_by.clone())
            .set_max_row_group_row_count(Some(options.row_group_rows))
            .set_max_row_group_bytes(Some(options.row_group_bytes))
            .set_data_page_row_count_limit(options.page_rows)
            .set_data_page_size_limit(options.page_bytes)
            .set_dictionary_page_size_limit(options.dictionary_bytes)
            .set_statistics_truncate_length(Some(STATISTICS_BYTES))
            .set_column_index_truncate_length(Some(STATISTICS_BYTES))
            .set_key_value_metadata((!metadata.is_empty()).then_some(metadata));
        for (column, choice) in self.descriptor.columns().iter().zip(choices) {
            let path = column.path().clone();
            properties = properties.set_column_dictionary_enabled(path.clone(), choice.dictionary);
            if let Some(encoding) = choice.encoding {
                properties = properties.set_column_encoding(path.clone(), encoding);
            }
            // Bounds of the dictionary's bytes say nothing. Those of `value` neither, but the page index says where
            // it is null, and only there may a reader skip on the typed bounds (rule 41).
            if choice.role == Role::Metadata {
                properties = properties.set_column_statistics_enabled(path, EnabledStatistics::Chunk);
            }
        }
        for path in &options.bloom_filters {
            properties = properties.set_column_bloom_filter_enabled(ColumnPath::new(path.clone()), true);
        }
        properties.build()
    }

    /// Bytes of the file so far, an estimate of what is still buffered included.
    pub fn bytes_written(&self) -> u64 {
        match &self.writer {
            Some(writer) => (writer.bytes_written() + writer.in_progress_size()) as u64,
            None => (self.waiting_bytes / MEMORY_TO_DISK) as u64,
        }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What was written since the last call, for a writer in memory.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        match self.writer.as_mut().map(RowGroups::inner_mut) {
            Some(sink) => sink.take(),
            None => std::mem::take(&mut self.rest),
        }
    }

    /// Ends the file. A file on disk has been handed to the operating system; whoever needs it to outlive a crash of
    /// the machine syncs it.
    pub fn close(&mut self) -> Result<Summary> {
        if self.writer.is_none() {
            self.start()?;
        }
        let mut writer = self.writer.take().ok_or_else(closed)?;
        let metadata = writer.finish().map_err(failed)?;
        let size = writer.bytes_written() as u64;
        match writer.inner_mut() {
            Sink::Memory(buffer) => self.rest = std::mem::take(buffer),
            Sink::File(file) => file.flush()?,
        }
        let counts: Vec<i64> = self.counted.iter().map(|(_, count)| *count).collect();
        let bounds = bounds::collect(&self.schema, metadata.row_groups(), &counts)?;
        Ok(Summary { rows: self.rows, size, row_groups: metadata.num_row_groups(), bounds })
    }
}

/// Nulls of a column, those of the structs around it included.
fn null_count(columns: &[Column], at: &[usize]) -> usize {
    let Some((first, below)) = at.split_first() else { return 0 };
    let mut column = columns.get(*first).cloned();
    let mut nulls = column.as_ref().and_then(Column::nulls);
    for &position in below {
        column = column.and_then(|column| column.child(position));
        nulls = NullBuffer::union(nulls.as_ref(), column.as_ref().and_then(Column::nulls).as_ref());
    }
    nulls.map_or(0, |n| n.null_count())
}

fn closed() -> Error {
    Error::new(Code::InvalidArgument, "the writer is closed")
}

pub(crate) fn failed(error: parquet::errors::ParquetError) -> Error {
    match error {
        parquet::errors::ParquetError::External(inner) if inner.is::<std::io::Error>() => {
            Error::new(Code::Io, inner.to_string())
        }
        parquet::errors::ParquetError::External(inner) if inner.is::<Error>() => {
            inner.downcast().map_or_else(|inner| Error::new(Code::InvalidArgument, inner.to_string()), |error| *error)
        }
        other => Error::new(Code::InvalidArgument, format!("cannot write the Parquet file: {other}")),
    }
}
