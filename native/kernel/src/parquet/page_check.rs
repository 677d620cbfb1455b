//! Pages, held against the footer and the page index before the Parquet library reads them: it allocates by the counts
//! that they state, believes the index, and goes on for ever where levels are fewer than promised.
//!
//! Headers alone are walked, but for pages with repetition levels and for those whose values begin with a count: of
//! these the begin is decompressed. Where the kernel decompresses pages itself (`unpacked`) and no levels repeat, the
//! count is looked at then ([`unpacked::counted`]).

use std::borrow::Cow;
use std::io::{Read, Take};
use std::ops::Range;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type as PhysicalType};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::page_index::offset_index::PageLocation;

use crate::error::{Code, Error, Result};
use crate::parquet::bits::{unsigned, width};
use crate::parquet::file::FileReader;
use crate::parquet::page_header::{PageHeader, PageKind, page_header};
use crate::parquet::parts::Part;
use crate::parquet::unpacked::{self, COUNTED, MAX_PAGE_BYTES, decompress, too_many};
use crate::parquet::unzstd::Lent;

/// What is wrong with a page, or that it is too large, or encoded as mica does not read it.
enum Wrong {
    Broken(String),
    TooLarge(usize),
    OldLevels(u64),
}

impl From<String> for Wrong {
    fn from(text: String) -> Self {
        Wrong::Broken(text)
    }
}

impl FileReader {
    /// Fetches ranges of bytes of a row group, and checks the pages in them, which are those of the leaf at the same
    /// place.
    pub(crate) fn fetch_pages(&self, group: usize, leaves: &[usize], ranges: &[Range<u64>]) -> Result<Vec<Part>> {
        let bytes = self.fetch(ranges)?;
        let meta = self.metadata().row_groups().get(group);
        let mut parts = Vec::with_capacity(ranges.len());
        for ((&leaf, range), bytes) in leaves.iter().zip(ranges).zip(bytes) {
            let mut part = Part { start: range.start, bytes, stated: Vec::new() };
            if let Some((meta, column)) = meta.and_then(|meta| Some((meta, meta.columns().get(leaf)?))) {
                let locations = self.pages.offset_index(group, leaf).map(|index| index.page_locations());
                let pages = Pages { column, rows: meta.num_rows(), locations: locations.map_or(&[], |l| l) };
                pages.check(&mut part).map_err(|wrong| self.wrong(group, column, wrong))?;
            }
            parts.push(part);
        }
        Ok(parts)
    }

    fn wrong(&self, group: usize, column: &ColumnChunkMetaData, wrong: Wrong) -> Error {
        let path = column.column_path().string();
        let place = format!("{}: row group {group}, column {path}", self.name());
        match wrong {
            Wrong::Broken(text) => Error::new(Code::CorruptFile, format!("{place} cannot be decoded: {text}")),
            Wrong::TooLarge(bytes) => Error::new(
                Code::TooLarge,
                format!(
                    "{place} has a page of {bytes} bytes, more than the {MAX_PAGE_BYTES} that mica decompresses at once"
                ),
            ),
            Wrong::OldLevels(offset) => Error::new(
                Code::UnsupportedType,
                format!(
                    "{place} has a page at byte {offset} whose levels are not encoded as RLE: mica does not read the \
                     deprecated BIT_PACKED"
                ),
            ),
        }
        .path(path)
    }
}

/// The pages of one column chunk.
struct Pages<'a> {
    column: &'a ColumnChunkMetaData,
    /// Of the row group.
    rows: i64,
    locations: &'a [PageLocation],
}

