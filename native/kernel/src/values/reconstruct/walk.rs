//! One row of a shredded column, from the root down, told to whoever writes it: as a Variant, or as text. Whatever is
//! wrong with a value is found here: its shape, its residuals, the names of its fields. Recursion is over the tree,
//! never over data.

use std::any::Any;

use arrow_array::Array;

use crate::codec::known::RowNames;
use crate::codec::validate::{FieldSpan, Validator};
use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::values::leaf::Leaf;
use crate::values::level::{FieldColumn, Level, ListColumn, ObjectColumn, is_null};
use crate::values::reconstruct::fields::Fields;
use crate::values::shape::{check_shape, conflict, in_both, is_object};

/// What is told of a row, in the order of its bytes and of its text.
pub trait Writer: Any {
    /// An object or array that is not closed yet.
    type Open;

    /// How much is written.
    fn written(&self) -> usize;
    /// Forgets what was written from here on.
    fn truncate(&mut self, len: usize);
    fn get(&self, start: usize, end: usize) -> &[u8];
    /// `done` rows were written from `start` on, `left` are to come.
    fn ready(&mut self, _start: usize, _done: usize, _left: usize) {}

    /// The Variant null, where nothing is and something has to be (rule 26).
    fn null(&mut self);
    fn leaf(&mut self, leaf: &Leaf, slot: usize);
    /// A value that was validated, object ids in order.
    fn value(&mut self, names: RowNames<'_>, value: &[u8]) -> Result<()>;

    /// `largest`: no field id is above it.
    fn open_object(&mut self, level: &Level, count: usize, largest: u32) -> Self::Open;
    fn open_array(&mut self, level: &Level, count: usize) -> Self::Open;
    /// What comes next is the value of the shredded field whose level has this number.
    fn field(&mut self, open: &mut Self::Open, level: usize, id: u32, name: &[u8]);
    /// What comes next is the value of a field of a residual.
    fn residual_field(&mut self, open: &mut Self::Open, id: u32, name: &[u8]);
    fn element(&mut self, open: &mut Self::Open);
    /// The field or element is written.
    fn end(&mut self, open: &mut Self::Open) -> Result<()>;
    fn close(&mut self, open: &mut Self::Open);
}

/// What is kept from row to row.
#[derive(Default)]
pub struct Tools {
    /// By number of the level that holds the object.
    fields: Vec<Fields>,
    residual: Validator,
    spans: Vec<FieldSpan>,
    /// The fields of partial objects that are in their residuals, innermost object last.
    entries: Vec<Entry>,
    healed: Vec<u8>,
}

/// A field of a partial object that is in its residual.
#[derive(Clone, Copy)]
struct Entry {
    /// How many shredded fields have smaller names.
    rank: usize,
    span: FieldSpan,
}

impl Tools {
    /// For a level and all below it.
    pub fn of(level: &Level) -> Self {
        let mut tools = Tools::default();
        tools.add(level);
        tools
    }

    /// A row failed: nothing of it is open any more.
    pub fn forget(&mut self) {
        self.entries.clear();
    }

    fn add(&mut self, level: &Level) {
        if self.fields.len() <= level.number {
            self.fields.resize_with(level.number + 1, Fields::default);
        }
        if let Some(object) = &level.object {
            self.fields[level.number] = Fields::of(object);
            object.fields.iter().for_each(|field| self.add(&field.level));
        }
        if let Some(array) = &level.array {
            self.add(&array.element);
        }
    }
}

/// A row that is walked over.
pub struct Walk<'a, W> {
    pub tools: &'a mut Tools,
    /// The names of the row's metadata.
    pub names: RowNames<'a>,
    pub to: &'a mut W,
}

