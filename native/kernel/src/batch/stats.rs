//! Leaves of many statistics, column by column (Delta protocol, "Per-file Statistics").
//!
//! Statistics are hints: a text that is no JSON object gives nulls, and so does a value that does not fit its type.

use std::sync::Arc;

use arrow_array::builder::{Decimal128Builder, PrimitiveBuilder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use crate::batch::bounds::PathBounds;
use crate::batch::stats_shape::Shapes;
use crate::batch::stats_walk::{Token, Walk, literal_end};
use crate::error::{Code, Error, Result};
use crate::json::scan::unescape;
use crate::text::zone::{days_from_civil, days_in_month};

/// What a leaf is read as: a value of this type, or the z85 text of a Variant's bounds, for those of this path.
pub enum Kind {
    Value(DataType),
    Bounds(String),
}

/// A leaf to be read: the keys that lead to it, and as what.
pub type Leaf = (Vec<String>, Kind);

/// The leaves of column 0 (texts of JSON objects), a column each; null where a text has no such value. Bounds are a
/// struct of the columns that `all_bounds` has of one.
pub fn stats_leaves(batch: &RecordBatch, leaves: &[Leaf]) -> Result<RecordBatch> {
    let Some(texts) = batch.columns().first().and_then(|column| column.as_string_opt::<i32>()) else {
        return Err(Error::new(Code::InvalidArgument, "expected a column of strings"));
    };
    let mut order: Vec<usize> = (0..leaves.len()).collect();
    order.sort_by(|&a, &b| leaves.get(a).map(|l| &l.0).cmp(&leaves.get(b).map(|l| &l.0)));
    let sorted: Vec<&Leaf> = order.iter().filter_map(|&i| leaves.get(i)).collect();
    let mut walk = Walk::new(&sorted.iter().map(|leaf| leaf.0.as_slice()).collect::<Vec<_>>());
    let mut shapes = Shapes::default();
    let mut scratch = Vec::new();
    // Bounds of several paths stand in one text: a column of ours for all of them.
    let together = sorted.chunk_by(|a, b| a.0 == b.0 && matches!((&a.1, &b.1), (Kind::Bounds(_), Kind::Bounds(_))));
    let mut first = 0;
    let mut columns = Vec::new();
    for leaves in together {
        columns.push((first, Column::new(leaves, texts.len())?));
        first += leaves.len();
    }
    for text in texts.iter() {
        let text = text.unwrap_or("");
        shapes.read(&mut walk, text.as_bytes());
        for (leaf, column) in &mut columns {
            column.push(text, walk.found.get(*leaf).copied().unwrap_or(Token::Missing), &mut scratch);
        }
    }
    let mut arrays = Vec::with_capacity(leaves.len());
    for (_, column) in columns {
        column.finish(&mut arrays)?;
    }
    let mut arrays: Vec<(usize, ArrayRef)> = order.into_iter().zip(arrays).collect();
    arrays.sort_by_key(|(place, _)| *place);
    let fields: Vec<Field> =
        arrays.iter().map(|(i, array)| Field::new(i.to_string(), array.data_type().clone(), true)).collect();
    let columns = arrays.into_iter().map(|(_, array)| array).collect();
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(texts.len()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

enum Column {
    I8(PrimitiveBuilder<Int8Type>),
    I16(PrimitiveBuilder<Int16Type>),
    I32(PrimitiveBuilder<Int32Type>),
    I64(PrimitiveBuilder<Int64Type>),
    F32(PrimitiveBuilder<Float32Type>),
    F64(PrimitiveBuilder<Float64Type>),
    Text(StringBuilder),
    Date(PrimitiveBuilder<Date32Type>),
    Timestamp(TimestampMicrosecondBuilder, bool),
    Decimal(Decimal128Builder, u8, i8),
    Bounds(PathBounds),
}

impl Column {
    /// For leaves that are one value: bounds of several paths, or any one leaf.
    fn new(leaves: &[&Leaf], rows: usize) -> Result<Self> {
        let paths = leaves.iter().filter_map(|(_, kind)| match kind {
            Kind::Bounds(path) => Some(path.clone()),
            Kind::Value(_) => None,
        });
        match leaves {
            [(_, Kind::Value(data_type))] => Self::of_values(data_type, rows),
            _ => Ok(Column::Bounds(PathBounds::new(paths, rows))),
        }
    }

    fn of_values(data_type: &DataType, rows: usize) -> Result<Self> {
        Ok(match data_type {
            DataType::Int8 => Column::I8(PrimitiveBuilder::with_capacity(rows)),
            DataType::Int16 => Column::I16(PrimitiveBuilder::with_capacity(rows)),
            DataType::Int32 => Column::I32(PrimitiveBuilder::with_capacity(rows)),
            DataType::Int64 => Column::I64(PrimitiveBuilder::with_capacity(rows)),
            DataType::Float32 => Column::F32(PrimitiveBuilder::with_capacity(rows)),
            DataType::Float64 => Column::F64(PrimitiveBuilder::with_capacity(rows)),
            DataType::Utf8 => Column::Text(StringBuilder::with_capacity(rows, 0)),
            DataType::Date32 => Column::Date(PrimitiveBuilder::with_capacity(rows)),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => Column::Timestamp(
                TimestampMicrosecondBuilder::with_capacity(rows).with_data_type(data_type.clone()),
                zone.is_some(),
            ),
            DataType::Decimal128(precision, scale) if *scale >= 0 => Column::Decimal(
                Decimal128Builder::with_capacity(rows).with_data_type(data_type.clone()),
                *precision,
                *scale,
            ),
            other => {
                let message = format!("statistics have no values of type {other}");
                return Err(Error::new(Code::InvalidArgument, message));
            }
        })
    }

    fn push(&mut self, text: &str, token: Token, scratch: &mut Vec<u8>) {
        let number = match token {
            Token::Number(start, end) => text.get(start..end),
            _ => None,
        };
        let plain = match token {
            Token::Plain(start, end) => text.get(start..end),
            _ => None,
        };
        match self {
            Column::I8(builder) => whole(builder, number),
            Column::I16(builder) => whole(builder, number),
            Column::I32(builder) => whole(builder, number),
            Column::I64(builder) => whole(builder, number),
            Column::F32(builder) => builder.append_option(real(number, plain).map(|value| value as f32)),
            Column::F64(builder) => builder.append_option(real(number, plain)),
            Column::Text(builder) => builder.append_option(plain.or_else(|| unescaped(text, token, scratch))),
            Column::Bounds(bounds) => bounds.push(plain.or_else(|| unescaped(text, token, scratch))),
            Column::Date(builder) => builder.append_option(plain.and_then(|text| day(text.as_bytes()))),
            Column::Timestamp(builder, utc) => {
                let found = plain.and_then(|text| instant(text.as_bytes())).filter(|(_, zoned)| zoned == utc);
                builder.append_option(found.map(|(micros, _)| micros));
            }
            Column::Decimal(builder, precision, scale) => {
                builder.append_option(number.or(plain).and_then(|text| decimal(text, *precision, *scale)));
            }
        }
    }

    /// Appends an array for each of the leaves.
    fn finish(self, arrays: &mut Vec<ArrayRef>) -> Result<()> {
        arrays.push(match self {
            Column::I8(mut builder) => Arc::new(builder.finish()),
            Column::I16(mut builder) => Arc::new(builder.finish()),
            Column::I32(mut builder) => Arc::new(builder.finish()),
            Column::I64(mut builder) => Arc::new(builder.finish()),
            Column::F32(mut builder) => Arc::new(builder.finish()),
            Column::F64(mut builder) => Arc::new(builder.finish()),
            Column::Text(mut builder) => Arc::new(builder.finish()),
            Column::Date(mut builder) => Arc::new(builder.finish()),
            Column::Timestamp(mut builder, _) => Arc::new(builder.finish()),
            Column::Decimal(mut builder, ..) => Arc::new(builder.finish()),
            Column::Bounds(bounds) => {
                for array in bounds.finish() {
                    arrays.push(Arc::new(array?));
                }
                return Ok(());
            }
        });
        Ok(())
    }
}

/// A string with escapes.
fn unescaped<'a>(text: &str, token: Token, scratch: &'a mut Vec<u8>) -> Option<&'a str> {
    let Token::Escaped(start) = token else { return None };
    scratch.clear();
    unescape(text.as_bytes(), start, scratch).ok()?;
    std::str::from_utf8(scratch).ok()
}

fn whole<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>, number: Option<&str>)
where
    T::Native: std::str::FromStr,
{
    builder.append_option(number.and_then(|text| text.parse().ok()));
}

