//! One column chunk as a chunk of the new file: pages under other levels, their values untouched.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, EncodingMask, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{AsBytes, ByteArray};
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, LevelHistogram, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::convert::pages::levels::{LevelMap, unfit};
use crate::convert::pages::plan::Make;
use crate::error::{Code, Error, Result};
use crate::parquet::bits::push_unsigned;
use crate::parquet::parts::Parts;
use crate::parquet::unpacked;
use crate::parquet::write::floats::certain;
use crate::parquet::write::null_pages;
use crate::parquet::write::pages::renamed;

/// A chunk of the old file, with what its footer and page index say of it.
pub struct Old<'a> {
    pub meta: &'a ColumnChunkMetaData,
    pub rows: i64,
    pub offsets: &'a OffsetIndexMetaData,
    pub columns: Option<&'a ColumnIndexMetaData>,
    pub part: Arc<Parts>,
}

/// A chunk of the new file and where its bytes are.
pub struct New {
    pub part: Arc<Parts>,
    pub close: ColumnCloseResult,
}

impl New {
    /// The bytes of its pages.
    pub fn pages(&self) -> Result<Bytes> {
        let (start, length) = self.close.metadata.byte_range();
        Ok(self.part.get_bytes(start, usize::try_from(length).map_err(|_| unfit())?)?)
    }
}

/// Makes chunks; holds the compressor.
pub struct Maker {
    codec: Compression,
    zstd: zstd::bulk::Compressor<'static>,
}

impl Maker {
    /// Pages are compressed by zstd, or `None`: the codec that mica writes unless it is told otherwise.
    pub fn new(codec: Compression) -> Result<Option<Self>> {
        let Compression::ZSTD(level) = codec else { return Ok(None) };
        let zstd = zstd::bulk::Compressor::new(level.compression_level());
        Ok(Some(Maker { codec, zstd: zstd.map_err(|e| Error::new(Code::Internal, e.to_string()))? }))
    }

    pub fn make(&mut self, old: &Old, make: &Make, column: &ColumnDescPtr) -> Result<New> {
        match make {
            Make::Copy => copy(old, column),
            Make::Levels(map) => self.rewrite(old, map, column, None, false),
            Make::Empty(map) => self.rewrite(old, map, column, None, true),
            Make::Null(map) => self.rewrite(old, map, column, Some(&[]), false),
            Make::Constant(map, value) => self.rewrite(old, map, column, Some(value), false),
        }
    }

