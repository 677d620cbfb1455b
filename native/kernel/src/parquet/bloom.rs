//! Bloom filters, for equality: which row groups may hold one of some values. A filter can only say no for sure,
//! and only of what it speaks of: for a variant path the typed leaf, which is every row where the matching `value` is
//! all null (rule 41).

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use parquet::basic::Type as PhysicalType;
use parquet::bloom_filter::Sbbf;
use std::ops::Range;
use twox_hash::XxHash64;

use crate::error::Result;
use crate::flavour;
use crate::item::Item;
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;
use crate::parquet::projection::all_null;
use crate::parquet::resolve::resolve;
use crate::parquet::rows::Rows;
use crate::parquet::{footer, rows};

/// Bytes of a filter's header when it is written plainly: a number of up to five bytes within fourteen others.
const HEADER: u64 = 19;
/// Bytes of one block, of which a value sets bits in one.
const BLOCK: u64 = 32;

/// One filter that is asked, and where it lies.
struct Filter {
    group: usize,
    place: Range<u64>,
    /// Whether the residual holds something, of which the filter does not speak.
    hidden: bool,
}

/// Whether a leaf may be equal to a value in a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// For certain not.
    NotBe,
    Be,
    /// Only by what the residual holds: the typed leaf has none of the values.
    BeUntyped,
}

impl FileReader {
    /// For each row group whether `leaf` may equal any of `values` there; [`May::Be`] where no filter can tell, and
    /// where the row group holds no row of `within`.
    pub fn may_contain(&self, leaf: &Item, values: &ArrayRef, within: Option<&Rows>) -> Result<Vec<May>> {
        guard(self.name(), || {
            let resolved = resolve(self, leaf)?;
            let groups = self.metadata().row_groups();
            let mut may = vec![May::Be; groups.len()];
            let (Some(column), false) = (resolved.typed, resolved.nulls_only || resolved.opaque) else {
                return Ok(may);
            };
            if self.legacy.as_ref().is_some_and(|old| old.may_differ(&resolved.data_type)) {
                return Ok(may);
            }
            let physical = self.metadata().file_metadata().schema_descr().column(column).physical_type();
            let Some(wanted) = stored(values, &resolved.data_type, physical) else { return Ok(may) };
            let mut filters = Vec::new();
            for (index, group) in groups.iter().enumerate() {
                let first = self.first_row(index);
                let end = first + group.num_rows().max(0) as u64;
                let asked = within.is_none_or(|rows| !rows::clip(rows, first, end).is_empty());
                let hidden = resolved.residuals.iter().any(|&residual| !all_null(group, residual));
                let place = group.columns().get(column).and_then(|c| {
                    let (offset, length) = (c.bloom_filter_offset()?, c.bloom_filter_length()?);
                    Some((u64::try_from(offset).ok()?, u64::try_from(length).ok()?))
                });
                if let Some((offset, length)) = place.filter(|_| asked && !(hidden && resolved.early)) {
                    let place = offset..offset.saturating_add(length);
                    filters.push(Filter { group: index, place, hidden });
                }
            }
            for (filter, found) in filters.iter().zip(self.ask(&filters, &wanted)?) {
                may[filter.group] = match (found, filter.hidden) {
                    (true, _) => May::Be,
                    (false, true) => May::BeUntyped,
                    (false, false) => May::NotBe,
                };
            }
            Ok(may)
        })
    }

    /// Whether each filter may hold one of the values: of each, the header and the blocks of the values are read.
    fn ask(&self, filters: &[Filter], wanted: &[Vec<u8>]) -> Result<Vec<bool>> {
        let hashes: Vec<u64> = wanted.iter().map(|value| XxHash64::oneshot(0, value)).collect();
        let heads: Vec<Range<u64>> =
            filters.iter().map(|f| f.place.start..f.place.end.min(f.place.start.saturating_add(HEADER))).collect();
        let heads = self.fetch(&heads)?;
        // Where to look: in one block a value, or, in a filter of another form or for many values, in all of it.
        let mut ranges = Vec::new();
        let mut blocks = Vec::with_capacity(filters.len());
        for (filter, head) in filters.iter().zip(&heads) {
            let length = filter.place.end - filter.place.start;
            let start = header(head, length).filter(|_| BLOCK * (hashes.len() as u64) < length);
            blocks.push(start.is_some());
            match start {
                None => ranges.push(filter.place.clone()),
                Some(start) => ranges.extend(hashes.iter().map(|hash| {
                    let block = ((hash >> 32) * ((length - start) / BLOCK)) >> 32;
                    let at = filter.place.start + start + block * BLOCK;
                    at..at + BLOCK
                })),
            }
        }
        let bytes = self.fetch(&ranges)?;
        let mut bytes = bytes.iter();
        let mut found = Vec::with_capacity(filters.len());
        for by_block in blocks {
            if by_block {
                // A filter of one block answers for that block.
                let hit = wanted.iter().zip(bytes.by_ref()).filter(|(v, block)| Sbbf::new(block).check(v.as_slice()));
                found.push(hit.count() > 0);
            } else if let Some(all) = bytes.next() {
                let filter = Sbbf::from_bytes(all).map_err(|e| footer::corrupt(self.source(), &e))?;
                found.push(wanted.iter().any(|value| filter.check(value.as_slice())));
            }
        }
        Ok(found)
    }
}

