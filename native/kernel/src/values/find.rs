//! One path in one row of a column: in the typed leaf, in a residual, or a shredded object or array to be put together.
//! The levels that the path leads through are resolved once.
//!
//! In an early column a field is where `object` has it, or else in the `untyped_value` of a level above it: "if
//! object[field] is null: (key, untyped_value[field])". In both it is refused.

use arrow_array::{Array, BinaryViewArray};

use crate::codec::head::{head, length, number};
use crate::codec::known::KnownNames;
use crate::codec::metadata::NO_NAMES;
use crate::codec::primitive::id;
use crate::codec::untyped::split;
use crate::codec::validate::Validator;
use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::layout::early::malformed;
use crate::path::{Step, levels};
use crate::values::early::State;
use crate::values::leaf::Leaf;
use crate::values::level::{Level, VariantColumn, is_null};
use crate::values::reconstruct::{Metadata, Reconstructor, Spot, Values, Writer};
use crate::values::shape::check_shape;
use crate::values::standardize::standardize;

/// Where a row's value was found.
pub enum Found<'a> {
    Missing,
    Leaf(&'a Leaf, usize),
    /// A validated value, in the bytes of a `value` or `untyped_value` column, and the metadata that it is under.
    Bytes {
        metadata: &'a [u8],
        value: &'a [u8],
    },
    /// A shredded object or array, in this slot of the level on which the path ends.
    Subtree(usize),
    /// The same, put together by the writer.
    Rebuilt {
        metadata: &'a [u8],
        value: &'a [u8],
    },
}

/// Rows that are looked at together.
const CHUNK: usize = 256;

/// Where a step leads in a row.
enum Next {
    /// To this slot of the next level.
    Slot(usize),
    /// Out of what is shredded.
    Residual,
    Missing,
}

pub struct Finder<'a> {
    column: &'a VariantColumn,
    steps: &'a [Step],
    /// The root and the level behind each step that leads to one.
    levels: Vec<&'a Level>,
    names: KnownNames,
    validator: Validator,
    /// The level on which the path ends, when it is an early one that is put together.
    subtree: Option<(Option<VariantColumn>, Reconstructor)>,
}

impl<'a> Finder<'a> {
    pub fn new(column: &'a VariantColumn, steps: &'a [Step]) -> Self {
        Finder {
            column,
            steps,
            levels: levels(&column.root, steps),
            names: KnownNames::default(),
            validator: Validator::default(),
            subtree: None,
        }
    }

