//! How each leaf column is encoded, decided once per file on the first batch: a dictionary where a sample says that
//! a row group's distinct values will be few and small, otherwise the encoding that compresses best for the values
//! among those that Spark, DuckDB, arrow and parquet-java read.
//!
//! A dictionary that is tried and given up costs a hash of every value and a page of plain ones: better not tried.
//! Values that repeat among near rows only (what is new today) are not worth one either: the codec finds those
//! itself. So the sample is taken at both ends of the batch, and what counts is what they share.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field as ArrowField};
use hashbrown::{DefaultHashBuilder, HashSet};
use parquet::basic::Encoding;

use crate::early::UNTYPED_VALUE;
use crate::error::Result;
use crate::standard::{METADATA, VALUE, is_variant};

/// Values looked at per leaf, at each end of the batch.
const SAMPLE: usize = 2048;
/// Fewer values are no sample.
const FEW: usize = 64;
/// A dictionary page beyond this is given up by the writer, and is slow to read besides.
pub const DICTIONARY_BYTES: usize = 4 << 20;
/// Bytes that neighbours share, on average, where writing them once pays; unless this share of the values comes
/// again nearby, for then the codec does better with whole values.
const SHARED_PREFIX: f64 = 3.0;
const REPEATED: f64 = 0.1;

/// What a leaf is to its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A plain column or a typed leaf.
    Data,
    /// The dictionary of a variant column.
    Metadata,
    /// Untyped bytes of a variant column.
    Value,
}

/// The choice for one leaf column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub role: Role,
    pub dictionary: bool,
    pub encoding: Option<Encoding>,
}

/// Choices for the leaves of the columns, in the order of the Parquet schema. `rows` is the size of a row group.
pub fn choose(fields: &[Arc<ArrowField>], columns: &[ArrayRef], rows: usize) -> Result<Vec<Choice>> {
    let mut choices = Vec::new();
    for (field, column) in fields.iter().zip(columns) {
        visit(field, column, Context::Plain, rows, &mut choices)?;
    }
    Ok(choices)
}

#[derive(Clone, Copy, PartialEq)]
enum Context {
    Plain,
    /// A variant column itself, or a group of value and typed_value.
    Group,
    /// The group of a shredded object's fields.
    Object,
}

fn visit(field: &ArrowField, array: &ArrayRef, within: Context, rows: usize, out: &mut Vec<Choice>) -> Result<()> {
    match array.data_type() {
        DataType::Struct(fields) => {
            let inside = match within {
                Context::Plain if !is_variant(field) => Context::Plain,
                Context::Plain | Context::Object => Context::Group,
                Context::Group => Context::Object,
            };
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                visit(field, column, inside, rows, out)?;
            }
        }
        DataType::List(element) => {
            let list = array.as_list::<i32>();
            visit(element, list.values(), within_list(within), per_row(rows, array, list.values()), out)?;
        }
        DataType::LargeList(element) => {
            let list = array.as_list::<i64>();
            visit(element, list.values(), within_list(within), per_row(rows, array, list.values()), out)?;
        }
        DataType::FixedSizeList(element, _) => {
            let values = array.as_fixed_size_list().values();
            visit(element, values, within_list(within), per_row(rows, array, values), out)?;
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            let rows = per_row(rows, array, map.keys());
            for (field, column) in map.entries().fields().iter().zip(map.entries().columns()) {
                visit(field, column, within, rows, out)?;
            }
        }
        _ => {
            let role = match field.name().as_str() {
                METADATA if within == Context::Group => Role::Metadata,
                VALUE | UNTYPED_VALUE if within == Context::Group => Role::Value,
                _ => Role::Data,
            };
            let sample = Sample::of(array)?;
            let dictionary = sample.as_ref().is_none_or(|s| s.dictionary_pays(rows));
            out.push(Choice { role, dictionary, encoding: fallback(array.data_type(), sample.as_ref()) });
        }
    }
    Ok(())
}

/// The element of a shredded array is a group, as the field of an object is.
fn within_list(within: Context) -> Context {
    if within == Context::Group { Context::Object } else { within }
}

fn per_row(rows: usize, parent: &ArrayRef, child: &ArrayRef) -> usize {
    (rows as f64 * child.len() as f64 / parent.len().max(1) as f64) as usize
}

