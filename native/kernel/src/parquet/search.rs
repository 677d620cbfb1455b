//! Where a column of texts may hold one of some values, by the bytes of its pages: a page that holds the bytes of none is
//! not decoded, and of its rows no other column is read.
//!
//! - A dictionary and plain pages hold each text whole, behind its length; pages of `DELTA_LENGTH_BYTE_ARRAY` hold it whole.
//! - In pages of `DELTA_BYTE_ARRAY` (Parquet, "Delta Strings") a text lacks what it shares with the one before. Of the
//!   texts of a page that begin with the value, the first shares less than all of the value. So what the value has beyond
//!   the longest shorter prefix of the page is held there.
//! - What the residual of a path holds (rule 41) is told by the heads of its values: as a text, only an object begins with
//!   `{`, only an array with `[`, and a Variant null is no text.
//!
//! Whatever is strange may hold everything: who decodes it says what is wrong. A slow source is not searched, because what
//! is decoded is fetched again.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use bytes::Bytes;
use memchr::memmem::{Finder, find};
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;

use crate::codec::head::{length, scalar};
use crate::error::Result;
use crate::item::{Item, ItemKind, Target};
use crate::parquet::bloom::stored;
use crate::parquet::chunks::Needed;
use crate::parquet::coded::all_coded;
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;
use crate::parquet::packed::numbers;
use crate::parquet::page_header::{PageHeader, PageKind, page_header};
use crate::parquet::parts::Part;
use crate::parquet::projection::all_null;
use crate::parquet::resolve::{Resolved, resolve};
use crate::parquet::rows::{self, Rows};
use crate::parquet::unpacked::{decompress, too_many};
use crate::tape::Scalar;

/// More values are not looked for.
const MOST_VALUES: usize = 8;
/// If so many pages held one of the values, and at least half of all that were looked at, no more is looked at.
const HELD_ENOUGH: usize = 2;

/// Values that are looked for in one file after another.
pub struct Search {
    values: ArrayRef,
    /// Pages and dictionaries that were looked at, and those that may hold a value.
    asked: usize,
    held: usize,
}

impl Search {
    pub fn new(values: ArrayRef) -> Self {
        Search { values, asked: 0, held: 0 }
    }

    fn is_vain(&self) -> bool {
        self.held >= HELD_ENOUGH && self.held * 2 >= self.asked
    }

    fn count(&mut self, held: bool) -> bool {
        self.asked += 1;
        self.held += usize::from(held);
        held
    }
}

/// A value, as it is and behind its length.
struct Text {
    bytes: Vec<u8>,
    plain: Finder<'static>,
}

impl FileReader {
    /// Those of the rows in which `leaf` may equal one of the values, but for those that a search cannot spare.
    pub fn search(&self, leaf: &Item, search: &mut Search, within: &Rows) -> Result<Rows> {
        guard(self.name(), || {
            let resolved = resolve(self, leaf)?;
            let texts = self.texts(leaf, &resolved, &search.values).filter(|_| !self.plans());
            let Some((column, texts)) = texts else { return Ok(within.clone()) };
            let mut found = Rows::new();
            for (index, group) in self.metadata().row_groups().iter().enumerate() {
                let first = self.first_row(index);
                let own = rows::clip(within, first, first + group.num_rows().max(0) as u64);
                if own.is_empty() {
                    continue;
                }
                let mut left = match leaf.untyped_in.contains(&index) {
                    true => Rows::new(),
                    false if search.is_vain() => own.clone(),
                    false => self.pages_that_may_hold(index, column, &own, &texts, search)?,
                };
                for &residual in resolved.residuals.iter().filter(|&&residual| !all_null(group, residual)) {
                    if left != own && self.residual_may_hold(index, residual, &own, &texts)? {
                        left.clone_from(&own);
                    }
                }
                left.into_iter().for_each(|range| rows::push(&mut found, range));
            }
            Ok(found)
        })
    }

    /// The leaf column that can be searched, and for what.
    fn texts(&self, leaf: &Item, resolved: &Resolved, values: &ArrayRef) -> Option<(usize, Vec<Text>)> {
        let as_text = match &leaf.kind {
            ItemKind::Path { target, .. } => target == &Target::Type(DataType::Utf8),
            ItemKind::Whole => true,
            _ => false,
        };
        let column =
            resolved.typed.filter(|_| as_text && !resolved.opaque && !resolved.nulls_only && !resolved.early)?;
        let descriptor = self.metadata().file_metadata().schema_descr().column(column);
        if resolved.data_type != DataType::Utf8 || descriptor.max_rep_level() > 0 || resolved.residuals.len() > 1 {
            return None;
        }
        let stored = stored(values, &resolved.data_type, descriptor.physical_type())?;
        let short = stored.len() <= MOST_VALUES && stored.iter().all(|text| !text.is_empty());
        let text = |bytes: Vec<u8>| {
            let length = u32::try_from(bytes.len()).ok()?;
            let plain = Finder::new(&[&length.to_le_bytes()[..], &bytes].concat()).into_owned();
            Some(Text { bytes, plain })
        };
        let texts = stored.into_iter().map(text).collect::<Option<Vec<_>>>().filter(|_| short)?;
        (descriptor.physical_type() == PhysicalType::BYTE_ARRAY).then_some((column, texts))
    }

