//! Bounds of Variant paths, as the statistics of a log have them: z85 text of metadata and an object, its keys normalized
//! paths (Delta RFC "Variant Shredding", "Statistics for Variant Columns").
//!
//! Statistics are hints, so a bound that is damaged, or of a type without an order, is no bound, and never an error.
//! Metadata and value come in either order, with up to three zero bytes after them. Files of one writer share their
//! metadata and sizes: paths are looked up once for each run of texts that begin alike.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Decimal128Builder, Int8Builder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StructArray, UInt8Array, new_null_array};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Field, Fields, Schema};

use crate::codec::children::{Children, id};
use crate::codec::head::{Head, check_decimal, head, length, scalar};
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

/// The bounds of all paths in column 0, z85 texts: a row per bound, after its `row` and `path`, its `kind` 0 where the
/// value has no order. A value is in the column of its kind: `int` (whole numbers, days, microseconds), `real`, `text`,
/// or `unscaled` and `scale`.
pub fn all_bounds(batch: &RecordBatch) -> Result<RecordBatch> {
    let texts = texts(batch)?;
    let mut out = Columns::new(texts.len());
    let mut names = Names::default();
    let mut decoder = z85::Decoder::default();
    let (mut rows, mut paths) = (Int64Builder::new(), StringBuilder::new());
    for (row, text) in texts.iter().enumerate() {
        let bytes = text.and_then(|text| decoder.decode(text.as_bytes())).unwrap_or(&[]);
        let Some((metadata, object)) = split(bytes) else { continue };
        names.load(&bytes[metadata]);
        names.each(bytes, object.start, |path, found| {
            rows.append_value(row as i64);
            paths.append_value(path);
            out.push(found);
        });
    }
    let places: [(&str, ArrayRef); 2] = [("row", Arc::new(rows.finish())), ("path", Arc::new(paths.finish()))];
    let columns = places.into_iter().chain(out.finish()).map(|(name, array)| (name, array, true));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// The bounds of some paths, text by text.
pub struct PathBounds {
    paths: Vec<(String, Columns)>,
    decoder: z85::Decoder,
    names: Names,
    last: Option<Plan>,
}

impl PathBounds {
    /// Of these paths in so many texts.
    pub fn new(paths: impl Iterator<Item = String>, rows: usize) -> Self {
        let paths = paths.map(|path| (path, Columns::new(rows))).collect();
        PathBounds { paths, decoder: z85::Decoder::default(), names: Names::default(), last: None }
    }

    /// Reads a text; its bounds are unknown if it is no z85 text of metadata and an object.
    pub fn push(&mut self, text: Option<&str>) {
        let bytes = text.and_then(|text| self.decoder.decode(text.as_bytes())).unwrap_or(&[]);
        if !self.last.as_ref().is_some_and(|plan| plan.fits(bytes)) {
            self.last = Plan::new(bytes, &mut self.names, self.paths.iter().map(|(path, _)| path.as_str()));
        }
        let plan = self.last.as_ref();
        for (number, (_, columns)) in self.paths.iter_mut().enumerate() {
            let place = plan.and_then(|plan| Some((plan.object.end, (*plan.places.get(number)?)?)));
            columns.push(place.and_then(|(end, at)| bound(bytes, at, end)));
        }
    }

    /// Per path the columns that `all_bounds` has of a bound, a row per text.
    pub fn finish(self) -> impl Iterator<Item = Result<StructArray>> {
        self.paths.into_iter().map(|(_, columns)| {
            let columns = columns.finish();
            let fields =
                columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
            Ok(StructArray::try_new(fields, columns.into_iter().map(|(_, array)| array).collect(), None)?)
        })
    }
}

/// Where a text has the bounds asked for.
struct Plan {
    /// The bytes that say so: metadata, then the ids and offsets of the object. None where metadata comes last.
    saying: Option<Vec<u8>>,
    length: usize,
    object: Range<usize>,
    places: Vec<Option<usize>>,
}

impl Plan {
    fn new<'a>(bytes: &[u8], names: &mut Names, paths: impl Iterator<Item = &'a str>) -> Option<Self> {
        let (metadata, object) = split(bytes)?;
        let head = head(bytes, object.start).ok()?;
        names.load(bytes.get(metadata.clone())?);
        let places = paths.map(|path| names.find(bytes, path, &head)).collect();
        let saying = if metadata.end == object.start { bytes.get(..head.body).map(<[u8]>::to_vec) } else { None };
        Some(Plan { saying, length: bytes.len(), object, places })
    }

    /// Whether this text has its bounds in the same places.
    fn fits(&self, bytes: &[u8]) -> bool {
        let said = self.saying.as_ref().is_some_and(|saying| bytes.starts_with(saying));
        said && bytes.len() == self.length && bytes.get(self.object.end..).is_some_and(is_padding)
    }
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
    let mut decoder = z85::Decoder::default();
    for text in texts.iter() {
        let bytes = text.and_then(|text| decoder.decode(text.as_bytes())).unwrap_or(&[]);
        let parts = split(bytes);
        valid.append(parts.is_some());
        let (left, right) = parts.unwrap_or((0..0, 0..0));
        metadata.append_value(&bytes[left]);
        value.append_value(&bytes[right]);
    }
    let fields: Fields = ["metadata", "value"].map(|name| Arc::new(Field::new(name, DataType::Binary, false))).into();
    let columns: Vec<ArrayRef> = vec![Arc::new(metadata.finish()), Arc::new(value.finish())];
    one("v", Arc::new(StructArray::try_new(fields, columns, valid.finish())?))
}

