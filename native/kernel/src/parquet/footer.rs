//! The footer, loaded with one request for most files, and checked before anything is allocated by its numbers.

use std::ops::Range;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::schema::types::SchemaDescPtr;

use crate::error::{Code, Error, Result};
use crate::parquet::footer_check as walk;
use crate::parquet::source::{Source, fetch};

/// The bytes of a checked footer, and where its schema ends.
pub struct Footer {
    bytes: Bytes,
    schema_end: usize,
}

pub fn load(source: &dyn Source, read: &mut u64) -> Result<Footer> {
    let refuse = |what: &str| Err(Error::new(Code::CorruptFile, format!("{} {what}", source.name())));
    let size = source.size();
    if size < 12 {
        return refuse(&format!("has {size} bytes: too few for a Parquet file"));
    }
    let tail: Range<u64> = size.saturating_sub(source.tail())..size;
    let mut bytes = one(fetch(source, std::slice::from_ref(&tail), read)?);
    let Some((body, [a, b, c, d, magic @ ..])) = bytes.split_last_chunk::<8>() else {
        return refuse("is too short for a Parquet file");
    };
    match magic {
        b"PAR1" => {}
        b"PARE" => return refuse("is encrypted, which mica does not read"),
        _ => return refuse("is not a Parquet file, or is truncated: it does not end with PAR1"),
    }
    let length = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
    if length + 12 > size {
        return refuse(&format!("has {size} bytes, but its footer has {length}"));
    }
    let start = size - 8 - length;
    let footer = if start >= tail.start {
        let skipped = body.len() - length as usize;
        bytes.slice(skipped..skipped + length as usize)
    } else {
        let more = one(fetch(source, std::slice::from_ref(&(start..tail.start)), read)?);
        bytes.truncate(bytes.len() - 8);
        [more, bytes].concat().into()
    };
    let schema_end = walk::check(&footer)
        .map_err(|why| Error::new(Code::CorruptFile, format!("the footer of {}: {why}", source.name())))?;
    Ok(Footer { bytes: footer, schema_end })
}

impl Footer {
    /// Its first bytes, which say the schema.
    pub fn schema(&self) -> &[u8] {
        self.bytes.get(..self.schema_end).unwrap_or(&self.bytes)
    }

    /// What it says; a schema that is known is not parsed again.
    pub fn decode(&self, source: &dyn Source, schema: Option<SchemaDescPtr>) -> Result<ParquetMetaData> {
        let mut options = ParquetMetaDataOptions::new();
        schema.into_iter().for_each(|schema| options.set_schema(schema));
        let metadata = ParquetMetaDataReader::decode_metadata_with_options(&self.bytes, Some(&options))
            .map_err(|e| corrupt(source, &e))?;
        let metadata = without_nowhere(metadata).map_err(|e| corrupt(source, &e))?;
        check(source, &metadata)?;
        Ok(metadata)
    }
}

fn one(mut buffers: Vec<Bytes>) -> Bytes {
    buffers.pop().unwrap_or_default()
}

/// Whether the chunk's dictionary would stand where none can: old writers say so that there is none (PARQUET-1402),
/// which parquet-java, Arrow and DuckDB understand.
fn is_nowhere(column: &ColumnChunkMetaData) -> bool {
    column.dictionary_page_offset().is_some_and(|offset| offset <= 0 || offset >= column.data_page_offset())
}

/// The metadata without dictionaries that are nowhere.
fn without_nowhere(metadata: ParquetMetaData) -> ParquetResult<ParquetMetaData> {
    if !metadata.row_groups().iter().flat_map(RowGroupMetaData::columns).any(is_nowhere) {
        return Ok(metadata);
    }
    let mut builder = metadata.into_builder();
    let mended = |column: ColumnChunkMetaData| match is_nowhere(&column) {
        true => column.into_builder().set_dictionary_page_offset(None).build(),
        false => Ok(column),
    };
    for group in builder.take_row_groups() {
        let mut group = group.into_builder();
        let columns = group.take_columns().into_iter().map(mended).collect::<ParquetResult<_>>()?;
        builder = builder.add_row_group(group.set_column_metadata(columns).build()?);
    }
    Ok(builder.build())
}

/// A footer that lies is found here, before anything is allocated by its numbers.
fn check(source: &dyn Source, metadata: &ParquetMetaData) -> Result<()> {
    let lie =
        |message: String| Err(Error::new(Code::CorruptFile, format!("the footer of {}: {message}", source.name())));
    let mut rows: i64 = 0;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        if group.num_rows() < 0 {
            return lie(format!("row group {index} has {} rows", group.num_rows()));
        }
        rows = rows.saturating_add(group.num_rows());
        for column in group.columns() {
            let path = || column.column_path().string();
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let in_file = start >= 0
                && column.data_page_offset() >= 0
                && column.compressed_size() >= 0
                && (start as u64).checked_add(column.compressed_size() as u64).is_some_and(|end| end <= source.size());
            if !in_file {
                return lie(format!("column {} of row group {index} is outside of the file", path()));
            }
            let flat = column.column_descr().max_rep_level() == 0;
            if column.num_values() < 0 || flat && column.num_values() != group.num_rows() {
                return lie(format!(
                    "column {} of row group {index} has {} values for {} rows",
                    path(),
                    column.num_values(),
                    group.num_rows()
                ));
            }
        }
    }
    if rows != metadata.file_metadata().num_rows() {
        return lie(format!("it states {} rows, but its row groups have {rows}", metadata.file_metadata().num_rows()));
    }
    Ok(())
}

pub fn corrupt(source: &dyn Source, error: &ParquetError) -> Error {
    Error::new(Code::CorruptFile, format!("{} is not a readable Parquet file: {error}", source.name()))
}
