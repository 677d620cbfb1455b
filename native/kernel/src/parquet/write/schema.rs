//! The Parquet schema that mica writes: every type by one table, variant columns as VARIANT(1), lists and
//! maps in their three-level spellings whatever Arrow calls their children.
//!
//! Ours and not arrow-rs' conversion, because that one annotates VARIANT without a version (Spark refuses it),
//! UUIDs not at all, and keeps Arrow's own names for list elements.

use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Schema, TimeUnit as ArrowUnit};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::layout::standard::{ELEMENT, is_variant};

/// Field metadata that holds a Parquet field id.
const FIELD_ID: &str = "PARQUET:field_id";

/// Field metadata that holds what Parquet says of a leaf and Arrow's type does not: UUID, JSON, BSON or ENUM.
pub const ANNOTATION: &str = "PARQUET:annotation";

/// The descriptor to hand to the writer with the Arrow schema.
pub fn parquet_schema(schema: &Schema) -> Result<SchemaDescriptor> {
    let fields = schema.fields().iter().map(|f| convert(f, false)).collect::<Result<Vec<_>>>()?;
    let root = Type::group_type_builder("schema").with_fields(fields).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

fn convert(field: &ArrowField, in_variant: bool) -> Result<TypePtr> {
    convert_as(field, field.name(), in_variant)
}

fn convert_as(field: &ArrowField, name: &str, in_variant: bool) -> Result<TypePtr> {
    let repetition = if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let id = field.metadata().get(FIELD_ID).and_then(|text| text.parse().ok());
    let group = |fields: Vec<TypePtr>, logical: Option<LogicalType>| {
        Type::group_type_builder(name)
            .with_fields(fields)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .with_id(id)
            .build()
    };
    let converted = match field.data_type() {
        DataType::Struct(fields) if fields.is_empty() => {
            return Err(unsupported(field, "Parquet has no empty groups"));
        }
        DataType::Struct(children) => {
            let variant = is_variant(field);
            let fields = children.iter().map(|f| convert(f, in_variant || variant)).collect::<Result<_>>()?;
            // The early layout came before the annotation.
            let standard = variant && Layout::of(children) == Layout::Standard;
            group(fields, standard.then(|| LogicalType::variant(Some(1))))
        }
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::FixedSizeList(element, _)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => {
            let list = repeated("list", vec![convert_as(element, ELEMENT, in_variant)?])?;
            group(vec![list], Some(LogicalType::List))
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else {
                return Err(unsupported(field, "a map's entries are a struct"));
            };
            let [key, value] = pair.as_ref() else {
                return Err(unsupported(field, "a map's entries are key and value"));
            };
            let key: FieldRef = Arc::new(key.as_ref().clone().with_nullable(false));
            let entries = vec![convert_as(&key, "key", in_variant)?, convert_as(value, "value", in_variant)?];
            group(vec![repeated("key_value", entries)?], Some(LogicalType::Map))
        }
        data_type => {
            let leaf = primitive(data_type, in_variant).ok_or_else(|| unsupported(field, "no Parquet type for it"))?;
            Type::primitive_type_builder(name, leaf.physical)
                .with_repetition(repetition)
                .with_logical_type(annotation(field, &leaf)?.or(leaf.logical))
                .with_length(leaf.length)
                .with_precision(leaf.precision)
                .with_scale(leaf.scale)
                .with_id(id)
                .build()
        }
    };
    Ok(Arc::new(converted?))
}

fn repeated(name: &str, fields: Vec<TypePtr>) -> Result<TypePtr> {
    let group = Type::group_type_builder(name).with_fields(fields).with_repetition(Repetition::REPEATED).build()?;
    Ok(Arc::new(group))
}

struct LeafSpelling {
    physical: Physical,
    logical: Option<LogicalType>,
    length: i32,
    precision: i32,
    scale: i32,
}

/// What the field's metadata says of the leaf.
fn annotation(field: &ArrowField, leaf: &LeafSpelling) -> Result<Option<LogicalType>> {
    let Some(said) = field.metadata().get(ANNOTATION) else { return Ok(None) };
    match (said.as_str(), leaf.physical, leaf.length) {
        ("UUID", Physical::FIXED_LEN_BYTE_ARRAY, 16) => Ok(Some(LogicalType::Uuid)),
        ("JSON", Physical::BYTE_ARRAY, _) => Ok(Some(LogicalType::Json)),
        ("BSON", Physical::BYTE_ARRAY, _) => Ok(Some(LogicalType::Bson)),
        ("ENUM", Physical::BYTE_ARRAY, _) => Ok(Some(LogicalType::Enum)),
        _ => Err(unsupported(field, &format!("the annotation {said} is not written"))),
    }
}

/// The table of leaf types. A UUID is told from other 16 bytes only inside a variant.
fn primitive(data_type: &DataType, in_variant: bool) -> Option<LeafSpelling> {
    let leaf = |physical, logical| Some(LeafSpelling { physical, logical, length: -1, precision: -1, scale: -1 });
    let integer = |bit_width| Some(LogicalType::integer(bit_width, true));
    let timestamp = |utc, unit| leaf(Physical::INT64, Some(LogicalType::timestamp(utc, unit)));
    match data_type {
        DataType::Boolean => leaf(Physical::BOOLEAN, None),
        DataType::Int8 => leaf(Physical::INT32, integer(8)),
        DataType::Int16 => leaf(Physical::INT32, integer(16)),
        DataType::Int32 => leaf(Physical::INT32, None),
        DataType::Int64 => leaf(Physical::INT64, None),
        // Not of Delta nor of variants: columns of bare files, which a rewrite leaves as they are.
        DataType::UInt8 if !in_variant => leaf(Physical::INT32, Some(LogicalType::integer(8, false))),
        DataType::UInt16 if !in_variant => leaf(Physical::INT32, Some(LogicalType::integer(16, false))),
        DataType::UInt32 if !in_variant => leaf(Physical::INT32, Some(LogicalType::integer(32, false))),
        DataType::UInt64 if !in_variant => leaf(Physical::INT64, Some(LogicalType::integer(64, false))),
        DataType::Timestamp(ArrowUnit::Millisecond, zone) if !in_variant => timestamp(zone.is_some(), TimeUnit::MILLIS),
        DataType::Time32(ArrowUnit::Millisecond) if !in_variant => {
            leaf(Physical::INT32, Some(LogicalType::time(false, TimeUnit::MILLIS)))
        }
        DataType::Time64(ArrowUnit::Nanosecond) if !in_variant => {
            leaf(Physical::INT64, Some(LogicalType::time(false, TimeUnit::NANOS)))
        }
        DataType::Float32 => leaf(Physical::FLOAT, None),
        DataType::Float64 => leaf(Physical::DOUBLE, None),
        DataType::Date32 => leaf(Physical::INT32, Some(LogicalType::Date)),
        DataType::Timestamp(ArrowUnit::Microsecond, zone) => timestamp(zone.is_some(), TimeUnit::MICROS),
        DataType::Timestamp(ArrowUnit::Nanosecond, zone) => timestamp(zone.is_some(), TimeUnit::NANOS),
        DataType::Time64(ArrowUnit::Microsecond) => {
            leaf(Physical::INT64, Some(LogicalType::time(false, TimeUnit::MICROS)))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            leaf(Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => leaf(Physical::BYTE_ARRAY, None),
        DataType::FixedSizeBinary(length) => Some(LeafSpelling {
            physical: Physical::FIXED_LEN_BYTE_ARRAY,
            logical: (in_variant && *length == 16).then_some(LogicalType::Uuid),
            length: *length,
            precision: -1,
            scale: -1,
        }),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => Some(decimal(*precision, *scale)),
        DataType::Dictionary(_, value) => primitive(value, in_variant),
        _ => None,
    }
}

/// Decimals of up to 9 and 18 digits are integers, as Spark writes them.
fn decimal(precision: u8, scale: i8) -> LeafSpelling {
    let (physical, length) = match precision {
        0..=9 => (Physical::INT32, -1),
        10..=18 => (Physical::INT64, -1),
        _ => (Physical::FIXED_LEN_BYTE_ARRAY, decimal_bytes(precision)),
    };
    LeafSpelling {
        physical,
        logical: Some(LogicalType::decimal(scale.into(), precision.into())),
        length,
        precision: precision.into(),
        scale: scale.into(),
    }
}

/// The fewest bytes whose signed numbers hold so many digits.
fn decimal_bytes(precision: u8) -> i32 {
    let most = 10_i128.checked_pow(precision.into()).map_or(i128::MAX, |power| power - 1);
    let bits = 128 - most.leading_zeros() as i32 + 1;
    (bits + 7) / 8
}

fn unsupported(field: &ArrowField, why: &str) -> Error {
    let message = format!("column {:?} of type {} cannot be written: {why}", field.name(), field.data_type());
    Error::new(Code::UnsupportedType, message).path(field.name())
}
