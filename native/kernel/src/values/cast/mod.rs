//! A scalar as any type of Spark, as `variant_get` casts it: which pairs of types there are is Spark's ANSI table,
//! a value that does not fit fails (its row is marked, its value null), a Variant null is null and never fails.

pub mod number;
pub mod text;
pub mod time;

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder,
    GenericByteBuilder, Int8Builder, Int16Builder, Int32Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::types::ByteArrayType;
use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType, TimeUnit};

use crate::error::{Code, Error, Result};
use crate::json::print::JsonPrinter;
use crate::tape::{Scalar, TapeView};
use crate::text::java;
use crate::text::zone::Zone;
use crate::values::bytes::append;

/// Collects casts of one column.
pub struct CastBuilder {
    values: Values,
    failed: BooleanBufferBuilder,
    zone: Zone,
    printer: JsonPrinter,
    buffer: Vec<u8>,
}

enum Values {
    Boolean(BooleanBuilder),
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, u8, u8),
    String(StringBuilder),
    Binary(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    TimestampNtz(TimestampMicrosecondBuilder),
}

/// Appends an optional value and says whether it was there.
macro_rules! put {
    ($builder:expr, $value:expr) => {{
        let value = $value;
        $builder.append_option(value);
        value.is_some()
    }};
}

/// The same for texts and bytes.
fn put_bytes<T: ByteArrayType<Offset = i32>>(
    builder: &mut GenericByteBuilder<T>,
    value: Option<&T::Native>,
) -> Result<bool> {
    match value {
        Some(value) => append(builder, value)?,
        None => builder.append_null(),
    }
    Ok(value.is_some())
}

