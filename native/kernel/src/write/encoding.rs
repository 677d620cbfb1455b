//! How each leaf column is encoded, decided once per file on the first batch: a dictionary where the sample says
//! that a row group's distinct values will be few and small, otherwise the encoding that compresses best for the
//! type among those that Spark, DuckDB, arrow and parquet-java read.
//!
//! A dictionary that is tried and given up costs a hash of every value and a page of plain ones: better not tried.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field as ArrowField};
use hashbrown::{DefaultHashBuilder, HashSet};
use parquet::basic::Encoding;

use crate::error::Result;
use crate::standard::{METADATA, VALUE, is_variant};

/// Values looked at per leaf.
const SAMPLE: usize = 4096;
/// A dictionary page beyond this is given up by the writer, and is slow to read besides.
pub const DICTIONARY_BYTES: usize = 2 << 20;

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
                VALUE if within == Context::Group => Role::Value,
                _ => Role::Data,
            };
            let encoding = fallback(array.data_type());
            out.push(Choice { role, dictionary: dictionary_pays(array, rows)?, encoding });
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
fn fallback(data_type: &DataType) -> Option<Encoding> {
    match data_type {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Date32
        | DataType::Time64(_)
        | DataType::Timestamp(_, _) => Some(Encoding::DELTA_BINARY_PACKED),
        _ => None,
    }
}

/// Whether a row group's distinct values make a dictionary that is smaller than the values.
fn dictionary_pays(array: &ArrayRef, rows: usize) -> Result<bool> {
    if matches!(array.data_type(), DataType::Boolean) {
        return Ok(false);
    }
    let Some(sample) = sample(array)? else { return Ok(true) };
    let valid = (array.len() - array.null_count()) as f64 / array.len().max(1) as f64;
    let values = (rows as f64 * valid).max(1.0);
    let distinct = sample.distinct_among(values);
    Ok(distinct * (sample.width + 4.0) <= DICTIONARY_BYTES as f64 && distinct <= values / 2.0)
}

struct Sample {
    seen: f64,
    distinct: f64,
    /// Bytes of a value, about.
    width: f64,
}

impl Sample {
    /// Distinct values among so many, by the birthday problem: how often the sample met a value again tells how
    /// many there are.
    fn distinct_among(&self, values: f64) -> f64 {
        let again = self.seen - self.distinct;
        if again < 1.0 {
            return values;
        }
        if self.distinct * 4.0 <= self.seen {
            // Far fewer values than were looked at: the sample has met nearly all that are frequent, and the tail
            // grows slowly.
            return (self.distinct * (values / self.seen).sqrt()).clamp(self.distinct, values.max(self.distinct));
        }
        let population = self.seen * self.seen / (2.0 * again);
        (population * (1.0 - (-values / population).exp())).min(values)
    }
}

/// `None` when there are too few values to judge by, or a type that is not looked into.
fn sample(array: &ArrayRef) -> Result<Option<Sample>> {
    let hasher = DefaultHashBuilder::default();
    let mut distinct: HashSet<u64> = HashSet::new();
    let (mut seen, mut bytes) = (0_usize, 0_usize);
    let mut add = |value: &[u8]| {
        seen += 1;
        bytes += value.len();
        distinct.insert(hasher.hash_one(value));
    };
    let nulls = array.logical_nulls();
    match array.data_type() {
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            valid(nulls.as_ref(), array.len()).for_each(|i| add(values.value(i).as_bytes()));
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>();
            valid(nulls.as_ref(), array.len()).for_each(|i| add(values.value(i).as_bytes()));
        }
        DataType::Utf8View => {
            let values = array.as_string_view();
            valid(nulls.as_ref(), array.len()).for_each(|i| add(values.value(i).as_bytes()));
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            valid(nulls.as_ref(), array.len()).for_each(|i| add(values.value(i)));
        }
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>();
            valid(nulls.as_ref(), array.len()).for_each(|i| add(values.value(i)));
        }
        DataType::BinaryView => {
            let values = array.as_binary_view();
            valid(nulls.as_ref(), array.len()).for_each(|i| add(values.value(i)));
        }
        other => {
            let Some(width) = other.primitive_width() else { return Ok(None) };
            let data = array.to_data();
            let Some(buffer) = data.buffers().first() else { return Ok(None) };
            let start = data.offset();
            for i in valid(nulls.as_ref(), array.len()) {
                let at = (start + i) * width;
                add(buffer.get(at..at + width).unwrap_or_default());
            }
        }
    }
    if seen < 64 {
        return Ok(None);
    }
    let width = bytes as f64 / seen as f64;
    Ok(Some(Sample { seen: seen as f64, distinct: distinct.len() as f64, width }))
}

fn valid(nulls: Option<&NullBuffer>, len: usize) -> impl Iterator<Item = usize> {
    (0..len).filter(move |&i| nulls.is_none_or(|n| n.is_valid(i))).take(SAMPLE)
}
