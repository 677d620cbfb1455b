//! What a column index may say of null pages: that a page has no value, which readers skip by (parquet.thrift,
//! `ColumnIndex.null_pages`).
//!
//! The library takes a page for one of nulls if it has as many nulls as rows. Inside a list or map a row has any number
//! of both, so a page of `[1, null]` counts as one without a value, and its bounds are lost: parquet-java's `contains`
//! would not find the 1. Such a column gets no column index, which is optional.

use parquet::file::page_index::column_index::ColumnIndexMetaData;

/// Whether no page that the index takes for one of nulls has a value, as its histogram of levels tells.
pub fn holds(index: &ColumnIndexMetaData) -> bool {
    let has_values = |page| {
        let levels = index.definition_level_histogram(page);
        levels.and_then(|levels| levels.last()).is_none_or(|&values| values > 0)
    };
    (0..index.num_pages() as usize).all(|page| !index.is_null_page(page) || !has_values(page))
}
