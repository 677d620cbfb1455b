//! The chunk of a column of byte arrays outside lists, or of a column of any type without a value, encoded from levels and
//! values that are at hand.
//!
//! The library's writer of arrays would find out the levels of each leaf anew, walk them value by value, and compare and
//! hash every value on its own. Here levels are bytes that are packed by runs, a value is hashed once, and only those
//! that a page has not had yet are compared. The pages are those that the library would write, byte for byte.

mod distinct;
mod extremes;
mod hybrid;
mod known;
mod lengths;
mod levels;
#[cfg(test)]
mod library;
mod values;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::Page;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnDescPtr;

use super::pages::{Compressor, Pages};
use extremes::Extremes;
use known::Known;
pub use levels::count;
use levels::encode;
pub use values::shared;
use values::{Values, is_known};

/// Whether the chunk of this column can be written here: byte arrays, not in lists, without a bloom filter. Definition
/// levels are counted in a byte.
pub fn may_write(column: &ColumnDescPtr, properties: &WriterProperties) -> bool {
    column.physical_type() == Type::BYTE_ARRAY
        && column.max_rep_level() == 0
        && column.max_def_level() < i16::from(u8::MAX)
        && properties.bloom_filter_properties(column.path()).is_none()
        && is_known(properties.encoding(column.path()))
}

/// What ends a page, and a dictionary.
struct Limits {
    page_rows: usize,
    page_bytes: usize,
    dictionary_bytes: usize,
    /// Rows between two looks at the others.
    step: usize,
}

pub struct ByteArrayColumn {
    column: ColumnDescPtr,
    limits: Limits,
    /// Of the page being built, if the column has any: the highest is above 0.
    levels: Vec<u8>,
    max_level: u8,
    values: Values,
    extremes: Extremes,
    /// Of the page being built.
    rows: usize,
    nulls: usize,
    /// Bytes of its first value that do not count: no page can do without.
    exempt: usize,
    known: Known,
    pages: Pages,
}

/// Values of some rows: what is at each of these places.
pub struct Given<'p, V> {
    pub places: &'p [usize],
    pub value: V,
    /// No fewer bytes than they have, with those of their lengths.
    pub most_bytes: usize,
    /// Whether rows that are all of one level are one step, up to a page.
    pub may_be_even: bool,
}

impl ByteArrayColumn {
    /// For columns that [`may_write`] names.
    pub fn new(column: &ColumnDescPtr, properties: &WriterProperties) -> Self {
        let path = column.path();
        let values = Values::new(properties.dictionary_enabled(path), properties.encoding(path));
        Self::of(column, properties, values)
    }

    /// For a chunk of a column of any type outside lists that has no value: its pages are levels and nothing else.
    pub fn without_values(column: &ColumnDescPtr, properties: &WriterProperties) -> Self {
        Self::of(column, properties, Values::new(false, None))
    }

    fn of(column: &ColumnDescPtr, properties: &WriterProperties, values: Values) -> Self {
        let path = column.path();
        let max_level = column.max_def_level() as u8;
        ByteArrayColumn {
            column: column.clone(),
            limits: Limits {
                page_rows: properties.data_page_row_count_limit(),
                page_bytes: properties.column_data_page_size_limit(path),
                dictionary_bytes: properties.column_dictionary_page_size_limit(path),
                step: properties.write_batch_size(),
            },
            levels: Vec::new(),
            max_level,
            values,
            extremes: Extremes::default(),
            rows: 0,
            nulls: 0,
            exempt: 0,
            known: Known::new(column, properties),
            pages: Pages::default(),
        }
    }

    /// Adds rows with these levels, or so many rows of a column without levels. The values are those of the rows with
    /// the highest level.
    pub fn write<'v, V: Fn(usize) -> &'v [u8]>(
        &mut self,
        levels: &[u8],
        values: &Given<V>,
        compressor: &mut Compressor,
    ) -> Result<()> {
        let has_levels = self.max_level > 0;
        let rows = if has_levels { levels.len() } else { values.places.len() };
        let is_even = values.may_be_even && has_levels && levels.iter().all(|level| Some(level) == levels.first());
        let step = if is_even { self.limits.page_rows } else { self.limits.step };
        let mut places = values.places;
        let mut at = 0;
        while at < rows {
            let end = rows.min(at.saturating_add(step));
            let levels = levels.get(at..end).unwrap_or(&[]);
            let found = if has_levels { count(levels, self.max_level) } else { end - at };
            let (here, rest) = places.split_at_checked(found).unwrap_or((places, &[]));
            self.write_step(end - at, levels, here, values, compressor)?;
            places = rest;
            at = end;
        }
        Ok(())
    }

