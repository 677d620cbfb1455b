//! How each leaf column is encoded, decided once per file on its first rows: a dictionary where a sample says that
//! a row group's distinct values will be few and small, otherwise the encoding that compresses best for the values
//! among those that Spark, DuckDB, arrow and parquet-java read.
//!
//! A dictionary that is tried and given up costs a hash of every value and a page of plain ones: better not tried.
//! Pages are small (see [`WriteOptions`](super::WriteOptions)), so the codec finds little of what repeats farther away
//! than a page: values that repeat among near rows (what is new today) are worth a dictionary as those are that repeat
//! anywhere. The sample therefore counts the distinct values of one stretch of rows, and how many of them come again
//! in another one some distance away.

use std::hash::BuildHasher;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field as ArrowField};
use hashbrown::{DefaultHashBuilder, HashSet};
use parquet::basic::Encoding;

use crate::error::{Code, Error, Result};
use crate::layout::early::UNTYPED_VALUE;
use crate::layout::standard::{METADATA, VALUE, is_variant};
use crate::parquet::write::byte_arrays::shared;
use crate::rows::{Column, Rows};

/// Values looked at per leaf at the beginning of the rows, and at their end. Fewer at the beginning overrate how many
/// are distinct in a row group: among 4,096 of the events' subjects 0.66 to 0.77, among 8,192 0.60 to 0.66, in all 0.55.
const FIRST: usize = 8192;
const LAST: usize = 2048;
/// Fewer values in a batch are no sample.
const FEW: usize = 64;
/// A dictionary of more than this share of the values saves too little.
const DISTINCT: f64 = 0.7;
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

/// Choices for the leaves of the columns, in the order of the Parquet schema, by the first and the last of the batches
/// at hand (they may be one). `rows` is the size of a row group, `dictionary_bytes` that of the largest dictionary.
pub fn choose(first: &Rows, last: &Rows, rows: usize, dictionary_bytes: usize) -> Result<Vec<Choice>> {
    let mut chooser = Chooser { dictionary_bytes, alone: std::ptr::eq(first, last), choices: Vec::new() };
    for (field, (first, last)) in first.schema().fields().iter().zip(first.columns().iter().zip(last.columns())) {
        chooser.visit(field, &Ends { first: first.clone(), last: last.clone() }, Context::Plain, rows)?;
    }
    Ok(chooser.choices)
}

/// A column in the first and the last batch.
struct Ends {
    first: Column,
    last: Column,
}

impl Ends {
    /// A column of a struct.
    fn child(&self, at: usize) -> Result<Ends> {
        let missing = || Error::new(Code::InvalidArgument, "a struct has fewer columns than its type");
        let (first, last) = (self.first.child(at), self.last.child(at));
        Ok(Ends { first: first.ok_or_else(missing)?, last: last.ok_or_else(missing)? })
    }

    /// The values of lists, or of maps.
    fn inside(&self, part: impl Fn(&ArrayRef) -> ArrayRef) -> Result<Ends> {
        let inside = |column: &Column| match column {
            Column::Array(array) => Ok(Column::Array(part(array))),
            _ => Err(Error::new(Code::InvalidArgument, "a list is an array")),
        };
        Ok(Ends { first: inside(&self.first)?, last: inside(&self.last)? })
    }

