//! The page index, loaded for the row groups and leaf columns that something asks of, and for no other: a lookup
//! that reads two columns of one row group does not pay for where the pages of all others begin.

use std::ops::Range;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::page_index::index_reader::{decode_column_index, decode_offset_index};
use parquet::file::page_index::offset_index::OffsetIndexMetaData;

use crate::error::{Code, Error, Result};
use crate::parquet::file::FileReader;
use crate::parquet::footer;
use crate::parquet::guard::guard;
use crate::parquet::thrift::{ThriftKind, Walker};

/// Which of both indexes, of which leaf.
#[derive(Clone, Copy)]
struct Wanted {
    group: usize,
    leaf: usize,
    bounds: bool,
}

impl FileReader {
    /// Loads where the pages of some leaves begin in some row groups, in one request; with `bounds` also the bounds
    /// of those pages. What a file lacks stays absent.
    pub(crate) fn load_pages(&self, groups: &[usize], leaves: &[usize], bounds: bool) -> Result<()> {
        guard(self.name(), || {
            let mut wanted: Vec<Wanted> = Vec::new();
            let mut ranges: Vec<Range<u64>> = Vec::new();
            for &group in groups {
                let Some(meta) = self.metadata().row_groups().get(group) else { continue };
                for &leaf in leaves {
                    let (Some(column), Some(slot)) = (meta.columns().get(leaf), self.pages.slot(group, leaf)) else {
                        continue;
                    };
                    if slot.offsets.get().is_none() {
                        self.want(&mut wanted, &mut ranges, Wanted { group, leaf, bounds: false }, column)?;
                    }
                    if bounds && slot.columns.get().is_none() {
                        self.want(&mut wanted, &mut ranges, Wanted { group, leaf, bounds: true }, column)?;
                    }
                }
            }
            let bytes = self.fetch(&ranges)?;
            wanted.iter().zip(&bytes).try_for_each(|(wanted, bytes)| self.keep(*wanted, bytes))
        })
    }

    fn want(
        &self,
        wanted: &mut Vec<Wanted>,
        ranges: &mut Vec<Range<u64>>,
        what: Wanted,
        column: &ColumnChunkMetaData,
    ) -> Result<()> {
        let place = if what.bounds {
            column.column_index_offset().zip(column.column_index_length())
        } else {
            column.offset_index_offset().zip(column.offset_index_length())
        };
        let Some((offset, length)) = place else {
            if let Some(slot) = self.pages.slot(what.group, what.leaf) {
                slot.absent(what.bounds);
            }
            return Ok(());
        };
        let (Ok(start), Ok(length)) = (u64::try_from(offset), u64::try_from(length)) else {
            return Err(self.impossible(what, column));
        };
        ranges.push(start..start.saturating_add(length));
        wanted.push(what);
        Ok(())
    }

    fn keep(&self, wanted: Wanted, bytes: &Bytes) -> Result<()> {
        let Some(slot) = self.pages.slot(wanted.group, wanted.leaf) else { return Ok(()) };
        let Some(group) = self.metadata().row_groups().get(wanted.group) else { return Ok(()) };
        let Some(column) = group.columns().get(wanted.leaf) else { return Ok(()) };
        let corrupt = |e: ParquetError| footer::corrupt(self.source(), &e);
        if Walker::new(bytes).skip(ThriftKind::Struct).is_none() {
            return Err(self.impossible(wanted, column));
        }
        if wanted.bounds {
            let index = decode_column_index(bytes, column.column_type()).map_err(corrupt)?;
            slot.columns.get_or_init(|| Some(Box::new(index)));
            return Ok(());
        }
        let index = decode_offset_index(bytes).map_err(corrupt)?;
        if !possible(&index, column, group) {
            return Err(self.impossible(wanted, column));
        }
        slot.offsets.get_or_init(|| Some(Box::new(index)));
        Ok(())
    }

    fn impossible(&self, wanted: Wanted, column: &ColumnChunkMetaData) -> Error {
        let path = column.column_path().string();
        Error::new(
            Code::CorruptFile,
            format!(
                "the page index of {}: column {path} of row group {} has impossible pages",
                self.name(),
                wanted.group
            ),
        )
        .path(path)
    }
}

/// Pages lie in their column's part of the file, and their rows rise from 0.
fn possible(index: &OffsetIndexMetaData, column: &ColumnChunkMetaData, group: &RowGroupMetaData) -> bool {
    let (start, len) = column.byte_range();
    let pages = index.page_locations();
    let inside = pages.iter().all(|p| {
        let begin = u64::try_from(p.offset).unwrap_or(u64::MAX);
        let size = u64::try_from(p.compressed_page_size).unwrap_or(u64::MAX);
        begin >= start && begin.saturating_add(size) <= start.saturating_add(len)
    });
    let first = pages.first().map_or(0, |p| p.first_row_index);
    let rising = pages.windows(2).all(|p| p[0].first_row_index <= p[1].first_row_index);
    let last = pages.last().map_or(-1, |p| p.first_row_index);
    inside && rising && first == 0 && last < group.num_rows().max(1)
}
