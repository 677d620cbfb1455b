//! What the footer and the page index say about leaves, per row group or page: the kernel states bounds, whoever
//! asked decides what can be skipped.
//!
//! A bound of a variant path is usable only where the matching `value` is null in every row of that row group or
//! page, or is not there at all (rule 41). The levels above need no such check: a residual beside a shredded
//! object holds no shredded field (rules 32, 35). The early layout has another rule: `residuals.rs`.
//!
//! Bounds leave NaN out, and -0.0 may stand for 0.0: rules of the caller. A bound that cannot be trusted (old
//! signed order of strings, NaN, text that is no UTF-8) is not given.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use parquet::basic::{ColumnOrder, Type as PhysicalType};
use parquet::data_type::{AsBytes, ByteArray, FixedLenByteArray};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use crate::error::Result;
use crate::item::Item;
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;
use crate::parquet::physical::{Raw, raw_array};
use crate::parquet::projection::all_null;
use crate::parquet::residuals::{only_variant_nulls, page_of_variant_nulls};
use crate::parquet::resolve::{Resolved, resolve};
use crate::parquet::rows;
use crate::parquet::rows::Rows;

#[derive(Default, Clone, PartialEq)]
pub(crate) struct Bound {
    pub min: Option<Raw>,
    pub max: Option<Raw>,
    pub null_count: Option<i64>,
    usable: bool,
}

/// Rows of one row group; `first` counts in the file.
pub(crate) struct Span {
    pub group: usize,
    pub first: u64,
    pub rows: u64,
}

impl FileReader {
    /// Row groups: `row_group`, `first_row` in the file, `rows`, compressed `bytes`.
    pub fn row_groups(&self) -> Result<RecordBatch> {
        let spans = self.group_spans();
        let bytes: Vec<i64> = self.metadata().row_groups().iter().map(RowGroupMetaData::compressed_size).collect();
        let mut columns = span_columns(&spans);
        columns.push((Arc::new(Field::new("bytes", DataType::Int64, false)), Arc::new(Int64Array::from(bytes))));
        batch(columns)
    }

    /// Per row group the leaves that may hold something, by the footer: their names joined by dots.
    pub fn held_leaves(&self) -> Vec<Vec<String>> {
        let of = |group: &RowGroupMetaData| {
            let leaves = group.columns().iter().enumerate().filter(|&(leaf, _)| !all_null(group, leaf));
            leaves.map(|(_, chunk)| chunk.column_path().string()).collect()
        };
        self.metadata().row_groups().iter().map(of).collect()
    }

    /// Bounds of the leaves per row group, or per interval between any two page boundaries of theirs; of the row
    /// groups that hold some of `within`, where that is given.
    pub fn bounds(&self, leaves: &[Item], pages: bool, within: Option<&Rows>) -> Result<RecordBatch> {
        guard(self.name(), || self.bounds_unguarded(leaves, pages, within))
    }

    fn bounds_unguarded(&self, leaves: &[Item], pages: bool, within: Option<&Rows>) -> Result<RecordBatch> {
        let resolved: Vec<Resolved> = leaves.iter().map(|l| resolve(self, l)).collect::<Result<_>>()?;
        let metadata = self.metadata();
        let mut spans = self.group_spans();
        if let Some(within) = within {
            spans.retain(|s| !rows::clip(within, s.first, s.first + s.rows).is_empty());
        }
        if pages {
            let groups: Vec<usize> = spans.iter().map(|s| s.group).collect();
            let columns: Vec<usize> =
                resolved.iter().flat_map(|l| l.typed.iter().chain(&l.residuals).copied()).collect();
            self.load_pages(&groups, &columns, true)?;
            let wholes = std::mem::take(&mut spans);
            wholes.iter().for_each(|whole| split_by_pages(metadata, whole, &resolved, &mut spans));
        }
        let mut columns = span_columns(&spans);
        for (leaf, item) in resolved.iter().zip(leaves) {
            let bounds: Vec<Bound> = spans.iter().map(|span| bound(self, leaf, span, pages)).collect();
            let array = bound_array(leaf, &bounds)?;
            columns.push((Arc::new(Field::new(&item.name, array.data_type().clone(), false)), array));
        }
        batch(columns)
    }

