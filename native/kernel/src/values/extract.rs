//! One path of a variant column as a column of its own: each row's value is taken from the typed leaf or from
//! the residual, and cast to the type asked for.
//!
//! A path that is in no value gives null; so does a JSON null. A path that ends on a shredded object or array
//! reconstructs that subtree. `failed` marks the values that are there and have no counterpart in the type.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, BooleanBufferBuilder, MutableArrayData, make_array, new_null_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};

use crate::codec::decode::VariantDecoder;
use crate::codec::head::{head, length, number, scalar};
use crate::codec::known::KnownNames;
use crate::codec::metadata::NO_NAMES;
use crate::codec::validate::Validator;
use crate::error::{Code, Error, Result};
use crate::item::Target;
use crate::layout::Layout;
use crate::layout::standard::mark;
use crate::names::Names;
use crate::path::Step;
use crate::tape::Tape;
use crate::text::zone::Zone;
use crate::values::cast::CastBuilder;
use crate::values::level::{Leaf, Level, VariantColumn, is_null};
use crate::values::reconstruct::{ByteColumn, Reconstructor, build_variant, check_shape, write_leaf};
use crate::values::standardize::standardize;

pub struct Extracted {
    pub values: ArrayRef,
    pub failed: BooleanArray,
    variant: bool,
}

impl Extracted {
    pub fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.values.data_type().clone(), true);
        if self.variant { mark(field) } else { field }
    }
}

/// A residual that holds a value in one row of so many, or in fewer, is looked at in these rows alone.
const FEW: usize = 4;

pub fn extract_path(column: &VariantColumn, steps: &[Step], target: &Target, timezone: &str) -> Result<Extracted> {
    let mut finder = Finder::new(column, steps);
    match target {
        Target::Variant => extract_variant(column, &mut finder),
        Target::Type(wanted) => match typed(column, steps, wanted) {
            Some(typed) => extract_typed(column, &mut finder, &typed, wanted, timezone),
            None => extract_cast(column, &mut finder, wanted, 0..column.len, timezone),
        },
    }
}

/// A level whose typed leaf answers a path in most rows.
struct Typed<'a> {
    level: &'a Level,
    /// Where the path leads to the level at all.
    nulls: Option<NullBuffer>,
    /// The rows of which the residual has to be looked at, and what is there.
    untyped: Vec<usize>,
}

/// The level where the path ends, when its typed leaf has the type asked for, or was not read, and its residual holds
/// something in few rows at most.
fn typed<'a>(column: &'a VariantColumn, steps: &[Step], wanted: &DataType) -> Option<Typed<'a>> {
    let mut level = &column.root;
    let mut nulls = column.nulls.clone();
    for step in steps {
        let (Step::Key(key), Some(object)) = (step, &level.object) else { return None };
        let field = object.find(key)?;
        // Residuals that were read although the path does not need them (another item does) are no obstacle as long as
        // they obey the rules; whether they do is checked by whoever reconstructs the column. But an early residual may
        // hold a shredded field, and a level of several shapes has rules to be checked.
        if level.layout == Layout::Early && holds_values(level) || level.has_several_shapes() {
            return None;
        }
        nulls = NullBuffer::union(nulls.as_ref(), object.nulls.as_ref());
        level = &field.level;
        nulls = NullBuffer::union(nulls.as_ref(), level.nulls.as_ref());
    }
    let typed = level.leaf.as_ref().map(|leaf| leaf.array.data_type());
    if level.object.is_some()
        || level.array.is_some()
        || level.has_several_shapes()
        || level.layout == Layout::Early && (typed.is_none() || holds_values(level))
        || typed.is_some_and(|typed| typed != wanted && !widens(typed, wanted))
    {
        return None;
    }
    let untyped = match &level.value {
        Some(values) if (values.len() - values.null_count()) > values.len() / FEW => return None,
        Some(values) => match values.nulls() {
            Some(there) => there.valid_indices().collect(),
            None => (0..values.len()).collect(),
        },
        None => Vec::new(),
    };
    Some(Typed { level, nulls, untyped })
}

