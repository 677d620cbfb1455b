//! Integers of 64 bits that are packed by their differences, decoded where all rows of a row group are read and levels do not
//! repeat. The library clears a batch's room, unpacks into it and adds up in a second walk; here each 32 are added up where
//! they were unpacked.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::column::page::PageReader;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;

use crate::parquet::coded::all_pages;
use crate::parquet::leaf_pages::{LeafColumn, LeafPages, Opened, no_values, unstated};
use crate::parquet::packed::{Packed, SOME};

/// A column of a row group.
pub struct IntegerColumn {
    pages: LeafPages,
    /// Where the values of the page begin, until the first is read: a page of nulls may have no bytes of them.
    begin: usize,
    packed: Option<Packed<i64>>,
    /// Values that nobody took yet.
    some: [i64; SOME],
    waiting: Range<usize>,
}

impl IntegerColumn {
    /// Whether the column is read here as an array of this type.
    pub fn reads(column: &ColumnChunkMetaData, data_type: &DataType) -> bool {
        data_type == &DataType::Int64
            && column.column_type() == PhysicalType::INT64
            && all_pages(column, |encoding| encoding == Encoding::DELTA_BINARY_PACKED)
    }

    /// A column that `reads` accepts.
    pub fn new(pages: Box<dyn PageReader>, column: &ColumnChunkMetaData) -> Self {
        let pages = LeafPages::new(pages, column.column_descr().max_def_level());
        IntegerColumn { pages, begin: 0, packed: None, some: [0; SOME], waiting: 0..0 }
    }

    /// Appends the page's next rows; `None` where it has fewer values.
    fn append(&mut self, rows: usize, there: Option<&BooleanBuffer>, out: &mut Vec<i64>) -> Option<()> {
        let Some(there) = there.filter(|there| there.has_false()) else { return self.take(rows, out) };
        let begin = out.len();
        for (start, end) in there.set_slices() {
            out.resize(begin + start, 0);
            self.take(end - start, out)?;
        }
        out.resize(begin + rows, 0);
        Some(())
    }

    /// Appends the page's next values.
    fn take(&mut self, count: usize, out: &mut Vec<i64>) -> Option<()> {
        let page = &self.pages.page;
        let packed = match &mut self.packed {
            Some(packed) => packed,
            none => none.insert(Packed::open(page, self.begin)?),
        };
        let end = out.len() + count;
        while out.len() < end {
            if self.waiting.is_empty() {
                self.waiting = 0..packed.some(page, &mut self.some)?;
                if self.waiting.is_empty() {
                    return None;
                }
            }
            if self.waiting == (0..SOME) && end - out.len() >= SOME {
                out.extend_from_slice(&self.some); // of a length that is known when it is compiled
                self.waiting = 0..0;
                continue;
            }
            let start = self.waiting.start;
            self.waiting.start = self.waiting.end.min(start + (end - out.len()));
            out.extend_from_slice(self.some.get(start..self.waiting.start)?);
        }
        Some(())
    }
}

impl LeafColumn for IntegerColumn {
    fn has_rows(&mut self) -> ParquetResult<bool> {
        while self.pages.left() == 0 {
            match self.pages.open()? {
                None => return Ok(false),
                // Of a dictionary that no page uses.
                Some(Opened::Dictionary(..)) => {}
                Some(Opened::Values(Encoding::DELTA_BINARY_PACKED, at)) => {
                    (self.begin, self.packed, self.waiting) = (at, None, 0..0);
                }
                Some(Opened::Values(encoding, _)) => return Err(unstated(encoding)),
            }
        }
        Ok(true)
    }

    fn next(&mut self, rows: usize) -> ParquetResult<ArrayRef> {
        let mut out = Vec::with_capacity(rows);
        let has_levels = self.pages.has_levels();
        let mut nulls = BooleanBufferBuilder::new(if has_levels { rows } else { 0 });
        while out.len() < rows && self.has_rows()? {
            let some = self.pages.left().min(rows - out.len());
            let there = self.pages.take(some)?;
            if let Some(bits) = &there {
                nulls.append_buffer(bits);
            }
            self.append(some, there.as_ref(), &mut out).ok_or_else(no_values)?;
        }
        let nulls = has_levels.then(|| NullBuffer::new(nulls.build()));
        Ok(Arc::new(Int64Array::try_new(out.into(), nulls.filter(|nulls| nulls.null_count() > 0))?))
    }
}