    fn group_spans(&self) -> Vec<Span> {
        let groups = self.metadata().row_groups().iter().enumerate();
        groups
            .map(|(group, meta)| Span { group, first: self.first_row(group), rows: meta.num_rows().max(0) as u64 })
            .collect()
    }
}

fn batch(columns: Vec<(FieldRef, ArrayRef)>) -> Result<RecordBatch> {
    let (fields, arrays): (Vec<FieldRef>, Vec<ArrayRef>) = columns.into_iter().unzip();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

fn span_columns(spans: &[Span]) -> Vec<(FieldRef, ArrayRef)> {
    let groups: Int32Array = spans.iter().map(|s| Some(s.group as i32)).collect();
    let firsts: Int64Array = spans.iter().map(|s| Some(s.first as i64)).collect();
    let rows: Int64Array = spans.iter().map(|s| Some(s.rows as i64)).collect();
    vec![
        (Arc::new(Field::new("row_group", DataType::Int32, false)), Arc::new(groups)),
        (Arc::new(Field::new("first_row", DataType::Int64, false)), Arc::new(firsts)),
        (Arc::new(Field::new("rows", DataType::Int64, false)), Arc::new(rows)),
    ]
}

/// The intervals between all page boundaries of the leaves and their residuals.
fn split_by_pages(metadata: &ParquetMetaData, whole: &Span, leaves: &[Resolved], spans: &mut Vec<Span>) {
    let index = metadata.page_index_for_row_group(whole.group);
    let mut starts = vec![0u64];
    for leaf in leaves.iter().flat_map(|l| l.typed.iter().chain(&l.residuals).copied()) {
        let pages = index.page_locations(leaf).into_iter().flatten();
        starts.extend(pages.map(|p| p.first_row_index.max(0) as u64).filter(|&row| row < whole.rows));
    }
    starts.sort_unstable();
    starts.dedup();
    starts.push(whole.rows);
    for pair in starts.windows(2) {
        if pair[0] < pair[1] {
            spans.push(Span { group: whole.group, first: whole.first + pair[0], rows: pair[1] - pair[0] });
        }
    }
}

fn bound(file: &FileReader, leaf: &Resolved, span: &Span, pages: bool) -> Bound {
    let metadata = file.metadata();
    let Some(group) = metadata.row_groups().get(span.group) else { return Bound::default() };
    if leaf.opaque {
        return Bound::default();
    }
    let first_in_group = span.first - file.first_row(span.group);
    let mut variant_nulls = false;
    for &residual in &leaf.residuals {
        let page_nulls = |page_is: &PageIs| pages && pages_are(metadata, span, first_in_group, residual, page_is);
        if all_null(group, residual) || page_nulls(&|index, page| index.is_null_page(page)) {
            continue;
        }
        let null_or_variant_null = |index: &ColumnIndexMetaData, page| {
            index.is_null_page(page) || page_of_variant_nulls(metadata, index, residual, page)
        };
        if !leaf.early || !only_variant_nulls(metadata, group, residual) && !page_nulls(&null_or_variant_null) {
            return Bound::default();
        }
        variant_nulls = true;
    }
    let Some(typed) = leaf.typed else {
        // Nothing typed and nothing in the residual: no row has the path.
        let null_count = (!variant_nulls).then_some(span.rows as i64);
        return Bound { min: None, max: None, null_count, usable: !variant_nulls };
    };
    let mut found = pages
        .then(|| page_bound(metadata, span, first_in_group, typed))
        .flatten()
        .unwrap_or_else(|| chunk_bound(group, typed, span.rows));
    if leaf.nulls_only {
        found.min = None;
        found.max = None;
        found.usable = found.null_count.is_some();
        return found;
    }
    let holds =
        |bound: &Option<Raw>| file.legacy.as_ref().is_none_or(|old| old.bound_holds(&leaf.data_type, bound.as_ref()));
    if !trusted(metadata, typed, &leaf.data_type) || !holds(&found.min) || !holds(&found.max) {
        found.min = None;
        found.max = None;
    }
    // A Variant null is a value where a Variant is asked for: only the bounds hold.
    found.null_count = found.null_count.filter(|_| !variant_nulls);
    let all_null = found.null_count == Some(span.rows as i64);
    found.usable = all_null || found.min.is_some() && found.max.is_some();
    found
}

type PageIs<'a> = dyn Fn(&ColumnIndexMetaData, usize) -> bool + 'a;

/// Whether every page of the column that overlaps the span is so.
fn pages_are(metadata: &ParquetMetaData, span: &Span, first: u64, column: usize, is: &PageIs) -> bool {
    let index = metadata.page_index_for_row_group(span.group);
    let (Some(columns), Some(pages)) = (index.column_index(column), index.page_locations(column)) else {
        return false;
    };
    let end = first + span.rows;
    let begin = pages.partition_point(|p| p.first_row_index.max(0) as u64 <= first).saturating_sub(1);
    let last = pages.partition_point(|p| (p.first_row_index.max(0) as u64) < end);
    !pages.is_empty() && last as u64 <= columns.num_pages() && (begin..last).all(|page| is(columns, page))
}

/// The bound of the page that holds the span; page boundaries never lie inside a span.
pub(crate) fn page_bound(metadata: &ParquetMetaData, span: &Span, first: u64, column: usize) -> Option<Bound> {
    let index = metadata.page_index_for_row_group(span.group);
    let (columns, pages) = (index.column_index(column)?, index.page_locations(column)?);
    let page = pages.partition_point(|p| p.first_row_index.max(0) as u64 <= first).checked_sub(1)?;
    if page as u64 >= columns.num_pages() || columns.num_pages() != pages.len() as u64 {
        return None;
    }
    if columns.is_null_page(page) {
        return Some(Bound { min: None, max: None, null_count: Some(span.rows as i64), usable: false });
    }
    let rows = span_of_page(metadata, span.group, pages, page);
    // A page that is wider than the span: its null count says nothing exact about the span, unless it is 0.
    let null_count = columns.null_count(page).filter(|&n| n == 0 || rows == span.rows);
    let (min, max) = match columns {
        ColumnIndexMetaData::BOOLEAN(i) => pair(i.min_value(page), i.max_value(page), |v| Raw::Boolean(*v)),
        ColumnIndexMetaData::INT32(i) => pair(i.min_value(page), i.max_value(page), |v| Raw::Int(*v as i64)),
        ColumnIndexMetaData::INT64(i) => pair(i.min_value(page), i.max_value(page), |v| Raw::Int(*v)),
        ColumnIndexMetaData::FLOAT(i) => pair(i.min_value(page), i.max_value(page), |v| Raw::Float(*v)),
        ColumnIndexMetaData::DOUBLE(i) => pair(i.min_value(page), i.max_value(page), |v| Raw::Double(*v)),
        ColumnIndexMetaData::BYTE_ARRAY(i) | ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(i) => {
            (i.min_value(page).map(|v| Raw::Bytes(v.to_vec())), i.max_value(page).map(|v| Raw::Bytes(v.to_vec())))
        }
        ColumnIndexMetaData::INT96(_) => (None, None),
    };
    Some(Bound { min, max, null_count, usable: false })
}

fn span_of_page(
    metadata: &ParquetMetaData,
    group: usize,
    pages: &[parquet::file::page_index::offset_index::PageLocation],
    page: usize,
) -> u64 {
    let rows = metadata.row_groups().get(group).map_or(0, |g| g.num_rows());
    let first = pages.get(page).map_or(0, |p| p.first_row_index);
    let end = pages.get(page + 1).map_or(rows, |p| p.first_row_index);
    end.saturating_sub(first).max(0) as u64
}

fn pair<T>(min: Option<&T>, max: Option<&T>, raw: impl Fn(&T) -> Raw) -> (Option<Raw>, Option<Raw>) {
    (min.map(&raw), max.map(&raw))
}

pub(crate) fn chunk_bound(group: &RowGroupMetaData, column: usize, rows: u64) -> Bound {
    let Some(statistics) = group.columns().get(column).and_then(|c| c.statistics()) else { return Bound::default() };
    let whole = group.num_rows().max(0) as u64 == rows;
    let null_count = statistics
        .null_count_opt()
        .map(|n| n as i64)
        .filter(|&n| whole || n == 0)
        .or_else(|| all_null(group, column).then_some(rows as i64));
    let signed_bytes = statistics.is_min_max_deprecated()
        && matches!(statistics.physical_type(), PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY);
    let bytes = |v: &[u8]| Raw::Bytes(v.to_vec());
    let (min, max) = match statistics {
        _ if signed_bytes => (None, None),
        Statistics::Boolean(s) => pair(s.min_opt(), s.max_opt(), |v| Raw::Boolean(*v)),
        Statistics::Int32(s) => pair(s.min_opt(), s.max_opt(), |v| Raw::Int(*v as i64)),
        Statistics::Int64(s) => pair(s.min_opt(), s.max_opt(), |v| Raw::Int(*v)),
        Statistics::Float(s) => pair(s.min_opt(), s.max_opt(), |v| Raw::Float(*v)),
        Statistics::Double(s) => pair(s.min_opt(), s.max_opt(), |v| Raw::Double(*v)),
        Statistics::ByteArray(s) => pair(s.min_opt(), s.max_opt(), |v: &ByteArray| bytes(v.data())),
        Statistics::FixedLenByteArray(s) => pair(s.min_opt(), s.max_opt(), |v: &FixedLenByteArray| bytes(v.as_bytes())),
        Statistics::Int96(_) => (None, None),
    };
    Bound { min, max, null_count, usable: false }
}

/// Whether the order that the bounds were made in is the one of the type.
pub(crate) fn trusted(metadata: &ParquetMetaData, column: usize, data_type: &DataType) -> bool {
    let order = metadata.file_metadata().column_order(column);
    match order {
        ColumnOrder::TYPE_DEFINED_ORDER(_) | ColumnOrder::IEEE_754_TOTAL_ORDER => true,
        // Before the order was stated it was the signed one.
        ColumnOrder::UNDEFINED => {
            data_type.is_signed_integer()
                || data_type.is_floating()
                || matches!(
                    data_type,
                    DataType::Boolean | DataType::Date32 | DataType::Timestamp(..) | DataType::Time64(_)
                )
        }
        _ => false,
    }
}

fn bound_array(leaf: &Resolved, bounds: &[Bound]) -> Result<ArrayRef> {
    let (mins, min_good) = raw_array(&leaf.data_type, bounds.iter().map(|b| b.min.as_ref()))?;
    let (maxs, max_good) = raw_array(&leaf.data_type, bounds.iter().map(|b| b.max.as_ref()))?;
    let null_counts: Int64Array = bounds.iter().map(|b| b.null_count).collect();
    let usable: BooleanArray = bounds
        .iter()
        .enumerate()
        .map(|(i, b)| Some(b.usable && (b.min.is_none() || min_good[i]) && (b.max.is_none() || max_good[i])))
        .collect();
    let fields = vec![
        Field::new("min", leaf.data_type.clone(), true),
        Field::new("max", leaf.data_type.clone(), true),
        Field::new("null_count", DataType::Int64, true),
        Field::new("usable", DataType::Boolean, false),
    ];
    let columns: Vec<ArrayRef> = vec![mins, maxs, Arc::new(null_counts), Arc::new(usable)];
    Ok(Arc::new(StructArray::try_new(fields.into(), columns, None)?))
}