    /// The rows of `own` in pages that may hold one of the texts.
    fn pages_that_may_hold(
        &self,
        group: usize,
        leaf: usize,
        own: &Rows,
        texts: &[Text],
        search: &mut Search,
    ) -> Result<Rows> {
        let Some(chunk) = self.chunk(group, leaf) else { return Ok(own.clone()) };
        let (start, _) = chunk.column.byte_range();
        let dictionary = start..u64::try_from(chunk.column.data_page_offset()).unwrap_or(start);
        let coded =
            all_coded(chunk.column) && chunk.column.dictionary_page_offset().is_some() && !dictionary.is_empty();
        let ranges = if coded { vec![dictionary] } else { self.needed_part(group, leaf, own)?.ranges };
        let parts = self.fetch_pages(group, &vec![leaf; ranges.len()], &ranges)?;
        let (mut left, mut in_dictionary, mut next) = (Rows::new(), true, 0);
        for page in parts.iter().flat_map(|part| chunk.pages(part)) {
            let Some(page) = page else { return Ok(own.clone()) };
            let held = match page.header.kind {
                PageKind::Index => continue,
                _ if search.is_vain() => true,
                PageKind::Data | PageKind::DataV2 { .. } if is_coded(&page.header) => in_dictionary,
                _ => search.count(page.may_hold(chunk.column, texts)),
            };
            if page.header.kind == PageKind::Dictionary {
                in_dictionary = held;
                continue;
            }
            let first = page.first_row.unwrap_or(next);
            next = first.saturating_add(page.header.values);
            if held {
                let first = self.first_row(group).saturating_add(first);
                let rows = rows::clip(own, first, first.saturating_add(page.header.values));
                rows.into_iter().for_each(|range| rows::push(&mut left, range));
            }
        }
        Ok(match (coded, in_dictionary) {
            (true, true) => own.clone(),
            (true, false) => Rows::new(),
            (false, _) => left,
        })
    }

    /// Whether one of the residuals of these rows may equal one of the texts.
    fn residual_may_hold(&self, group: usize, leaf: usize, own: &Rows, texts: &[Text]) -> Result<bool> {
        let Some(chunk) = self.chunk(group, leaf) else { return Ok(true) };
        let ranges = self.needed_part(group, leaf, own)?.ranges;
        let parts = self.fetch_pages(group, &vec![leaf; ranges.len()], &ranges)?;
        let mut pages = parts.iter().flat_map(|part| chunk.pages(part));
        let spared = |page: Option<Page>| {
            let page = page?;
            match page.header.kind {
                PageKind::Index => Some(()),
                PageKind::Data | PageKind::DataV2 { .. } if is_coded(&page.header) => Some(()),
                _ if page.header.encoding != PLAIN && page.header.kind != PageKind::Dictionary => None,
                _ => {
                    let values = page.values(chunk.column)?;
                    let mut rest = &values[..];
                    while let Some((length, behind)) = rest.split_first_chunk() {
                        let (value, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
                        rest = behind;
                        texts.iter().all(|text| differs(value, &text.bytes)).then_some(())?;
                    }
                    rest.is_empty().then_some(())
                }
            }
        };
        Ok(!pages.all(|page| spared(page).is_some()))
    }

    fn needed_part(&self, group: usize, leaf: usize, own: &Rows) -> Result<Needed> {
        let first = self.first_row(group);
        let rows = self.metadata().row_groups().get(group).map_or(0, |group| group.num_rows().max(0) as u64);
        let whole = own.as_slice() == std::slice::from_ref(&(first..first + rows));
        self.needed(group, &[leaf], (!whole).then_some(own))
    }

    fn chunk(&self, group: usize, leaf: usize) -> Option<Chunk<'_>> {
        let meta: &RowGroupMetaData = self.metadata().row_groups().get(group)?;
        let locations = self.pages.offset_index(group, leaf).map(|index| index.page_locations().as_slice());
        Some(Chunk { column: meta.columns().get(leaf)?, locations: locations.unwrap_or(&[]) })
    }
}

