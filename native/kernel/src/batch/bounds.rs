//! Bounds of Variant paths, as the statistics of a log have them: z85 text of metadata and an object, its keys normalized
//! paths (Delta RFC "Variant Shredding", "Statistics for Variant Columns").
//!
//! Statistics are hints, so a bound that is damaged, or of a type without an order, is no bound, and never an error.
//! Metadata and value come in either order, with up to three zero bytes after them. Files of one writer share their
//! metadata: the path is looked up once for each run of equal metadata.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, Decimal128Builder, Float64Array, Int8Builder, Int64Array, Int64Builder,
    NullBufferBuilder, RecordBatch, StringBuilder, StructArray, UInt8Array, new_null_array,
};
use arrow::datatypes::{DataType, Field, Fields, Schema};

use crate::codec::children::{Children, id};
use crate::codec::head::{check_decimal, head, length, scalar};
use crate::codec::metadata;
use crate::error::{Code, Error, Result};
use crate::tape::Scalar;
use crate::text::z85;

/// The classes of bounds, as numbers in the column `kind`; bounds of different classes are not compared.
const EXACT: u8 = 1;
const DOUBLE: u8 = 2;
const FLOAT: u8 = 3;
const STRING: u8 = 4;
const DATE: u8 = 5;
const TIMESTAMP: u8 = 6;
const TIMESTAMP_NTZ: u8 = 7;

/// The bounds of the path `key` in column 0, z85 texts: one row per text, its `kind` 0 where there is none. Without a key
/// one row per bound, after its `row` and `path`. A value is in the column of its kind: `int` (whole numbers, days,
/// microseconds), `real`, `text`, or `unscaled` and `scale`.
pub fn path_bounds(batch: &RecordBatch, key: Option<&str>) -> Result<RecordBatch> {
    let texts = texts(batch)?;
    let mut out = Columns::new(texts.len());
    let mut names = Names::default();
    let mut decoder = z85::Decoder::default();
    let mut places = key.is_none().then(|| (Int64Builder::new(), StringBuilder::new()));
    for row in 0..texts.len() {
        let bytes = texts.is_valid(row).then(|| texts.value(row)).and_then(|text| decoder.decode(text.as_bytes()));
        match (key, bytes.and_then(split), &mut places) {
            (Some(key), parts, _) => {
                out.push(parts.and_then(|(metadata, value)| names.find(metadata, key, value)));
            }
            (None, Some((metadata, value)), Some((rows, paths))) => {
                names.each(metadata, value, |path, found| {
                    rows.append_value(row as i64);
                    paths.append_value(path);
                    out.push(found);
                });
            }
            _ => {}
        }
    }
    let places = places.map(|(mut rows, mut paths)| -> [(&str, ArrayRef); 2] {
        [("row", Arc::new(rows.finish())), ("path", Arc::new(paths.finish()))]
    });
    out.finish(places.into_iter().flatten())
}

/// Column 0, z85 texts, as `bytes`; null for other texts.
pub fn decode_z85(batch: &RecordBatch) -> Result<RecordBatch> {
    let texts = texts(batch)?;
    let mut out = BinaryBuilder::new();
    let mut bytes = Vec::new();
    for text in texts.iter() {
        bytes.clear();
        out.append_option(text.filter(|text| z85::decode(text.as_bytes(), &mut bytes)).map(|_| &bytes));
    }
    one("bytes", Arc::new(out.finish()))
}

/// Column 0, binary, as z85 texts `text`.
pub fn encode_z85(batch: &RecordBatch) -> Result<RecordBatch> {
    let Some(bytes) = batch.columns().first().and_then(|column| column.as_binary_opt::<i32>()) else {
        return Err(Error::new(Code::InvalidArgument, "expected a column of binary"));
    };
    let mut out = StringBuilder::new();
    let mut text = String::new();
    for value in bytes.iter() {
        text.clear();
        out.append_option(value.map(|value| {
            z85::encode(value, &mut text);
            &text
        }));
    }
    one("text", Arc::new(out.finish()))
}

