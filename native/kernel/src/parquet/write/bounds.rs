//! What a written file says of its columns, for the log: read from the statistics that the writer gathered anyway,
//! so the log and the footer cannot differ.
//!
//! A variant path has bounds when every row that has it has it in the leaf's type: the `value` beside it is null in
//! every row (a JSON null there disqualifies it), no array lies on the way, no NaN occurs, and the type is one that
//! readers of the log know. Both bounds are in the leaf's own type and scale. Rows without the path do not count.
//! A plain column of floats has no bounds where a NaN occurs.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema, TimeUnit};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::layout::standard::{METADATA, TYPED_VALUE, VALUE, is_variant};
use crate::tree::LeafType;

/// Strings are cut to this many code points in the log.
pub const MAX_CODE_POINTS: usize = 32;
/// A statistics string of this many bytes holds that many code points, whatever they are.
pub const STATISTICS_BYTES: usize = 4 * MAX_CODE_POINTS;

/// Facts of one leaf column over the whole file.
struct LeafFacts {
    /// Rows, or list slots, without a value.
    nulls: u64,
    values: u64,
    bounds: Option<(Bound, Bound)>,
}

#[derive(Debug, Clone, PartialEq, PartialOrd)]
enum Bound {
    Boolean(bool),
    Int(i64),
    Wide(i128),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
}

/// The bounds of all columns, as record batches.
pub struct Bounds {
    /// One row: `min`, `max` and `null_count`, each a struct that mirrors the plain columns.
    pub plain: RecordBatch,
    /// One row per eligible path: `column` (names from the top), `path` (RFC 9535), `rows`, `min`, `max`.
    pub paths: RecordBatch,
}

/// Reads the statistics of the written row groups. `counted` holds the null counts of variant, list and map columns
/// in the order of [`counted_columns`], which no footer has.
pub fn collect(schema: &Schema, row_groups: &[RowGroupMetaData], counted: &[i64]) -> Result<Bounds> {
    let mut walk = Walk { row_groups, leaf: 0, counted: counted.iter(), paths: Paths::default() };
    let mut columns = BoundColumns::default();
    let mut name = Vec::new();
    for field in schema.fields() {
        walk.plain(field, &mut name, &mut columns)?;
    }
    let [min, max, null_count] = columns.finish();
    let parts = [("min", min), ("max", max), ("null_count", null_count)];
    let fields: Fields = parts.iter().map(|(n, a)| ArrowField::new(*n, a.data_type().clone(), false)).collect();
    let arrays = parts.into_iter().map(|(_, array)| Arc::new(array) as ArrayRef).collect();
    Ok(Bounds { plain: RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?, paths: walk.paths.finish()? })
}

/// Positions, from the top, of the columns whose nulls must be counted while writing.
pub fn counted_columns(schema: &Schema) -> Vec<Vec<usize>> {
    fn visit(fields: &Fields, at: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
        for (position, field) in fields.iter().enumerate() {
            at.push(position);
            match field.data_type() {
                DataType::Struct(fields) if !is_variant(field) => visit(fields, at, out),
                data_type if is_variant(field) || data_type.is_nested() => out.push(at.clone()),
                _ => {}
            }
            at.pop();
        }
    }
    let mut out = Vec::new();
    visit(schema.fields(), &mut Vec::new(), &mut out);
    out
}

struct Walk<'a> {
    row_groups: &'a [RowGroupMetaData],
    /// The next leaf of the Parquet schema.
    leaf: usize,
    counted: std::slice::Iter<'a, i64>,
    paths: Paths,
}