    /// The pages under other levels. With a `constant` the values are that one alone, or none where it has no bytes.
    fn rewrite(
        &mut self,
        old: &Old,
        map: &LevelMap,
        column: &ColumnDescPtr,
        constant: Option<&[u8]>,
        empty: bool,
    ) -> Result<New> {
        let mut sink = TrackedWrite::new(Vec::new());
        let mut made = Made::default();
        let same_codec = matches!(old.meta.compression(), Compression::ZSTD(_));
        let keeps = constant.is_none() && same_codec;
        if let Some(from) = old.meta.dictionary_page_offset().filter(|_| keeps) {
            // A dictionary knows no levels: its bytes stay.
            let length = old.meta.data_page_offset().checked_sub(from).and_then(|n| usize::try_from(n).ok());
            sink.write_all(&old.part.get_bytes(from as u64, length.ok_or_else(unfit)?)?)?;
            made.dictionary = Some(0);
            made.kept = Some(old.meta.uncompressed_size());
            made.count(PageType::DICTIONARY_PAGE, Encoding::PLAIN);
        } else if let Some(value) = constant.filter(|value| !value.is_empty()) {
            let plain = [&(value.len() as u32).to_le_bytes(), value].concat();
            self.dictionary(plain.into(), 1, &mut sink, &mut made)?;
        }
        let mut reader = unpacked::reader(old.part.clone(), old.meta, old.rows.max(0) as usize, None)?;
        if old.meta.dictionary_page_offset().is_some() && (keeps || constant.is_some()) {
            reader.skip_next_page()?;
        }
        while let Some(page) = reader.get_next_page()? {
            match page {
                Page::DictionaryPage { buf, num_values, .. } => {
                    self.dictionary(buf, num_values, &mut sink, &mut made)?;
                }
                Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. }
                    if def_level_encoding == Encoding::RLE
                        && (column.max_rep_level() == 0 || rep_level_encoding == Encoding::RLE) =>
                {
                    let mut seen = vec![0; map.levels()];
                    let body = body(&buf, num_values as usize, map, column, constant, &mut seen)?;
                    let encoding = match constant {
                        None => encoding,
                        Some([]) => Encoding::PLAIN,
                        Some(_) => Encoding::RLE_DICTIONARY,
                    };
                    let page = Page::DataPage {
                        buf: self.compressed(&body)?,
                        num_values,
                        encoding,
                        def_level_encoding: Encoding::RLE,
                        rep_level_encoding: Encoding::RLE,
                        statistics: None,
                    };
                    let page = CompressedPage::new(page, body.len());
                    let spec = SerializedPageWriter::new(&mut sink).write_page(page)?;
                    made.values += i64::from(num_values);
                    made.changed += body.len() as i64 - buf.len() as i64;
                    made.written += spec.uncompressed_size as i64;
                    made.count(PageType::DATA_PAGE, encoding);
                    made.pages.push(Rewritten { seen, offset: spec.offset as i64, size: spec.compressed_size as i32 });
                }
                _ => return Err(unfit()),
            }
        }
        made.finish(old, map, column, constant, empty, self.codec, sink.into_inner()?.into())
    }

    fn dictionary(
        &mut self,
        plain: Bytes,
        values: u32,
        sink: &mut TrackedWrite<Vec<u8>>,
        made: &mut Made,
    ) -> Result<()> {
        let page = Page::DictionaryPage {
            buf: self.compressed(&plain)?,
            num_values: values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let spec = SerializedPageWriter::new(sink).write_page(CompressedPage::new(page, plain.len()))?;
        made.dictionary = Some(spec.offset as i64);
        made.written += spec.uncompressed_size as i64;
        made.count(PageType::DICTIONARY_PAGE, Encoding::PLAIN);
        Ok(())
    }

    fn compressed(&mut self, plain: &[u8]) -> Result<Bytes> {
        self.zstd.compress(plain).map(Bytes::from).map_err(|e| Error::new(Code::Internal, e.to_string()))
    }
}

/// The body of a data page: repetition levels, definition levels, values.
fn body(
    old: &[u8],
    values: usize,
    map: &LevelMap,
    column: &ColumnDescPtr,
    constant: Option<&[u8]>,
    seen: &mut [i64],
) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(old.len() + 64);
    let mut rest = old;
    if column.max_rep_level() > 0 {
        let (whole, after) = prefixed(rest)?;
        out.extend_from_slice(whole);
        rest = after;
    }
    if map.levels() == 1 {
        return Err(unfit()); // a page of what is never null has no levels to be read
    }
    let (levels, after) = prefixed(rest)?;
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    map.rewrite(levels.get(4..).unwrap_or(&[]), values, &mut out, seen)?;
    if column.max_def_level() == 0 {
        out.truncate(at); // nor to be written
    } else {
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
    match constant {
        None => out.extend_from_slice(after),
        Some([]) => {}
        Some(_) => {
            // Indices of one bit, all of them 0.
            out.push(1);
            let new = map.histogram(seen);
            let set = new.last().copied().unwrap_or(0) as u32;
            if set > 0 {
                push_unsigned(u64::from(set) << 1, &mut out);
                out.push(0);
            }
        }
    }
    Ok(out)
}

/// Bytes that begin with their length, with it, and those after them.
fn prefixed(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let length = bytes.first_chunk::<4>().ok_or_else(unfit)?;
    bytes.split_at_checked(4 + u32::from_le_bytes(*length) as usize).ok_or_else(unfit)
}

/// What a page was, by its counts of old levels, and where it is now.
struct Rewritten {
    seen: Vec<i64>,
    offset: i64,
    size: i32,
}

