//! Fetched pages of one row group as the library reads them into Arrow.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;

use crate::error::Result;
use crate::parquet::changed::Changed;
use crate::parquet::file::FileReader;
use crate::parquet::file_schema::FileSchema;
use crate::parquet::integers::IntegerColumn;
use crate::parquet::leaf_pages::LeafColumn;
use crate::parquet::one_bit::one_bit;
use crate::parquet::parts::Parts;
use crate::parquet::rows::{self, Rows};
use crate::parquet::texts::TextColumn;
use crate::parquet::{alone, coded, unpacked};

impl FileReader {
    /// Decodes some leaf columns of one row group, all rows or those of `rows` (numbers within the file, sorted); only
    /// the pages that hold such rows are fetched, in one request.
    pub(crate) fn batches(
        &self,
        group: usize,
        leaves: &[usize],
        rows: Option<&Rows>,
        batch_size: usize,
        manner: Manner,
    ) -> Result<Batches> {
        let needed = self.needed(group, leaves, rows)?;
        let metadata = &self.metadata;
        let meta = metadata.row_group(group);
        let mut parts = self.fetch_pages(group, &needed.leaves, &needed.ranges)?.into_iter();
        let mut chunks = vec![None; meta.columns().len()];
        let mut of_parts = needed.leaves.as_slice();
        for &leaf in leaves {
            let (own, others) = of_parts.split_at(of_parts.iter().take_while(|of| **of == leaf).count());
            of_parts = others;
            if let Some(chunk) = chunks.get_mut(leaf) {
                *chunk = Some(Arc::new(Parts::new(parts.by_ref().take(own.len()).collect())));
            }
        }
        let selection = needed.selection;
        let FileSchema { parquet, decoding, columns, .. } = self.schema.as_ref();
        let codes = if manner.coded { coded::texts(columns, meta, leaves) } else { Vec::new() };
        let fields = match codes.is_empty() {
            true => decoding.fields().clone(),
            false => coded::as_codes(decoding.fields(), columns, &codes),
        };
        let mut group = Group { metadata, meta, number: group, chunks, paged: selection.is_some(), alone: None };
        if !manner.alone {
            let mask = ProjectionMask::leaves(parquet, leaves.iter().copied());
            let levels = parquet_to_arrow_field_levels(parquet, mask, Some(&fields))?;
            let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &group, batch_size, selection)?;
            return Ok(Batches::Nested(reader));
        }
        let fields = alone::fields(parquet, columns, &fields, leaves);
        let (mut own, mut others, mut other_fields) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (&leaf, field)) in leaves.iter().zip(&fields).enumerate() {
            match meta.columns().get(leaf).filter(|_| selection.is_none()) {
                Some(column) if TextColumn::reads(column, field.data_type()) => {
                    own.push((at, Box::new(TextColumn::new(group.pages(leaf)?, column)) as Box<dyn LeafColumn>));
                }
                Some(column) if IntegerColumn::reads(column, field.data_type()) => {
                    own.push((at, Box::new(IntegerColumn::new(group.pages(leaf)?, column))));
                }
                _ => {
                    others.push(leaf);
                    other_fields.push(field.clone());
                }
            }
        }
        let mut reader = None;
        if !others.is_empty() {
            let columns = alone::columns(parquet, &others)?;
            let levels = parquet_to_arrow_field_levels(&columns, ProjectionMask::all(), Some(&other_fields.into()))?;
            group.alone = Some(&others);
            let made = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &group, batch_size, selection)?;
            reader = Some(made);
        }
        Ok(Batches::Alone(Alone {
            file: self.schema.clone(),
            leaves: leaves.to_vec(),
            schema: Arc::new(Schema::new(fields)),
            reader,
            own,
            left: meta.num_rows().max(0) as usize,
            batch_size,
        }))
    }

    /// Says that `batches` will be called with these leaves and rows next.
    pub(crate) fn announce_batches(&self, group: usize, leaves: &[usize], rows: Option<&Rows>) -> Result<()> {
        self.announce(&self.needed(group, leaves, rows)?.ranges)
    }

    /// What is to be fetched of some leaves of a row group, for all rows or for `rows`.
    pub(super) fn needed(&self, group: usize, leaves: &[usize], rows: Option<&Rows>) -> Result<Needed> {
        let Some(meta) = self.metadata.row_groups().get(group) else {
            return Err(ParquetError::General(format!("there is no row group {group}")).into());
        };
        let first = self.first_row(group);
        let selection = rows.map(|rows| rows::selection(rows, first, first + meta.num_rows().max(0) as u64));
        if selection.is_some() {
            // Only a selection needs to know where pages begin.
            self.load_pages(&[group], leaves, false)?;
        }
        // Of a mask the library reads all pages.
        let paged = selection.as_ref().filter(|selection| selection.as_mask().is_none());
        let (mut ranges, mut of) = (Vec::with_capacity(leaves.len()), Vec::with_capacity(leaves.len()));
        for &leaf in leaves {
            if let Some(column) = meta.columns().get(leaf) {
                let locations = self.pages.offset_index(group, leaf).map(|index| index.page_locations().as_slice());
                wanted(column, locations, paged, &mut ranges);
                of.resize(ranges.len(), leaf);
            }
        }
        Ok(Needed { selection, ranges, leaves: of })
    }
}

