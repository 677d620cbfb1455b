//! Column builders that are written at an index, not at an end: what lies between is missing.
//!
//! A path that a row does not have costs nothing; the gap is closed in one step by the next value or by `finish`.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, FixedSizeBinaryArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::{DataType, Field};

use crate::copy::push_part;
use crate::error::Result;
use crate::rows::{Column, Placed};
use crate::tape::{Kind, Node, TapeView};
use crate::tree::LeafType;

/// A bitmap that grows by marking; bits between marks are unset.
#[derive(Default)]
pub struct Bits {
    words: Vec<u64>,
    set: usize,
}

impl Bits {
    /// Sets the bit at `index`, which must not lie before the end.
    #[inline]
    pub fn mark(&mut self, index: usize) {
        let word = index / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= 1 << (index % 64);
        }
        self.set += 1;
    }

    /// Sets the bits from `first` on that are set here, which must not lie before the end.
    pub fn mark_all(&mut self, first: usize, bits: u64) {
        let (word, shift) = (first / 64, first % 64);
        let parts = [bits << shift, bits.unbounded_shr(64 - shift as u32)];
        if self.words.len() < word + 2 {
            self.words.resize(word + 2, 0);
        }
        self.words.iter_mut().skip(word).zip(parts).for_each(|(word, part)| *word |= part);
        self.set += bits.count_ones() as usize;
    }

    fn take(&mut self, len: usize) -> BooleanBuffer {
        let mut words = std::mem::take(&mut self.words);
        words.resize(len.div_ceil(64), 0);
        *self = Bits { words: Vec::with_capacity(words.len()), ..Bits::default() };
        BooleanBuffer::new(Buffer::from_vec(words), 0, len)
    }

    /// The marks as validity; `None` when all `len` are marked.
    pub fn finish(&mut self, len: usize) -> Option<NullBuffer> {
        let set = self.set;
        let bits = self.take(len);
        (set < len).then(|| NullBuffer::new(bits))
    }
}

/// Values of one width.
pub struct Fixed<T> {
    valid: Bits,
    values: Vec<T>,
}

impl<T> Default for Fixed<T> {
    fn default() -> Self {
        Fixed { valid: Bits::default(), values: Vec::new() }
    }
}

impl<T: Copy + Default> Fixed<T> {
    #[inline]
    fn put(&mut self, index: usize, value: T) {
        if self.values.len() < index {
            self.values.resize(index, T::default());
        }
        self.values.push(value);
        self.valid.mark(index);
    }

    fn take(&mut self, len: usize) -> (Vec<T>, Option<NullBuffer>) {
        let mut values = std::mem::take(&mut self.values);
        values.resize(len, T::default());
        self.values.reserve(len);
        (values, self.valid.finish(len))
    }
}

/// Texts or binaries. The last ones are kept in sight: once whoever got them has dropped them, the next take their room,
/// for memory that is new is dear.
#[derive(Default)]
pub struct Bytes {
    placed: Placed,
    last: Option<Arc<Placed>>,
}

impl Bytes {
    #[inline]
    pub fn put(&mut self, index: usize, value: &[u8]) -> Result<()> {
        self.placed.put(index, value)
    }

    /// Puts the text of a node; false of a node that is none.
    #[inline(always)]
    pub fn put_text(&mut self, view: &TapeView, node: &Node, index: usize) -> Result<bool> {
        if node.kind != Kind::Str {
            return Ok(false);
        }
        // A string of JSON text begins and ends at quotes.
        if let Some(text) = view.text
            && node.aux == 0
            && node.a as usize + node.b as usize <= text.len()
        {
            let (start, length) = (node.a as usize, node.b as usize);
            self.placed.put_with(index, |data| push_part(data, text.as_bytes(), start, length))?;
            return Ok(true);
        }
        match view.text_bytes(node) {
            Some(text) => self.put(index, text).map(|()| true),
            None => Ok(false),
        }
    }

    /// Writes a value in place.
    #[inline]
    pub fn put_with(&mut self, index: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.placed.put_with(index, write)
    }

    /// Puts what the value of this number has.
    #[inline]
    pub fn put_again(&mut self, index: usize, value: usize) {
        self.placed.put_again(index, value);
    }

    /// How many values there are.
    pub fn values(&self) -> usize {
        self.placed.len()
    }

    pub fn byte_len(&self) -> usize {
        self.placed.bytes() + size_of::<u32>() * self.placed.len()
    }

    /// The column of `len` rows; the next one is empty.
    pub fn finish(&mut self, len: usize) -> Column {
        let last = self.last.take().and_then(Arc::into_inner);
        let next = last.map_or_else(|| self.placed.room_for_as_many(), Placed::cleared);
        let placed = Arc::new(std::mem::replace(&mut self.placed, next));
        self.last = Some(placed.clone());
        Column::Bytes { placed, rows: 0..len }
    }