    /// Calls with what is at the path in each of these rows; shredded objects and arrays are put together by the writer,
    /// if there is one.
    pub fn each<W: Writer>(
        &mut self,
        rows: impl Iterator<Item = usize>,
        writer: Option<W>,
        mut seen: impl FnMut(&mut Self, Found<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut found, mut spots, mut values) = (Vec::with_capacity(CHUNK), Vec::new(), writer.map(Values::to));
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            spots.clear();
            values.iter_mut().for_each(Values::clear);
            let mut failed = Ok(());
            for row in rows.by_ref().take(CHUNK) {
                match self.find(row) {
                    Ok(there) => {
                        if let Found::Subtree(at) = there {
                            let metadata = if self.column.root.layout == Layout::Early { at } else { row };
                            spots.push(Spot { slot: at as u32, metadata: metadata as u32, row: row as u32 });
                        }
                        found.push((row as u64, there));
                    }
                    Err(e) => {
                        failed = Err(e.row(row as u64));
                        break;
                    }
                }
            }
            let metadata = values.as_mut().map(|values| self.rebuild(&spots, values)).transpose()?.flatten();
            let mut rebuilt = spots.iter().enumerate();
            for (row, there) in found.drain(..) {
                let there = match (there, &values) {
                    (Found::Subtree(_), Some(values)) => {
                        let (number, at) = rebuilt.next().map_or((0, 0), |(number, spot)| (number, spot.metadata));
                        let metadata = metadata.as_ref().map_or(NO_NAMES, |metadata| metadata.value(at as usize));
                        Found::Rebuilt { metadata, value: values.get(number) }
                    }
                    (there, _) => there,
                };
                seen(self, there).map_err(|e| e.row(row))?;
            }
            failed?;
        }
        Ok(())
    }

    fn find(&mut self, row: usize) -> Result<Found<'a>> {
        if self.column.is_null(row) {
            Ok(Found::Missing)
        } else if self.column.root.layout == Layout::Early {
            self.find_early(row)
        } else {
            self.find_standard(row)
        }
    }

    /// The step out of a level that is not null in this slot.
    fn next(&self, depth: usize, step: &Step, at: usize) -> Next {
        let (Some(level), true) = (self.levels.get(depth), depth + 1 < self.levels.len()) else {
            return Next::Residual;
        };
        match (step, &level.object, &level.array) {
            (Step::Key(_), Some(object), _) if !is_null(&object.nulls, at) => Next::Slot(at),
            (Step::Index(index), _, Some(array)) if !is_null(&array.nulls, at) => {
                let (first, end) = array.range(at);
                if *index < end - first { Next::Slot(first + index) } else { Next::Missing }
            }
            _ => Next::Residual,
        }
    }

    fn find_standard(&mut self, row: usize) -> Result<Found<'a>> {
        let (mut level, mut at) = (&self.column.root, row);
        for (depth, step) in self.steps.iter().enumerate() {
            if is_null(&level.nulls, at) {
                return Ok(Found::Missing);
            }
            match self.next(depth, step, at) {
                Next::Slot(slot) => (level, at) = (self.level(depth + 1), slot),
                Next::Missing => return Ok(Found::Missing),
                Next::Residual => return self.find_in_value(level, at, row, depth),
            }
        }
        if is_null(&level.nulls, at) {
            return Ok(self.nothing());
        }
        if let Some(leaf) = &level.leaf
            && leaf.array.is_valid(at)
        {
            if level.has_value(at) {
                let message = format!("{} has both a value and a typed value that is not an object", level.path);
                return Err(Error::new(Code::MalformedShredding, message).rule(25).path(&level.path));
            }
            return Ok(Found::Leaf(leaf, at));
        }
        if level.is_typed(at) {
            return Ok(Found::Subtree(at));
        }
        self.find_in_value(level, at, row, self.steps.len())
    }

    fn level(&self, depth: usize) -> &'a Level {
        self.levels.get(depth).copied().unwrap_or(&self.column.root)
    }

    fn find_early(&mut self, row: usize) -> Result<Found<'a>> {
        let (mut level, mut at) = (&self.column.root, row);
        for (depth, step) in self.steps.iter().enumerate() {
            if is_null(&level.nulls, at) {
                return Ok(Found::Missing);
            }
            let (untyped, state) = untyped_of(level, at)?;
            match self.next(depth, step, at) {
                Next::Slot(slot) => {
                    let below = self.level(depth + 1);
                    if let (Step::Key(key), State::Partial, Some((metadata, value))) = (step, state, untyped)
                        && let (there, Found::Bytes { .. }) = self.in_value(level, metadata, value, depth, step)?
                    {
                        if below.is_present(at) {
                            let message =
                                format!("{} and {} both have the field {key:?}", level.path, level.value_path());
                            return Err(malformed(&level.path, message));
                        }
                        return Ok(there);
                    }
                    (level, at) = (below, slot);
                }
                Next::Missing => return Ok(Found::Missing),
                Next::Residual => {
                    return match untyped.filter(|_| state != State::Null) {
                        Some((metadata, value)) => self.load(level, metadata, value, depth),
                        None => Ok(Found::Missing),
                    };
                }
            }
        }
        if is_null(&level.nulls, at) {
            return Ok(self.nothing());
        }
        match untyped_of(level, at)? {
            (Some((metadata, value)), State::Untyped | State::Null) => {
                self.load(level, metadata, value, self.steps.len())
            }
            _ if level.object.as_ref().is_some_and(|o| !is_null(&o.nulls, at)) => Ok(Found::Subtree(at)),
            _ if level.array.as_ref().is_some_and(|a| !is_null(&a.nulls, at)) => Ok(Found::Subtree(at)),
            _ => Ok(match &level.leaf {
                Some(leaf) if level.is_typed(at) => Found::Leaf(leaf, at),
                _ => self.nothing(),
            }),
        }
    }

    /// What a slot holds where the path ends, and nothing is: a field of an object may be missing, the root and elements
    /// are the Variant null (rule 26).
    fn nothing(&self) -> Found<'a> {
        match self.steps.last() {
            Some(Step::Key(_)) => Found::Missing,
            Some(Step::Index(_)) | None => Found::Bytes { metadata: NO_NAMES, value: &[id::NULL << 2] },
        }
    }

    /// Follows the steps from `depth` on inside the level's `value`.
    fn find_in_value(&mut self, level: &'a Level, at: usize, row: usize, depth: usize) -> Result<Found<'a>> {
        let value = match &level.value {
            Some(values) if values.is_valid(at) => values.value(at),
            _ if depth == self.steps.len() => return Ok(self.nothing()),
            _ => return Ok(Found::Missing),
        };
        if !level.is_typed(at) {
            check_shape(level, value)?;
        }
        let metadata = metadata_of(self.column, row)?;
        self.names.load(metadata).map_err(|e| e.path(format!("{}.metadata", self.column.root.path)))?;
        self.follow(level, metadata, value, depth)
    }

    fn load(&mut self, level: &Level, metadata: &'a [u8], value: &'a [u8], depth: usize) -> Result<Found<'a>> {
        self.names.load(metadata).map_err(|e| e.path(level.value_path()))?;
        self.follow(level, metadata, value, depth)
    }

    /// What the path finds in an object, and whether the object has the step's field at all.
    fn in_value(
        &mut self,
        level: &Level,
        metadata: &'a [u8],
        value: &'a [u8],
        depth: usize,
        step: &Step,
    ) -> Result<(Found<'a>, Found<'a>)> {
        let there = self.load(level, metadata, value, depth)?;
        let field = match self.child(value, step).map_err(|e| e.path(level.value_path()))? {
            Some(value) => Found::Bytes { metadata, value },
            None => Found::Missing,
        };
        Ok((there, field))
    }

    /// Follows the steps from `depth` on inside of a value, under the metadata that was loaded.
    fn follow(&mut self, level: &Level, metadata: &'a [u8], value: &'a [u8], depth: usize) -> Result<Found<'a>> {
        let fail = |e: Error| e.path(level.value_path());
        self.validator.at_depth(level.depth).validate_around_unknown(self.names.current(), value).map_err(fail)?;
        let mut value = value;
        for step in self.steps.get(depth..).unwrap_or_default() {
            match self.child(value, step).map_err(fail)? {
                Some(child) => value = child,
                None => return Ok(Found::Missing),
            }
        }
        Ok(Found::Bytes { metadata, value })
    }

    /// A child of a validated value.
    fn child<'c>(&self, value: &'c [u8], step: &Step) -> Result<Option<&'c [u8]>> {
        let head = match (step, value.first().map(|b| b & 3)) {
            (Step::Key(_), Some(2)) | (Step::Index(_), Some(3)) => head(value, 0)?,
            _ => return Ok(None),
        };
        let index = match step {
            Step::Index(index) => *index,
            Step::Key(key) => {
                let mut found = head.count;
                for index in 0..head.count {
                    let id = number(value, head.ids + index * head.id_width, head.id_width)?;
                    if self.names.current().name(id) == key.as_bytes() {
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
        let offset = number(value, head.offsets + index * head.offset_width, head.offset_width)?;
        let start = head.body + offset as usize;
        Ok(value.get(start..start + length(value, start)?))
    }

    /// Whether a metadata of what was found said wrongly that its names are sorted.
    pub fn misled(&self) -> bool {
        self.names.misled() || self.subtree.as_ref().is_some_and(|(_, reconstructor)| reconstructor.misled())
    }

    /// Appends a value that was found as [`Found::Bytes`].
    pub fn copy(&mut self, metadata: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.names.load(metadata)?;
        self.validator.at_depth(0).copy(self.names.current(), value, out)
    }

    /// Puts shredded objects and arrays together; gives the metadata that they are under.
    fn rebuild<W: Writer>(&mut self, spots: &[Spot], values: &mut Values<W>) -> Result<Option<BinaryViewArray>> {
        let Some(first) = spots.first() else { return Ok(None) };
        let level = self.level(self.steps.len());
        if self.subtree.is_none() {
            // The rows of what is made are slots below an array: the row at hand is the one to name.
            let made = match level.layout {
                Layout::Early => {
                    let made = standardize(level, None, self.slots());
                    Some(made.map_err(|e| Error { row: None, ..e }.row(first.row.into()))?.column)
                }
                Layout::Standard => None,
            };
            let reconstructor = Reconstructor::new(made.as_ref().map_or(level, |made| &made.root));
            self.subtree = Some((made, reconstructor));
        }
        let Some((made, reconstructor)) = &mut self.subtree else { return Ok(None) };
        let (column, level) = made.as_ref().map_or((self.column, level), |made| (made, &made.root));
        reconstructor.write(level, Metadata::of(column.metadata.as_ref()), spots, values)?;
        Ok(column.metadata.clone())
    }

    /// Slots of the level on which the path ends.
    fn slots(&self) -> usize {
        let lists = self.steps.iter().zip(&self.levels).filter(|(step, _)| matches!(step, Step::Index(_)));
        let last = lists.filter_map(|(_, level)| level.array.as_ref()).next_back();
        last.map_or(self.column.len, |array| array.offsets.last() as usize)
    }
}

/// The untyped value of a slot in its two parts, and what the slot is.
#[allow(clippy::type_complexity)]
fn untyped_of(level: &Level, at: usize) -> Result<(Option<(&[u8], &[u8])>, State)> {
    let untyped = match &level.value {
        Some(values) if level.has_value(at) => Some(split(values.value(at)).map_err(|e| e.path(level.value_path()))?),
        _ => None,
    };
    let state = level.early_state(at, untyped.map(|(_, value)| value))?;
    Ok((untyped, state))
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