/// A chunk in the making.
#[derive(Default)]
struct Made {
    dictionary: Option<i64>,
    pages: Vec<Rewritten>,
    values: i64,
    /// Bytes before compression: of the pages written here; or those of the old chunk, where the bytes of its
    /// dictionary stay, with what changed in the pages.
    written: i64,
    kept: Option<i64>,
    changed: i64,
    stats: Vec<PageEncodingStats>,
}

impl Made {
    fn count(&mut self, page_type: PageType, encoding: Encoding) {
        match self.stats.iter_mut().find(|s| s.page_type == page_type && s.encoding == encoding) {
            Some(stats) => stats.count += 1,
            None => self.stats.push(PageEncodingStats { page_type, encoding, count: 1 }),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn finish(
        self,
        old: &Old,
        map: &LevelMap,
        column: &ColumnDescPtr,
        constant: Option<&[u8]>,
        empty: bool,
        codec: Compression,
        bytes: Bytes,
    ) -> Result<New> {
        let mut seen = vec![0; map.levels()];
        for page in &self.pages {
            seen.iter_mut().zip(&page.seen).for_each(|(sum, more)| *sum += more);
        }
        let (new, set) = (map.histogram(&seen), seen.last().copied().unwrap_or(0));
        let nulls = self.values - new.get(column.max_def_level() as usize).copied().unwrap_or(0);
        let locations = old.offsets.page_locations();
        let promised = old.meta.statistics().and_then(Statistics::null_count_opt);
        let holds = self.values == old.meta.num_values()
            && locations.len() == self.pages.len()
            && (!empty || set == 0)
            && (constant.is_some() || promised == u64::try_from(nulls).ok());
        let first = self.pages.first().filter(|_| holds).ok_or_else(unfit)?;
        let plain = self.kept.map_or(Some(self.written), |kept| kept.checked_add(self.changed)).ok_or_else(unfit)?;
        let encodings: Vec<Encoding> = self.stats.iter().map(|s| s.encoding).chain([Encoding::RLE]).collect();
        let mut meta = ColumnChunkMetaData::builder(column.clone())
            .set_compression(codec)
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(plain)
            .set_num_values(self.values)
            .set_dictionary_page_offset(self.dictionary)
            .set_data_page_offset(first.offset)
            .set_repetition_level_histogram(old.meta.repetition_level_histogram().cloned())
            .set_definition_level_histogram(Some(LevelHistogram::from(new)))
            .set_page_encoding_stats(self.stats);
        let mut offsets = OffsetIndexBuilder::new();
        let lengths = old.offsets.unencoded_byte_array_data_bytes().filter(|_| constant.is_none());
        let ends = locations.iter().skip(1).map(|l| l.first_row_index).chain([old.rows]);
        for (at, ((page, location), end)) in self.pages.iter().zip(locations).zip(ends).enumerate() {
            offsets.append_row_count(end - location.first_row_index);
            offsets.append_offset_and_size(page.offset, page.size);
            offsets.append_unencoded_byte_array_data_bytes(lengths.and_then(|l| l.get(at).copied()));
        }
        let statistics = match constant {
            None => old.meta.statistics().cloned().map(certain),
            Some(_) => {
                let none = ValueStatistics::<ByteArray>::new(None, None, None, u64::try_from(nulls).ok(), false);
                Some(Statistics::ByteArray(none))
            }
        };
        let unencoded = match constant {
            None => old.meta.unencoded_byte_array_data_bytes(),
            Some(value) => Some((self.values - nulls) * value.len() as i64),
        };
        meta = meta.set_unencoded_byte_array_data_bytes(unencoded);
        if let Some(statistics) = statistics {
            meta = meta.set_statistics(statistics);
        }
        let column_index = match constant {
            None => old.columns.map(|index| column_index(index, &self.pages, map, column)).transpose()?.flatten(),
            Some([]) => null_index(&self.pages, map, column)?,
            // Bounds of a dictionary's bytes say nothing.
            Some(_) => None,
        };
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: old.rows.max(0) as u64,
            metadata: meta.build()?,
            bloom_filter: None,
            column_index,
            offset_index: Some(offsets.build()),
        };
        Ok(New { part: Arc::new(Parts::one(0, bytes)), close })
    }
}

/// Whether the headers of the pages, one after the other, are those that the footer and the page index promise: whoever
/// reads the copy may have no index to find them by.
fn check_headers(old: &Old) -> Result<()> {
    let mut reader = unpacked::reader(old.part.clone(), old.meta, old.rows.max(0) as usize, None)?;
    let (mut values, mut pages) = (0, 0);
    while let Some(page) = reader.peek_next_page()? {
        if !page.is_dict {
            values += page.num_levels.ok_or_else(unfit)? as i64;
            pages += 1;
        }
        reader.skip_next_page()?;
    }
    let promised = values == old.meta.num_values() && pages == old.offsets.page_locations().len();
    if promised { Ok(()) } else { Err(unfit()) }
}

/// A chunk that stays as it is, under another name it may be.
fn copy(old: &Old, column: &ColumnDescPtr) -> Result<New> {
    check_headers(old)?;
    let meta = old.meta;
    let close = ColumnCloseResult {
        bytes_written: meta.compressed_size().max(0) as u64,
        rows_written: old.rows.max(0) as u64,
        metadata: renamed(meta, column)?,
        bloom_filter: None,
        column_index: old.columns.cloned(),
        offset_index: Some(old.offsets.clone()),
    };
    Ok(New { part: old.part.clone(), close })
}

/// The bounds of the pages, which are those of the same values; only the counts of levels are others. None where the old
/// index takes a page with values for one of nulls.
fn column_index(
    old: &ColumnIndexMetaData,
    pages: &[Rewritten],
    map: &LevelMap,
    column: &ColumnDescPtr,
) -> Result<Option<ColumnIndexMetaData>> {
    let Some(order) = old.get_boundary_order() else { return Ok(None) };
    if old.num_pages() != pages.len() as u64 {
        return Err(unfit());
    }
    let mut builder = ColumnIndexBuilder::new(column.physical_type());
    builder.set_boundary_order(order);
    for (at, page) in pages.iter().enumerate() {
        let Some((min, max)) = bounds(old, at) else { return Ok(None) };
        let null_page = old.is_null_page(at);
        let Some(nulls) = old.null_count(at) else { return Ok(None) };
        builder.append(null_page, min, max, nulls, old.nan_count(at));
        let repetition = old.repetition_level_histogram(at).map(|levels| LevelHistogram::from(levels.to_vec()));
        builder.append_histograms(&repetition, &Some(LevelHistogram::from(map.histogram(&page.seen))));
    }
    Ok(Some(builder.build()?).filter(null_pages::holds))
}

/// That of pages without a value.
fn null_index(pages: &[Rewritten], map: &LevelMap, column: &ColumnDescPtr) -> Result<Option<ColumnIndexMetaData>> {
    let mut builder = ColumnIndexBuilder::new(column.physical_type());
    for page in pages {
        builder.append(true, Vec::new(), Vec::new(), page.seen.iter().sum(), None);
        builder.append_histograms(&None, &Some(LevelHistogram::from(map.histogram(&page.seen))));
    }
    Ok(Some(builder.build()?))
}

/// The bounds of a page as the index spells them; empty for a page of nulls.
fn bounds(index: &ColumnIndexMetaData, page: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    if index.is_null_page(page) {
        return Some((Vec::new(), Vec::new()));
    }
    macro_rules! spelled {
        ($index:expr) => {
            ($index.min_value(page)?.as_bytes().to_vec(), $index.max_value(page)?.as_bytes().to_vec())
        };
    }
    Some(match index {
        ColumnIndexMetaData::BOOLEAN(index) => spelled!(index),
        ColumnIndexMetaData::INT32(index) => spelled!(index),
        ColumnIndexMetaData::INT64(index) => spelled!(index),
        ColumnIndexMetaData::FLOAT(index) => spelled!(index),
        ColumnIndexMetaData::DOUBLE(index) => spelled!(index),
        ColumnIndexMetaData::BYTE_ARRAY(index) | ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(index) => {
            (index.min_value(page)?.to_vec(), index.max_value(page)?.to_vec())
        }
        _ => return None,
    })
}