/// Column 0, z85 texts, as Variants `v`, metadata and value; null where a text is not of an object.
pub fn variants(batch: &RecordBatch) -> Result<RecordBatch> {
    let texts = texts(batch)?;
    let (mut metadata, mut value) = (BinaryBuilder::new(), BinaryBuilder::new());
    let mut valid = NullBufferBuilder::new(texts.len());
    let mut bytes = Vec::new();
    for text in texts.iter() {
        bytes.clear();
        let decoded = text.is_some_and(|text| z85::decode(text.as_bytes(), &mut bytes));
        let parts = if decoded { split(&bytes) } else { None };
        valid.append(parts.is_some());
        let (left, right) = parts.unwrap_or((&[], &[]));
        metadata.append_value(left);
        value.append_value(right);
    }
    let fields: Fields = ["metadata", "value"].map(|name| Arc::new(Field::new(name, DataType::Binary, false))).into();
    let columns: Vec<ArrayRef> = vec![Arc::new(metadata.finish()), Arc::new(value.finish())];
    one("v", Arc::new(StructArray::try_new(fields, columns, valid.finish())?))
}

/// Metadata and value of bytes that have both, in either order: metadata begins with its version, 1, in the low four
/// bits, an object with the basic type 2 in the low two.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let metadata_first = bytes.first()? & 3 != 2;
    let ends = |at: usize, metadata: bool| -> Option<usize> {
        let rest = bytes.get(at..)?;
        let size =
            if metadata { metadata::length(rest).ok()? } else { head(rest, 0).ok().filter(|head| head.object)?.end };
        Some(at + size).filter(|&end| end <= bytes.len())
    };
    let first = ends(0, metadata_first)?;
    let second = ends(first, !metadata_first)?;
    let padding = bytes.get(second..)?;
    if padding.len() > 3 || padding.iter().any(|&b| b != 0) {
        return None;
    }
    let parts = (bytes.get(..first)?, bytes.get(first..second)?);
    Some(if metadata_first { parts } else { (parts.1, parts.0) })
}

/// The names of the metadata seen last; none if it is damaged or has a name twice.
#[derive(Default)]
struct Names {
    metadata: Vec<u8>,
    ranges: Vec<(u32, u32)>,
    wanted: Option<u32>,
    /// Ids and positions of the fields of the object at hand.
    places: Vec<(u32, usize)>,
}

impl Names {
    fn load(&mut self, metadata: &[u8], key: Option<&str>) {
        if self.metadata == metadata {
            return;
        }
        self.metadata.clear();
        self.metadata.extend_from_slice(metadata);
        self.ranges.clear();
        let parsed = metadata::parse(metadata, &mut self.ranges).is_ok();
        let mut names: Vec<&str> = (0..self.ranges.len() as u32).map(|id| self.name(id)).collect();
        names.sort_unstable();
        if !parsed || names.windows(2).any(|pair| pair[0] == pair[1]) {
            self.ranges.clear();
        }
        self.wanted = key.and_then(|key| (0..self.ranges.len() as u32).find(|&id| self.name(id) == key));
    }

    fn name(&self, id: u32) -> &str {
        let range = self.ranges.get(id as usize).and_then(|&(a, b)| self.metadata.get(a as usize..b as usize));
        range.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("")
    }

    fn find<'a>(&mut self, metadata: &[u8], key: &str, value: &'a [u8]) -> Option<Scalar<'a>> {
        self.load(metadata, Some(key));
        let wanted = self.wanted?;
        let object = head(value, 0).ok()?;
        let mut found = None;
        for index in 0..object.count {
            if id(value, &object, index).ok()? == wanted && found.replace(index).is_some() {
                return None; // which of two is meant cannot be known
            }
        }
        let at = Children::offset(value, &object, found?).ok()?;
        bound(value, at, object.end)
    }

    fn each(&mut self, metadata: &[u8], value: &[u8], mut visit: impl FnMut(&str, Option<Scalar<'_>>)) {
        self.load(metadata, None);
        let Ok(object) = head(value, 0) else { return };
        self.places.clear();
        for index in 0..object.count {
            match id(value, &object, index) {
                Ok(id) if (id as usize) < self.ranges.len() => self.places.push((id, index)),
                _ => {}
            }
        }
        self.places.sort_unstable();
        for run in self.places.chunk_by(|a, b| a.0 == b.0) {
            let &[(id, index)] = run else { continue };
            let at = Children::offset(value, &object, index).ok();
            visit(self.name(id), at.and_then(|at| bound(value, at, object.end)));
        }
    }
}