const PLAIN: i32 = Encoding::PLAIN as i32;
const DELTA_LENGTH_BYTE_ARRAY: i32 = Encoding::DELTA_LENGTH_BYTE_ARRAY as i32;
const DELTA_BYTE_ARRAY: i32 = Encoding::DELTA_BYTE_ARRAY as i32;
const BY_DICTIONARY: [i32; 2] = [Encoding::PLAIN_DICTIONARY as i32, Encoding::RLE_DICTIONARY as i32];

/// Whether a data page is encoded by the dictionary.
fn is_coded(header: &PageHeader) -> bool {
    BY_DICTIONARY.contains(&header.encoding)
}

/// Whether a value of a residual, as a text, is certainly not this one.
fn differs(value: &[u8], text: &[u8]) -> bool {
    const OBJECT: u8 = 2;
    const ARRAY: u8 = 3;
    match value.first().map(|head| head & 3) {
        Some(OBJECT) => text.first() != Some(&b'{'),
        Some(ARRAY) => text.first() != Some(&b'['),
        _ => match scalar(value).filter(|_| length(value, 0).is_ok_and(|length| length == value.len())) {
            Some(Scalar::Null) => true,
            Some(Scalar::Str(found)) => found.as_bytes() != text,
            _ => false,
        },
    }
}

/// A column chunk, of which some pages were fetched.
struct Chunk<'a> {
    column: &'a ColumnChunkMetaData,
    locations: &'a [PageLocation],
}

/// A page as it is stored.
struct Page {
    header: PageHeader,
    bytes: Bytes,
    /// Its first row in the row group, by the page index.
    first_row: Option<u64>,
}

impl Chunk<'_> {
    /// The pages in a part of the file; the last one is `None` where the bytes are no pages.
    fn pages(&self, Part { start, bytes, .. }: &Part) -> impl Iterator<Item = Option<Page>> {
        let (mut at, mut broken) = (0, false);
        std::iter::from_fn(move || {
            if at >= bytes.len() || broken {
                return None;
            }
            let Some(header) = page_header(&bytes[at..]) else {
                broken = true;
                return Some(None);
            };
            let offset = start + at as u64;
            let place = self.locations.binary_search_by_key(&(offset as i64), |location| location.offset);
            let first_row = place.ok().and_then(|place| u64::try_from(self.locations[place].first_row_index).ok());
            let size = header.length + header.compressed;
            let bytes = bytes.slice(at..at + size);
            at += size;
            Some(Some(Page { header, bytes, first_row }))
        })
    }
}

impl Page {
    /// Whether one of the texts may be in it.
    fn may_hold(&self, column: &ColumnChunkMetaData, texts: &[Text]) -> bool {
        let Some(values) = self.values(column) else { return true };
        // A dictionary is plain, whatever it states.
        let encoding = if self.header.kind == PageKind::Dictionary { PLAIN } else { self.header.encoding };
        match encoding {
            _ if values.is_empty() => false,
            PLAIN => texts.iter().any(|text| text.plain.find(&values).is_some()),
            DELTA_LENGTH_BYTE_ARRAY => texts.iter().any(|text| find(&values, &text.bytes).is_some()),
            DELTA_BYTE_ARRAY => match prefixes(&values, self.header.values, texts) {
                Some(known) => texts.iter().zip(known).any(|(text, at)| find(&values, &text.bytes[at..]).is_some()),
                None => true,
            },
            _ => true,
        }
    }

    /// Its values, decompressed, without the levels before them; `None` where that cannot be done.
    fn values(&self, column: &ColumnChunkMetaData) -> Option<Bytes> {
        let header = &self.header;
        let stored = &self.bytes[header.length..];
        if header.crc.is_some_and(|crc| crc != crc32fast::hash(stored)) {
            return None;
        }
        let page = decompress(column, header, &self.bytes)?;
        let mut levels = header.levels();
        if header.kind == PageKind::Data && column.column_descr().max_def_level() > 0 {
            levels = (u32::from_le_bytes(*page.first_chunk()?) as usize).checked_add(4)?;
        }
        (levels <= page.len()).then(|| page.slice(levels..))
    }
}

/// Of each text how much of it a value of the page may share with the one before, and not all of it. `None` where that
/// cannot be read.
fn prefixes(values: &Bytes, most: u64, texts: &[Text]) -> Option<Vec<usize>> {
    if too_many(values, most) {
        return None;
    }
    let (mut found, mut fits, mut begun) = (vec![0; texts.len()], true, false);
    numbers(values, |lengths: &[i32]| {
        // The first value has none before it.
        fits &= lengths.iter().all(|&length| length >= 0) && (begun || lengths == [0]);
        begun = true;
        for (text, longest) in texts.iter().zip(&mut found) {
            for length in lengths.iter().map(|&length| length as usize) {
                if length > *longest && length < text.bytes.len() {
                    *longest = length;
                }
            }
        }
    })?;
    fits.then_some(found)
}