/// How leaf columns are decoded.
#[derive(Clone, Copy, Default)]
pub struct Manner {
    /// Texts may be codes.
    pub coded: bool,
    /// Nobody asks where the structs around the leaves are null; there are no lists (`projection::alone`).
    pub alone: bool,
    /// Dates and timestamps stay as they are stored (`legacy`).
    pub stored: bool,
}

/// Decoded batches.
pub enum Batches {
    Nested(ParquetRecordBatchReader),
    Alone(Alone),
}

/// Leaves that are decoded as if they were columns: some by decoders of ours, which stand at these places among all, the others
/// by the library.
pub struct Alone {
    file: Arc<FileSchema>,
    leaves: Vec<usize>,
    schema: SchemaRef,
    reader: Option<ParquetRecordBatchReader>,
    own: Vec<(usize, Box<dyn LeafColumn>)>,
    /// Rows to come.
    left: usize,
    batch_size: usize,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Batches::Nested(reader) => Some(reader.next()?.map_err(Into::into)),
            Batches::Alone(alone) => alone.next().transpose(),
        }
    }
}

impl Alone {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut columns = Vec::with_capacity(self.leaves.len());
        let rows = match &mut self.reader {
            Some(reader) => reader.next().transpose()?.map_or(0, |batch| {
                columns.extend_from_slice(batch.columns());
                batch.num_rows()
            }),
            None => self.left.min(self.batch_size),
        };
        self.left = self.left.saturating_sub(rows);
        if rows == 0 {
            for (_, column) in &mut self.own {
                if column.has_rows()? {
                    return Err(ParquetError::General("a column has more rows than its row group".into()).into());
                }
            }
            return Ok(None);
        }
        for (at, column) in &mut self.own {
            columns.insert(*at, column.next(rows)?);
        }
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        alone::nested(&self.file.columns, &self.leaves, &batch).map(Some)
    }
}

/// What is to be fetched of some leaves of a row group.
pub(super) struct Needed {
    selection: Option<RowSelection>,
    pub(super) ranges: Vec<Range<u64>>,
    /// The leaf of each range.
    leaves: Vec<usize>,
}

/// The ranges of bytes of the pages that a selection reads: all of the column's without one, or without a page index.
fn wanted(
    column: &ColumnChunkMetaData,
    locations: Option<&[PageLocation]>,
    selection: Option<&RowSelection>,
    ranges: &mut Vec<Range<u64>>,
) {
    let (start, length) = column.byte_range();
    let Some((selection, locations)) = selection.zip(locations) else {
        ranges.push(start..start.saturating_add(length));
        return;
    };
    // What lies before the first data page is the dictionary.
    if let Some(first) = locations.first().map(|page| page.offset as u64).filter(|first| *first > start) {
        ranges.push(start..first);
    }
    ranges.extend(selection.scan_ranges(locations));
}

/// One row group, of which some column chunks were fetched.
struct Group<'a> {
    metadata: &'a ParquetMetaData,
    meta: &'a RowGroupMetaData,
    number: usize,
    chunks: Vec<Option<Arc<Parts>>>,
    /// Whether pages are found by the page index.
    paged: bool,
    /// The leaves that the library sees as columns.
    alone: Option<&'a [usize]>,
}

impl Group<'_> {
    /// The pages of a column chunk that was fetched.
    fn pages(&self, leaf: usize) -> ParquetResult<Box<dyn PageReader>> {
        let column = self.meta.columns().get(leaf);
        let chunk = self.chunks.get(leaf).cloned().flatten();
        let Some((column, chunk)) = column.zip(chunk) else {
            return Err(ParquetError::General(format!("column {leaf} was not fetched")));
        };
        let index = self.metadata.page_index().filter(|_| self.paged);
        let locations = index.and_then(|index| index.offset_index(self.number, leaf));
        let locations = locations.map(|index| index.page_locations().clone());
        let levels = column.column_descr();
        let mut pages = unpacked::reader(chunk, column, self.num_rows(), locations)?;
        if self.alone.is_some() && levels.max_def_level() > 1 {
            let highest = levels.max_def_level();
            pages = Box::new(Changed { stored: pages, change: move |page| one_bit(page, highest) });
        }
        Ok(pages)
    }
}

impl RowGroups for Group<'_> {
    fn num_rows(&self) -> usize {
        self.meta.num_rows().max(0) as usize
    }

    fn column_chunks(&self, column: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let leaf = self.alone.map_or(Some(column), |leaves| leaves.get(column).copied()).unwrap_or(usize::MAX);
        Ok(Box::new(One(Some(self.pages(leaf)?))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.meta))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata
    }
}

/// The pages of one column chunk are those of the one row group.
struct One(Option<Box<dyn PageReader>>);

impl Iterator for One {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for One {}
