//! An early column as a tree of levels that reconstruction walks: one metadata for each row, and every
//! `untyped_value` as a value under it. Typed columns stay what they are; a row whose untyped values are scalars
//! shares the metadata of all names in the tree.
//!
//! What `ConstructObject` unites (the fields of `object` and those of `untyped_value`) is united by the reader of
//! the standard layout: its levels know that they are early ones and may hold a field in either place.

use std::sync::Arc;

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, make_array};
use arrow_buffer::{Buffer, NullBuffer};

use crate::codec::decode::VariantDecoder;
use crate::codec::dictionary::Dictionary;
use crate::codec::encode::ValueWriter;
use crate::codec::untyped::split;
use crate::error::{Error, Result};
use crate::names::Names;
use crate::shred::column::Bytes;
use crate::tape::Tape;
use crate::values::early::State;
use crate::values::leaf::Leaf;
use crate::values::level::{Level, ListColumn, VariantColumn, is_null};

pub struct Standardized {
    pub column: VariantColumn,
    /// Whether the rules of the standard layout hold as they stand: objects where objects are shredded, each field
    /// in its own place, one shape a level (rules 32, 33, 35).
    pub strict: Vec<bool>,
    /// Untyped values with an object whose ids are not in the order of their names (rule 10): row and column.
    pub unsorted: Vec<(usize, String)>,
}

/// The level and everything below it; `len` rows, null where `nulls` says so.
pub fn standardize(root: &Level, nulls: Option<&NullBuffer>, len: usize) -> Result<Standardized> {
    let mut names = Names::new();
    let mut base = Vec::new();
    let mut places = Vec::new();
    visit(root, None, &mut names, &mut base, &mut places);
    let mut writer = Rewriter::new(names, base);
    let mut metadata = BinaryViewBuilder::with_capacity(len);
    let shared = writer.dictionary.base_bytes().to_vec();
    let shared_len = shared.len() as u32;
    let block = metadata.append_block(Buffer::from_vec(shared));
    let slots = Slots::of(&places, len);
    let mut strict = vec![true; len];
    let mut unsorted = Vec::new();
    let mut own = Vec::new();
    for (row, strict) in strict.iter_mut().enumerate() {
        if nulls.is_some_and(|n| n.is_null(row)) {
            metadata.append_null();
            continue;
        }
        for &(place, at) in slots.row(row) {
            let Some(place) = places.get_mut(place as usize) else { continue };
            let done = place.put(at as usize, &mut writer).map_err(|e| locate(e, row))?;
            *strict &= done.strict;
            if done.unsorted {
                unsorted.push((row, place.level.value_path()));
            }
        }
        if writer.dictionary.has_extra() {
            own.clear();
            writer.finish_row(&mut own);
            metadata.append_value(&own);
        } else {
            metadata.try_append_view(block, 0, shared_len)?;
        }
        writer.forget();
    }
    let mut column =
        VariantColumn { nulls: nulls.cloned(), metadata: Some(metadata.finish()), root: root.clone(), len, levels: 0 };
    let mut places = places.into_iter().peekable();
    replace(&mut column.root, &mut places)?;
    column.levels = places_end(&column.root) + 1;
    Ok(Standardized { column, strict, unsorted })
}

/// The whole column.
pub fn standardize_column(column: &VariantColumn) -> Result<Standardized> {
    standardize(&column.root, column.nulls.as_ref(), column.len)
}

fn locate(e: Error, row: usize) -> Error {
    e.row(row as u64)
}

/// The largest level number at or below a level.
fn places_end(level: &Level) -> usize {
    let fields = level.object.iter().flat_map(|o| &o.fields).map(|f| places_end(&f.level));
    let element = level.array.iter().map(|a| places_end(&a.element));
    fields.chain(element).max().unwrap_or(0).max(level.number)
}

/// A level with untyped values, or with several shapes, and how its slots belong to rows.
struct Place<'a> {
    level: &'a Level,
    value: Option<&'a BinaryArray>,
    /// The first slot of each row, and the end of the last; rows themselves where no array lies above.
    starts: Option<Arc<Vec<i32>>>,
    out: Bytes,
    /// Slots whose typed value is not one (`State::Null`).
    nulled: Vec<usize>,
}