impl<W: Writer> Walk<'_, W> {
    /// The value of a slot, as the null table in `values/level.rs` has it.
    pub fn value(&mut self, level: &Level, slot: usize) -> Result<()> {
        if is_null(&level.nulls, slot) {
            self.to.null();
            return Ok(());
        }
        let value = level.value.as_ref().filter(|values| values.is_valid(slot)).map(|values| values.value(slot));
        if let Some(leaf) = level.leaf.as_ref().filter(|leaf| leaf.array.is_valid(slot)) {
            if value.is_some() {
                return Err(conflict(level, "a typed value that is not an object"));
            }
            self.to.leaf(leaf, slot);
        } else if let Some(object) = level.object.as_ref().filter(|object| !is_null(&object.nulls, slot)) {
            return self.object(level, object, slot, value);
        } else if let Some(array) = level.array.as_ref().filter(|array| !is_null(&array.nulls, slot)) {
            if value.is_some() {
                return Err(conflict(level, "an array").rule(30));
            }
            return self.array(level, array, slot);
        } else if let Some(value) = value {
            return self.residual(level, value);
        } else {
            self.to.null();
        }
        Ok(())
    }

    /// The value of a slot that holds a residual and nothing else.
    pub fn untyped(&mut self, level: &Level, slot: usize) -> Result<()> {
        match &level.value {
            Some(values) => self.residual(level, values.value(slot)),
            None => self.value(level, slot),
        }
    }

    fn residual(&mut self, level: &Level, value: &[u8]) -> Result<()> {
        check_shape(level, value)?;
        let fail = |e: Error| e.path(level.value_path());
        let residual = self.tools.residual.at_depth(level.depth);
        residual.validate(self.names, value).map_err(fail)?;
        if residual.unsorted().is_empty() {
            return self.to.value(self.names, value);
        }
        self.tools.healed.clear();
        residual.copy(self.names, value, &mut self.tools.healed).map_err(fail)?;
        self.to.value(self.names, &self.tools.healed)
    }

    fn object(&mut self, level: &Level, object: &ObjectColumn, slot: usize, value: Option<&[u8]>) -> Result<()> {
        let fields = &mut self.tools.fields[level.number];
        let groups = fields.seek(slot);
        let mut count = 0;
        for number in 0..groups {
            count += fields.group(number, slot).present.count_ones() as usize;
        }
        let first = self.tools.entries.len();
        if let Some(value) = value {
            self.open_residual(level, object, slot, value)?;
            count += self.tools.entries.len() - first;
        }
        // Ids beyond a byte are rare: only then it matters which they are.
        let mut largest = 0xff;
        if self.names.len() > 0x100 {
            let fields = &self.tools.fields[level.number];
            let ranks = (0..groups).flat_map(|number| ranks(number, fields.group(number, slot).present));
            let ids = ranks.filter_map(|rank| self.names.id_of_level(object.fields[rank].level.number));
            largest = ids.chain(self.tools.entries[first..].iter().map(|entry| entry.span.id)).max().unwrap_or(0);
        }
        let mut next = first;
        let mut open = self.to.open_object(level, count, largest);
        for number in 0..groups {
            let group = self.tools.fields[level.number].group(number, slot);
            for rank in ranks(number, group.present) {
                if next < self.tools.entries.len() {
                    self.entries(level, &mut open, &mut next, rank, value)?;
                }
                let field = &object.fields[rank];
                let id = self.names.id_of_level(field.level.number).ok_or_else(|| missing(field))?;
                self.to.field(&mut open, field.level.number, id, field.name.as_bytes());
                match &field.level.leaf {
                    Some(leaf) if group.typed >> (rank % 64) & 1 == 1 => self.to.leaf(leaf, slot),
                    _ => self.value(&field.level, slot)?,
                }
                self.to.end(&mut open)?;
            }
        }
        if next < self.tools.entries.len() {
            self.entries(level, &mut open, &mut next, usize::MAX, value)?;
        }
        self.tools.entries.truncate(first);
        self.to.close(&mut open);
        Ok(())
    }

    /// What the residual of a partial object adds to it.
    fn open_residual(&mut self, level: &Level, object: &ObjectColumn, slot: usize, value: &[u8]) -> Result<()> {
        if !is_object(value) {
            let message = format!("{} has shredded fields and a value that is not an object", level.path);
            return Err(Error::new(Code::MalformedShredding, message).rule(36).path(level.value_path()));
        }
        let Tools { fields, residual, spans, entries, .. } = &mut *self.tools;
        spans.clear();
        let residual = residual.at_depth(level.depth);
        residual.open_object(self.names, value, spans).map_err(|e| e.path(level.value_path()))?;
        for &span in spans.iter() {
            let name = self.names.name(span.id);
            let rank = match object.fields.binary_search_by(|field| field.name.as_bytes().cmp(name)) {
                Err(rank) => rank,
                Ok(rank) => {
                    let present = fields[level.number].has(rank, slot);
                    // The early layout may hold a shredded field in `untyped_value`, where `object` lacks it.
                    if present || level.layout != Layout::Early {
                        return Err(in_both(level, &object.fields[rank].name, present));
                    }
                    rank
                }
            };
            entries.push(Entry { rank, span });
        }
        Ok(())
    }

    /// The fields in a residual whose names come before that of the shredded field of this rank.
    fn entries(
        &mut self,
        level: &Level,
        open: &mut W::Open,
        next: &mut usize,
        rank: usize,
        value: Option<&[u8]>,
    ) -> Result<()> {
        while let Some(&Entry { rank: own, span }) = self.tools.entries.get(*next)
            && own <= rank
        {
            *next += 1;
            let bytes = value.and_then(|value| value.get(span.start as usize..span.end as usize)).unwrap_or(&[]);
            self.to.residual_field(open, span.id, self.names.name(span.id));
            if span.unsorted {
                let Tools { residual, healed, .. } = &mut *self.tools;
                healed.clear();
                let residual = residual.at_depth(level.depth);
                residual.copy(self.names, bytes, healed).map_err(|e| e.path(level.value_path()))?;
                self.to.value(self.names, healed)?;
            } else {
                self.to.value(self.names, bytes)?;
            }
            self.to.end(open)?;
        }
        Ok(())
    }

    fn array(&mut self, level: &Level, array: &ListColumn, slot: usize) -> Result<()> {
        let (first, end) = array.range(slot);
        let mut open = self.to.open_array(level, end - first);
        for at in first..end {
            self.to.element(&mut open);
            self.value(&array.element, at)?;
            self.to.end(&mut open)?;
        }
        self.to.close(&mut open);
        Ok(())
    }
}

/// The fields whose bits are set, by their place among all.
#[inline]
fn ranks(group: usize, mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let rank = (bits != 0).then(|| 64 * group + bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        rank
    })
}

#[cold]
fn missing(field: &FieldColumn) -> Error {
    let message = format!("the metadata lacks the shredded field {:?}", field.name);
    Error::new(Code::MalformedShredding, message).rule(20).path(&field.level.path)
}