impl Walk<'_> {
    fn plain(&mut self, field: &FieldRef, name: &mut Vec<String>, out: &mut BoundColumns) -> Result<()> {
        name.push(field.name().clone());
        if is_variant(field) {
            let nulls = self.counted.next().copied().unwrap_or(0);
            out.count(field.name(), nulls);
            if let DataType::Struct(fields) = field.data_type()
                && Layout::of(fields) == Layout::Early
            {
                // No log knows the early layout.
                self.leaf += leaf_count(field.data_type());
            } else if let DataType::Struct(fields) = field.data_type() {
                let mut path = Path { column: name, keys: Vec::new() };
                self.group(fields, &mut path, true)?;
            }
        } else if let DataType::Struct(fields) = field.data_type() {
            let mut inner = BoundColumns::default();
            for field in fields {
                self.plain(field, name, &mut inner)?;
            }
            out.nest(field.name(), inner);
        } else if field.data_type().is_nested() {
            let nulls = self.counted.next().copied().unwrap_or(0);
            out.count(field.name(), nulls);
            self.leaf += leaf_count(field.data_type());
        } else {
            let leaf = self.next_leaf()?;
            out.count(field.name(), leaf.nulls as i64);
            let (min, max) = bound_arrays(field.data_type(), leaf.bounds)?;
            out.bounds(field.name(), min, max);
        }
        name.pop();
        Ok(())
    }

    /// A group of value and typed_value; `eligible` is false below an array.
    fn group(&mut self, fields: &Fields, path: &mut Path, eligible: bool) -> Result<()> {
        let mut value = None;
        let mut typed = None;
        for field in fields {
            match (field.name().as_str(), field.data_type()) {
                (VALUE, _) => value = Some(self.next_leaf()?),
                (METADATA, _) => self.leaf += 1,
                (TYPED_VALUE, DataType::Struct(children)) => {
                    for child in children {
                        if let DataType::Struct(group) = child.data_type() {
                            path.keys.push(child.name().clone());
                            self.group(group, path, eligible)?;
                            path.keys.pop();
                        }
                    }
                }
                (TYPED_VALUE, data_type) if data_type.is_nested() => self.leaf += leaf_count(data_type),
                (TYPED_VALUE, data_type) => {
                    let leaf = self.next_leaf()?;
                    typed = Some((LeafType::from_arrow(data_type)?, leaf));
                }
                (other, _) => {
                    let message = format!("a variant group has value and typed_value, not {other:?}");
                    return Err(Error::new(Code::InvalidArgument, message));
                }
            }
        }
        let Some((leaf_type, typed)) = typed else { return Ok(()) };
        if eligible && value.is_some_and(|v| v.values == 0) && typed.values > 0 {
            self.paths.add(path, leaf_type, &typed);
        }
        Ok(())
    }

    fn next_leaf(&mut self) -> Result<LeafFacts> {
        let leaf = self.leaf;
        self.leaf += 1;
        let mut facts = LeafFacts { nulls: 0, values: 0, bounds: None };
        let (mut known, mut bounds) = (true, None);
        for group in self.row_groups {
            let Some(chunk) = group.columns().get(leaf) else {
                return Err(Error::new(Code::InvalidArgument, "the file has fewer columns than its schema"));
            };
            let statistics = chunk.statistics();
            let Some(nulls) = statistics.and_then(Statistics::null_count_opt) else {
                let message = format!("column {} was written without statistics", chunk.column_path());
                return Err(Error::new(Code::InvalidArgument, message));
            };
            let values = (chunk.num_values() as u64).saturating_sub(nulls);
            facts.nulls += nulls;
            facts.values += values;
            if values == 0 {
                continue;
            }
            match statistics.and_then(read) {
                Some(here) => bounds = Some(wider(bounds, here)),
                None => known = false,
            }
        }
        facts.bounds = bounds.filter(|_| known);
        Ok(facts)
    }
}

/// Parquet columns of a type.
pub(super) fn leaf_count(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|f| leaf_count(f.data_type())).sum(),
        DataType::List(f)
        | DataType::LargeList(f)
        | DataType::ListView(f)
        | DataType::LargeListView(f)
        | DataType::FixedSizeList(f, _)
        | DataType::Map(f, _) => leaf_count(f.data_type()),
        _ => 1,
    }
}

fn wider(so_far: Option<(Bound, Bound)>, (min, max): (Bound, Bound)) -> (Bound, Bound) {
    match so_far {
        None => (min, max),
        Some((least, most)) => (if min < least { min } else { least }, if max > most { max } else { most }),
    }
}

/// The bounds of a column chunk; `None` where it has none or a NaN.
fn read(statistics: &Statistics) -> Option<(Bound, Bound)> {
    Some(match statistics {
        Statistics::Boolean(s) => (Bound::Boolean(*s.min_opt()?), Bound::Boolean(*s.max_opt()?)),
        Statistics::Int32(s) => (Bound::Int((*s.min_opt()?).into()), Bound::Int((*s.max_opt()?).into())),
        Statistics::Int64(s) => (Bound::Int(*s.min_opt()?), Bound::Int(*s.max_opt()?)),
        Statistics::Float(s) if s.nan_count_opt() == Some(0) => {
            (Bound::Float(*s.min_opt()?), Bound::Float(*s.max_opt()?))
        }
        Statistics::Double(s) if s.nan_count_opt() == Some(0) => {
            (Bound::Double(*s.min_opt()?), Bound::Double(*s.max_opt()?))
        }
        Statistics::ByteArray(_) => {
            (Bound::Bytes(statistics.min_bytes_opt()?.to_vec()), Bound::Bytes(statistics.max_bytes_opt()?.to_vec()))
        }
        Statistics::FixedLenByteArray(_) => (
            Bound::Wide(big_endian(statistics.min_bytes_opt()?)?),
            Bound::Wide(big_endian(statistics.max_bytes_opt()?)?),
        ),
        _ => return None,
    })
}

fn big_endian(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    if bytes.len() > 16 {
        return None;
    }
    let fill = if first >= 0x80 { -1_i128 } else { 0 };
    Some(bytes.iter().fold(fill, |number, byte| number << 8 | i128::from(*byte)))
}