#[derive(Default)]
struct Done {
    strict: bool,
    unsorted: bool,
}

fn visit<'a>(
    level: &'a Level,
    starts: Option<Arc<Vec<i32>>>,
    names: &mut Names,
    base: &mut Vec<u32>,
    places: &mut Vec<Place<'a>>,
) {
    let value = level.value.as_ref().filter(|v| v.null_count() < v.len());
    if value.is_some() || level.has_several_shapes() {
        let (out, nulled) = (Bytes::default(), Vec::new());
        places.push(Place { level, value, starts: starts.clone(), out, nulled });
    }
    for field in level.object.iter().flat_map(|o| &o.fields) {
        base.push(names.intern(&field.name));
        visit(&field.level, starts.clone(), names, base, places);
    }
    if let Some(array) = &level.array {
        visit(&array.element, Some(Arc::new(compose(starts.as_deref(), array))), names, base, places);
    }
}

/// The slots of a list's elements that belong to each row.
pub fn compose(starts: Option<&Vec<i32>>, array: &ListColumn) -> Vec<i32> {
    match starts {
        None => array.offsets.to_vec(),
        Some(starts) => starts.iter().map(|&at| array.offsets.get(at as usize).copied().unwrap_or(0)).collect(),
    }
}

/// The slots to be looked at, row by row: most rows have few values among many places.
struct Slots {
    /// Number of the place and slot.
    slots: Vec<(u32, u32)>,
    /// Where each row's end.
    ends: Vec<u32>,
}

impl Slots {
    fn of(places: &[Place], rows: usize) -> Self {
        let mut ends = vec![0u32; rows + 1];
        for place in places {
            place.each(rows, |row, _| {
                if let Some(count) = ends.get_mut(row + 1) {
                    *count += 1;
                }
            });
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        // Filled from each row's begin, which `ends` then holds the end of.
        let mut slots = vec![(0, 0); sum as usize];
        for (number, place) in places.iter().enumerate() {
            place.each(rows, |row, at| {
                if let Some(next) = ends.get_mut(row) {
                    if let Some(slot) = slots.get_mut(*next as usize) {
                        *slot = (number as u32, at as u32);
                    }
                    *next += 1;
                }
            });
        }
        Slots { slots, ends }
    }

    fn row(&self, row: usize) -> &[(u32, u32)] {
        let first = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(row).copied().unwrap_or(first);
        self.slots.get(first as usize..end as usize).unwrap_or(&[])
    }
}

impl Place<'_> {
    /// Calls with row and slot where there is something to look at: an untyped value, or any of several shapes.
    fn each(&self, rows: usize, mut seen: impl FnMut(usize, usize)) {
        let dense = self.level.has_several_shapes();
        match (&self.starts, self.value.and_then(|v| v.nulls())) {
            (None, Some(nulls)) if !dense => {
                nulls.valid_indices().take_while(|&at| at < rows).for_each(|at| seen(at, at))
            }
            (None, _) => (0..rows).for_each(|at| seen(at, at)),
            (Some(starts), nulls) => {
                let holds = |at: usize| dense || nulls.is_none_or(|n| n.is_valid(at));
                for (row, pair) in starts.windows(2).enumerate().take(rows) {
                    (pair[0] as usize..pair[1] as usize).filter(|&at| holds(at)).for_each(|at| seen(row, at));
                }
            }
        }
    }

    fn put(&mut self, at: usize, writer: &mut Rewriter) -> Result<Done> {
        let level = self.level;
        if is_null(&level.nulls, at) {
            return Ok(Done { strict: true, ..Done::default() });
        }
        let strict = !level.has_several_shapes();
        let Some(bytes) = self.value.filter(|v| v.is_valid(at)).map(|v| v.value(at)) else {
            level.early_state(at, None)?;
            return Ok(Done { strict, ..Done::default() });
        };
        let fail = |mut e: Error| {
            let inside = e.path.take().map_or(String::new(), |path| format!(":{path}"));
            e.path(format!("{}{inside}", level.value_path()))
        };
        let (metadata, value) = split(bytes).map_err(fail)?;
        let state = level.early_state(at, Some(value))?;
        if state == State::Null {
            self.nulled.push(at);
        }
        let mut written = Ok(false);
        self.out.put_with(at, |out| written = writer.put(metadata, value, out))?;
        let unsorted = written.map_err(fail)?;
        let fits = match state {
            State::Typed | State::Null => true,
            State::Untyped => {
                let kind = value.first().map_or(0, |header| header & 3);
                !(kind == 2 && level.object.is_some() || kind == 3 && level.array.is_some())
            }
            // An object that has nothing left over has no residual (rule 33 asks for it too).
            State::Partial => writer.has_parts() && writer.shreds_none(level),
        };
        Ok(Done { strict: strict && fits, unsorted })
    }
}

