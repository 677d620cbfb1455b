//! A typed leaf of a shredded column, read row by row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal32Type, Decimal64Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, PrimitiveArray, StringArray,
};
use arrow_schema::DataType;

use crate::codec::primitive::push_scalar;
use crate::error::{Code, Error, Result};
use crate::flavour;
use crate::tape::Scalar;
use crate::tree::LeafType;
use crate::values::coded::CodedTexts;

/// A typed leaf: the array as it was read, and its values by the standard's type of it.
#[derive(Clone)]
pub struct Leaf {
    pub array: ArrayRef,
    pub values: LeafValues,
    /// The least bytes of its integers and decimals: those of its type.
    width: u8,
}

/// The array with its type resolved, so that rows are read without a downcast each.
#[derive(Clone)]
pub enum LeafValues {
    Boolean(BooleanArray),
    Int8(PrimitiveArray<Int8Type>),
    Int16(PrimitiveArray<Int16Type>),
    Int32(PrimitiveArray<Int32Type>),
    Int64(PrimitiveArray<Int64Type>),
    Float(PrimitiveArray<Float32Type>),
    Double(PrimitiveArray<Float64Type>),
    Decimal(Decimal128Array, u8, u8),
    Date(PrimitiveArray<Date32Type>),
    Micros(PrimitiveArray<TimestampMicrosecondType>, bool),
    Nanos(PrimitiveArray<TimestampNanosecondType>, bool),
    Time(PrimitiveArray<Time64MicrosecondType>),
    String(StringArray),
    Coded(CodedTexts),
    Binary(BinaryArray),
    Uuid(FixedSizeBinaryArray),
}

/// The error of a part of a shredded column whose type breaks a rule. Runs break none, but nothing reads them.
pub fn refused(rule: u8, path: &str, found: &DataType, message: String) -> Error {
    let error = match found {
        DataType::RunEndEncoded(..) => {
            let message = format!("{path} is in runs: decode them first (pyarrow.compute.run_end_decode)");
            Error::new(Code::UnsupportedType, message)
        }
        _ => Error::new(Code::MalformedShredding, message).rule(rule),
    };
    error.path(path)
}

impl Leaf {
    /// Opens an array of any type that a Variant can be shredded to; `path` is for errors.
    pub fn open(column: &ArrayRef, path: &str) -> Result<Self> {
        if let Some(coded) = CodedTexts::open(column) {
            return Ok(Leaf { array: column.clone(), values: LeafValues::Coded(coded), width: 0 });
        }
        let column = match column.data_type() {
            DataType::Dictionary(..) => &flavour::decoded(column)?,
            _ => column,
        };
        let leaf_type =
            LeafType::from_arrow(column.data_type()).map_err(|e| refused(21, path, column.data_type(), e.message))?;
        // Views, large and narrow decimal arrays come from Arrow users, never from our Parquet scan.
        let array = match (leaf_type, column.data_type()) {
            (LeafType::String, _) => flavour::string(column)?.map_or_else(|| column.clone(), |made| Arc::new(made)),
            (LeafType::Binary, _) => flavour::binary(column)?.map_or_else(|| column.clone(), |made| Arc::new(made)),
            (LeafType::Decimal { precision, scale }, DataType::Decimal32(..) | DataType::Decimal64(..)) => {
                let wide: Decimal128Array = match column.as_primitive_opt::<Decimal32Type>() {
                    Some(narrow) => narrow.unary(i128::from),
                    None => column.as_primitive::<Decimal64Type>().unary(i128::from),
                };
                Arc::new(wide.with_precision_and_scale(precision, scale as i8)?)
            }
            _ => column.clone(),
        };
        let values = match leaf_type {
            LeafType::Boolean => LeafValues::Boolean(array.as_boolean().clone()),
            LeafType::Int8 => LeafValues::Int8(array.as_primitive().clone()),
            LeafType::Int16 => LeafValues::Int16(array.as_primitive().clone()),
            LeafType::Int32 => LeafValues::Int32(array.as_primitive().clone()),
            LeafType::Int64 => LeafValues::Int64(array.as_primitive().clone()),
            LeafType::Float => LeafValues::Float(array.as_primitive().clone()),
            LeafType::Double => LeafValues::Double(array.as_primitive().clone()),
            LeafType::Decimal { precision, scale } => {
                LeafValues::Decimal(array.as_primitive().clone(), precision, scale)
            }
            LeafType::Date => LeafValues::Date(array.as_primitive().clone()),
            LeafType::Timestamp { utc } => LeafValues::Micros(array.as_primitive().clone(), utc),
            LeafType::TimestampNanos { utc } => LeafValues::Nanos(array.as_primitive().clone(), utc),
            LeafType::Time => LeafValues::Time(array.as_primitive().clone()),
            LeafType::String => LeafValues::String(array.as_string::<i32>().clone()),
            LeafType::Binary => LeafValues::Binary(array.as_binary::<i32>().clone()),
            LeafType::Uuid => LeafValues::Uuid(array.as_fixed_size_binary().clone()),
        };
        let width = match leaf_type {
            LeafType::Int8 => 1,
            LeafType::Int16 => 2,
            LeafType::Int32 | LeafType::Decimal { precision: 0..=9, .. } => 4,
            LeafType::Int64 | LeafType::Decimal { precision: 10..=18, .. } => 8,
            LeafType::Decimal { .. } => 16,
            _ => 0,
        };
        Ok(Leaf { array, values, width })
    }

    /// The value of a row that is not null.
    #[inline]
    pub fn scalar(&self, row: usize) -> Scalar<'_> {
        match &self.values {
            LeafValues::Boolean(a) => Scalar::Boolean(a.value(row)),
            LeafValues::Int8(a) => Scalar::Int(a.value(row) as i64),
            LeafValues::Int16(a) => Scalar::Int(a.value(row) as i64),
            LeafValues::Int32(a) => Scalar::Int(a.value(row) as i64),
            LeafValues::Int64(a) => Scalar::Int(a.value(row)),
            LeafValues::Float(a) => Scalar::Float(a.value(row)),
            LeafValues::Double(a) => Scalar::Double(a.value(row)),
            LeafValues::Decimal(a, _, scale) => Scalar::Decimal(a.value(row), *scale),
            LeafValues::Date(a) => Scalar::Date(a.value(row)),
            LeafValues::Micros(a, true) => Scalar::Timestamp(a.value(row)),
            LeafValues::Micros(a, false) => Scalar::TimestampNtz(a.value(row)),
            LeafValues::Nanos(a, true) => Scalar::TimestampNanos(a.value(row)),
            LeafValues::Nanos(a, false) => Scalar::TimestampNtzNanos(a.value(row)),
            LeafValues::Time(a) => Scalar::Time(a.value(row)),
            LeafValues::String(a) => Scalar::Str(a.value(row)),
            LeafValues::Coded(a) => Scalar::Str(a.value(row)),
            LeafValues::Binary(a) => Scalar::Binary(a.value(row)),
            LeafValues::Uuid(a) => {
                let mut bytes = [0u8; 16];
                bytes.copy_from_slice(a.value(row));
                Scalar::Uuid(u128::from_be_bytes(bytes))
            }
        }
    }

    /// The least bytes of its integers and decimals.
    pub fn width(&self) -> u8 {
        self.width
    }

    /// Appends the value of a row that is not null, in the column's own type: shredding widened it, and the
    /// specification reads it back as that type.
    #[inline]
    pub fn write(&self, row: usize, out: &mut Vec<u8>) {
        push_scalar(out, &self.scalar(row), self.width);
    }
}