/// The scalar at `at`, if it is whole.
fn bound(value: &[u8], at: usize, end: usize) -> Option<Scalar<'_>> {
    let bytes = value.get(at..at + length(value, at).ok()?).filter(|bytes| at + bytes.len() <= end)?;
    let found = scalar(bytes)?;
    if let Scalar::Decimal(unscaled, scale) = found {
        check_decimal(bytes.len() - 2, scale, unscaled, at).ok()?;
    }
    Some(found)
}

/// Bounds, a row each. Most paths have bounds of one kind: the columns of the others are made when the first of them comes.
struct Columns {
    kind: Vec<u8>,
    int: Vec<i64>,
    real: Vec<f64>,
    text: Option<StringBuilder>,
    decimals: Option<(Decimal128Builder, Int8Builder)>,
}

impl Columns {
    fn new(rows: usize) -> Self {
        let (kind, int) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        Columns { kind, int, real: Vec::new(), text: None, decimals: None }
    }

    fn push(&mut self, found: Option<Scalar<'_>>) {
        let before = self.kind.len();
        let (mut int, mut real, mut text, mut decimal) = (0, None, None, None);
        let kind = match found {
            Some(Scalar::Int(value)) => (int = value, EXACT).1,
            Some(Scalar::Decimal(unscaled, scale)) => (decimal = Some((unscaled, scale as i8)), EXACT).1,
            Some(Scalar::Double(value)) => (real = Some(value), DOUBLE).1,
            Some(Scalar::Float(value)) => (real = Some(value as f64), FLOAT).1,
            Some(Scalar::Str(value)) => (text = Some(value), STRING).1,
            Some(Scalar::Date(days)) => (int = days as i64, DATE).1,
            Some(Scalar::Timestamp(micros)) => (int = micros, TIMESTAMP).1,
            Some(Scalar::TimestampNtz(micros)) => (int = micros, TIMESTAMP_NTZ).1,
            _ => 0,
        };
        self.kind.push(kind);
        self.int.push(int);
        if let Some(value) = real {
            self.real.resize(before, 0.0);
            self.real.push(value);
        }
        if text.is_some() && self.text.is_none() {
            let mut fresh = StringBuilder::new();
            fresh.append_nulls(before);
            self.text = Some(fresh);
        }
        if let Some(texts) = &mut self.text {
            texts.append_option(text);
        }
        if decimal.is_some() && self.decimals.is_none() {
            let (mut values, mut scales) = (Decimal128Builder::new(), Int8Builder::new());
            values.append_nulls(before);
            scales.append_nulls(before);
            self.decimals = Some((values, scales));
        }
        if let Some((values, scales)) = &mut self.decimals {
            values.append_option(decimal.map(|d| d.0));
            scales.append_option(decimal.map(|d| d.1));
        }
    }

    fn finish(mut self, places: impl Iterator<Item = (&'static str, ArrayRef)>) -> Result<RecordBatch> {
        let rows = self.kind.len();
        self.real.resize(rows, 0.0);
        let text =
            self.text.map_or_else(|| new_null_array(&DataType::Utf8, rows), |mut found| Arc::new(found.finish()));
        let unscaled = DataType::Decimal128(38, 0);
        let (unscaled, scale): (ArrayRef, ArrayRef) = match self.decimals {
            None => (new_null_array(&unscaled, rows), new_null_array(&DataType::Int8, rows)),
            Some((values, mut scales)) => {
                (Arc::new(values.with_data_type(unscaled).finish()), Arc::new(scales.finish()))
            }
        };
        let columns: [(&str, ArrayRef); 6] = [
            ("kind", Arc::new(UInt8Array::from(self.kind))),
            ("int", Arc::new(Int64Array::from(self.int))),
            ("real", Arc::new(Float64Array::from(self.real))),
            ("text", text),
            ("unscaled", unscaled),
            ("scale", scale),
        ];
        let columns = places.chain(columns).map(|(name, array)| (name, array, true));
        Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
    }
}

fn texts(batch: &RecordBatch) -> Result<&arrow::array::StringArray> {
    batch
        .columns()
        .first()
        .and_then(|column| column.as_string_opt::<i32>())
        .ok_or_else(|| Error::new(Code::InvalidArgument, "expected a column of strings"))
}

fn one(name: &str, column: ArrayRef) -> Result<RecordBatch> {
    let schema = Schema::new(vec![Field::new(name, column.data_type().clone(), true)]);
    Ok(RecordBatch::try_new(Arc::new(schema), vec![column])?)
}
