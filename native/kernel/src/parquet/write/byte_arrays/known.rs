//! What the footer and the page index say of a chunk, collected page by page (parquet.thrift, `ColumnMetaData`,
//! `ColumnIndex`, `OffsetIndex`).

use parquet::basic::{BoundaryOrder, Compression, Encoding, EncodingMask, LogicalType, PageType, Type};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, LevelHistogram, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescPtr;

use super::extremes::{Extremes, cut_greatest, cut_least};

/// Which statistics a column has.
struct Wanted {
    statistics: EnabledStatistics,
    physical: Type,
    is_text: bool,
    /// Bytes of a bound in the footer and in the page index.
    footer_bytes: Option<usize>,
    index_bytes: Option<usize>,
}

pub struct Known {
    wanted: Wanted,
    column_index: ColumnIndexBuilder,
    offset_index: OffsetIndexBuilder,
    /// Of the pages so far.
    pages: Vec<(PageType, Encoding, i32)>,
    rows: i64,
    nulls: i64,
    plain_bytes: i64,
    /// Rows by level.
    levels: Vec<i64>,
    extremes: Extremes,
    last: Extremes,
    is_ascending: bool,
    is_descending: bool,
}

/// What is known of one data page.
pub struct Page {
    pub rows: i64,
    pub nulls: i64,
    pub plain_bytes: i64,
    pub encoding: Encoding,
    pub levels: Vec<i64>,
    pub extremes: Extremes,
}

impl Known {
    pub fn new(column: &ColumnDescPtr, properties: &WriterProperties) -> Self {
        let wanted = Wanted {
            statistics: properties.statistics_enabled(column.path()),
            physical: column.physical_type(),
            is_text: column.logical_type_ref() == Some(&LogicalType::String),
            footer_bytes: properties.statistics_truncate_length(),
            index_bytes: properties.column_index_truncate_length(),
        };
        let mut column_index = ColumnIndexBuilder::new(wanted.physical);
        if wanted.statistics != EnabledStatistics::Page {
            column_index.to_invalid();
        }
        Known {
            wanted,
            column_index,
            offset_index: OffsetIndexBuilder::new(),
            pages: Vec::new(),
            rows: 0,
            nulls: 0,
            plain_bytes: 0,
            levels: Vec::new(),
            extremes: Extremes::default(),
            last: Extremes::default(),
            is_ascending: true,
            is_descending: true,
        }
    }

    pub fn add(&mut self, page: Page) {
        if self.wanted.statistics == EnabledStatistics::Page {
            self.index(&page);
        }
        if let Some((least, greatest)) = page.extremes.get() {
            self.extremes.take(least);
            self.extremes.take(greatest);
        }
        self.offset_index.append_row_count(page.rows);
        self.offset_index.append_unencoded_byte_array_data_bytes(self.byte_array_bytes(page.plain_bytes));
        // Where it begins is known when the chunk ends, with the dictionary before it.
        self.offset_index.append_offset_and_size(0, 0);
        match self.pages.last_mut() {
            Some((_, encoding, count)) if *encoding == page.encoding => *count += 1,
            _ => self.pages.push((PageType::DATA_PAGE, page.encoding, 1)),
        }
        self.rows += page.rows;
        self.nulls += page.nulls;
        self.plain_bytes += page.plain_bytes;
        self.levels.resize(page.levels.len(), 0);
        self.levels.iter_mut().zip(&page.levels).for_each(|(all, rows)| *all += rows);
    }

    fn index(&mut self, page: &Page) {
        let (least, greatest) = match page.extremes.get() {
            None => (Vec::new(), Vec::new()),
            Some((least, greatest)) => {
                if let Some((least_before, greatest_before)) = self.last.get() {
                    self.is_ascending &= least_before <= least && greatest_before <= greatest;
                    self.is_descending &= least <= least_before && greatest <= greatest_before;
                }
                self.last = page.extremes.clone();
                let (bytes, is_text) = (self.wanted.index_bytes, self.wanted.is_text);
                (cut_least(least, bytes, is_text).0, cut_greatest(greatest, bytes, is_text).0)
            }
        };
        self.column_index.append(page.rows == page.nulls, least, greatest, page.nulls, None);
        self.column_index.append_histograms(&None, &histogram(&page.levels));
    }