    /// Rows that are one step, or several if their values may be more than the page or the dictionary has room for.
    fn write_step<'v, V: Fn(usize) -> &'v [u8]>(
        &mut self,
        rows: usize,
        levels: &[u8],
        places: &[usize],
        values: &Given<V>,
        compressor: &mut Compressor,
    ) -> Result<()> {
        let room = match self.values.dictionary_bytes() {
            Some(bytes) => self.limits.dictionary_bytes.saturating_sub(bytes),
            None => self.limits.page_bytes,
        };
        let fit = if values.most_bytes <= room { places.len() } else { fit(places, &values.value, room) };
        if fit >= places.len() {
            return self.put(rows, levels, places, &values.value, compressor);
        }
        // Values that share with the one before begin anew on each page: there the page is cut right behind the value
        // that fills it, elsewhere about there.
        let (exactly, has_levels) = (self.values.share(), self.max_level > 0);
        let about = (fit * rows).div_ceil(places.len()).max(1);
        let (mut at, mut places) = (0, places);
        while at < rows {
            let rest = levels.get(at..).unwrap_or(&[]);
            let taken = match (exactly, has_levels) {
                (true, true) => rows_of(rest, self.max_level, fit),
                (true, false) => fit,
                (false, _) => about,
            };
            let taken = taken.min(rows - at);
            let levels = rest.get(..taken).unwrap_or(&[]);
            let found = if has_levels { count(levels, self.max_level) } else { taken };
            let (here, rest) = places.split_at_checked(found).unwrap_or((places, &[]));
            self.put(taken, levels, here, &values.value, compressor)?;
            places = rest;
            at += taken;
        }
        Ok(())
    }

    fn put<'v>(
        &mut self,
        rows: usize,
        levels: &[u8],
        places: &[usize],
        value: &impl Fn(usize) -> &'v [u8],
        compressor: &mut Compressor,
    ) -> Result<()> {
        self.levels.extend_from_slice(levels);
        self.values.put(places.iter().map(|&place| value(place)), &mut self.extremes);
        let is_first = self.rows == 0;
        self.rows += rows;
        self.nulls += rows - places.len();
        if is_first && places.len() == 1 && self.values.share() {
            let bytes = self.values.page_bytes();
            self.exempt = if bytes >= self.limits.page_bytes { bytes } else { 0 };
        }
        let is_full = || self.values.page_bytes().saturating_sub(self.exempt) >= self.limits.page_bytes;
        if self.rows > 0 && (self.rows >= self.limits.page_rows || is_full()) {
            self.end_page(compressor)?;
        }
        if self.values.dictionary_bytes().is_some_and(|bytes| bytes >= self.limits.dictionary_bytes) {
            self.end_page(compressor)?;
            self.end_dictionary(compressor)?;
        }
        Ok(())
    }

    fn end_page(&mut self, compressor: &mut Compressor) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut body = std::mem::take(&mut compressor.plain);
        body.clear();
        let levels = match self.max_level {
            0 => Vec::new(),
            max => encode(&self.levels, max, &mut body),
        };
        self.levels.clear();
        let (encoding, plain_bytes) = self.values.take(&mut body);
        let page = Page::DataPage {
            buf: Bytes::new(),
            num_values: self.rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.pages.add_page(page, &body, compressor)?;
        compressor.plain = body;
        self.known.add(known::Page {
            rows: self.rows as i64,
            nulls: self.nulls as i64,
            plain_bytes,
            encoding,
            levels,
            extremes: std::mem::take(&mut self.extremes),
        });
        (self.rows, self.nulls, self.exempt) = (0, 0, 0);
        Ok(())
    }

    fn end_dictionary(&mut self, compressor: &mut Compressor) -> Result<()> {
        let Some(distinct) = self.values.end_dictionary() else { return Ok(()) };
        let (num_values, encoding) = (distinct.len() as u32, Encoding::PLAIN);
        let page = Page::DictionaryPage { buf: Bytes::new(), num_values, encoding, is_sorted: false };
        self.pages.add_page(page, distinct.page(), compressor)?;
        self.known.add_dictionary();
        Ok(())
    }

    /// Bytes of the chunk so far, about.
    pub fn bytes(&self) -> usize {
        self.pages.bytes() + self.values.page_bytes() + self.values.dictionary_bytes().unwrap_or(0)
    }

    /// Ends the chunk; what comes is the next one's.
    pub fn end_chunk(
        &mut self,
        properties: &WriterProperties,
        compression: Compression,
        compressor: &mut Compressor,
    ) -> Result<(Pages, ColumnCloseResult)> {
        self.end_page(compressor)?;
        self.end_dictionary(compressor)?;
        self.values.begin_chunk();
        let known = std::mem::replace(&mut self.known, Known::new(&self.column, properties));
        Ok((std::mem::take(&mut self.pages), known.close(&self.column, compression)?))
    }
}

/// How many of the values there is room for, at least one: that which goes beyond it is in.
fn fit<'v>(places: &[usize], value: &impl Fn(usize) -> &'v [u8], room: usize) -> usize {
    let mut bytes = 0_usize;
    let over = places.iter().position(|&place| {
        bytes = bytes.saturating_add(value(place).len() + size_of::<u32>());
        bytes > room
    });
    over.map_or(places.len(), |at| at + 1)
}

/// The rows up to the one with so many-th value.
fn rows_of(levels: &[u8], max: u8, values: usize) -> usize {
    let mut found = levels.iter().enumerate().filter(|&(_, &level)| level == max);
    found.nth(values.saturating_sub(1)).map_or(levels.len(), |(row, _)| row + 1)
}
