//! Texts of a column whose pages are all codes of a dictionary, written out row by row where all rows of a row group are read
//! and levels do not repeat. The library copies each by a call; here a short text is a piece of a fixed size, of which the
//! next text overwrites what is too much. A page that is plain, whatever the footer says of it, is read too.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::PageReader;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;

use crate::parquet::coded::is_coded;
use crate::parquet::hybrid::Codes;
use crate::parquet::leaf_pages::{LeafColumn, LeafPages, Opened, damaged, no_values, unstated};

/// Bytes of a text on average: longer ones wait for memory, whoever copies them.
const LONG: i64 = 24;

/// Rows whose codes are read together, so that they stay in the cache.
const SOME_ROWS: usize = 512;

/// What a batch's texts are given room for at once, at most.
const ROOM: usize = 16 << 20;

/// A column of a row group.
pub struct TextColumn {
    pages: LeafPages,
    /// Bytes a row, by the footer.
    bytes_a_row: f64,
    dictionary: Dictionary,
    stored: Stored,
}

/// How the texts of a page are stored; a page of nulls may have none.
enum Stored {
    None,
    Codes(Codes),
    /// Each behind its length, the next at this byte.
    Plain(usize),
}

impl TextColumn {
    /// Whether the column is read here as an array of this type.
    pub fn reads(column: &ColumnChunkMetaData, data_type: &DataType) -> bool {
        let most = LONG.saturating_mul(column.num_values());
        let short = column.unencoded_byte_array_data_bytes().is_none_or(|bytes| bytes <= most);
        short && data_type == &DataType::Utf8 && is_coded(column)
    }

    /// A column that `reads` accepts.
    pub fn new(pages: Box<dyn PageReader>, column: &ColumnChunkMetaData) -> Self {
        let bytes = column.unencoded_byte_array_data_bytes().unwrap_or(0).max(0);
        TextColumn {
            pages: LeafPages::new(pages, column.column_descr().max_def_level()),
            bytes_a_row: bytes as f64 / column.num_values().max(1) as f64,
            dictionary: Dictionary::Short(Vec::new()),
            stored: Stored::None,
        }
    }

    fn open(&mut self, page: Opened) -> ParquetResult<()> {
        self.stored = match page {
            Opened::Dictionary(page, count) => {
                let dictionary = Dictionary::of(page, count);
                self.dictionary = dictionary.ok_or_else(|| damaged("a dictionary has fewer values than it states"))?;
                return Ok(());
            }
            Opened::Values(Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, at) => {
                Codes::open(&self.pages.page, at).map_or(Stored::None, Stored::Codes)
            }
            Opened::Values(Encoding::PLAIN, at) => Stored::Plain(at),
            Opened::Values(encoding, _) => return Err(unstated(encoding)),
        };
        Ok(())
    }
}

impl LeafColumn for TextColumn {
    fn has_rows(&mut self) -> ParquetResult<bool> {
        while self.pages.left() == 0 {
            let Some(page) = self.pages.open()? else { return Ok(false) };
            self.open(page)?;
        }
        Ok(true)
    }

    fn next(&mut self, rows: usize) -> ParquetResult<ArrayRef> {
        let mut out = Written::new(rows, ((rows as f64 * self.bytes_a_row) as usize).min(ROOM));
        let has_levels = self.pages.has_levels();
        let mut nulls = BooleanBufferBuilder::new(if has_levels { rows } else { 0 });
        let (mut done, mut codes) = (0, Vec::with_capacity(SOME_ROWS));
        while done < rows && self.has_rows()? {
            let some = self.pages.left().min(rows - done).min(SOME_ROWS);
            let there = self.pages.take(some)?;
            if let Some(bits) = &there {
                nulls.append_buffer(bits);
            }
            let texts = there.as_ref().map_or(some, BooleanBuffer::count_set_bits);
            let page = &self.pages.page;
            match &mut self.stored {
                Stored::Codes(read) => {
                    codes.clear();
                    let read = read.take(page, texts, &mut codes);
                    let mut rest = codes.as_slice();
                    read.and_then(|()| {
                        out.append(some, there.as_ref(), |out, count| {
                            let (now, later) = rest.split_at_checked(count)?;
                            rest = later;
                            out.texts(&self.dictionary, now)
                        })
                    })
                }
                Stored::Plain(at) => out.append(some, there.as_ref(), |out, count| out.plain(page, at, count)),
                Stored::None => out.append(some, there.as_ref(), |_, count| (count == 0).then_some(())),
            }
            .ok_or_else(no_values)?;
            done += some;
        }
        let nulls = has_levels.then(|| NullBuffer::new(nulls.build()));
        out.finish(nulls.filter(|nulls| nulls.null_count() > 0))
    }
}