/// Where the blocks of a filter begin, of which `head` is the begin and `length` the whole; `None` for a header that
/// is not the plain one: number of bytes, split blocks, xxHash, uncompressed (parquet.thrift, `BloomFilterHeader`).
fn header(head: &[u8], length: u64) -> Option<u64> {
    const KINDS: [u8; 13] = [0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];
    let (&0x15, rest) = head.split_first()? else { return None };
    let digits = rest.iter().take(5).position(|byte| byte & 0x80 == 0)? + 1;
    let zigzag = rest[..digits].iter().rev().fold(0u64, |number, byte| number << 7 | u64::from(byte & 0x7f));
    let (bytes, start) = (zigzag >> 1, 1 + digits as u64 + KINDS.len() as u64);
    let plain = rest.get(digits..digits + KINDS.len())? == KINDS.as_slice();
    (plain && zigzag & 1 == 0 && bytes > 0 && bytes % BLOCK == 0 && start + bytes == length).then_some(start)
}

/// The values as the column stores them; `None` where that is not certain (floats have two zeros, decimals several
/// forms). A value that the column's type cannot hold is in no row of it, and left out; so is null.
pub(crate) fn stored(values: &ArrayRef, data_type: &DataType, physical: PhysicalType) -> Option<Vec<Vec<u8>>> {
    let same_class = values.data_type() == data_type
        || values.data_type().is_signed_integer() && data_type.is_signed_integer()
        || matches!(values.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
            && data_type == &DataType::Utf8;
    if !same_class {
        return None;
    }
    Some(match (data_type, physical) {
        (DataType::Int8, PhysicalType::INT32) => short::<i8>(values)?,
        (DataType::Int16, PhysicalType::INT32) => short::<i16>(values)?,
        (DataType::Int32 | DataType::Date32, PhysicalType::INT32) => short::<i32>(values)?,
        (DataType::Int64 | DataType::Timestamp(..), PhysicalType::INT64) => {
            integers(values)?.into_iter().map(|value| value.to_le_bytes().to_vec()).collect()
        }
        (DataType::Utf8, PhysicalType::BYTE_ARRAY) => {
            flavour::string(values).ok()??.iter().flatten().map(|text| text.as_bytes().to_vec()).collect()
        }
        (DataType::Binary, PhysicalType::BYTE_ARRAY) => {
            values.as_binary::<i32>().iter().flatten().map(<[u8]>::to_vec).collect()
        }
        (DataType::FixedSizeBinary(16), PhysicalType::FIXED_LEN_BYTE_ARRAY) => {
            values.as_fixed_size_binary().iter().flatten().map(<[u8]>::to_vec).collect()
        }
        _ => return None,
    })
}

/// Integers that fit a type, as the four bytes that its column stores.
fn short<T: TryFrom<i64> + Into<i32>>(values: &ArrayRef) -> Option<Vec<Vec<u8>>> {
    let fit = integers(values)?.into_iter().filter_map(|value| T::try_from(value).ok());
    Some(fit.map(|value| value.into().to_le_bytes().to_vec()).collect())
}

/// The integers of an array, as dates and timestamps are too, without its nulls.
fn integers(values: &ArrayRef) -> Option<Vec<i64>> {
    fn all<T: ArrowPrimitiveType<Native: Into<i64>>>(values: &ArrayRef) -> Vec<i64> {
        values.as_primitive::<T>().iter().flatten().map(Into::into).collect()
    }
    Some(match values.data_type() {
        DataType::Int8 => all::<Int8Type>(values),
        DataType::Int16 => all::<Int16Type>(values),
        DataType::Int32 => all::<Int32Type>(values),
        DataType::Int64 => all::<Int64Type>(values),
        DataType::Date32 => all::<Date32Type>(values),
        DataType::Timestamp(TimeUnit::Microsecond, _) => all::<TimestampMicrosecondType>(values),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => all::<TimestampNanosecondType>(values),
        _ => return None,
    })
}