/// A lower bound of at most 32 code points: a prefix sorts before the whole.
fn cut_min(text: &str) -> &str {
    text.char_indices().nth(MAX_CODE_POINTS).map_or(text, |(at, _)| text.get(..at).unwrap_or(text))
}

/// An upper bound of at most 32 code points and one that sorts after all others; `None` where that one would not.
fn cut_max(text: &str) -> Option<String> {
    match text.char_indices().nth(MAX_CODE_POINTS) {
        None => Some(text.to_owned()),
        Some((_, char::MAX)) => None,
        Some((at, _)) => Some(format!("{}{}", text.get(..at)?, char::MAX)),
    }
}

fn text_bounds(min: &[u8], max: &[u8]) -> Option<(String, String)> {
    let (min, max) = (std::str::from_utf8(min).ok()?, std::str::from_utf8(max).ok()?);
    Some((cut_min(min).to_owned(), cut_max(max)?))
}

/// Two arrays of one value each; both null where there are no bounds, absent for types that have none.
fn bound_arrays(data_type: &DataType, bounds: Option<(Bound, Bound)>) -> Result<(Option<ArrayRef>, Option<ArrayRef>)> {
    let (min, max) = match bounds {
        Some((Bound::Bytes(min), Bound::Bytes(max))) => match text_bounds(&min, &max) {
            Some((min, max)) => (Some(Bound::Bytes(min.into_bytes())), Some(Bound::Bytes(max.into_bytes()))),
            None => (None, None),
        },
        Some((min, max)) => (Some(min), Some(max)),
        None => (None, None),
    };
    Ok((bound_array(data_type, min)?, bound_array(data_type, max)?))
}

fn bound_array(data_type: &DataType, bound: Option<Bound>) -> Result<Option<ArrayRef>> {
    let int = match &bound {
        Some(Bound::Int(v)) => Some(*v),
        _ => None,
    };
    Ok(Some(match data_type {
        DataType::Boolean => {
            let value = bound.and_then(|b| if let Bound::Boolean(v) = b { Some(v) } else { None });
            Arc::new(BooleanArray::from(vec![value]))
        }
        DataType::Int8 => Arc::new(Int8Array::from(vec![int.map(|v| v as i8)])),
        DataType::Int16 => Arc::new(Int16Array::from(vec![int.map(|v| v as i16)])),
        DataType::Int32 => Arc::new(Int32Array::from(vec![int.map(|v| v as i32)])),
        DataType::Int64 => Arc::new(Int64Array::from(vec![int])),
        DataType::Date32 => Arc::new(Date32Array::from(vec![int.map(|v| v as i32)])),
        DataType::Float32 => {
            let value = bound.and_then(|b| if let Bound::Float(v) = b { Some(v) } else { None });
            Arc::new(Float32Array::from(vec![value]))
        }
        DataType::Float64 => {
            let value = bound.and_then(|b| if let Bound::Double(v) = b { Some(v) } else { None });
            Arc::new(Float64Array::from(vec![value]))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Arc::new(TimestampMicrosecondArray::from(vec![int]).with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            Arc::new(TimestampNanosecondArray::from(vec![int]).with_timezone_opt(zone.clone()))
        }
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) => {
            let value = bound.and_then(|b| match b {
                Bound::Int(v) => Some(v.into()),
                Bound::Wide(v) => Some(v),
                _ => None,
            });
            Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(*p, *s)?)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let value = bound.and_then(|b| if let Bound::Bytes(v) = b { String::from_utf8(v).ok() } else { None });
            Arc::new(StringArray::from(vec![value]))
        }
        _ => return Ok(None),
    }))
}

/// The columns of `min`, `max` and `null_count`, each with the fields that it has.
#[derive(Default)]
struct BoundColumns {
    parts: [Vec<(ArrowField, ArrayRef)>; 3],
}

impl BoundColumns {
    fn push(&mut self, part: usize, name: &str, array: ArrayRef) {
        if let Some(columns) = self.parts.get_mut(part) {
            columns.push((ArrowField::new(name, array.data_type().clone(), true), array));
        }
    }

    fn bounds(&mut self, name: &str, min: Option<ArrayRef>, max: Option<ArrayRef>) {
        if let Some((min, max)) = min.zip(max) {
            self.push(0, name, min);
            self.push(1, name, max);
        }
    }

    fn count(&mut self, name: &str, nulls: i64) {
        self.push(2, name, Arc::new(Int64Array::from(vec![nulls])));
    }

    fn nest(&mut self, name: &str, inner: BoundColumns) {
        for (part, array) in inner.finish().into_iter().enumerate() {
            if !array.fields().is_empty() {
                self.push(part, name, Arc::new(array));
            }
        }
    }