fn real(number: Option<&str>, text: Option<&str>) -> Option<f64> {
    match (number, text) {
        (Some(number), _) => number.parse().ok().filter(|value: &f64| value.is_finite()),
        (_, Some("Infinity")) => Some(f64::INFINITY),
        (_, Some("-Infinity")) => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// The number of `count` digits at `at`.
fn digits(text: &[u8], at: usize, count: usize) -> Option<i64> {
    let bytes = text.get(at..at + count)?;
    bytes.iter().all(u8::is_ascii_digit).then(|| bytes.iter().fold(0, |sum, b| sum * 10 + (b - b'0') as i64))
}

/// Days since the epoch of a text that begins with a date, `2020-05-01`.
fn day(text: &[u8]) -> Option<i32> {
    let (year, month, day) = (digits(text, 0, 4)?, digits(text, 5, 2)?, digits(text, 8, 2)?);
    (text.get(4)? == &b'-' && text.get(7)? == &b'-' && year > 0 && (1..=12).contains(&month)).then_some(())?;
    (day >= 1 && day <= days_in_month(year, month as u32) as i64).then_some(())?;
    i32::try_from(days_from_civil(year, month as u32, day as u32)).ok()
}

/// Microseconds of `2020-05-01T10:00:00.123Z` since the epoch, and whether the text names a zone; what a text has
/// beyond microseconds is cut off.
fn instant(text: &[u8]) -> Option<(i64, bool)> {
    let days = day(text)? as i64;
    (matches!(text.get(10)?, b'T' | b' ') && text.get(13)? == &b':').then_some(())?;
    let (hour, minute) = (digits(text, 11, 2)?, digits(text, 14, 2)?);
    let (mut second, mut micros, mut at) = (0, 0, 16);
    if text.get(at) == Some(&b':') {
        second = digits(text, 17, 2)?;
        at = 19;
        if text.get(at) == Some(&b'.') {
            let count = text.get(20..)?.iter().take_while(|b| b.is_ascii_digit()).count();
            (1..=9).contains(&count).then_some(())?;
            micros = digits(text, 20, count.min(6))? * 10_i64.pow(6 - count.min(6) as u32);
            at = 20 + count;
        }
    }
    (hour < 24 && minute < 60 && second < 60).then_some(())?;
    let (east, zoned) = match text.get(at..)? {
        [] => (0, false),
        [b'Z'] => (0, true),
        [sign @ (b'+' | b'-'), rest @ ..] => {
            let colon = (rest.get(2) == Some(&b':')) as usize;
            (rest.len() == 4 + colon).then_some(())?;
            let seconds = digits(rest, 0, 2)? * 3600 + digits(rest, 2 + colon, 2)? * 60;
            (if *sign == b'-' { -seconds } else { seconds }, true)
        }
        _ => return None,
    };
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - east;
    Some((seconds * 1_000_000 + micros, zoned))
}

/// The unscaled value of a decimal that fits the type without rounding. Java spells small ones with an exponent.
fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    (literal_end(text.as_bytes(), 0) == Some(text.len())).then_some(())?;
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let shift = (scale as i32).checked_add(exponent)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let mut value: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit) {
        value = value.checked_mul(10)?.checked_add((digit - b'0') as i128)?;
    }
    if value != 0 {
        value = value.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)?;
    }
    (value < 10_i128.checked_pow(precision as u32)?).then_some(if text.starts_with('-') { -value } else { value })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use arrow::util::display::array_value_to_string;
    use arrow_array::StringArray;

    use super::*;

    fn read(text: &str, keys: &[&str], data_type: DataType) -> Option<String> {
        let batch = RecordBatch::try_from_iter([("s", Arc::new(StringArray::from(vec![text])) as ArrayRef)]).unwrap();
        let leaf = (keys.iter().map(|key| key.to_string()).collect(), Kind::Value(data_type));
        let found = stats_leaves(&batch, &[leaf]).unwrap();
        let array = found.column(0);
        array.is_valid(0).then(|| array_value_to_string(array, 0).unwrap())
    }

    #[test]
    fn a_leaf_is_found_below_its_keys_and_the_last_of_two_counts() {
        let text = r#" {"a":{"b":1,"c":[{"b":2}],"b":3},"x":{"b":9},"a\u0062":{"q":"\"z\u00e9"}} "#;
        assert_eq!(read(text, &["a", "b"], DataType::Int64).as_deref(), Some("3"));
        assert_eq!(read(text, &["ab", "q"], DataType::Utf8).as_deref(), Some("\"zé"));
        for keys in [&["a"][..], &["a", "c"], &["a", "b", "c"], &["q"]] {
            assert_eq!(read(text, keys, DataType::Int64), None);
        }
        let twice = r#"{"a":{"b":1},"a":{"c":2}}"#;
        assert_eq!(read(twice, &["a", "b"], DataType::Int64), None);
        assert_eq!(read(twice, &["a", "c"], DataType::Int64).as_deref(), Some("2"));
    }

    #[test]
    fn a_text_that_is_no_whole_object_says_nothing() {
        let whole = r#"{"a":1,"b":{"c":[1,"]"]}}"#;
        assert!(read(whole, &["a"], DataType::Int64).is_some());
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end], &["a"], DataType::Int64), None, "{}", &whole[..end]);
        }
        for text in ["", "[]", "1", r#"{"a":1}x"#, r#"{"a":1,}"#, r#"{,"a":1}"#, r#"{"a":1 "b":2}"#, r#"{"a":1,"b":x}"#]
        {
            assert_eq!(read(text, &["a"], DataType::Int64), None, "{text}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_its_type_is_unknown() {
        let typed = |value: &str, data_type: DataType| read(&format!(r#"{{"a":{value}}}"#), &["a"], data_type);
        let utc = || DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
        let local = DataType::Timestamp(TimeUnit::Microsecond, None);
        for (value, data_type, shown) in [
            ("127", DataType::Int8, Some("127")),
            ("128", DataType::Int8, None),
            ("-9223372036854775808", DataType::Int64, Some("-9223372036854775808")),
            ("1.0", DataType::Int64, None),
            ("\"1\"", DataType::Int64, None),
            ("true", DataType::Int64, None),
            ("0.1", DataType::Float64, Some("0.1")),
            ("1e400", DataType::Float64, None),
            ("\"-Infinity\"", DataType::Float64, Some("-inf")),
            ("\"NaN\"", DataType::Float64, None),
            ("\"2020-02-29\"", DataType::Date32, Some("2020-02-29")),
            ("\"2021-02-29\"", DataType::Date32, None),
            ("\"0000-01-01\"", DataType::Date32, None),
            ("\"2020-05-01T10:00:00.1234567Z\"", utc(), Some("2020-05-01T10:00:00.123456Z")),
            ("\"2020-05-01 10:00+01:30\"", utc(), Some("2020-05-01T08:30:00Z")),
            ("\"2020-05-01T10:00:00.123\"", utc(), None),
            ("\"2020-05-01T10:00:00\"", local.clone(), Some("2020-05-01T10:00:00")),
            ("\"2020-05-01T24:00:00\"", local, None),
            ("1.5", DataType::Decimal128(3, 2), Some("1.50")),
            ("1.234", DataType::Decimal128(9, 2), None),
            ("0E-10", DataType::Decimal128(9, 2), Some("0.00")),
            ("1.000E-7", DataType::Decimal128(20, 10), Some("0.0000001000")),
            ("12345", DataType::Decimal128(4, 0), None),
            ("\"-7\"", DataType::Decimal128(4, 1), Some("-7.0")),
            ("1e9999999999", DataType::Decimal128(4, 1), None),
        ] {
            assert_eq!(typed(value, data_type.clone()).as_deref(), shown, "{value} as {data_type}");
        }
    }
}