/// The typed leaf as it is, and row by row what the residual holds.
fn extract_typed(
    column: &VariantColumn,
    finder: &mut Finder<'_>,
    typed: &Typed<'_>,
    wanted: &DataType,
    timezone: &str,
) -> Result<Extracted> {
    let values = match &typed.level.leaf {
        None => new_null_array(wanted, column.len),
        Some(leaf) => {
            let nulls = NullBuffer::union(typed.nulls.as_ref(), leaf.array.nulls());
            let values = make_array(leaf.array.to_data().into_builder().nulls(nulls).build()?);
            if values.data_type() == wanted { values } else { cast(&values, wanted)? }
        }
    };
    if typed.untyped.is_empty() {
        let failed = BooleanArray::new(BooleanBuffer::new_unset(column.len), None);
        return Ok(Extracted { values, failed, variant: false });
    }
    let found = extract_cast(column, finder, wanted, typed.untyped.iter().copied(), timezone)?;
    let (whole, few) = (values.to_data(), found.values.to_data());
    let mut merged = MutableArrayData::new(vec![&whole, &few], true, column.len);
    let mut failed = BooleanBufferBuilder::new(column.len);
    failed.append_n(column.len, false);
    let mut next = 0;
    for (at, &row) in typed.untyped.iter().enumerate() {
        merged.try_extend(0, next, row)?;
        merged.try_extend(1, at, at + 1)?;
        failed.set_bit(row, found.failed.value(at));
        next = row + 1;
    }
    merged.try_extend(0, next, column.len)?;
    let failed = BooleanArray::new(failed.finish(), None);
    Ok(Extracted { values: make_array(merged.freeze()), failed, variant: false })
}

/// Integers that become wider ones: no row fails.
fn widens(from: &DataType, to: &DataType) -> bool {
    from.is_signed_integer() && to.is_signed_integer() && from.primitive_width() < to.primitive_width()
}

fn holds_values(level: &Level) -> bool {
    level.value.as_ref().is_some_and(|v| v.null_count() < v.len())
}

/// Where a row's value was found.
pub(crate) enum Found<'a> {
    Missing,
    Leaf(&'a Leaf, usize),
    /// A validated value, in the bytes of a `value` or `untyped_value` column, and the metadata that it is under.
    Bytes {
        metadata: &'a [u8],
        value: &'a [u8],
    },
    /// A shredded object or array.
    Subtree(&'a Level, usize),
}

pub(crate) struct Finder<'a> {
    pub(crate) steps: &'a [Step],
    pub(crate) dictionary: KnownNames,
    residual: Validator,
    reconstructor: Reconstructor,
    /// The level on which the path ends, when it is an early one that is put together.
    subtree: Option<(VariantColumn, Reconstructor)>,
}

impl<'a> Finder<'a> {
    fn new(column: &VariantColumn, steps: &'a [Step]) -> Self {
        Finder {
            steps,
            dictionary: KnownNames::default(),
            residual: Validator::default(),
            reconstructor: Reconstructor::new(column),
            subtree: None,
        }
    }

