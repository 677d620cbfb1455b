//! Rows to row groups, as the library's `ArrowWriter` cuts them (by rows and by encoded bytes): its columns, those of byte
//! arrays ([`byte_arrays`](super::byte_arrays)), the sparse ones ([`sparse`](super::sparse)), and their pages compressed
//! and with checksums ([`pages`](super::pages)).

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{ArrayRef, GenericByteArray, GenericByteViewArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::Result;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;

use crate::parquet::write::byte_arrays::{ByteArrayColumn, Given, may_write};
use crate::parquet::write::floats::certain;
use crate::parquet::write::null_pages;
use crate::parquet::write::pages::{Collector, Compressor};
use crate::parquet::write::room::{Room, uneven};
use crate::parquet::write::sparse::{Chunks, Sparse, Way};
use crate::rows::{Column, Rows};

pub struct RowGroups<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    schema: SchemaRef,
    factory: ArrowRowGroupWriterFactory,
    collector: Collector,
    compression: Compression,
    columns: Vec<ArrowColumnWriter>,
    /// Of each column of byte arrays that is not left to the library.
    bytes: Vec<Option<ByteArrayColumn>>,
    ways: Vec<Way>,
    sparse: Sparse,
    room: Room,
    /// Of each column, whether it may be sparse, and whether it is in the row group being built.
    may_be_sparse: Vec<bool>,
    is_sparse: Vec<bool>,
    max_rows: usize,
    max_bytes: usize,
}

impl<W: Write + Send> RowGroups<W> {
    /// The properties say nothing of compression, which is done here.
    pub fn new(
        sink: W,
        schema: SchemaRef,
        file: &SchemaDescriptor,
        properties: WriterProperties,
        compression: Compression,
    ) -> Result<Self> {
        let max_rows = properties.max_row_group_row_count().unwrap_or(usize::MAX);
        let max_bytes = properties.max_row_group_bytes().unwrap_or(usize::MAX);
        let sparse = Sparse::new(&schema);
        let columns = file.columns().iter().enumerate();
        let may_be_sparse = columns
            .map(|(at, column)| sparse.may_be_sparse(at) && properties.bloom_filter_properties(column.path()).is_none())
            .collect();
        let columns = file.columns().iter().enumerate();
        let ways = columns
            .map(|(at, column)| match sparse.is_bytes(at) && may_write(column, &properties) {
                true => Way::Bytes,
                false => Way::Arrays,
            })
            .collect();
        let writer = SerializedFileWriter::new(sink, file.root_schema_ptr(), Arc::new(properties))?;
        let collector = Collector::new(compression)?;
        let factory = ArrowRowGroupWriterFactory::new(&writer, schema.clone());
        let factory = factory.with_page_store_factory(Arc::new(collector.clone()));
        Ok(RowGroups {
            writer,
            schema,
            factory,
            collector,
            compression,
            columns: Vec::new(),
            bytes: Vec::new(),
            ways,
            sparse,
            room: Room::default(),
            may_be_sparse,
            is_sparse: Vec::new(),
            max_rows,
            max_bytes,
        })
    }