    fn finish(self) -> [StructArray; 3] {
        self.parts.map(|columns| {
            let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
            if arrays.is_empty() {
                StructArray::new_empty_fields(1, None)
            } else {
                StructArray::new(fields.into(), arrays, None)
            }
        })
    }
}

/// Where a leaf stands: the names of its column from the top, and the keys inside the variant.
struct Path<'a> {
    column: &'a [String],
    keys: Vec<String>,
}

struct PathBounds {
    column: Vec<String>,
    path: String,
    rows: i64,
    min: Vec<u8>,
    max: Vec<u8>,
}

#[derive(Default)]
struct Paths {
    rows: Vec<PathBounds>,
}

impl Paths {
    fn add(&mut self, path: &Path, leaf: LeafType, facts: &LeafFacts) {
        let Some((min, max)) = &facts.bounds else { return };
        if let Some((min, max)) = encode(leaf, min, max) {
            let (column, path) = (path.column.to_vec(), normalized(&path.keys));
            self.rows.push(PathBounds { column, path, rows: facts.values as i64, min, max });
        }
    }

    fn finish(self) -> Result<RecordBatch> {
        let mut column = ListBuilder::new(StringBuilder::new());
        let mut path = StringBuilder::new();
        let mut rows = Vec::new();
        let (mut min, mut max) = (BinaryBuilder::new(), BinaryBuilder::new());
        for bounds in self.rows {
            bounds.column.iter().for_each(|name| column.values().append_value(name));
            column.append(true);
            path.append_value(bounds.path);
            rows.push(bounds.rows);
            min.append_value(bounds.min);
            max.append_value(bounds.max);
        }
        let arrays: [(&str, ArrayRef); 5] = [
            ("column", Arc::new(column.finish())),
            ("path", Arc::new(path.finish())),
            ("rows", Arc::new(Int64Array::from(rows))),
            ("min", Arc::new(min.finish())),
            ("max", Arc::new(max.finish())),
        ];
        Ok(RecordBatch::try_from_iter(arrays)?)
    }
}

/// Both bounds as Variant values in the leaf's own type; `None` for the types that readers of the log do not know.
fn encode(leaf: LeafType, min: &Bound, max: &Bound) -> Option<(Vec<u8>, Vec<u8>)> {
    if let (LeafType::String, Bound::Bytes(min), Bound::Bytes(max)) = (leaf, min, max) {
        let (min, max) = text_bounds(min, max)?;
        return Some((encode_text(&min), encode_text(&max)));
    }
    let number = |bound: &Bound| {
        let int = |id: u8, width: usize| match bound {
            Bound::Int(v) => Some([&[id << 2], v.to_le_bytes().get(..width)?].concat()),
            _ => None,
        };
        match (leaf, bound) {
            (LeafType::Int8, _) => int(3, 1),
            (LeafType::Int16, _) => int(4, 2),
            (LeafType::Int32, _) => int(5, 4),
            (LeafType::Int64, _) => int(6, 8),
            (LeafType::Date, _) => int(11, 4),
            (LeafType::Timestamp { utc: true }, _) => int(12, 8),
            (LeafType::Timestamp { utc: false }, _) => int(13, 8),
            (LeafType::Double, Bound::Double(v)) => Some([&[7 << 2], &v.to_le_bytes()[..]].concat()),
            (LeafType::Float, Bound::Float(v)) => Some([&[14 << 2], &v.to_le_bytes()[..]].concat()),
            (LeafType::Decimal { precision, scale }, Bound::Int(_) | Bound::Wide(_)) => {
                let unscaled = match bound {
                    Bound::Wide(v) => *v,
                    Bound::Int(v) => i128::from(*v),
                    _ => return None,
                };
                let (id, width): (u8, usize) = match precision {
                    0..=9 => (8, 4),
                    10..=18 => (9, 8),
                    _ => (10, 16),
                };
                Some([&[id << 2, scale], unscaled.to_le_bytes().get(..width)?].concat())
            }
            _ => None,
        }
    };
    Some((number(min)?, number(max)?))
}

/// A string value, short where it may be (rule 6).
fn encode_text(text: &str) -> Vec<u8> {
    let len = text.len() as u32;
    if len <= 63 {
        [&[1 | (len as u8) << 2], text.as_bytes()].concat()
    } else {
        [&[16 << 2], &len.to_le_bytes()[..], text.as_bytes()].concat()
    }
}

/// The normalized path of RFC 9535, section 2.7; the root itself is `$`.
pub fn normalized(keys: &[String]) -> String {
    let mut out = String::from("$");
    for key in keys {
        out.push_str("['");
        for c in key.chars() {
            match c {
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\'' => out.push_str("\\'"),
                '\\' => out.push_str("\\\\"),
                c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
                c => out.push(c),
            }
        }
        out.push_str("']");
    }
    out
}