impl CastBuilder {
    /// For the types that Spark can cast a Variant to, in Arrow's spelling; `zone` is the session's.
    pub fn new(target: &DataType, zone: Zone) -> Result<Self> {
        let values = match target {
            DataType::Boolean => Values::Boolean(BooleanBuilder::new()),
            DataType::Int8 => Values::Int8(Int8Builder::new()),
            DataType::Int16 => Values::Int16(Int16Builder::new()),
            DataType::Int32 => Values::Int32(Int32Builder::new()),
            DataType::Int64 => Values::Int64(Int64Builder::new()),
            DataType::Float32 => Values::Float(Float32Builder::new()),
            DataType::Float64 => Values::Double(Float64Builder::new()),
            DataType::Decimal128(precision, scale) if (0..=*precision as i8).contains(scale) => Values::Decimal(
                Decimal128Builder::new().with_precision_and_scale(*precision, *scale)?,
                *precision,
                *scale as u8,
            ),
            DataType::Utf8 => Values::String(StringBuilder::new()),
            DataType::Binary => Values::Binary(BinaryBuilder::new()),
            DataType::Date32 => Values::Date(Date32Builder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, Some(name)) => {
                Values::Timestamp(TimestampMicrosecondBuilder::new().with_timezone(name.clone()))
            }
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                Values::TimestampNtz(TimestampMicrosecondBuilder::new())
            }
            other => {
                let message = format!("a variant path cannot be cast to {other}");
                return Err(Error::new(Code::UnsupportedType, message));
            }
        };
        let failed = BooleanBufferBuilder::new(0);
        Ok(CastBuilder { values, failed, zone, printer: JsonPrinter::new(), buffer: Vec::new() })
    }

    pub fn len(&self) -> usize {
        self.failed.len()
    }

    pub fn is_empty(&self) -> bool {
        self.failed.is_empty()
    }

    /// Appends the cast of a scalar; a Variant null gives null. Says whether there was a cast.
    #[inline]
    pub fn append(&mut self, scalar: &Scalar) -> Result<bool> {
        if *scalar == Scalar::Null {
            self.append_null();
            return Ok(true);
        }
        let zone = &self.zone;
        let done = match &mut self.values {
            Values::Boolean(b) => put!(b, to_bool(scalar)),
            Values::Int8(b) => put!(b, number::to_i32(scalar).and_then(|v| i8::try_from(v).ok())),
            Values::Int16(b) => put!(b, number::to_i32(scalar).and_then(|v| i16::try_from(v).ok())),
            Values::Int32(b) => put!(b, number::to_i32(scalar)),
            Values::Int64(b) => put!(b, number::to_i64(scalar)),
            Values::Float(b) => put!(b, number::to_f32(scalar)),
            Values::Double(b) => put!(b, number::to_f64(scalar)),
            Values::Decimal(b, precision, scale) => put!(b, number::to_decimal(scalar, *precision, *scale)),
            Values::Date(b) => put!(b, time::to_date(scalar, zone)),
            Values::Timestamp(b) => put!(b, time::to_timestamp(scalar, zone)),
            Values::TimestampNtz(b) => put!(b, time::to_timestamp_ntz(scalar, zone)),
            Values::String(b) => match scalar {
                Scalar::Str(text) => put_bytes(b, Some(text))?,
                _ => {
                    self.buffer.clear();
                    let text =
                        push_text(scalar, zone, &mut self.buffer).and_then(|()| std::str::from_utf8(&self.buffer).ok());
                    put_bytes(b, text)?
                }
            },
            Values::Binary(b) => {
                let bytes = match scalar {
                    Scalar::Binary(bytes) => Some(*bytes),
                    Scalar::Str(text) => Some(text.as_bytes()),
                    _ => None,
                };
                put_bytes(b, bytes)?
            }
        };
        self.failed.append(!done);
        Ok(done)
    }

    /// Appends the node at `at` of a tape: an object or array is JSON text for strings and fails otherwise. Says
    /// whether there was a cast.
    pub fn append_node(&mut self, view: &TapeView, at: usize) -> Result<bool> {
        match view.nodes.get(at).map(|node| view.scalar(node)) {
            Some(Some(scalar)) => self.append(&scalar),
            Some(None) => match &mut self.values {
                Values::String(builder) => {
                    self.buffer.clear();
                    self.printer.print(view, at, &self.zone, &mut self.buffer)?;
                    let done = put_bytes(builder, std::str::from_utf8(&self.buffer).ok())?;
                    self.failed.append(!done);
                    Ok(done)
                }
                _ => {
                    self.append_failed();
                    Ok(false)
                }
            },
            None => {
                self.append_null();
                Ok(true)
            }
        }
    }

    /// Appends the text of an object or array, which `print` writes; no other type has a cast of it.
    pub fn append_text(&mut self, print: impl FnOnce(&Zone, &mut Vec<u8>) -> Result<()>) -> Result<()> {
        self.buffer.clear();
        print(&self.zone, &mut self.buffer)?;
        let text = std::str::from_utf8(&self.buffer).ok();
        match (&mut self.values, text) {
            (Values::String(builder), Some(text)) => {
                append(builder, text)?;
                self.failed.append(false);
            }
            _ => self.append_failed(),
        }
        Ok(())
    }

    /// A path that is missing, or null: no failure.
    pub fn append_null(&mut self) {
        self.push_null();
        self.failed.append(false);
    }

    /// A value that has no cast to the target.
    pub fn append_failed(&mut self) {
        self.push_null();
        self.failed.append(true);
    }

    fn push_null(&mut self) {
        match &mut self.values {
            Values::Boolean(b) => b.append_null(),
            Values::Int8(b) => b.append_null(),
            Values::Int16(b) => b.append_null(),
            Values::Int32(b) => b.append_null(),
            Values::Int64(b) => b.append_null(),
            Values::Float(b) => b.append_null(),
            Values::Double(b) => b.append_null(),
            Values::Decimal(b, ..) => b.append_null(),
            Values::String(b) => b.append_null(),
            Values::Binary(b) => b.append_null(),
            Values::Date(b) => b.append_null(),
            Values::Timestamp(b) | Values::TimestampNtz(b) => b.append_null(),
        }
    }

    /// The values (null where missing, null or failed) and the mask of failed casts; begins anew.
    pub fn finish(&mut self) -> (ArrayRef, BooleanArray) {
        let values: ArrayRef = match &mut self.values {
            Values::Boolean(b) => Arc::new(b.finish()),
            Values::Int8(b) => Arc::new(b.finish()),
            Values::Int16(b) => Arc::new(b.finish()),
            Values::Int32(b) => Arc::new(b.finish()),
            Values::Int64(b) => Arc::new(b.finish()),
            Values::Float(b) => Arc::new(b.finish()),
            Values::Double(b) => Arc::new(b.finish()),
            Values::Decimal(b, ..) => Arc::new(b.finish()),
            Values::String(b) => Arc::new(b.finish()),
            Values::Binary(b) => Arc::new(b.finish()),
            Values::Date(b) => Arc::new(b.finish()),
            Values::Timestamp(b) | Values::TimestampNtz(b) => Arc::new(b.finish()),
        };
        (values, BooleanArray::new(self.failed.finish(), None))
    }
}

fn to_bool(scalar: &Scalar) -> Option<bool> {
    match *scalar {
        Scalar::Boolean(v) => Some(v),
        Scalar::Int(v) => Some(v != 0),
        Scalar::Decimal(v, _) => Some(v != 0),
        Scalar::Float(v) => Some(v != 0.0),
        Scalar::Double(v) => Some(v != 0.0),
        Scalar::Str(s) => text::to_bool(s),
        _ => None,
    }
}

/// A scalar as text: like `to_json` without quotes, but times without an offset, and binary as it is.
fn push_text(scalar: &Scalar, zone: &Zone, out: &mut Vec<u8>) -> Option<()> {
    match *scalar {
        Scalar::Timestamp(v) => java::push_local(out, v, 1_000_000, zone.offset_at(v.div_euclid(1_000_000))),
        Scalar::TimestampNanos(v) => {
            java::push_local(out, v, 1_000_000_000, zone.offset_at(v.div_euclid(1_000_000_000)))
        }
        Scalar::Binary(bytes) => out.extend_from_slice(bytes),
        _ => crate::json::print::push_plain(out, scalar, zone),
    }
    Some(())
}
