//! The footer, loaded with one request for most files, and checked before anything is allocated by its numbers.

use std::ops::Range;

use parquet::DecodeResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder};

use crate::error::{Code, Error, Result};
use crate::source::{Source, fetch};

/// The first request takes this much from the end of the file; a footer is rarely larger.
const TAIL: u64 = 32 << 10;

pub fn load(source: &dyn Source, read: &mut u64) -> Result<ParquetMetaData> {
    let size = source.size();
    if size < 12 {
        return Err(Error::new(
            Code::CorruptFile,
            format!("{} has {size} bytes: too few for a Parquet file", source.name()),
        ));
    }
    let tail: Range<u64> = size.saturating_sub(TAIL)..size;
    let mut decoder = ParquetMetaDataPushDecoder::try_new(size)
        .map_err(|e| corrupt(source, &e))?
        .with_page_index_policy(PageIndexPolicy::Skip);
    let bytes = fetch(source, std::slice::from_ref(&tail), read)?;
    decoder.push_ranges(vec![tail], bytes).map_err(|e| corrupt(source, &e))?;
    let metadata = drive(source, decoder, read)?;
    check(source, &metadata)?;
    Ok(metadata)
}

fn drive(source: &dyn Source, mut decoder: ParquetMetaDataPushDecoder, read: &mut u64) -> Result<ParquetMetaData> {
    loop {
        match decoder.try_decode().map_err(|e| corrupt(source, &e))? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => {
                let bytes = fetch(source, &ranges, read)?;
                decoder.push_ranges(ranges, bytes).map_err(|e| corrupt(source, &e))?;
            }
            DecodeResult::Finished => {
                return Err(Error::new(Code::CorruptFile, format!("{} has no readable footer", source.name())));
            }
        }
    }
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
            let path = column.column_path().string();
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let in_file = start >= 0
                && column.data_page_offset() >= 0
                && column.compressed_size() >= 0
                && (start as u64).checked_add(column.compressed_size() as u64).is_some_and(|end| end <= source.size());
            if !in_file {
                return lie(format!("column {path} of row group {index} lies outside of the file"));
            }
            let flat = column.column_descr().max_rep_level() == 0;
            if column.num_values() < 0 || flat && column.num_values() != group.num_rows() {
                return lie(format!(
                    "column {path} of row group {index} has {} values for {} rows",
                    column.num_values(),
                    group.num_rows()
                ));
            }
        }
    }
    if rows != metadata.file_metadata().num_rows() {
        return lie(format!("{} rows in the file, {rows} in its row groups", metadata.file_metadata().num_rows()));
    }
    Ok(())
}

pub fn corrupt(source: &dyn Source, error: &ParquetError) -> Error {
    Error::new(Code::CorruptFile, format!("{} is no readable Parquet file: {error}", source.name()))
}
