//! Integers of 64 bits that are packed by their differences, decoded where all rows of a row group are read and levels do not
//! repeat. The library clears a batch's room, unpacks into it and adds up in a second walk; here each 32 are added up where
//! they were unpacked.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::column::page::PageReader;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;

use crate::parquet::leaf_pages::{LeafColumn, LeafPages, Opened, no_values, unstated};
use crate::parquet::packed::numbers;

/// A column of a row group.
pub struct IntegerColumn {
    pages: LeafPages,
    /// Of the page that is read: where its values begin and how many rows it has, until they are decoded.
    packed: Option<(usize, usize)>,
    /// The values of a page that is read in parts, and how many of them were taken.
    values: Vec<i64>,
    taken: usize,
}

impl IntegerColumn {
    /// Whether the column is read here as an array of this type.
    pub fn reads(column: &ColumnChunkMetaData, data_type: &DataType) -> bool {
        let all_packed = column.page_encoding_stats_mask().is_some_and(|pages| {
            let mut encodings = pages.encodings().peekable();
            encodings.peek().is_some() && encodings.all(|encoding| encoding == Encoding::DELTA_BINARY_PACKED)
        });
        data_type == &DataType::Int64 && column.column_type() == PhysicalType::INT64 && all_packed
    }

    /// A column that `reads` accepts.
    pub fn new(pages: Box<dyn PageReader>, column: &ColumnChunkMetaData) -> Self {
        let pages = LeafPages::new(pages, column.column_descr().max_def_level());
        IntegerColumn { pages, packed: None, values: Vec::new(), taken: 0 }
    }

    /// Appends so many rows of the page, the last that were taken of it; `None` where it has fewer values.
    fn append(&mut self, rows: usize, there: Option<&BooleanBuffer>, out: &mut Vec<i64>) -> Option<()> {
        let begin = out.len();
        match (there.filter(|there| there.has_false()), self.packed) {
            // All that is left, and no nulls between: decoded to where it belongs.
            (None, Some((at, _))) if self.pages.left() == 0 => {
                self.packed = None;
                numbers(self.pages.page.get(at..)?, rows, |some| out.extend_from_slice(some))?;
                return (out.len() == begin + rows).then_some(());
            }
            (None, _) => self.put(rows, out)?,
            (Some(there), _) => {
                for (start, end) in there.set_slices() {
                    out.resize(begin + start, 0);
                    self.put(end - start, out)?;
                }
                out.resize(begin + rows, 0);
            }
        }
        Some(())
    }

    /// Appends the next values of the page. One without values may have no bytes of them either.
    fn put(&mut self, count: usize, out: &mut Vec<i64>) -> Option<()> {
        if let Some((at, rows)) = self.packed.take() {
            self.values.clear();
            self.taken = 0;
            numbers(self.pages.page.get(at..)?, rows, |some| self.values.extend_from_slice(some))?;
        }
        let next = self.values.get(self.taken..)?.get(..count)?;
        out.extend_from_slice(next);
        self.taken += count;
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
                    self.packed = Some((at, self.pages.left()));
                    self.values.clear();
                    self.taken = 0;
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