impl Pages<'_> {
    /// Checks the pages of a part, and notes there how long they say they are.
    fn check(&self, part: &mut Part) -> std::result::Result<(), Wrong> {
        let Part { start: first, bytes, stated } = part;
        let whole = (*first, bytes.len() as u64) == self.column.byte_range();
        let is_here = unpacked::is_here(self.column.compression());
        let promised = u64::try_from(self.column.num_values()).unwrap_or(0);
        let (mut at, mut values, mut rows) = (0, 0u64, 0u64);
        // What stands behind the last value is nobody's.
        while at < bytes.len() && !(whole && values >= promised) {
            let page = bytes.slice(at..);
            let offset = *first + at as u64;
            let header =
                page_header(&page).ok_or_else(|| format!("the page at byte {offset} has an invalid header"))?;
            if header.uncompressed > MAX_PAGE_BYTES {
                return Err(Wrong::TooLarge(header.uncompressed));
            }
            if is_here {
                stated.push((at + header.length, header.uncompressed));
            }
            let size = header.length + header.compressed;
            match header.kind {
                PageKind::Index => {}
                PageKind::Dictionary => self.dictionary(&header, offset)?,
                PageKind::Data | PageKind::DataV2 { .. } => {
                    let found = self.data(&header, &page, offset)?;
                    self.place(offset, size, found)?;
                    values = values.saturating_add(header.values);
                    rows = rows.saturating_add(found);
                }
            }
            at += size;
        }
        if whole && !(values == promised && i64::try_from(rows) == Ok(self.rows)) {
            let text = format!(
                "its pages have {values} values of {rows} rows, but the footer states {promised} of {}",
                self.rows
            );
            return Err(text.into());
        }
        Ok(())
    }

    /// A dictionary's values take their bits.
    fn dictionary(&self, header: &PageHeader, offset: u64) -> std::result::Result<(), Wrong> {
        let least = match self.column.column_type() {
            PhysicalType::BOOLEAN => 1,
            PhysicalType::INT32 | PhysicalType::FLOAT | PhysicalType::BYTE_ARRAY => 32,
            PhysicalType::INT64 | PhysicalType::DOUBLE => 64,
            PhysicalType::INT96 => 96,
            PhysicalType::FIXED_LEN_BYTE_ARRAY => 8 * self.column.column_descr().type_length().max(0) as u64,
        };
        if header.values.saturating_mul(least) > 8 * header.uncompressed as u64 {
            let text = format!(
                "the dictionary at byte {offset} states {} values in {} bytes",
                header.values, header.uncompressed
            );
            return Err(text.into());
        }
        Ok(())
    }

    /// The rows that begin in a data page.
    fn data(&self, header: &PageHeader, page: &Bytes, offset: u64) -> std::result::Result<u64, Wrong> {
        let descriptor = self.column.column_descr();
        let repeats = descriptor.max_rep_level() > 0;
        // Levels of BIT_PACKED have their highest bit first, which the library does not know.
        let highest = [descriptor.max_def_level(), descriptor.max_rep_level()];
        let is_old =
            |(highest, said): (i16, Option<i32>)| highest > 0 && said.is_some_and(|e| e != Encoding::RLE as i32);
        if highest.into_iter().zip(header.level_encodings).any(is_old) {
            return Err(Wrong::OldLevels(offset));
        }
        let later = !repeats && unpacked::is_here(self.column.compression());
        let counted = COUNTED.contains(&header.encoding) && !later;
        if !repeats && !counted {
            return self.agree(header, header.values, offset);
        }
        let broken = || format!("the page at byte {offset} has less data than it states");
        let stored = page.get(header.length..header.length + header.compressed).unwrap_or(&[]);
        if header.crc.is_some_and(|crc| crc != crc32fast::hash(stored)) {
            return Err(format!("Page CRC checksum mismatch at byte {offset}").into());
        }
        let mut body = Body::open(self.column, header, page).ok_or_else(broken)?;
        let mut rows = header.values;
        if repeats {
            let levels = body.levels(match header.kind {
                PageKind::DataV2 { repetition_bytes, .. } => Some(repetition_bytes as usize),
                _ => None,
            });
            rows = zeros(&levels.ok_or_else(broken)?, descriptor.max_rep_level(), header.values).ok_or_else(broken)?;
        }
        if counted {
            if descriptor.max_def_level() > 0 {
                body.levels(match header.kind {
                    PageKind::DataV2 { definition_bytes, .. } => Some(definition_bytes as usize),
                    _ => None,
                })
                .ok_or_else(broken)?;
            }
            if too_many(&body.values(30).ok_or_else(broken)?, header.values) {
                return Err(broken().into());
            }
        }
        self.agree(header, rows, offset)
    }

    fn agree(&self, header: &PageHeader, rows: u64, offset: u64) -> std::result::Result<u64, Wrong> {
        match header.kind {
            PageKind::DataV2 { rows: stated, .. } if u64::try_from(stated) != Ok(rows) => {
                Err(format!("the page at byte {offset} states {stated} rows, but has {rows}").into())
            }
            _ => Ok(rows),
        }
    }

    /// Whether the page index says the same of the page.
    fn place(&self, offset: u64, size: usize, rows: u64) -> std::result::Result<(), Wrong> {
        if self.locations.is_empty() {
            return Ok(());
        }
        let found = self.locations.binary_search_by_key(&(offset as i64), |location| location.offset);
        let holds = found.is_ok_and(|at| {
            let location = &self.locations[at];
            let end = self.locations.get(at + 1).map_or(self.rows, |next| next.first_row_index);
            location.compressed_page_size as usize == size
                && u64::try_from(end.saturating_sub(location.first_row_index)) == Ok(rows)
        });
        if holds { Ok(()) } else { Err(format!("the page index lacks the page at byte {offset}").into()) }
    }
}

/// The bytes of a data page, decompressed as far as they are asked for.
enum Body<'a> {
    /// Version 2: levels are not compressed; with the codec of the values.
    Split {
        levels: &'a [u8],
        values: Option<Box<Body<'a>>>,
    },
    Whole {
        bytes: Cow<'a, [u8]>,
        at: usize,
    },
    /// No more of it than it states.
    Zstd(Take<zstd::stream::zio::Reader<&'a [u8], Lent>>),
}