/// The texts of a dictionary.
enum Dictionary {
    /// No text is longer than a piece.
    Short(Vec<Piece<16>>),
    Middle(Vec<Piece<32>>),
    Long(Vec<Range<usize>>, Bytes),
}

#[derive(Clone, Copy)]
struct Piece<const N: usize> {
    bytes: [u8; N],
    length: u8,
}

impl<const N: usize> Piece<N> {
    fn of(text: &[u8]) -> Self {
        let (mut bytes, length) = ([0; N], text.len().min(N));
        bytes[..length].copy_from_slice(&text[..length]);
        Piece { bytes, length: length as u8 }
    }
}

impl Dictionary {
    /// The texts of a page, each behind its length; `None` where there are fewer.
    fn of(page: Bytes, count: usize) -> Option<Self> {
        let mut at = 0;
        let texts = (0..count).map_while(|_| plain_text(&page, &mut at)).collect::<Vec<_>>();
        Some(match texts.iter().map(Range::len).max().unwrap_or(0) {
            _ if texts.len() < count => return None,
            0..=16 => Dictionary::Short(texts.into_iter().map(|text| Piece::of(&page[text])).collect()),
            17..=32 => Dictionary::Middle(texts.into_iter().map(|text| Piece::of(&page[text])).collect()),
            _ => Dictionary::Long(texts, page),
        })
    }
}

/// Where the text is whose length stands at this byte, which becomes the one behind it.
fn plain_text(page: &[u8], at: &mut usize) -> Option<Range<usize>> {
    let (length, rest) = page.get(*at..)?.split_first_chunk()?;
    let text = rest.get(..u32::from_le_bytes(*length) as usize)?;
    let start = *at + length.len();
    *at = start + text.len();
    Some(start..*at)
}

/// Texts of a batch.
struct Written {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Written {
    fn new(rows: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Written { offsets, bytes: Vec::with_capacity(bytes + 32 * SOME_ROWS) }
    }

    /// Appends so many rows: `next` appends the texts of those that have one.
    fn append(
        &mut self,
        rows: usize,
        there: Option<&BooleanBuffer>,
        mut next: impl FnMut(&mut Self, usize) -> Option<()>,
    ) -> Option<()> {
        let Some(there) = there.filter(|there| there.has_false()) else { return next(self, rows) };
        let mut row = 0;
        for (start, end) in there.set_slices() {
            self.nulls(start - row);
            next(self, end - start)?;
            row = end;
        }
        self.nulls(rows - row);
        Some(())
    }

    fn nulls(&mut self, count: usize) {
        let end = self.offsets.last().copied().unwrap_or(0);
        self.offsets.resize(self.offsets.len() + count, end);
    }

    fn texts(&mut self, dictionary: &Dictionary, codes: &[u32]) -> Option<()> {
        match dictionary {
            Dictionary::Short(texts) => self.pieces(texts, codes),
            Dictionary::Middle(texts) => self.pieces(texts, codes),
            Dictionary::Long(texts, page) => codes.iter().try_for_each(|&code| {
                self.text(page.get(texts.get(code as usize)?.clone())?);
                Some(())
            }),
        }
    }

    /// The texts from this byte on, each behind its length.
    fn plain(&mut self, page: &[u8], at: &mut usize, count: usize) -> Option<()> {
        for _ in 0..count {
            self.text(page.get(plain_text(page, at)?)?);
        }
        Some(())
    }

    fn text(&mut self, text: &[u8]) {
        // What is beyond Arrow's offsets is refused at the end.
        if self.bytes.len() <= i32::MAX as usize {
            self.bytes.extend_from_slice(text);
        }
        self.offsets.push(self.bytes.len() as i32);
    }

    fn pieces<const N: usize>(&mut self, texts: &[Piece<N>], codes: &[u32]) -> Option<()> {
        let (first, mut end) = (self.offsets.len(), self.bytes.len());
        self.offsets.resize(first + codes.len(), 0);
        self.bytes.resize(end + N * codes.len(), 0);
        let bytes = self.bytes.as_mut_slice();
        for (offset, &code) in self.offsets.get_mut(first..)?.iter_mut().zip(codes) {
            let text = texts.get(code as usize)?;
            *bytes.get_mut(end..)?.first_chunk_mut()? = text.bytes;
            end += usize::from(text.length);
            *offset = end as i32;
        }
        self.bytes.truncate(end);
        Some(())
    }

    fn finish(self, nulls: Option<NullBuffer>) -> ParquetResult<ArrayRef> {
        if i32::try_from(self.bytes.len()).is_err() {
            return Err(damaged("the offsets of a batch overflow"));
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Ok(Arc::new(StringArray::try_new(offsets, Buffer::from_vec(self.bytes), nulls)?))
    }
}
