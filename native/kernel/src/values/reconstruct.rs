//! Storage layout → unshredded variant: the rows of a shredded column as (metadata, value) again.
//!
//! The metadata of a row is kept as it is: it names every field, shredded or not (rules 19, 20). Field ids
//! and the order of fields are resolved once per distinct metadata; after that a row is one pass of writes.
//! A container's header is reserved with the offset width that the same level needed in the row before, and
//! moved in the rare case that the guess was wrong. Recursion is over the tree, never over data: whatever
//! stands in a `value` is validated and copied as bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, StructArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields};

use crate::codec::known::KnownNames;
use crate::codec::validate::{FieldSpan, Validator};
use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::values::level::{FieldColumn, Leaf, LeafValues, Level, ListColumn, ObjectColumn, VariantColumn, is_null};
use crate::values::standardize::standardize_column;

/// The fields of an unshredded variant column as we write it.
pub fn variant_fields() -> Fields {
    Fields::from(vec![Field::new("metadata", DataType::Binary, false), Field::new("value", DataType::Binary, false)])
}

/// Reconstructs every row; null rows stay null. `path` names the column in errors.
pub fn unshred(array: &StructArray, path: &str) -> Result<StructArray> {
    unshred_column(&VariantColumn::open(array, path)?)
}

pub fn unshred_column(column: &VariantColumn) -> Result<StructArray> {
    if column.root.layout == Layout::Early {
        return unshred_levels(&standardize_column(column)?.column);
    }
    unshred_levels(column)
}

/// The same for levels whose values are all under the row's metadata.
pub fn unshred_levels(column: &VariantColumn) -> Result<StructArray> {
    let metadata = require_metadata(column)?;
    let mut writer = Reconstructor::new(column);
    let mut out = ByteColumn::new(column.len);
    out.bytes.reserve(writer.guess(column));
    for row in 0..column.len {
        if !column.is_null(row) {
            if metadata.is_null(row) {
                return Err(Error::new(Code::MalformedShredding, "a variant that is not null has no metadata")
                    .rule(2)
                    .path(format!("{}.metadata", column.root.path))
                    .row(row as u64));
            }
            writer.write_row(&column.root, metadata.value(row), row, &mut out.bytes).map_err(|e| e.row(row as u64))?;
        }
        out.end_row()?;
    }
    let metadata = cast(metadata, &DataType::Binary)?;
    build_variant(metadata.as_binary::<i32>(), out.finish()?, column.nulls.clone())
}

/// A binary column under construction. Its bytes are written in place, row after row.
pub struct ByteColumn {
    pub bytes: Vec<u8>,
    offsets: Vec<i32>,
}

impl ByteColumn {
    pub fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        ByteColumn { bytes: Vec::new(), offsets }
    }

    pub fn end_row(&mut self) -> Result<()> {
        let end = i32::try_from(self.bytes.len())
            .map_err(|_| Error::new(Code::TooLarge, "the values of one batch exceed 2 GiB: read smaller batches"))?;
        self.offsets.push(end);
        Ok(())
    }

    pub fn finish(self) -> Result<BinaryArray> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Ok(BinaryArray::try_new(offsets, Buffer::from_vec(self.bytes), None)?)
    }
}

fn require_metadata(column: &VariantColumn) -> Result<&BinaryViewArray> {
    column.metadata.as_ref().ok_or_else(|| {
        Error::new(Code::MalformedShredding, format!("the variant column {} has no metadata", column.root.path))
            .rule(2)
            .path(&column.root.path)
    })
}

/// Joins the two columns of a variant. The metadata of a null row may be null: Arrow wants it filled where the
/// field is required, so its validity is dropped (the bytes beneath a null are empty or stale, never read).
pub fn build_variant(metadata: &BinaryArray, values: BinaryArray, nulls: Option<NullBuffer>) -> Result<StructArray> {
    let metadata = BinaryArray::try_new(metadata.offsets().clone(), metadata.values().clone(), None)?;
    let columns: Vec<ArrayRef> = vec![Arc::new(metadata), Arc::new(values)];
    Ok(StructArray::try_new(variant_fields(), columns, nulls)?)
}

/// Writes values of one column's levels. Holds what is remembered between rows.
pub struct Reconstructor {
    dictionary: KnownNames,
    residual: Validator,
    /// Offset width by level number, as the row before needed it.
    widths: Vec<u8>,
    /// Field ids and child offsets of the containers being written, innermost last.
    ids: Vec<u32>,
    ends: Vec<u32>,
    entries: Vec<FieldSpan>,
}