impl<'a> Body<'a> {
    fn open(column: &ColumnChunkMetaData, header: &PageHeader, page: &'a Bytes) -> Option<Self> {
        let bytes = page.get(header.length..header.length + header.compressed)?;
        if let PageKind::DataV2 { compressed, .. } = header.kind {
            let (levels, values) = bytes.split_at_checked(header.levels())?;
            let values = match column.compression() {
                _ if values.is_empty() => None,
                Compression::ZSTD(_) if compressed => Some(Self::zstd(values, header)?),
                Compression::UNCOMPRESSED => Some(Body::Whole { bytes: values.into(), at: 0 }),
                _ if !compressed => Some(Body::Whole { bytes: values.into(), at: 0 }),
                _ => {
                    let all = decompress(column, header, page)?;
                    Some(Body::Whole { bytes: all.get(levels.len()..)?.to_vec().into(), at: 0 })
                }
            };
            return Some(Body::Split { levels, values: values.map(Box::new) });
        }
        match column.compression() {
            Compression::UNCOMPRESSED => Some(Body::Whole { bytes: bytes.into(), at: 0 }),
            Compression::ZSTD(_) => Self::zstd(bytes, header),
            _ => Some(Body::Whole { bytes: decompress(column, header, page)?.to_vec().into(), at: 0 }),
        }
    }

    fn zstd(bytes: &'a [u8], header: &PageHeader) -> Option<Self> {
        let reader = zstd::stream::zio::Reader::new(bytes, Lent::new().ok()?);
        Some(Body::Zstd(reader.take(header.uncompressed as u64)))
    }

    /// The next bytes, fewer where there are no more.
    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        match self {
            Body::Split { .. } => None,
            Body::Whole { bytes, at } => {
                let rest = bytes.get(*at..)?;
                let taken = rest.get(..count).unwrap_or(rest).to_vec();
                *at += taken.len();
                Some(taken)
            }
            Body::Zstd(decoder) => {
                let mut taken = Vec::new();
                decoder.by_ref().take(count as u64).read_to_end(&mut taken).ok()?;
                Some(taken)
            }
        }
    }

    /// The next levels: of a known length, or behind it.
    fn levels(&mut self, length: Option<usize>) -> Option<Vec<u8>> {
        if let (Body::Split { levels, .. }, Some(length)) = (&mut *self, length) {
            let (taken, rest) = levels.split_at_checked(length)?;
            *levels = rest;
            return Some(taken.to_vec());
        }
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?) as usize;
        self.take(length).filter(|levels| levels.len() == length)
    }

    /// The begin of the values.
    fn values(&mut self, count: usize) -> Option<Vec<u8>> {
        match self {
            Body::Split { values: None, .. } => Some(Vec::new()),
            Body::Split { values: Some(values), .. } => values.take(count),
            other => other.take(count),
        }
    }
}

/// How many of the first `count` levels are 0; `None` where there are fewer, or some beyond the highest (Parquet, "Run
/// Length Encoding / Bit-Packing Hybrid").
fn zeros(mut bytes: &[u8], highest: i16, count: u64) -> Option<u64> {
    let width = width(highest as usize);
    let (mut left, mut zeros) = (count, 0);
    while left > 0 {
        let (rest, header) = unsigned(bytes)?;
        bytes = rest;
        let length = header >> 1;
        if length == 0 {
            return None;
        }
        if header & 1 == 0 {
            let (level, rest) = bytes.split_at_checked(width.div_ceil(8))?;
            bytes = rest;
            let taken = length.min(left);
            if level.iter().all(|&byte| byte == 0) {
                zeros += taken;
            }
            left -= taken;
            continue;
        }
        let groups = length.min(left.div_ceil(8));
        let (packed, rest) = bytes.split_at_checked(usize::try_from(groups).ok()?.checked_mul(width)?)?;
        bytes = usize::try_from(length - groups).ok()?.checked_mul(width).and_then(|n| rest.get(n..)).unwrap_or(&[]);
        for group in packed.chunks_exact(width) {
            let valid = left.min(8) as usize;
            zeros += packed_zeros(group, width, valid);
            left -= valid as u64;
        }
    }
    Some(zeros)
}

/// Of the first `valid` of eight packed levels, those that are 0.
fn packed_zeros(group: &[u8], width: usize, valid: usize) -> u64 {
    if let (1, &[byte]) = (width, group) {
        return u64::from((!byte & (0xffu16 >> (8 - valid)) as u8).count_ones());
    }
    let bit = |at: usize| group.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
    (0..valid).filter(|level| !(level * width..(level + 1) * width).any(bit)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_counted_in_runs_and_in_packed_levels() {
        // Five 0s, then eight packed bits 1 0 1 1 0 0 0 1, of which six count.
        assert_eq!(zeros(&[5 << 1, 0, 3, 0b1000_1101], 1, 11), Some(5 + 3));
        // Two bits a level: 0 1 2 3 0 0 0 0.
        assert_eq!(zeros(&[3, 0b1110_0100, 0], 2, 8), Some(5));
        assert_eq!(zeros(&[3, 0b1110_0100], 2, 8), None);
        assert_eq!(zeros(&[5 << 1, 0], 1, 6), None);
        assert_eq!(zeros(&[0, 0], 1, 1), None);
    }
}