    /// How many of these values stand in a row group, if `rows` of their parents do.
    fn per_row(&self, rows: usize, parent: &Ends) -> usize {
        let (values, parents) = (self.first.len() + self.last.len(), parent.first.len() + parent.last.len());
        (rows as f64 * values as f64 / parents.max(1) as f64) as usize
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Context {
    Plain,
    /// A variant column itself, or a group of value and typed_value.
    Group,
    /// The group of a shredded object's fields.
    Object,
}

struct Chooser {
    dictionary_bytes: usize,
    /// Whether the first batch is the last.
    alone: bool,
    choices: Vec<Choice>,
}

impl Chooser {
    /// `rows`: how many of these values stand in a row group, nulls included.
    fn visit(&mut self, field: &ArrowField, ends: &Ends, within: Context, rows: usize) -> Result<()> {
        match field.data_type() {
            DataType::Struct(fields) => {
                let inside = match within {
                    Context::Plain if !is_variant(field) => Context::Plain,
                    Context::Plain | Context::Object => Context::Group,
                    Context::Group => Context::Object,
                };
                for (at, field) in fields.iter().enumerate() {
                    self.visit(field, &ends.child(at)?, inside, rows)?;
                }
            }
            DataType::List(element) => {
                let values = ends.inside(|a| a.as_list::<i32>().values().clone())?;
                self.visit(element, &values, within_list(within), values.per_row(rows, ends))?;
            }
            DataType::LargeList(element) => {
                let values = ends.inside(|a| a.as_list::<i64>().values().clone())?;
                self.visit(element, &values, within_list(within), values.per_row(rows, ends))?;
            }
            DataType::FixedSizeList(element, _) => {
                let values = ends.inside(|a| a.as_fixed_size_list().values().clone())?;
                self.visit(element, &values, within_list(within), values.per_row(rows, ends))?;
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(fields) = entries.data_type() else { return Ok(()) };
                for (at, field) in fields.iter().enumerate() {
                    let values = ends.inside(|a| a.as_map().entries().column(at).clone())?;
                    self.visit(field, &values, within, values.per_row(rows, ends))?;
                }
            }
            data_type => {
                let role = match field.name().as_str() {
                    METADATA if within == Context::Group => Role::Metadata,
                    VALUE | UNTYPED_VALUE if within == Context::Group => Role::Value,
                    _ => Role::Data,
                };
                let sample = Sample::of(ends, field.data_type(), self.alone);
                let dictionary = sample.as_ref().is_none_or(|s| s.dictionary_pays(rows, self.dictionary_bytes));
                self.choices.push(Choice { role, dictionary, encoding: fallback(data_type, sample.as_ref()) });
            }
        }
        Ok(())
    }
}

/// The element of a shredded array is a group, as the field of an object is.
fn within_list(within: Context) -> Context {
    if within == Context::Group { Context::Object } else { within }
}

/// Whether values of the type are texts or bytes of any length.
pub fn is_byte_array(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

/// The encoding where there is no dictionary.
fn fallback(data_type: &DataType, sample: Option<&Sample>) -> Option<Encoding> {
    match data_type {
        packed if packs(packed) => Some(Encoding::DELTA_BINARY_PACKED),
        bytes
            if is_byte_array(bytes)
                && sample.is_some_and(|s| {
                    s.prefix >= SHARED_PREFIX && s.first + s.last > (1.0 - REPEATED) * (s.ahead + s.behind)
                }) =>
        {
            Some(Encoding::DELTA_BYTE_ARRAY)
        }
        _ => None,
    }
}

/// Types whose values are packed by their differences where there is no dictionary.
fn packs(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
    )
}

/// What the values at both ends say of the column.
struct Sample {
    /// The share of rows that have a value.
    valid: f64,
    /// Values looked at at each end; the distinct ones among them, and those that stand at both.
    ahead: f64,
    behind: f64,
    first: f64,
    last: f64,
    both: f64,
    /// Bytes of a value, about, and those that it shares with the one before.
    width: f64,
    prefix: f64,
    /// Whether the values are numbers that are packed by their differences.
    packed: bool,
}

/// Some values of an array: hashes of the distinct ones, how many were looked at, their bytes, and those that each
/// shared with the one before.
#[derive(Default)]
struct Stretch {
    distinct: HashSet<u64>,
    seen: usize,
    bytes: usize,
    shared: usize,
}

impl Sample {
    /// `None` when there are too few values to judge by.
    fn of(ends: &Ends, data_type: &DataType, alone: bool) -> Option<Sample> {
        let (there, here) = (ends.first.values(), ends.last.values());
        if there.min(here) < FEW || *data_type == DataType::Boolean {
            return None;
        }
        // Of a single batch the two stretches are apart.
        let ahead = FIRST.min(if alone { there - there / 4 } else { there });
        let behind = LAST.min(if alone { here - ahead } else { here });
        let hasher = DefaultHashBuilder::default();
        let first = stretch(&ends.first, ahead, false, &hasher)?;
        let last = stretch(&ends.last, behind, true, &hasher)?;
        let seen = (first.seen + last.seen).max(1) as f64;
        Some(Sample {
            valid: (there + here) as f64 / (ends.first.len() + ends.last.len()).max(1) as f64,
            ahead: first.seen as f64,
            behind: last.seen as f64,
            first: first.distinct.len() as f64,
            last: last.distinct.len() as f64,
            both: first.distinct.intersection(&last.distinct).count() as f64,
            width: (first.bytes + last.bytes) as f64 / seen,
            prefix: (first.shared + last.shared) as f64 / seen,
            packed: packs(data_type),
        })
    }

    /// Whether the distinct values of so many rows make a dictionary that is smaller than the values.
    fn dictionary_pays(&self, rows: usize, dictionary_bytes: usize) -> bool {
        let values = (rows as f64 * self.valid).max(1.0);
        let distinct = self.anywhere(values).min(self.nearby(values));
        distinct * (self.width + 4.0) <= dictionary_bytes as f64 && distinct <= DISTINCT * values
    }

    /// Distinct ones of so many values by capture and recapture: what one end of the batch met again of the other's
    /// values tells how many there are.
    fn anywhere(&self, values: f64) -> f64 {
        if self.both < 1.0 {
            return f64::INFINITY;
        }
        let population = self.first * self.last / self.both;
        population * (1.0 - (-values / population).exp())
    }

    /// The same if values come again among near rows only. Numbers that do are runs, which their encoding packs.
    fn nearby(&self, values: f64) -> f64 {
        if self.packed { f64::INFINITY } else { values * self.first / self.ahead }
    }
}

/// Up to `take` of the values, from the first on or back from the last; `None` for types without bytes of their own.
fn stretch(column: &Column, take: usize, back: bool, hasher: &DefaultHashBuilder) -> Option<Stretch> {
    let array = match column {
        Column::Array(array) => array,
        Column::Bytes { placed, rows } => {
            let values = placed.values_of(rows);
            return Some(look(values, back, take, hasher, |at| placed.value(at)));
        }
        Column::Struct { .. } => return None,
    };
    let nulls = array.logical_nulls();
    let rows = (0..array.len()).filter(|&row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)));
    Some(match array.data_type() {
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            look(rows, back, take, hasher, |i| values.value(i).as_bytes())
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>();
            look(rows, back, take, hasher, |i| values.value(i).as_bytes())
        }
        DataType::Utf8View => {
            let values = array.as_string_view();
            look(rows, back, take, hasher, |i| values.value(i).as_bytes())
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            look(rows, back, take, hasher, |i| values.value(i))
        }
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>();
            look(rows, back, take, hasher, |i| values.value(i))
        }
        DataType::BinaryView => {
            let values = array.as_binary_view();
            look(rows, back, take, hasher, |i| values.value(i))
        }
        other => {
            let width = other.primitive_width()?;
            let data = array.to_data();
            let buffer = data.buffers().first()?;
            let start = data.offset();
            let value = |i| buffer.get((start + i) * width..(start + i + 1) * width).unwrap_or(&[]);
            look(rows, back, take, hasher, value)
        }
    })
}

fn look<'a>(
    places: impl DoubleEndedIterator<Item = usize>,
    back: bool,
    take: usize,
    hasher: &DefaultHashBuilder,
    value: impl Fn(usize) -> &'a [u8],
) -> Stretch {
    let mut found = Stretch { distinct: HashSet::with_capacity(take), ..Stretch::default() };
    let mut before: &[u8] = &[];
    let mut see = |place: usize| {
        let value = value(place);
        found.seen += 1;
        found.bytes += value.len();
        found.shared += shared(before, value);
        found.distinct.insert(hasher.hash_one(value));
        before = value;
    };
    if back {
        places.rev().take(take).for_each(&mut see);
    } else {
        places.take(take).for_each(&mut see);
    }
    found
}