impl Reconstructor {
    pub fn new(column: &VariantColumn) -> Self {
        let mut dictionary = KnownNames::default();
        register(&column.root, &mut dictionary);
        Reconstructor {
            dictionary,
            residual: Validator::default(),
            widths: vec![1; column.levels],
            ids: Vec::new(),
            ends: Vec::new(),
            entries: Vec::new(),
        }
    }

    fn guess(&self, column: &VariantColumn) -> usize {
        (column.len * (column.levels * 8 + 16)).min(64 << 20)
    }

    /// Appends the value of `level` at `row`; `level` is the root or any level below it, with the element's
    /// own row number below an array. On an error the caller throws the output away.
    pub fn write_row(&mut self, level: &Level, metadata: &[u8], row: usize, out: &mut Vec<u8>) -> Result<()> {
        self.dictionary.load(metadata).map_err(|e| e.path(&level.path))?;
        self.ids.clear();
        self.ends.clear();
        self.entries.clear();
        self.write(level, row, out)
    }

    fn write(&mut self, level: &Level, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if !is_null(&level.nulls, row) {
            let value = match &level.value {
                Some(values) if values.is_valid(row) => Some(values.value(row)),
                _ => None,
            };
            if let Some(leaf) = &level.leaf
                && leaf.array.is_valid(row)
            {
                if value.is_some() {
                    return Err(conflict(level, "a typed value that is no object"));
                }
                return write_leaf(leaf, row, out);
            }
            if let Some(object) = &level.object
                && !is_null(&object.nulls, row)
            {
                return self.write_object(level, object, value, row, out);
            }
            if let Some(array) = &level.array
                && !is_null(&array.nulls, row)
            {
                if value.is_some() {
                    return Err(conflict(level, "an array").rule(30));
                }
                return self.write_array(level, array, row, out);
            }
            if let Some(value) = value {
                check_shape(level, value)?;
                let residual = self.residual.at_depth(level.depth);
                return residual.copy(&self.dictionary, value, out).map_err(|e| e.path(level.value_path()));
            }
        }
        // Missing where nothing may be missing: the root, or an element (rule 26).
        out.push(0);
        Ok(())
    }

    fn write_object(
        &mut self,
        level: &Level,
        object: &ObjectColumn,
        value: Option<&[u8]>,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let first_entry = self.entries.len();
        if let Some(value) = value {
            if !is_object(value) {
                return Err(Error::new(
                    Code::MalformedShredding,
                    format!("{} holds shredded fields and a value that is no object", level.path),
                )
                .rule(36)
                .path(level.value_path()));
            }
            self.residual
                .at_depth(level.depth)
                .open_object(&self.dictionary, value, &mut self.entries)
                .map_err(|e| e.path(level.value_path()))?;
        }
        let first_id = self.ids.len();
        self.collect_ids(level, object, row, first_entry)?;
        let count = self.ids.len() - first_id;
        let largest = self.ids[first_id..].iter().copied().max().unwrap_or(0);
        let id_width = width_of(largest);
        let container = self.begin(level, count, id_width, out);

        // The same merge again, now writing: both lists are sorted by name (rule 39).
        let mut next = first_entry;
        let last = self.entries.len();
        for field in &object.fields {
            while next < last {
                let entry = self.entries[next];
                if self.dictionary.name(entry.id) >= field.name.as_bytes() {
                    break;
                }
                self.residual
                    .at_depth(level.depth)
                    .copy_entry(&self.dictionary, value, entry, out)
                    .map_err(|e| e.path(level.value_path()))?;
                self.end_child(&container, out)?;
                next += 1;
            }
            if field.level.is_present(row) {
                self.write(&field.level, row, out)?;
                self.end_child(&container, out)?;
            }
        }
        while next < last {
            let entry = self.entries[next];
            let residual = self.residual.at_depth(level.depth);
            residual.copy_entry(&self.dictionary, value, entry, out).map_err(|e| e.path(level.value_path()))?;
            self.end_child(&container, out)?;
            next += 1;
        }
        self.entries.truncate(first_entry);

        let ids = &self.ids[first_id..];
        let large = count > 255;
        let ends = &self.ends[container.first_end..];
        let width = settle(&container, ends, id_width, out);
        let head = &mut out[container.start..];
        head[0] = ((large as u8) << 4 | (id_width - 1) << 2 | (width - 1)) << 2 | 2;
        let mut at = 1 + put_count(&mut head[1..], count, large);
        for &id in ids {
            head[at..at + id_width as usize].copy_from_slice(&id.to_le_bytes()[..id_width as usize]);
            at += id_width as usize;
        }
        put_offsets(&mut head[at..], ends, width);
        self.widths[level.number] = width;
        self.ids.truncate(first_id);
        self.ends.truncate(container.first_end);
        Ok(())
    }