/// Turns values with names of their own into values under one dictionary, which has the names of a row.
pub struct Rewriter {
    names: Names,
    floor: usize,
    dictionary: Dictionary,
    decoder: VariantDecoder,
    tape: Tape,
    residual: ValueWriter,
}

impl Rewriter {
    /// `base` are the names that all rows share.
    pub fn new(names: Names, base: Vec<u32>) -> Self {
        let dictionary = Dictionary::new(&names, base);
        Rewriter {
            floor: names.len(),
            names,
            dictionary,
            decoder: VariantDecoder::new(),
            tape: Tape::default(),
            residual: ValueWriter::default(),
        }
    }

    /// Validates and writes a value; whether the ids of an object were out of order.
    pub fn put(&mut self, metadata: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let found = self.decoder.decode(metadata, value, &mut self.tape, &mut self.names)?;
        if value.first().is_some_and(|header| header & 2 == 0) {
            out.extend_from_slice(value);
            return Ok(false);
        }
        self.residual.subtree(&self.tape.view(value, &self.names), &mut self.dictionary, 0, out);
        Ok(found.unsorted_ids)
    }

    /// Whether the value written last is an object or array of something.
    fn has_parts(&self) -> bool {
        self.tape.nodes.first().is_some_and(|root| root.a > 0)
    }

    /// Whether the level shreds objects, and no field of the object written last.
    pub fn shreds_none(&self, level: &Level) -> bool {
        let (Some(object), Some(root)) = (&level.object, self.tape.nodes.first()) else { return false };
        let mut child = 1;
        (0..root.a).all(|_| {
            let Some(node) = self.tape.nodes.get(child) else { return false };
            child = node.next(child);
            object.find(self.names.get(node.name)).is_none()
        })
    }

    /// Writes the metadata of the row's values, and begins a row.
    pub fn finish_row(&mut self, out: &mut Vec<u8>) {
        self.dictionary.finish_row(&self.names, out);
    }

    /// Keeps the names of many rows from taking memory without bounds.
    pub fn forget(&mut self) {
        if self.names.is_full() {
            self.names.truncate(self.floor);
        }
    }
}

/// Puts what was written in the place of what was read, in the order of [`visit`].
fn replace(level: &mut Level, places: &mut std::iter::Peekable<std::vec::IntoIter<Place>>) -> Result<()> {
    let len = level.value.as_ref().map_or(0, |v| v.len());
    level.value = None;
    if let Some(mut place) = places.next_if(|p| p.level.number == level.number) {
        if place.value.is_some() {
            level.value = Some(place.out.finish_binary(len)?.as_binary::<i32>().clone());
        }
        if let Some(leaf) = level.leaf.as_mut().filter(|_| !place.nulled.is_empty()) {
            *leaf = without(leaf, &place.nulled, &level.path)?;
        }
    }
    for field in level.object.iter_mut().flat_map(|o| &mut o.fields) {
        replace(&mut field.level, places)?;
    }
    if let Some(array) = &mut level.array {
        replace(&mut array.element, places)?;
    }
    Ok(())
}

/// The leaf with null in these rows.
fn without(leaf: &Leaf, rows: &[usize], path: &str) -> Result<Leaf> {
    let mut valid: Vec<bool> = (0..leaf.array.len()).map(|at| leaf.array.is_valid(at)).collect();
    for &row in rows {
        valid[row] = false;
    }
    let data = leaf.array.to_data().into_builder().nulls(Some(NullBuffer::from(valid))).build()?;
    let array: ArrayRef = make_array(data);
    Leaf::open(&array, &format!("{path}.typed_value"))
}
