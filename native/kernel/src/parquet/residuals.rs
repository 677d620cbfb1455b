//! Columns of the early layout in a file: which ones are, and where a path's value may hide.
//!
//! **The rule of the residuals.** A writer may leave in `untyped_value` whatever it likes ("This specification is not
//! strict"), so the value of a path may be in the `untyped_value` of its own level and of every level above it. Each of
//! these must be null in every row, or a Variant null in every row that has one, before bounds of the typed leaf count;
//! and whoever reads the path reads all the others.
//!
//! Of a column that mica shredded (`created_by` says that mica wrote the file, and a key of the footer names the column:
//! `SHREDDED_BY_MICA`) it is known that an object always stands in `object`, and that what is left over of it holds no
//! field that is shredded: levels above the path's own hold nothing of it. At the path's own
//! level mica keeps whatever is not exactly of the leaf's type, which a cast may turn into any value of it (the
//! string "123" into the number): nothing more is known there.

use parquet::basic::ColumnOrder;
use parquet::file::metadata::{KeyValue, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use crate::codec::untyped::is_null;
use crate::layout::Layout;
use crate::layout::early::{SHREDDED_BY_MICA, spelled};
use crate::parquet::level::layout;
use crate::parquet::schema::Node;

/// What `created_by` begins with in files that mica wrote.
pub const CREATED_BY: &str = "mica version ";

/// Whether the levels above a path's own may hold its value; `names` are those of the column from the top.
pub fn hides_above(names: &[String], column: &Node, metadata: &ParquetMetaData) -> bool {
    let file = metadata.file_metadata();
    let by_mica = || {
        let key = |pair: &&KeyValue| pair.key == SHREDDED_BY_MICA;
        let named = file.key_value_metadata().into_iter().flatten().find(key).and_then(|pair| pair.value.as_deref());
        file.created_by().is_some_and(|by| by.starts_with(CREATED_BY))
            && named.is_some_and(|named| named.lines().any(|line| line == spelled(names)))
    };
    layout(column) == Layout::Early && !by_mica()
}

/// Whether what an early residual holds in a row group is the Variant null alone, by its bounds.
pub fn only_variant_nulls(metadata: &ParquetMetaData, group: &RowGroupMetaData, leaf: usize) -> bool {
    let statistics = group.columns().get(leaf).and_then(|c| c.statistics());
    let Some(Statistics::ByteArray(bounds)) = statistics.filter(|s| !s.is_min_max_deprecated()) else { return false };
    let (Some(min), Some(max)) = (bounds.min_opt(), bounds.max_opt()) else { return false };
    ordered(metadata, leaf) && min == max && is_null(min.data())
}

/// The same of one page.
pub fn page_of_variant_nulls(
    metadata: &ParquetMetaData,
    index: &ColumnIndexMetaData,
    leaf: usize,
    page: usize,
) -> bool {
    let ColumnIndexMetaData::BYTE_ARRAY(bounds) = index else { return false };
    let (Some(min), Some(max)) = (bounds.min_value(page), bounds.max_value(page)) else { return false };
    ordered(metadata, leaf) && min == max && is_null(min)
}

fn ordered(metadata: &ParquetMetaData, leaf: usize) -> bool {
    matches!(metadata.file_metadata().column_order(leaf), ColumnOrder::TYPE_DEFINED_ORDER(_))
}