    /// The ids of the fields this row has, in the order of their names.
    fn collect_ids(&mut self, level: &Level, object: &ObjectColumn, row: usize, first_entry: usize) -> Result<()> {
        let mut next = first_entry;
        let last = self.entries.len();
        for field in &object.fields {
            while next < last {
                let id = self.entries[next].id;
                match self.dictionary.name(id).cmp(field.name.as_bytes()) {
                    std::cmp::Ordering::Less => self.ids.push(id),
                    // The early layout may hold a shredded field in `untyped_value`, where `object` lacks it.
                    std::cmp::Ordering::Equal if level.layout == Layout::Early && !field.level.is_present(row) => break,
                    std::cmp::Ordering::Equal => return Err(in_both(level, field, row)),
                    std::cmp::Ordering::Greater => break,
                }
                next += 1;
            }
            if field.level.is_present(row) {
                let id = self.dictionary.id_of_level(field.level.number).ok_or_else(|| {
                    Error::new(
                        Code::MalformedShredding,
                        format!("the metadata does not name the shredded field {:?}", field.name),
                    )
                    .rule(20)
                    .path(&field.level.path)
                })?;
                self.ids.push(id);
            }
        }
        self.ids.extend(self.entries[next..last].iter().map(|e| e.id));
        Ok(())
    }

    fn write_array(&mut self, level: &Level, array: &ListColumn, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let (first, end) = array.range(row);
        let count = end - first;
        let container = self.begin(level, count, 0, out);
        for element in first..end {
            self.write(&array.element, element, out)?;
            self.end_child(&container, out)?;
        }
        let large = count > 255;
        let ends = &self.ends[container.first_end..];
        let width = settle(&container, ends, 0, out);
        let head = &mut out[container.start..];
        head[0] = ((large as u8) << 2 | (width - 1)) << 2 | 3;
        let at = 1 + put_count(&mut head[1..], count, large);
        put_offsets(&mut head[at..], ends, width);
        self.widths[level.number] = width;
        self.ends.truncate(container.first_end);
        Ok(())
    }

    /// Reserves a container's header.
    fn begin(&mut self, level: &Level, count: usize, id_width: u8, out: &mut Vec<u8>) -> Container {
        let guess = self.widths[level.number];
        let start = out.len();
        let body = start + header_len(count, id_width, guess);
        out.resize(body, 0);
        Container { start, body, count, guess, first_end: self.ends.len() }
    }

    fn end_child(&mut self, container: &Container, out: &[u8]) -> Result<()> {
        let end = u32::try_from(out.len() - container.body)
            .map_err(|_| Error::new(Code::TooLarge, "one value exceeds 4 GiB"))?;
        self.ends.push(end);
        Ok(())
    }
}

struct Container {
    start: usize,
    body: usize,
    count: usize,
    guess: u8,
    first_end: usize,
}

fn register(level: &Level, dictionary: &mut KnownNames) {
    if let Some(object) = &level.object {
        for field in &object.fields {
            dictionary.want(&field.name, field.level.number);
            register(&field.level, dictionary);
        }
    }
    if let Some(array) = &level.array {
        register(&array.element, dictionary);
    }
}

fn conflict(level: &Level, what: &str) -> Error {
    Error::new(Code::MalformedShredding, format!("{} holds both a value and {what}", level.path))
        .rule(25)
        .path(&level.path)
}

fn in_both(level: &Level, field: &FieldColumn, row: usize) -> Error {
    let rule = if field.level.is_present(row) { 37 } else { 35 };
    Error::new(
        Code::MalformedShredding,
        format!("{} holds the field {:?}, which is shredded beside it", level.value_path(), field.name),
    )
    .rule(rule)
    .path(level.value_path())
}

fn is_object(value: &[u8]) -> bool {
    value.first().is_some_and(|b| b & 3 == 2)
}

/// An object where objects are shredded, or an array where arrays are, must stand in `typed_value`; in the early
/// layout they need not.
pub fn check_shape(level: &Level, value: &[u8]) -> Result<()> {
    if level.layout == Layout::Early {
        return Ok(());
    }
    let basic = value.first().map(|b| b & 3);
    let (rule, what) = match basic {
        Some(2) if level.object.is_some() => (if is_empty_object(value) { 33 } else { 32 }, "an object"),
        Some(3) if level.array.is_some() => (30, "an array"),
        _ => return Ok(()),
    };
    Err(Error::new(
        Code::MalformedShredding,
        format!("{} holds {what}, which this file shreds: typed_value must not be null", level.value_path()),
    )
    .rule(rule)
    .path(level.value_path()))
}