/// Metadata and object of bytes that have both, in either order: metadata begins with its version, 1, in the low four
/// bits, an object with the basic type 2 in the low two.
fn split(bytes: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let metadata_first = bytes.first()? & 3 != 2;
    let ends = |at: usize, metadata: bool| -> Option<usize> {
        let rest = bytes.get(at..)?;
        let size =
            if metadata { metadata::length(rest).ok()? } else { head(rest, 0).ok().filter(|head| head.object)?.end };
        Some(at + size).filter(|&end| end <= bytes.len())
    };
    let first = ends(0, metadata_first)?;
    let second = ends(first, !metadata_first)?;
    is_padding(bytes.get(second..)?).then_some(())?;
    let parts = (0..first, first..second);
    Some(if metadata_first { parts } else { (parts.1, parts.0) })
}

fn is_padding(bytes: &[u8]) -> bool {
    bytes.len() <= 3 && bytes.iter().all(|&byte| byte == 0)
}

/// The names of the metadata seen last; none if it is damaged or has a name twice.
#[derive(Default)]
struct Names {
    metadata: Vec<u8>,
    ranges: Vec<(u32, u32)>,
    /// Ids and positions of the fields of the object at hand.
    places: Vec<(u32, usize)>,
}

impl Names {
    fn load(&mut self, metadata: &[u8]) {
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
    }

    fn name(&self, id: u32) -> &str {
        let range = self.ranges.get(id as usize).and_then(|&(a, b)| self.metadata.get(a as usize..b as usize));
        range.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("")
    }

    /// Where the object has the value of this name.
    fn find(&self, bytes: &[u8], name: &str, object: &Head) -> Option<usize> {
        let wanted = (0..self.ranges.len() as u32).find(|&id| self.name(id) == name)?;
        let mut found = None;
        for index in 0..object.count {
            if id(bytes, object, index).ok()? == wanted && found.replace(index).is_some() {
                return None; // which of two is meant cannot be known
            }
        }
        Children::offset(bytes, object, found?).ok()
    }

    /// The values of the object at `at` by their names.
    fn each(&mut self, bytes: &[u8], at: usize, mut visit: impl FnMut(&str, Option<Scalar<'_>>)) {
        let Ok(object) = head(bytes, at) else { return };
        self.places.clear();
        for index in 0..object.count {
            match id(bytes, &object, index) {
                Ok(id) if (id as usize) < self.ranges.len() => self.places.push((id, index)),
                _ => {}
            }
        }
        self.places.sort_unstable();
        for run in self.places.chunk_by(|a, b| a.0 == b.0) {
            let &[(id, index)] = run else { continue };
            let at = Children::offset(bytes, &object, index).ok();
            visit(self.name(id), at.and_then(|at| bound(bytes, at, object.end)));
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

    fn finish(mut self) -> [(&'static str, ArrayRef); 6] {
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
        [
            ("kind", Arc::new(UInt8Array::from(self.kind))),
            ("int", Arc::new(Int64Array::from(self.int))),
            ("real", Arc::new(Float64Array::from(self.real))),
            ("text", text),
            ("unscaled", unscaled),
            ("scale", scale),
        ]
    }
}

fn texts(batch: &RecordBatch) -> Result<&arrow_array::StringArray> {
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
