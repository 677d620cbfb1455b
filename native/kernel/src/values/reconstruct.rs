//! Storage layout → unshredded variant: the rows of a shredded column as (metadata, value) again.
//!
//! The metadata of a row is kept as it is: it names every field, shredded or not (rules 19, 20). Field ids
//! and the order of fields are resolved once per distinct metadata; after that a row is one pass of writes.
//! A container's header is reserved with the offset width that the same level needed in the row before, and
//! moved in the rare case that the guess was wrong. Recursion is over the tree, never over data: whatever
//! stands in a `value` is validated and copied as bytes.

use arrow::array::{Array, AsArray, BinaryViewArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use crate::codec::container::Container;
use crate::codec::known::KnownNames;
use crate::codec::validate::{FieldSpan, Validator};
use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::values::bytes::{ByteColumn, build_variant};
use crate::values::level::{FieldColumn, Level, ListColumn, ObjectColumn, VariantColumn, is_null};
use crate::values::standardize::standardize_column;

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

fn require_metadata(column: &VariantColumn) -> Result<&BinaryViewArray> {
    column.metadata.as_ref().ok_or_else(|| {
        Error::new(Code::MalformedShredding, format!("the variant column {} has no metadata", column.root.path))
            .rule(2)
            .path(&column.root.path)
    })
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
                    return Err(conflict(level, "a typed value that is not an object"));
                }
                leaf.write(row, out);
                return Ok(());
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
                    format!("{} has shredded fields and a value that is not an object", level.path),
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
        let ids = &self.ids[first_id..];
        let (count, largest) = (ids.len(), ids.iter().copied().max().unwrap_or(0));
        let container = Container::begin(count, Some(largest), self.widths[level.number].into(), out);
        let first_end = self.ends.len();

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
                self.ends.push(container.child_end(out)?);
                next += 1;
            }
            if field.level.is_present(row) {
                self.write(&field.level, row, out)?;
                self.ends.push(container.child_end(out)?);
            }
        }
        while next < last {
            let entry = self.entries[next];
            let residual = self.residual.at_depth(level.depth);
            residual.copy_entry(&self.dictionary, value, entry, out).map_err(|e| e.path(level.value_path()))?;
            self.ends.push(container.child_end(out)?);
            next += 1;
        }
        self.entries.truncate(first_entry);

        let (ids, ends) = (&self.ids[first_id..], &self.ends[first_end..]);
        self.widths[level.number] = container.finish(ids, ends, out) as u8;
        self.ids.truncate(first_id);
        self.ends.truncate(first_end);
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
                        format!("the metadata lacks the shredded field {:?}", field.name),
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
        let container = Container::begin(count, None, self.widths[level.number].into(), out);
        let first_end = self.ends.len();
        for element in first..end {
            self.write(&array.element, element, out)?;
            self.ends.push(container.child_end(out)?);
        }
        self.widths[level.number] = container.finish(&[], &self.ends[first_end..], out) as u8;
        self.ends.truncate(first_end);
        Ok(())
    }
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
    Error::new(Code::MalformedShredding, format!("{} has both a value and {what}", level.path))
        .rule(25)
        .path(&level.path)
}

fn in_both(level: &Level, field: &FieldColumn, row: usize) -> Error {
    let rule = if field.level.is_present(row) { 37 } else { 35 };
    Error::new(
        Code::MalformedShredding,
        format!("{} has the field {:?}, which is also shredded", level.value_path(), field.name),
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
        format!("{} has {what}, which this file shreds: typed_value must not be null", level.value_path()),
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
