//! Physical values of bounds, as the footer and the page index hold them, and as arrays of their column's type.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, ArrowTimestampType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Time32MillisecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, Int64Array, PrimitiveArray, StringArray,
    new_null_array,
};
use arrow_schema::{DataType, TimeUnit};

use crate::error::Result;

/// A physical value.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    Boolean(bool),
    Int(i64),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
}

/// Physical values as an array of the leaf's type, and which of them could be read as one.
pub fn raw_array<'a>(
    data_type: &DataType,
    raws: impl Iterator<Item = Option<&'a Raw>>,
) -> Result<(ArrayRef, Vec<bool>)> {
    let raws: Vec<Option<&Raw>> = raws.collect();
    let int = |raw: &&Raw| match raw {
        Raw::Int(v) => Some(*v),
        _ => None,
    };
    let bytes = |raw: &&'a Raw| match raw {
        Raw::Bytes(v) => Some(v.as_slice()),
        _ => None,
    };
    let ints = || raws.iter().map(|r| r.as_ref().and_then(int)).collect::<Int64Array>();
    let array: ArrayRef = match data_type {
        DataType::Boolean => Arc::new(
            raws.iter()
                .map(|r| match r {
                    Some(Raw::Boolean(v)) => Some(*v),
                    _ => None,
                })
                .collect::<BooleanArray>(),
        ),
        DataType::Int8 => narrowed::<Int8Type>(&ints()),
        DataType::Int16 => narrowed::<Int16Type>(&ints()),
        DataType::Int32 => narrowed::<Int32Type>(&ints()),
        DataType::Int64 => Arc::new(ints()),
        DataType::Date32 => narrowed::<Date32Type>(&ints()),
        DataType::Time32(TimeUnit::Millisecond) => narrowed::<Time32MillisecondType>(&ints()),
        DataType::Time64(TimeUnit::Nanosecond) => Arc::new(ints().reinterpret_cast::<Time64NanosecondType>()),
        DataType::Time64(TimeUnit::Microsecond) => Arc::new(ints().reinterpret_cast::<Time64MicrosecondType>()),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => stamps::<TimestampMillisecondType>(&ints(), zone),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => stamps::<TimestampMicrosecondType>(&ints(), zone),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => stamps::<TimestampNanosecondType>(&ints(), zone),
        DataType::Float32 => Arc::new(
            raws.iter()
                .map(|r| match r {
                    Some(Raw::Float(v)) if !v.is_nan() => Some(*v),
                    _ => None,
                })
                .collect::<PrimitiveArray<Float32Type>>(),
        ),
        DataType::Float64 => Arc::new(
            raws.iter()
                .map(|r| match r {
                    Some(Raw::Double(v)) if !v.is_nan() => Some(*v),
                    _ => None,
                })
                .collect::<PrimitiveArray<Float64Type>>(),
        ),
        DataType::Decimal128(precision, scale) => Arc::new(
            raws.iter()
                .map(|r| match r {
                    Some(Raw::Int(v)) => Some(*v as i128),
                    Some(Raw::Bytes(v)) => big_endian(v),
                    _ => None,
                })
                .collect::<PrimitiveArray<Decimal128Type>>()
                .with_precision_and_scale(*precision, *scale)?,
        ),
        DataType::Utf8 => Arc::new(
            raws.iter()
                .map(|r| r.as_ref().and_then(bytes).and_then(|b| std::str::from_utf8(b).ok()))
                .collect::<StringArray>(),
        ),
        DataType::Binary => Arc::new(raws.iter().map(|r| r.as_ref().and_then(bytes)).collect::<BinaryArray>()),
        DataType::FixedSizeBinary(width) => {
            let values = raws.iter().map(|r| r.as_ref().and_then(bytes).filter(|b| b.len() == *width as usize));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, *width)?)
        }
        other => new_null_array(other, raws.len()),
    };
    let good = (0..raws.len()).map(|i| array.is_valid(i)).collect();
    Ok((array, good))
}

/// Those that do not fit are null.
fn narrowed<T: ArrowPrimitiveType<Native: TryFrom<i64>>>(ints: &Int64Array) -> ArrayRef {
    Arc::new(ints.unary_opt::<_, T>(|value| value.try_into().ok()))
}

fn stamps<T: ArrowTimestampType>(ints: &Int64Array, zone: &Option<Arc<str>>) -> ArrayRef {
    Arc::new(ints.reinterpret_cast::<T>().with_timezone_opt(zone.clone()))
}

fn big_endian(bytes: &[u8]) -> Option<i128> {
    if bytes.is_empty() || bytes.len() > 16 {
        return None;
    }
    let mut wide = [if bytes[0] & 0x80 != 0 { 0xff } else { 0 }; 16];
    wide[16 - bytes.len()..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}
