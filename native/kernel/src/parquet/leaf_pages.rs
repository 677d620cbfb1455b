//! The pages of a leaf column whose levels do not repeat, one after the other: where the values of a page begin, how they are
//! encoded, and which of its rows have one.

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};

use crate::parquet::hybrid::Bits;
use crate::parquet::one_bit::one_bit;

/// A column that is decoded here, not by the library: all rows of a row group.
pub trait LeafColumn: Send {
    /// Whether there are more rows.
    fn has_rows(&mut self) -> ParquetResult<bool>;

    /// The next rows: fewer than these only where the column ends.
    fn next(&mut self, rows: usize) -> ParquetResult<ArrayRef>;
}

pub struct LeafPages {
    pages: Box<dyn PageReader>,
    /// The definition level of values.
    highest: i16,
    /// The page that is read, and how many of its rows are left.
    pub page: Bytes,
    levels: Bits,
    left: usize,
}

/// What a page has.
pub enum Opened {
    /// A dictionary of so many values.
    Dictionary(Bytes, usize),
    /// Values, which begin at this byte of `page`.
    Values(Encoding, usize),
}

impl LeafPages {
    pub fn new(pages: Box<dyn PageReader>, highest: i16) -> Self {
        LeafPages { pages, highest, page: Bytes::new(), levels: Bits::new(0..0), left: 0 }
    }

    pub fn has_levels(&self) -> bool {
        self.highest > 0
    }

    /// Rows of the page that are left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Which of the page's next rows have a value: all without levels.
    pub fn take(&mut self, rows: usize) -> ParquetResult<Option<BooleanBuffer>> {
        self.left = self.left.saturating_sub(rows);
        if !self.has_levels() {
            return Ok(None);
        }
        self.levels.take(&self.page, rows).ok_or_else(no_levels).map(Some)
    }

    /// Opens the next page; `None` after the last.
    pub fn open(&mut self) -> ParquetResult<Option<Opened>> {
        let Some(page) = self.pages.get_next_page()? else { return Ok(None) };
        let page = if self.highest > 1 { one_bit(page, self.highest)? } else { page };
        let (page, rows, encoding, levels) = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                return Ok(Some(Opened::Dictionary(buf, num_values as usize)));
            }
            // Levels of version 1 stand behind their length.
            Page::DataPage { buf, num_values, encoding, .. } if self.highest > 0 => {
                let length = buf.first_chunk().map(|length| u32::from_le_bytes(*length)).ok_or_else(no_levels)?;
                (buf, num_values, encoding, 4..4 + length as usize)
            }
            Page::DataPage { buf, num_values, encoding, .. } => (buf, num_values, encoding, 0..0),
            Page::DataPageV2 { buf, num_values, encoding, rep_levels_byte_len, def_levels_byte_len, .. } => {
                let start = rep_levels_byte_len as usize;
                (buf, num_values, encoding, start..start + def_levels_byte_len as usize)
            }
        };
        let values = levels.end;
        self.levels = Bits::new(levels);
        self.page = page;
        self.left = rows as usize;
        Ok(Some(Opened::Values(encoding, values)))
    }
}

fn no_levels() -> ParquetError {
    damaged("the definition levels of a page are damaged, or fewer than it states")
}

pub fn no_values() -> ParquetError {
    damaged("a page has fewer values than it states, or codes that its dictionary lacks")
}

pub fn unstated(encoding: Encoding) -> ParquetError {
    damaged(&format!("a page is encoded as {encoding}, which its column chunk does not state"))
}

pub fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.into())
}