fn is_empty_object(value: &[u8]) -> bool {
    match value {
        [header, rest @ ..] if header >> 6 & 1 == 1 => rest.get(..4).is_some_and(|n| n == [0; 4]),
        [_, count, ..] => *count == 0,
        _ => false,
    }
}

/// Bytes that hold `n`, at least 1.
fn width_of(n: u32) -> u8 {
    match n {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}

fn header_len(count: usize, id_width: u8, offset_width: u8) -> usize {
    1 + if count > 255 { 4 } else { 1 } + count * id_width as usize + (count + 1) * offset_width as usize
}

/// Makes room for offsets of the width that the children turned out to need.
fn settle(container: &Container, ends: &[u32], id_width: u8, out: &mut Vec<u8>) -> u8 {
    let width = width_of(ends.last().copied().unwrap_or(0));
    if width != container.guess {
        let body = container.start + header_len(container.count, id_width, width);
        let len = out.len() - container.body;
        if body > container.body {
            out.resize(body + len, 0);
        }
        out.copy_within(container.body..container.body + len, body);
        out.truncate(body + len);
    }
    width
}

fn put_count(to: &mut [u8], count: usize, large: bool) -> usize {
    let len = if large { 4 } else { 1 };
    to[..len].copy_from_slice(&(count as u32).to_le_bytes()[..len]);
    len
}

fn put_offsets(to: &mut [u8], ends: &[u32], width: u8) {
    let width = width as usize;
    to[..width].fill(0);
    for (slot, end) in to[width..].chunks_exact_mut(width).zip(ends) {
        slot.copy_from_slice(&end.to_le_bytes()[..width]);
    }
}

fn primitive(id: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(id << 2);
    out.extend_from_slice(bytes);
}

/// A leaf in the column's own type: shredding widened it, and the specification reads it back as that type.
pub fn write_leaf(leaf: &Leaf, row: usize, out: &mut Vec<u8>) -> Result<()> {
    match &leaf.values {
        LeafValues::Boolean(a) => out.push(if a.value(row) { 1 } else { 2 } << 2),
        LeafValues::Int8(a) => primitive(3, &a.value(row).to_le_bytes(), out),
        LeafValues::Int16(a) => primitive(4, &a.value(row).to_le_bytes(), out),
        LeafValues::Int32(a) => primitive(5, &a.value(row).to_le_bytes(), out),
        LeafValues::Int64(a) => primitive(6, &a.value(row).to_le_bytes(), out),
        LeafValues::Double(a) => primitive(7, &a.value(row).to_le_bytes(), out),
        LeafValues::Decimal(a, precision, scale) => write_decimal(a.value(row), *precision, *scale, out),
        LeafValues::Date(a) => primitive(11, &a.value(row).to_le_bytes(), out),
        LeafValues::Micros(a, utc) => primitive(if *utc { 12 } else { 13 }, &a.value(row).to_le_bytes(), out),
        LeafValues::Float(a) => primitive(14, &a.value(row).to_le_bytes(), out),
        LeafValues::Binary(a) => write_long(15, a.value(row), out)?,
        LeafValues::String(a) => {
            let text = a.value(row).as_bytes();
            if text.len() < 64 {
                out.push((text.len() as u8) << 2 | 1);
                out.extend_from_slice(text);
            } else {
                write_long(16, text, out)?;
            }
        }
        LeafValues::Time(a) => primitive(17, &a.value(row).to_le_bytes(), out),
        LeafValues::Nanos(a, utc) => primitive(if *utc { 18 } else { 19 }, &a.value(row).to_le_bytes(), out),
        LeafValues::Uuid(a) => primitive(20, a.value(row), out),
    }
    Ok(())
}

fn write_long(id: u8, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let len = u32::try_from(bytes.len()).map_err(|_| Error::new(Code::TooLarge, "one value exceeds 4 GiB"))?;
    primitive(id, &len.to_le_bytes(), out);
    out.extend_from_slice(bytes);
    Ok(())
}

/// The width follows the column's precision; a number that a lying file stored beyond it gets the next one.
fn write_decimal(unscaled: i128, precision: u8, scale: u8, out: &mut Vec<u8>) {
    match (i32::try_from(unscaled), i64::try_from(unscaled)) {
        (Ok(narrow), _) if precision <= 9 => {
            primitive(8, &[scale], out);
            out.extend_from_slice(&narrow.to_le_bytes());
        }
        (_, Ok(narrow)) if precision <= 18 => {
            primitive(9, &[scale], out);
            out.extend_from_slice(&narrow.to_le_bytes());
        }
        _ => {
            primitive(10, &[scale], out);
            out.extend_from_slice(&unscaled.to_le_bytes());
        }
    }
}