    /// The same as a nullable binary array.
    pub fn finish_binary(&mut self, len: usize) -> Result<ArrayRef> {
        self.finish(len).to_array(&Field::new("", DataType::Binary, true))
    }
}

/// The builder of one typed leaf.
pub enum LeafBuilder {
    Boolean { valid: Bits, values: Bits },
    Int8(Fixed<i8>),
    Int16(Fixed<i16>),
    Int32(Fixed<i32>),
    Int64(Fixed<i64>),
    Float(Fixed<f32>),
    Double(Fixed<f64>),
    Decimal { values: Fixed<i128>, precision: u8, scale: u8, limit: i128 },
    Date(Fixed<i32>),
    Timestamp { values: Fixed<i64>, utc: bool },
    TimestampNanos { values: Fixed<i64>, utc: bool },
    Time(Fixed<i64>),
    String(Bytes),
    Binary(Bytes),
    Uuid(Fixed<u128>),
}

impl LeafBuilder {
    pub fn new(leaf: LeafType) -> Self {
        match leaf {
            LeafType::Boolean => LeafBuilder::Boolean { valid: Bits::default(), values: Bits::default() },
            LeafType::Int8 => LeafBuilder::Int8(Fixed::default()),
            LeafType::Int16 => LeafBuilder::Int16(Fixed::default()),
            LeafType::Int32 => LeafBuilder::Int32(Fixed::default()),
            LeafType::Int64 => LeafBuilder::Int64(Fixed::default()),
            LeafType::Float => LeafBuilder::Float(Fixed::default()),
            LeafType::Double => LeafBuilder::Double(Fixed::default()),
            LeafType::Decimal { precision, scale } => {
                LeafBuilder::Decimal { values: Fixed::default(), precision, scale, limit: power_of_ten(precision) }
            }
            LeafType::Date => LeafBuilder::Date(Fixed::default()),
            LeafType::Timestamp { utc } => LeafBuilder::Timestamp { values: Fixed::default(), utc },
            LeafType::TimestampNanos { utc } => LeafBuilder::TimestampNanos { values: Fixed::default(), utc },
            LeafType::Time => LeafBuilder::Time(Fixed::default()),
            LeafType::String => LeafBuilder::String(Bytes::default()),
            LeafType::Binary => LeafBuilder::Binary(Bytes::default()),
            LeafType::Uuid => LeafBuilder::Uuid(Fixed::default()),
        }
    }

