//! Casts and texts as Spark 4.2.1 gives them: `data/spark_casts.tsv` holds what `try_variant_get` and `to_json` made of
//! several hundred values in every type, with America/Los_Angeles as the session's zone (see `tests/spark`).

use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, TimeUnit, TimestampMicrosecondType,
};
use mica_kernel::codec::decode::VariantDecoder;
use mica_kernel::json::print::JsonPrinter;
use mica_kernel::names::Names;
use mica_kernel::tape::Tape;
use mica_kernel::text::java;
use mica_kernel::text::zone::Zone;
use mica_kernel::values::cast::CastBuilder;

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn target(name: &str) -> DataType {
    match name {
        "boolean" => DataType::Boolean,
        "tinyint" => DataType::Int8,
        "smallint" => DataType::Int16,
        "int" => DataType::Int32,
        "bigint" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "string" => DataType::Utf8,
        "binary" => DataType::Binary,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        decimal => {
            let (p, s) = decimal[8..decimal.len() - 1].split_once(',').unwrap();
            DataType::Decimal128(p.parse().unwrap(), s.parse().unwrap())
        }
    }
}

/// The value as the recording spells it.
fn shown(array: &dyn Array) -> String {
    if array.is_null(0) {
        return "-".into();
    }
    let text = match array.data_type() {
        DataType::Boolean => array.as_boolean().value(0).to_string(),
        DataType::Utf8 => hex(array.as_string::<i32>().value(0).as_bytes()),
        DataType::Binary => hex(array.as_binary::<i32>().value(0)),
        DataType::Float32 => hex(&array.as_primitive::<Float32Type>().value(0).to_be_bytes()),
        DataType::Float64 => hex(&array.as_primitive::<Float64Type>().value(0).to_be_bytes()),
        DataType::Date32 => array.as_primitive::<Date32Type>().value(0).to_string(),
        DataType::Timestamp(..) => array.as_primitive::<TimestampMicrosecondType>().value(0).to_string(),
        DataType::Decimal128(_, scale) => {
            let mut out = Vec::new();
            java::push_decimal(&mut out, array.as_primitive::<Decimal128Type>().value(0), *scale as u8);
            String::from_utf8(out).unwrap()
        }
        _ => arrow::util::display::array_value_to_string(array, 0).unwrap(),
    };
    format!("={text}")
}

/// The timestamp that a recorded `=today N` means: N microseconds of the wall clock of the day it is (or was, for a
/// test at midnight).
fn of_today(got: &str, expected: &str, zone: &Zone) -> Option<bool> {
    let micros: i64 = expected.strip_prefix("=today ")?.parse().unwrap();
    let seconds: i64 = got.strip_prefix('=')?.parse::<i64>().unwrap() / 1_000_000;
    let wall = |instant: i64| instant + zone.offset_at(instant) as i64;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let days = wall(now).div_euclid(86_400) - wall(seconds).div_euclid(86_400);
    Some(wall(seconds).rem_euclid(86_400) * 1_000_000 == micros && (0..=1).contains(&days))
}

#[test]
fn every_value_casts_to_every_type_as_in_spark() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/spark_casts.tsv");
    let recorded = std::fs::read_to_string(path).unwrap();
    let mut lines = recorded.lines();
    let types: Vec<&str> = lines.next().unwrap().split('\t').skip(2).collect();
    let zone = Zone::parse("America/Los_Angeles").unwrap();
    let (mut tape, mut names, mut decoder, mut printer) =
        (Tape::default(), Names::new(), VariantDecoder::new(), JsonPrinter::new());
    let (mut checked, mut wrong) = (0, Vec::new());
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let (value, metadata) = fields[0].split_once(':').unwrap();
        let (value, metadata) = (unhex(value), unhex(metadata));
        decoder.decode(&metadata, &value, &mut tape, &mut names).unwrap();
        let view = tape.view(&value, &names);
        let mut json = Vec::new();
        printer.print(&view, 0, &zone, &mut json).unwrap();
        let json = String::from_utf8(json).unwrap();
        let expected = String::from_utf8(unhex(fields[1])).unwrap();
        if json != expected && !java_17(&expected) {
            wrong.push(format!("{expected} to_json: {json}"));
        }
        for (name, expected_cast) in types.iter().zip(&fields[2..]) {
            let mut builder = CastBuilder::new(&target(name), zone).unwrap();
            builder.append_node(&view, 0).unwrap();
            let (values, failed) = builder.finish();
            let got = shown(values.as_ref());
            assert_eq!(failed.value(0), got == "-" && expected != "null");
            let text = if *name == "string" { String::from_utf8(unhex(&expected_cast[1..])).ok() } else { None };
            // Spark makes strings of bytes that are no UTF-8, which Arrow has no place for: here the cast fails.
            let bytes = *name == "string" && text.is_none();
            let same = of_today(&got, expected_cast, &zone).unwrap_or(got == *expected_cast);
            if !same && !bytes && !text.is_some_and(|t| java_17(&t)) {
                wrong.push(format!("{expected} as {name}: {got}, Spark {expected_cast}"));
            }
            checked += 1;
        }
    }
    assert!(checked > 4000);
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Java before 19 prints some numbers with more digits than they need; the recording was made with Java 17.
fn java_17(text: &str) -> bool {
    let shorter = |push: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        push(&mut out);
        out.len() < text.len()
    };
    text.contains('E')
        && (text.parse::<f64>().is_ok_and(|n| shorter(&|out| java::push_double(out, n)))
            || text.parse::<f32>().is_ok_and(|n| shorter(&|out| java::push_float(out, n))))
}