/// The encoding where there is no dictionary.
fn fallback(data_type: &DataType, sample: Option<&Sample>) -> Option<Encoding> {
    match data_type {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Date32
        | DataType::Time64(_)
        | DataType::Timestamp(_, _) => Some(Encoding::DELTA_BINARY_PACKED),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
            if sample.is_some_and(|s| s.prefix >= SHARED_PREFIX && s.first + s.last > (1.0 - REPEATED) * s.seen) =>
        {
            Some(Encoding::DELTA_BYTE_ARRAY)
        }
        _ => None,
    }
}

/// What the values at both ends of a batch say of the column.
struct Sample {
    /// The share of rows that have a value.
    valid: f64,
    /// Values looked at; distinct ones at the first end, at the last, and among both.
    seen: f64,
    first: f64,
    last: f64,
    both: f64,
    /// Bytes of a value, about, and those that it shares with the one before.
    width: f64,
    prefix: f64,
}

impl Sample {
    /// `None` when there are too few values to judge by.
    fn of(array: &ArrayRef) -> Result<Option<Sample>> {
        match array.data_type() {
            DataType::Boolean => Ok(None),
            DataType::Utf8 => {
                let values = array.as_string::<i32>();
                Ok(Self::sampled(array, |i| values.value(i).as_bytes()))
            }
            DataType::LargeUtf8 => {
                let values = array.as_string::<i64>();
                Ok(Self::sampled(array, |i| values.value(i).as_bytes()))
            }
            DataType::Utf8View => {
                let values = array.as_string_view();
                Ok(Self::sampled(array, |i| values.value(i).as_bytes()))
            }
            DataType::Binary => {
                let values = array.as_binary::<i32>();
                Ok(Self::sampled(array, |i| values.value(i)))
            }
            DataType::LargeBinary => {
                let values = array.as_binary::<i64>();
                Ok(Self::sampled(array, |i| values.value(i)))
            }
            DataType::BinaryView => {
                let values = array.as_binary_view();
                Ok(Self::sampled(array, |i| values.value(i)))
            }
            other => {
                let Some(width) = other.primitive_width() else { return Ok(None) };
                let data = array.to_data();
                let Some(buffer) = data.buffers().first() else { return Ok(None) };
                let start = data.offset();
                Ok(Self::sampled(array, |i| buffer.get((start + i) * width..(start + i + 1) * width).unwrap_or(&[])))
            }
        }
    }

    fn sampled<'a>(array: &ArrayRef, value: impl Fn(usize) -> &'a [u8]) -> Option<Sample> {
        let nulls = array.logical_nulls();
        let values = array.len() - nulls.as_ref().map_or(0, NullBuffer::null_count);
        if values < FEW {
            return None;
        }
        let hasher = DefaultHashBuilder::default();
        let (mut bytes, mut shared, mut seen) = (0, 0, 0);
        let mut before: &[u8] = &[];
        let mut look = |i: usize| {
            let value = value(i);
            bytes += value.len();
            shared += before.iter().zip(value).take_while(|(a, b)| a == b).count();
            seen += 1;
            before = value;
            hasher.hash_one(value)
        };
        let take = SAMPLE.min(values / 2);
        let valid = |i: &usize| nulls.as_ref().is_none_or(|n| n.is_valid(*i));
        let first: HashSet<u64> = (0..array.len()).filter(valid).take(take).map(&mut look).collect();
        let last: HashSet<u64> = (0..array.len()).rev().filter(valid).take(take).map(&mut look).collect();
        Some(Sample {
            valid: values as f64 / array.len().max(1) as f64,
            seen: f64::from(seen),
            first: first.len() as f64,
            last: last.len() as f64,
            both: first.intersection(&last).count() as f64,
            width: bytes as f64 / f64::from(seen),
            prefix: shared as f64 / f64::from(seen),
        })
    }

    /// Whether the distinct values of so many rows make a dictionary that is smaller than the values, by capture and
    /// recapture: what one end of the batch met again of the other's values tells how many there are.
    fn dictionary_pays(&self, rows: usize) -> bool {
        if self.both < 1.0 {
            return false;
        }
        let population = self.first * self.last / self.both;
        let values = (rows as f64 * self.valid).max(1.0);
        let distinct = population * (1.0 - (-values / population).exp());
        distinct * (self.width + 4.0) <= DICTIONARY_BYTES as f64 && distinct <= 0.75 * values
    }
}