    /// There is a dictionary page, before all others.
    pub fn add_dictionary(&mut self) {
        self.pages.insert(0, (PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1));
    }

    /// What is known of the chunk but the places and sizes of its pages.
    pub fn close(mut self, column: &ColumnDescPtr, compression: Compression) -> Result<ColumnCloseResult> {
        let encodings = self.pages.iter().map(|(_, encoding, _)| encoding).chain([&Encoding::RLE]);
        let encodings = EncodingMask::new_from_encodings(encodings);
        let stats =
            self.pages.iter().map(|&(page_type, encoding, count)| PageEncodingStats { page_type, encoding, count });
        let mut metadata = ColumnChunkMetaData::builder(column.clone())
            .set_compression(compression)
            .set_encodings_mask(encodings)
            .set_page_encoding_stats(stats.collect())
            .set_num_values(self.rows);
        if self.wanted.statistics != EnabledStatistics::None {
            metadata = metadata
                .set_statistics(self.statistics())
                .set_unencoded_byte_array_data_bytes(self.byte_array_bytes(self.plain_bytes))
                .set_definition_level_histogram(histogram(&self.levels));
        }
        // Pages that are all alike count as ascending.
        let order = match (self.is_ascending, self.is_descending) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        };
        self.column_index.set_boundary_order(order);
        let column_index = self.column_index.valid().then(|| self.column_index.build()).transpose()?;
        Ok(ColumnCloseResult {
            bytes_written: 0,
            rows_written: self.rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index,
            offset_index: Some(self.offset_index.build()),
        })
    }

    fn statistics(&self) -> Statistics {
        let nulls = Some(self.nulls as u64);
        let (bytes, is_text) = (self.wanted.footer_bytes, self.wanted.is_text);
        let Some((least, greatest)) = self.extremes.get() else { return of_nulls(self.wanted.physical, nulls) };
        let (least, is_cut) = cut_least(least, bytes, is_text);
        let (greatest, is_raised) = cut_greatest(greatest, bytes, is_text);
        let found = ValueStatistics::new(Some(least.into()), Some(greatest.into()), None, nulls, false);
        Statistics::ByteArray(found.with_min_is_exact(!is_cut).with_max_is_exact(!is_raised))
    }

    /// Only byte arrays say how many bytes they have.
    fn byte_array_bytes(&self, bytes: i64) -> Option<i64> {
        (self.wanted.physical == Type::BYTE_ARRAY).then_some(bytes)
    }
}

/// Of a chunk without a value.
fn of_nulls(physical: Type, nulls: Option<u64>) -> Statistics {
    match physical {
        Type::BOOLEAN => Statistics::boolean(None, None, None, nulls, false),
        Type::INT32 => Statistics::int32(None, None, None, nulls, false),
        Type::INT64 => Statistics::int64(None, None, None, nulls, false),
        Type::INT96 => Statistics::int96(None, None, None, nulls, false),
        Type::FLOAT => Statistics::float(None, None, None, nulls, false),
        Type::DOUBLE => Statistics::double(None, None, None, nulls, false),
        Type::BYTE_ARRAY => Statistics::byte_array(None, None, None, nulls, false),
        Type::FIXED_LEN_BYTE_ARRAY => Statistics::fixed_len_byte_array(None, None, None, nulls, false),
    }
}

/// `None` where a column has no levels.
fn histogram(levels: &[i64]) -> Option<LevelHistogram> {
    (!levels.is_empty()).then(|| levels.to_vec().into())
}