    pub fn write(&mut self, rows: &Rows) -> Result<()> {
        let mut at = 0;
        while at < rows.len() {
            let before = self.sparse.rows();
            let mut taken = (rows.len() - at).min(self.max_rows - before);
            let bytes = self.in_progress_size();
            if let Some(row) = bytes.checked_div(before) {
                // By the rows so far, how many more will fit.
                let fit = self.max_bytes.saturating_sub(bytes).checked_div(row).unwrap_or(taken);
                if fit == 0 {
                    self.flush()?;
                    continue;
                }
                taken = taken.min(fit);
            }
            if taken == rows.len() {
                self.encode(rows)?;
            } else {
                self.encode(&rows.slice(at, taken))?;
            }
            at += taken;
            if self.sparse.rows() >= self.max_rows || self.in_progress_size() >= self.max_bytes {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn encode(&mut self, rows: &Rows) -> Result<()> {
        if self.columns.is_empty() {
            self.begin()?;
        }
        let before = self.sparse.rows();
        let columns = self.schema.fields().iter().zip(rows.columns());
        let present = self.sparse.split(columns, rows.len(), &self.is_sparse, &self.ways)?;
        let mut leaves = present.leaves.into_iter();
        for (field, array) in &present.columns {
            for leaf in compute_leaves(field, array)? {
                let at = leaves.next().ok_or_else(uneven)?;
                let is_sparse = self.is_sparse.get_mut(at).ok_or_else(uneven)?;
                let column = self.columns.get_mut(at).ok_or_else(uneven)?;
                if std::mem::replace(is_sparse, false)
                    && before > 0
                    && let Some((field, array)) = self.sparse.so_far(at, before)?
                {
                    write_leaves(column, &field, &array)?;
                }
                column.write(&leaf)?;
            }
        }
        let mut compressor = self.collector.compressor();
        for (at, values) in present.bytes {
            let is_sparse = self.is_sparse.get_mut(at).ok_or_else(uneven)?;
            let column = self.bytes.get_mut(at).and_then(Option::as_mut).ok_or_else(uneven)?;
            if std::mem::replace(is_sparse, false) && before > 0 {
                self.sparse.write_so_far(at, before, column, &mut compressor)?;
            }
            self.sparse.rows_of(at, before, &values, &mut self.room)?;
            write_bytes(column, &values, &self.room, &mut compressor)?;
        }
        Ok(())
    }

    /// Begins a row group.
    fn begin(&mut self) -> Result<()> {
        self.columns = self.factory.create_column_writers(self.writer.flushed_row_groups().len())?;
        self.is_sparse = self.may_be_sparse.clone();
        if self.bytes.is_empty() {
            let columns = self.writer.schema_descr().columns().iter().zip(&self.ways);
            let new = |column| ByteArrayColumn::new(column, self.writer.properties());
            self.bytes = columns.map(|(column, way)| (*way == Way::Bytes).then(|| new(column))).collect();
        }
        Ok(())
    }

    /// Ends the row group being built.
    fn flush(&mut self) -> Result<()> {
        if self.sparse.rows() == 0 {
            return Ok(());
        }
        let columns = std::mem::take(&mut self.columns);
        let close = |(at, column): (usize, ArrowColumnWriter)| {
            let is_else = self.is_sparse.get(at) == Some(&true) || self.ways.get(at) == Some(&Way::Bytes);
            if is_else { Ok(None) } else { column.close().map(Some) }
        };
        let chunks = columns.into_iter().enumerate().map(close).collect::<Result<Vec<_>>>()?;
        let pages = self.collector.take();
        if pages.len() != chunks.len() {
            return Err(uneven());
        }
        let properties = self.writer.properties().clone();
        let mut sparse = Chunks::new(&self.sparse, &properties, self.compression);
        let mut compressor = self.collector.compressor();
        let descriptors = self.writer.schema_descr().columns().to_vec();
        let mut bytes = std::mem::take(&mut self.bytes);
        let mut group = self.writer.next_row_group()?;
        let parts = pages.into_iter().zip(chunks).zip(&mut bytes).zip(&descriptors);
        for (at, (((pages, chunk), bytes), descriptor)) in parts.enumerate() {
            let is_sparse = self.is_sparse.get(at) == Some(&true);
            let (chunk, close) = match (chunk, bytes) {
                (None, bytes) if is_sparse => {
                    sparse.chunk(at, descriptor, bytes.as_mut(), &mut compressor)?.ok_or_else(uneven)?
                }
                (None, bytes) => {
                    let bytes = bytes.as_mut().ok_or_else(uneven)?;
                    let (pages, close) = bytes.end_chunk(&properties, self.compression, &mut compressor)?;
                    pages.close(close)?
                }
                (Some(chunk), _) => {
                    let mut close = chunk.close().clone();
                    let statistics = close.metadata.statistics().cloned();
                    let mut metadata = close.metadata.into_builder().set_compression(self.compression);
                    if let Some(statistics) = statistics {
                        metadata = metadata.set_statistics(certain(statistics));
                    }
                    close.metadata = metadata.build()?;
                    if descriptor.max_rep_level() > 0 {
                        close.column_index = close.column_index.filter(null_pages::holds);
                    }
                    pages.close(close)?
                }
            };
            group.append_column(&chunk, close)?;
        }
        group.close()?;
        self.bytes = bytes;
        self.sparse.clear();
        Ok(())
    }

    /// Encoded bytes of the row group being built, about.
    pub fn in_progress_size(&self) -> usize {
        if self.columns.is_empty() {
            return 0;
        }
        let arrays: usize = self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum();
        let bytes: usize = self.bytes.iter().flatten().map(ByteArrayColumn::bytes).sum();
        (arrays + bytes + self.sparse.bytes()).saturating_sub(self.collector.saved())
    }

    pub fn bytes_written(&self) -> usize {
        self.writer.bytes_written()
    }

    pub fn inner_mut(&mut self) -> &mut W {
        self.writer.inner_mut()
    }

    pub fn finish(&mut self) -> Result<ParquetMetaData> {
        self.flush()?;
        self.writer.finish()
    }
}

fn write_leaves(column: &mut ArrowColumnWriter, field: &Field, array: &ArrayRef) -> Result<()> {
    compute_leaves(field, array)?.iter().try_for_each(|leaf| column.write(leaf))
}

/// Writes byte arrays.
fn write_bytes(column: &mut ByteArrayColumn, values: &Column, room: &Room, compressor: &mut Compressor) -> Result<()> {
    let array = match values {
        Column::Array(array) => array,
        Column::Bytes { placed, rows } => {
            let first = placed.values_of(rows).start;
            let most_bytes = placed.bytes() + room.places().len() * size_of::<u32>();
            let value = |place: usize| placed.value(first + place);
            let given = Given { places: room.places(), value, most_bytes, may_be_even: true };
            return column.write(&room.levels, &given, compressor);
        }
        Column::Struct { .. } => return Err(uneven()),
    };
    match array.data_type() {
        DataType::Utf8 => write_offsets(column, array.as_string::<i32>(), room, compressor),
        DataType::LargeUtf8 => write_offsets(column, array.as_string::<i64>(), room, compressor),
        DataType::Binary => write_offsets(column, array.as_binary::<i32>(), room, compressor),
        DataType::LargeBinary => write_offsets(column, array.as_binary::<i64>(), room, compressor),
        DataType::Utf8View => write_views(column, array.as_string_view(), room, compressor),
        DataType::BinaryView => write_views(column, array.as_binary_view(), room, compressor),
        _ => Err(uneven()),
    }
}

fn write_offsets<T: ByteArrayType>(
    column: &mut ByteArrayColumn,
    array: &GenericByteArray<T>,
    room: &Room,
    compressor: &mut Compressor,
) -> Result<()> {
    let ends = array.value_offsets().first().zip(array.value_offsets().last());
    let bytes = ends.map_or(0, |(first, last)| last.as_usize() - first.as_usize());
    let most_bytes = bytes + room.places().len() * size_of::<u32>();
    let value = |place| -> &[u8] { array.value(place).as_ref() };
    column.write(&room.levels, &Given { places: room.places(), value, most_bytes, may_be_even: true }, compressor)
}

fn write_views<T: ByteViewType>(
    column: &mut ByteArrayColumn,
    array: &GenericByteViewArray<T>,
    room: &Room,
    compressor: &mut Compressor,
) -> Result<()> {
    let value = |place| -> &[u8] { array.value(place).as_ref() };
    let length = |&place: &usize| value(place).len() + size_of::<u32>();
    let most_bytes = room.places().iter().map(length).sum();
    column.write(&room.levels, &Given { places: room.places(), value, most_bytes, may_be_even: true }, compressor)
}