    /// Takes the value if this leaf's type holds it without loss; integers and decimals are one class of numbers
    /// (rule 17), every other type takes its own kind only.
    #[inline]
    pub fn put(&mut self, view: &TapeView, node: &Node, index: usize) -> Result<bool> {
        match (self, node.kind) {
            (LeafBuilder::String(column), Kind::Str) => match view.text_bytes(node) {
                Some(text) => column.put(index, text)?,
                None => return Ok(false),
            },
            (LeafBuilder::Int64(column), Kind::Int) => column.put(index, node.int()),
            (LeafBuilder::Int64(column), Kind::Decimal) => return Ok(put_integer(column, whole(view, node), index)),
            (LeafBuilder::Int32(column), Kind::Int | Kind::Decimal) => {
                return Ok(put_integer(column, whole(view, node), index));
            }
            (LeafBuilder::Int16(column), Kind::Int | Kind::Decimal) => {
                return Ok(put_integer(column, whole(view, node), index));
            }
            (LeafBuilder::Int8(column), Kind::Int | Kind::Decimal) => {
                return Ok(put_integer(column, whole(view, node), index));
            }
            (LeafBuilder::Boolean { valid, values }, Kind::True | Kind::False) => {
                valid.mark(index);
                if node.kind == Kind::True {
                    values.mark(index);
                }
            }
            (LeafBuilder::Double(column), Kind::Double) => column.put(index, node.double()),
            (LeafBuilder::Float(column), Kind::Float) => column.put(index, node.float()),
            (LeafBuilder::Decimal { values, scale, limit, .. }, Kind::Int | Kind::Decimal) => {
                let (unscaled, from) =
                    if node.kind == Kind::Int { (node.int() as i128, 0) } else { (view.wide(node), node.aux) };
                match rescale(unscaled, from, *scale) {
                    Some(value) if value > -*limit && value < *limit => values.put(index, value),
                    _ => return Ok(false),
                }
            }
            (LeafBuilder::Date(column), Kind::Date) => column.put(index, node.a as i32),
            (LeafBuilder::Timestamp { values, utc: true }, Kind::Timestamp)
            | (LeafBuilder::Timestamp { values, utc: false }, Kind::TimestampNtz)
            | (LeafBuilder::TimestampNanos { values, utc: true }, Kind::TimestampNanos)
            | (LeafBuilder::TimestampNanos { values, utc: false }, Kind::TimestampNtzNanos)
            | (LeafBuilder::Time(values), Kind::Time) => values.put(index, node.int()),
            (LeafBuilder::Binary(column), Kind::Binary) => column.put(index, view.bytes(node))?,
            (LeafBuilder::Uuid(column), Kind::Uuid) => column.put(index, view.wide(node) as u128),
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub fn byte_len(&self) -> usize {
        match self {
            LeafBuilder::String(column) | LeafBuilder::Binary(column) => column.byte_len(),
            LeafBuilder::Boolean { values, .. } => values.words.len() * 8,
            LeafBuilder::Int8(column) => column.values.len(),
            LeafBuilder::Int16(column) => 2 * column.values.len(),
            LeafBuilder::Int32(column) | LeafBuilder::Date(column) => 4 * column.values.len(),
            LeafBuilder::Float(column) => 4 * column.values.len(),
            LeafBuilder::Int64(column)
            | LeafBuilder::Time(column)
            | LeafBuilder::Timestamp { values: column, .. }
            | LeafBuilder::TimestampNanos { values: column, .. } => 8 * column.values.len(),
            LeafBuilder::Double(column) => 8 * column.values.len(),
            LeafBuilder::Decimal { values, .. } => 16 * values.values.len(),
            LeafBuilder::Uuid(column) => 16 * column.values.len(),
        }
    }

    /// The column of `len` rows; the builder is empty afterwards.
    pub fn finish(&mut self, len: usize) -> Result<Column> {
        let array: ArrayRef = match self {
            LeafBuilder::String(column) | LeafBuilder::Binary(column) => return Ok(column.finish(len)),
            LeafBuilder::Boolean { valid, values } => {
                let nulls = valid.finish(len);
                Arc::new(BooleanArray::new(values.take(len), nulls))
            }
            LeafBuilder::Int8(column) => primitive::<Int8Type>(column, len),
            LeafBuilder::Int16(column) => primitive::<Int16Type>(column, len),
            LeafBuilder::Int32(column) => primitive::<Int32Type>(column, len),
            LeafBuilder::Int64(column) => primitive::<Int64Type>(column, len),
            LeafBuilder::Float(column) => primitive::<Float32Type>(column, len),
            LeafBuilder::Double(column) => primitive::<Float64Type>(column, len),
            LeafBuilder::Decimal { values, precision, scale, .. } => {
                let (values, nulls) = values.take(len);
                let array = Decimal128Array::new(values.into(), nulls);
                Arc::new(array.with_precision_and_scale(*precision, *scale as i8)?)
            }
            LeafBuilder::Date(column) => primitive::<Date32Type>(column, len),
            LeafBuilder::Timestamp { values, utc } => {
                let (values, nulls) = values.take(len);
                let array = PrimitiveArray::<TimestampMicrosecondType>::new(values.into(), nulls);
                Arc::new(array.with_timezone_opt(utc.then_some("UTC")))
            }
            LeafBuilder::TimestampNanos { values, utc } => {
                let (values, nulls) = values.take(len);
                let array = PrimitiveArray::<TimestampNanosecondType>::new(values.into(), nulls);
                Arc::new(array.with_timezone_opt(utc.then_some("UTC")))
            }
            LeafBuilder::Time(column) => primitive::<Time64MicrosecondType>(column, len),
            LeafBuilder::Uuid(column) => {
                let (values, nulls) = column.take(len);
                let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
                Arc::new(FixedSizeBinaryArray::try_new(16, Buffer::from_vec(bytes), nulls)?)
            }
        };
        Ok(Column::Array(array))
    }
}

fn primitive<T: ArrowPrimitiveType>(column: &mut Fixed<T::Native>, len: usize) -> ArrayRef {
    let (values, nulls) = column.take(len);
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls))
}

fn put_integer<T: Copy + Default + TryFrom<i128>>(column: &mut Fixed<T>, value: Option<i128>, index: usize) -> bool {
    match value.and_then(|v| T::try_from(v).ok()) {
        Some(value) => {
            column.put(index, value);
            true
        }
        None => false,
    }
}

/// The number as a whole one, if it is one: 1.00 is 1.
fn whole(view: &TapeView, node: &Node) -> Option<i128> {
    if node.kind == Kind::Int { Some(node.int().into()) } else { rescale(view.wide(node), node.aux, 0) }
}

/// An unscaled decimal at another scale, if no digit is lost.
pub fn rescale(unscaled: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return unscaled.checked_mul(checked_power_of_ten(to - from)?);
    }
    let Some(power) = checked_power_of_ten(from - to) else {
        return (unscaled == 0).then_some(0);
    };
    (unscaled % power == 0).then(|| unscaled / power)
}

fn checked_power_of_ten(exponent: u8) -> Option<i128> {
    10_i128.checked_pow(exponent.into())
}

/// At most the largest number, where there is no such power.
pub fn power_of_ten(exponent: u8) -> i128 {
    checked_power_of_ten(exponent).unwrap_or(i128::MAX)
}
