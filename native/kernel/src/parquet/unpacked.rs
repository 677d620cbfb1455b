//! Pages decompressed on their way to the library's decoders.
//!
//! The library reads the pages of these codecs as if they were not compressed: for zstd it would make a context for each
//! column chunk (`unzstd`), Brotli is compiled once, in a crate of its own, and of LZ4 it reads one framing less (`unlz4`).

use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::parquet::bits::unsigned;
use crate::parquet::changed::Changed;
use crate::parquet::page_header::{PageHeader, PageKind};
use crate::parquet::parts::Parts;
use crate::parquet::{unlz4, unzstd};

/// Bytes of a page before compression at most.
pub const MAX_PAGE_BYTES: usize = 512 << 20;

/// Encodings whose values begin with how many they are.
pub const COUNTED: [i32; 2] = [Encoding::DELTA_LENGTH_BYTE_ARRAY as i32, Encoding::DELTA_BYTE_ARRAY as i32];

/// Whether pages of the codec are decompressed here, not by the library.
pub fn is_here(codec: Compression) -> bool {
    matches!(codec, Compression::ZSTD(_) | Compression::BROTLI(_) | Compression::LZ4)
}

/// The pages of a column chunk, whatever its codec. `rows` is the size of its row group.
pub fn reader(
    chunk: Arc<Parts>,
    column: &ColumnChunkMetaData,
    rows: usize,
    locations: Option<Vec<PageLocation>>,
) -> ParquetResult<Box<dyn PageReader>> {
    let codec = column.compression();
    if !is_here(codec) {
        return Ok(Box::new(SerializedPageReader::new(chunk, column, rows, locations)?));
    }
    let plain = column.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
    let stored = Box::new(SerializedPageReader::new(chunk.clone(), &plain, rows, locations)?);
    let levels = column.column_descr();
    let (repeats, optional) = (levels.max_rep_level() > 0, levels.max_def_level() > 0);
    let change = move |page| {
        let page = decompressed(page, codec, &chunk)?;
        if !repeats && !counted(&page, optional) {
            return Err(ParquetError::General("a page has less data than it states".into()));
        }
        Ok(page)
    };
    Ok(Box::new(Changed { stored, change }))
}

/// The page with its values decompressed; the levels of a page of version 2 are stored as they are.
fn decompressed(mut page: Page, codec: Compression, chunk: &Parts) -> ParquetResult<Page> {
    let (buffer, levels) = match &mut page {
        Page::DictionaryPage { buf, .. } | Page::DataPage { buf, .. } => (buf, 0),
        Page::DataPageV2 { is_compressed: false, .. } => return Ok(page),
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            (buf, *def_levels_byte_len as usize + *rep_levels_byte_len as usize)
        }
    };
    *buffer = body(buffer, levels, codec, chunk.stated(buffer))?;
    Ok(page)
}

/// What follows the header of a page of a codec that is decompressed here: its first bytes, the levels of version 2, are
/// stored as they are. `stated` is how long all of it says to be before compression: what is longer is not decompressed
/// to its end, and what is shorter is refused too, as by the library.
pub fn body(stored: &Bytes, levels: usize, codec: Compression, stated: Option<usize>) -> Result<Bytes> {
    let fewer = || Error::new(ErrorKind::UnexpectedEof, "a page has fewer bytes than levels");
    let (levels, packed) = stored.split_at_checked(levels).ok_or_else(fewer)?;
    if packed.is_empty() {
        return Ok(stored.clone());
    }
    let mut bytes = levels.to_vec();
    let most = stated.unwrap_or(MAX_PAGE_BYTES).saturating_sub(levels.len());
    match codec {
        Compression::BROTLI(_) => mica_brotli::decompress(packed, &mut bytes, most)?,
        Compression::LZ4 => unlz4::append(packed, &mut bytes, most)?,
        _ => unzstd::append(packed, &mut bytes, most)?,
    }
    match stated.filter(|stated| *stated != bytes.len()) {
        Some(stated) => Err(Error::other(format!("a page has {} bytes, but states {stated}", bytes.len()))),
        None => Ok(bytes.into()),
    }
}

/// A page decompressed, whatever its codec: its levels and its values.
pub fn decompress(column: &ColumnChunkMetaData, header: &PageHeader, page: &Bytes) -> Option<Bytes> {
    let start = column.byte_range().0;
    let size = header.length + header.compressed;
    let (stored, levels) = (page.slice(header.length..size), header.levels());
    match column.compression() {
        _ if matches!(header.kind, PageKind::DataV2 { compressed, .. } if !compressed || stored.len() == levels) => {
            return Some(stored);
        }
        Compression::UNCOMPRESSED => return Some(stored),
        codec if is_here(codec) => return body(&stored, levels, codec, Some(header.uncompressed)).ok(),
        _ => {} // by the library
    }
    let meta = column.clone().into_builder();
    let meta = meta
        .set_dictionary_page_offset(None)
        .set_data_page_offset(start as i64)
        .set_total_compressed_size(size as i64)
        .build()
        .ok()?;
    let part = Arc::new(Parts::one(start, page.slice(..size)));
    let rows = usize::try_from(header.values).ok()?;
    match SerializedPageReader::new(part, &meta, rows, None).ok()?.get_next_page().ok()?? {
        Page::DataPage { buf, .. } | Page::DataPageV2 { buf, .. } | Page::DictionaryPage { buf, .. } => Some(buf),
    }
}

/// Whether a page that is decompressed, of a column whose levels do not repeat, has no more values than it states.
/// `optional`: it has definition levels.
pub fn counted(page: &Page, optional: bool) -> bool {
    let (encoding, values, count) = match page {
        Page::DictionaryPage { .. } => return true,
        Page::DataPage { buf, num_values, encoding, .. } => {
            let levels = buf.first_chunk().filter(|_| optional).map(|length| 4 + u32::from_le_bytes(*length) as usize);
            (encoding, buf.get(levels.unwrap_or(0)..), num_values)
        }
        Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
            (encoding, buf.get((*def_levels_byte_len + *rep_levels_byte_len) as usize..), num_values)
        }
    };
    !COUNTED.contains(&(*encoding as i32)) || values.is_some_and(|values| !too_many(values, u64::from(*count)))
}

/// Whether the values that follow state no count, or more than `most`: block size, miniblocks in a block, values
/// (Parquet, "Delta Encoding").
pub fn too_many(values: &[u8], most: u64) -> bool {
    let count = (0..3).try_fold((values, 0), |(rest, _), _| unsigned(rest)).map(|(_, count)| count);
    !values.is_empty() && count.is_none_or(|count| count > most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_may_not_have_more_values_than_it_states() {
        let page = |buf: &[u8], encoding, num_values| Page::DataPage {
            buf: Bytes::copy_from_slice(buf),
            num_values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let delta = Encoding::DELTA_BYTE_ARRAY;
        // 128 values a block, 4 miniblocks, 300 values.
        let values = [0x80, 1, 4, 0xac, 2, 0];
        let behind = [&[2, 0, 0, 0, 9, 9][..], &values].concat();
        for (buf, optional) in [(&values[..], false), (&behind, true)] {
            assert!(counted(&page(buf, delta, 300), optional));
            assert!(!counted(&page(buf, delta, 299), optional));
            assert!(counted(&page(buf, Encoding::PLAIN, 1), optional));
        }
        assert!(counted(&page(&[], delta, 0), false));
        for cut in [&values[..2], &[0xff; 12], &[200, 0, 0, 0, 1]] {
            assert!(!counted(&page(cut, delta, 300), cut.len() == 5));
        }
    }
}