    fn find<'c>(&mut self, column: &'c VariantColumn, row: usize) -> Result<Found<'c>> {
        if column.is_null(row) {
            return Ok(Found::Missing);
        }
        if column.root.layout == Layout::Early {
            return self.find_early(column, row);
        }
        let (mut level, mut at) = (&column.root, row);
        for (depth, step) in self.steps.iter().enumerate() {
            if is_null(&level.nulls, at) {
                return Ok(Found::Missing);
            }
            if let (Step::Key(key), Some(object)) = (step, &level.object)
                && !is_null(&object.nulls, at)
                && let Some(field) = object.find(key)
            {
                level = &field.level;
            } else if let (Step::Index(index), Some(array)) = (step, &level.array)
                && !is_null(&array.nulls, at)
            {
                let (first, end) = array.range(at);
                if *index >= end - first {
                    return Ok(Found::Missing);
                }
                level = &array.element;
                at = first + index;
            } else {
                return self.find_in_value(column, level, at, row, depth);
            }
        }
        if is_null(&level.nulls, at) {
            return Ok(Found::Missing);
        }
        let has_value = level.has_value(at);
        if let Some(leaf) = &level.leaf
            && leaf.array.is_valid(at)
        {
            if has_value {
                return Err(Error::new(
                    Code::MalformedShredding,
                    format!("{} holds both a value and a typed value that is no object", level.path),
                )
                .rule(25)
                .path(&level.path));
            }
            return Ok(Found::Leaf(leaf, at));
        }
        if level.is_typed(at) {
            return Ok(Found::Subtree(level, at));
        }
        self.find_in_value(column, level, at, row, self.steps.len())
    }

    /// Follows the steps from `depth` on inside the level's `value`.
    fn find_in_value<'c>(
        &mut self,
        column: &'c VariantColumn,
        level: &'c Level,
        at: usize,
        row: usize,
        depth: usize,
    ) -> Result<Found<'c>> {
        let value = match &level.value {
            Some(values) if values.is_valid(at) => values.value(at),
            _ => return Ok(Found::Missing),
        };
        if !level.is_typed(at) {
            check_shape(level, value)?;
        }
        let metadata = metadata_of(column, row)?;
        self.dictionary.load(metadata).map_err(|e| e.path(format!("{}.metadata", column.root.path)))?;
        self.follow(level, metadata, value, depth)
    }

    /// Follows the steps from `depth` on inside of a value, under the metadata that was loaded.
    pub(crate) fn follow<'c>(
        &mut self,
        level: &Level,
        metadata: &'c [u8],
        value: &'c [u8],
        depth: usize,
    ) -> Result<Found<'c>> {
        let fail = |e: Error| e.path(level.value_path());
        self.residual.at_depth(level.depth).validate_around_unknown(&self.dictionary, value).map_err(fail)?;
        let mut value = value;
        for step in self.steps.get(depth..).unwrap_or_default() {
            match self.child(value, step).map_err(fail)? {
                Some(child) => value = child,
                None => return Ok(Found::Missing),
            }
        }
        Ok(Found::Bytes { metadata, value })
    }

    /// Puts a shredded object or array together: its metadata and its value.
    fn write_subtree(
        &mut self,
        column: &VariantColumn,
        level: &Level,
        (at, row): (usize, usize),
        metadata: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if level.layout == Layout::Standard {
            let dictionary = metadata_of(column, row)?;
            metadata.extend_from_slice(dictionary);
            return self.reconstructor.write_row(level, dictionary, at, out);
        }
        if self.subtree.is_none() {
            // Its rows are slots below an array: the row at hand is the one to name.
            let made = standardize(level, None, slots(column, self.steps)).map_err(|e| Error { row: None, ..e })?;
            let reconstructor = Reconstructor::new(&made.column);
            self.subtree = Some((made.column, reconstructor));
        }
        let Some((column, reconstructor)) = &mut self.subtree else { return Ok(()) };
        let dictionary = metadata_of(column, at)?;
        metadata.extend_from_slice(dictionary);
        reconstructor.write_row(&column.root, dictionary, at, out)
    }

    /// A child of a validated value.
    pub(crate) fn child<'c>(&self, value: &'c [u8], step: &Step) -> Result<Option<&'c [u8]>> {
        let basic = value.first().map(|b| b & 3);
        let index = match (step, basic) {
            (Step::Key(_), Some(2)) | (Step::Index(_), Some(3)) => {
                let head = head(value, 0)?;
                let index = match step {
                    Step::Index(index) => *index,
                    Step::Key(key) => {
                        let mut found = head.count;
                        for index in 0..head.count {
                            let id = number(value, head.ids + index * head.id_width, head.id_width)?;
                            if self.dictionary.name(id) == key.as_bytes() {
                                found = index;
                                break;
                            }
                        }
                        found
                    }
                };
                if index >= head.count {
                    return Ok(None);
                }
                head.body + number(value, head.offsets + index * head.offset_width, head.offset_width)? as usize
            }
            _ => return Ok(None),
        };
        let end = index + length(value, index)?;
        Ok(value.get(index..end))
    }
}

/// Slots of the level on which the steps end.
fn slots(column: &VariantColumn, steps: &[Step]) -> usize {
    let (mut level, mut len) = (&column.root, column.len);
    for step in steps {
        level = match step {
            Step::Key(key) => match level.object.as_ref().and_then(|o| o.find(key)) {
                Some(field) => &field.level,
                None => return len,
            },
            Step::Index(_) => match &level.array {
                Some(array) => {
                    len = array.offsets.last() as usize;
                    &array.element
                }
                None => return len,
            },
        };
    }
    len
}

