//! Which rows of a standard column obey the layout as they stand, so that they may be written again as they were read.
//! Whatever readers forgive or refuse is left to whoever puts whole Variants together: this only says where it is.
//!
//! Presence is judged by whole columns, and only residuals are looked into (rules 22 to 36). All names of the tree are
//! in the metadata of every row that mica writes; a row whose metadata lacks one is put together (rule 20).

use arrow_array::Array;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};

use crate::codec::known::KnownNames;
use crate::codec::validate::{FieldSpan, Validator};
use crate::shred::column::power_of_ten;
use crate::values::leaf::{Leaf, LeafValues};
use crate::values::level::{Level, ListColumn, VariantColumn};
use crate::values::reconstruct::want;
use crate::values::shape::{check_shape, is_object};

/// For each row whether it does; a null one does.
pub fn strict_rows(column: &VariantColumn) -> Vec<bool> {
    let there = column.nulls.as_ref().map_or_else(|| BooleanBuffer::new_set(column.len), |nulls| nulls.inner().clone());
    let mut check = Check {
        column,
        names: KnownNames::default(),
        validator: Validator::default(),
        spans: Vec::new(),
        strict: vec![true; column.len],
    };
    want(&column.root, &mut check.names);
    check.metadata(&there);
    check.level(&column.root, &there, None, true);
    check.strict
}

struct Check<'a> {
    column: &'a VariantColumn,
    names: KnownNames,
    validator: Validator,
    spans: Vec<FieldSpan>,
    strict: Vec<bool>,
}

impl Check<'_> {
    fn metadata(&mut self, there: &BooleanBuffer) {
        let mut last = None;
        for row in there.set_indices() {
            let Some(metadata) = self.column.metadata.as_ref().filter(|metadata| metadata.is_valid(row)) else {
                self.strict[row] = false;
                continue;
            };
            let view = metadata.views()[row];
            let same = last.filter(|&(before, _)| before == view);
            let good = same.map_or_else(|| self.names.load_all(metadata.value(row)), |(_, good)| good);
            last = Some((view, good));
            self.strict[row] = good;
        }
    }

    /// The slots of a level that are `there`; `rows` has the row of each slot where that is not its number. The root
    /// and elements of arrays `must` hold something (rules 22, 31).
    fn level(&mut self, level: &Level, there: &BooleanBuffer, rows: Option<&[u32]>, must: bool) {
        let row = |slot: usize| rows.map_or(slot, |rows| rows[slot] as usize);
        let typed = typed(level, there.len());
        let value = valid(level.value.as_ref().map(|values| values.nulls()), there.len());
        let mut odd = there & &!&valid(Some(level.nulls.as_ref()), there.len());
        if level.object.is_none() {
            odd = &odd | &(&(there & &typed) & &value);
        }
        if must {
            odd = &odd | &(there & &!&(&typed | &value));
        }
        odd.set_indices().for_each(|slot| self.strict[row(slot)] = false);
        for slot in (there & &value).set_indices() {
            let row = row(slot);
            self.strict[row] = self.strict[row] && self.residual(level, slot, row, typed.value(slot));
        }
        let below = there & &typed;
        for field in level.object.iter().flat_map(|object| &object.fields) {
            self.level(&field.level, &below, rows, false);
        }
        if let Some(array) = &level.array {
            let owners = owners(array, rows);
            let mut inside = BooleanBufferBuilder::new(owners.len());
            inside.append_n(owners.len(), false);
            for slot in below.set_indices() {
                let (first, end) = array.range(slot);
                (first..end).for_each(|at| inside.set_bit(at, true));
            }
            self.level(&array.element, &inside.finish(), Some(&owners), true);
        }
    }

    /// Whether the residual of a slot, beside a typed value or alone, may stand.
    fn residual(&mut self, level: &Level, slot: usize, row: usize, typed: bool) -> bool {
        let (Some(values), Some(metadata)) = (&level.value, &self.column.metadata) else { return false };
        let value = values.value(slot);
        if self.names.load(metadata.value(row)).is_err() {
            return false;
        }
        let names = self.names.current();
        let validator = self.validator.at_depth(level.depth);
        let Some(object) = level.object.as_ref().filter(|_| typed) else {
            return check_shape(level, value).is_ok()
                && validator.validate(names, value).is_ok()
                && validator.unsorted().is_empty();
        };
        self.spans.clear();
        is_object(value)
            && validator.open_object(names, value, &mut self.spans).is_ok()
            && self.spans.iter().all(|span| {
                let name = names.name(span.id);
                !span.unsorted && object.fields.binary_search_by(|field| field.name.as_bytes().cmp(name)).is_err()
            })
    }
}

/// Clears the rows with a decimal of more digits than its column says, at this level or below: a writer would keep the
/// lowest bytes of it. `rows` as in `Check::level`.
pub fn clear_beyond_precision(level: &Level, rows: Option<&[u32]>, strict: &mut [bool]) {
    if let Some(Leaf { values: LeafValues::Decimal(array, precision, _), .. }) = &level.leaf {
        let least = power_of_ten(*precision).unsigned_abs();
        let beyond = array.iter().enumerate().filter(|(_, value)| value.is_some_and(|v| v.unsigned_abs() >= least));
        for (slot, _) in beyond {
            let row = rows.map_or(Some(slot), |rows| rows.get(slot).map(|&row| row as usize));
            row.and_then(|row| strict.get_mut(row)).into_iter().for_each(|strict| *strict = false);
        }
    }
    for field in level.object.iter().flat_map(|object| &object.fields) {
        clear_beyond_precision(&field.level, rows, strict);
    }
    if let Some(array) = &level.array {
        clear_beyond_precision(&array.element, Some(&owners(array, rows)), strict);
    }
}

/// The row of each element of the lists.
fn owners(array: &ListColumn, rows: Option<&[u32]>) -> Vec<u32> {
    let mut owners = vec![0; array.offsets.last() as usize];
    for slot in 0..array.offsets.len() - 1 {
        let (first, end) = array.range(slot);
        owners[first..end].fill(rows.map_or(slot as u32, |rows| rows[slot]));
    }
    owners
}

/// The slots that are not null; of a column that is not there, none.
fn valid(nulls: Option<Option<&NullBuffer>>, len: usize) -> BooleanBuffer {
    match nulls {
        None => BooleanBuffer::new_unset(len),
        Some(None) => BooleanBuffer::new_set(len),
        Some(Some(nulls)) => nulls.inner().slice(0, len),
    }
}

/// The slots with a typed value.
fn typed(level: &Level, len: usize) -> BooleanBuffer {
    if let Some(leaf) = &level.leaf {
        return valid(Some(leaf.array.nulls()), len);
    }
    let nulls = level.object.as_ref().map(|object| object.nulls.as_ref());
    valid(nulls.or_else(|| level.array.as_ref().map(|array| array.nulls.as_ref())), len)
}