/// The row's metadata; a column of which only typed leaves were read has none and names no field.
fn metadata_of(column: &VariantColumn, row: usize) -> Result<&[u8]> {
    match &column.metadata {
        Some(metadata) if metadata.is_valid(row) => Ok(metadata.value(row)),
        Some(_) => Err(Error::new(Code::MalformedShredding, "a variant that is not null has no metadata")
            .rule(2)
            .path(format!("{}.metadata", column.root.path))),
        None => Ok(NO_NAMES),
    }
}

fn extract_variant(column: &VariantColumn, finder: &mut Finder<'_>) -> Result<Extracted> {
    let mut metadata = ByteColumn::new(column.len);
    let mut values = ByteColumn::new(column.len);
    let mut nulls = Vec::with_capacity(column.len);
    for row in 0..column.len {
        let place = |e: Error| e.row(row as u64);
        let found = finder.find(column, row).map_err(place)?;
        let out = &mut values.bytes;
        // A leaf names no field: it needs nothing of the row's metadata, which was not validated for it.
        let there = !matches!(found, Found::Missing);
        match found {
            Found::Missing => {}
            Found::Leaf(leaf, at) => {
                write_leaf(leaf, at, out).map_err(place)?;
                metadata.bytes.extend_from_slice(NO_NAMES);
            }
            Found::Bytes { metadata: dictionary, value } => {
                finder.residual.at_depth(0).copy(&finder.dictionary, value, out).map_err(place)?;
                metadata.bytes.extend_from_slice(dictionary);
            }
            Found::Subtree(level, at) => {
                finder.write_subtree(column, level, (at, row), &mut metadata.bytes, out).map_err(place)?;
            }
        }
        nulls.push(there);
        metadata.end_row()?;
        values.end_row()?;
    }
    let values = build_variant(&metadata.finish()?, values.finish()?, Some(NullBuffer::from(nulls)))?;
    let failed = BooleanArray::new(BooleanBuffer::new_unset(column.len), None);
    Ok(Extracted { values: Arc::new(values), failed, variant: true })
}

fn extract_cast(
    column: &VariantColumn,
    finder: &mut Finder<'_>,
    wanted: &DataType,
    rows: impl Iterator<Item = usize>,
    timezone: &str,
) -> Result<Extracted> {
    let mut casts = CastBuilder::new(wanted, Zone::parse(timezone)?)?;
    let mut printer = Printer::default();
    for row in rows {
        let place = |e: Error| e.row(row as u64);
        match finder.find(column, row).map_err(place)? {
            Found::Missing => casts.append_null(),
            Found::Leaf(leaf, at) => casts.append(&leaf.scalar(at)),
            Found::Bytes { metadata, value } => match scalar(value) {
                Some(scalar) => casts.append(&scalar),
                None => printer.append(&mut casts, metadata, value).map_err(place)?,
            },
            // An object or array is text or nothing: only the text is worth the reconstruction.
            Found::Subtree(..) if wanted != &DataType::Utf8 => casts.append_failed(),
            Found::Subtree(level, at) => {
                let (mut metadata, mut bytes) = std::mem::take(&mut printer.bytes);
                metadata.clear();
                bytes.clear();
                finder.write_subtree(column, level, (at, row), &mut metadata, &mut bytes).map_err(place)?;
                printer.append(&mut casts, &metadata, &bytes).map_err(place)?;
                printer.bytes = (metadata, bytes);
            }
        }
    }
    let (values, failed) = casts.finish();
    Ok(Extracted { values, failed, variant: false })
}

/// Objects and arrays on their way to a cast: bytes become a tape.
#[derive(Default)]
struct Printer {
    decoder: VariantDecoder,
    tape: Tape,
    names: Names,
    bytes: (Vec<u8>, Vec<u8>),
}

impl Printer {
    fn append(&mut self, casts: &mut CastBuilder, metadata: &[u8], value: &[u8]) -> Result<()> {
        self.decoder.decode(metadata, value, &mut self.tape, &mut self.names)?;
        casts.append_node(&self.tape.view(value, &self.names), 0);
        Ok(())
    }
}
