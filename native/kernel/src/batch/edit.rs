//! Variants changed at a path, as Spark 4.3's `variant_set`, `variant_insert`, `variant_array_append`, `variant_delete`
//! and `variant_strip_nulls` change them. A row is decoded to a tape, spliced, and written with a dictionary of the
//! names that are left; a row that does not change keeps its bytes, unless its metadata holds a name that delete removes.
//!
//! | | the path leads to a value | an object or array on the way lacks the step | a value on the way has no such steps |
//! |---|---|---|---|
//! | set | replaced | created, or unchanged | fails |
//! | insert | fails; an element is shifted to the right | created | fails |
//! | append | added to the array; fails for another value | unchanged | fails |
//! | delete | removed | unchanged | unchanged |
//!
//! What is created behind the end of an array is preceded by nulls. Source: Spark's VariantBuilder,
//! VariantExpressionEvalUtils.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, Field, Schema};

use crate::batch::place::{Place, find, is_unused};
use crate::batch::values::parts_of;
use crate::codec::decode::VariantDecoder;
use crate::codec::dictionary::OwnDictionaries;
use crate::codec::encode::ValueWriter;
use crate::error::{Code, Error, Result};
use crate::layout::standard::mark;
use crate::limits::MAX_VALUE_DEPTH;
use crate::names::{NO_NAME, Names};
use crate::path::Step;
use crate::tape::{Kind, Node, Tape};
use crate::values::bytes::{ByteColumn, build_variant};

/// The largest Variant that Spark writes.
const MAX_SIZE: usize = 128 << 20;

/// What is done to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// Replaces the value at the path; `create` adds what is missing.
    Set {
        create: bool,
    },
    Insert,
    Append,
    /// Removes the values at the paths, one path after the other.
    Delete,
    /// Removes fields that are null, and elements too if `arrays`.
    StripNulls {
        arrays: bool,
    },
}

impl Edit {
    /// By its name in Spark; `flag` is what a function takes behind the value.
    pub fn parse(name: &str, flag: bool) -> Result<Self> {
        Ok(match name {
            "set" => Edit::Set { create: flag },
            "insert" => Edit::Insert,
            "append" => Edit::Append,
            "delete" => Edit::Delete,
            "strip_nulls" => Edit::StripNulls { arrays: flag },
            other => {
                return Err(argument(&format!("an edit is set, insert, append, delete or strip_nulls, not {other:?}")));
            }
        })
    }

    fn takes_value(self) -> bool {
        matches!(self, Edit::Set { .. } | Edit::Insert | Edit::Append)
    }
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Changed,
    Unchanged,
    Failed,
}

/// Column 0, unshredded Variants, after the edit, as `v`; null where it, or the value in column 1, is null or the edit
/// failed. `failed` marks the latter rows. Set, insert and append take one path and a value, delete any paths.
pub fn edit(batch: &RecordBatch, edit: Edit, paths: &[Vec<Step>]) -> Result<RecordBatch> {
    let missing = || argument("the batch has too few columns");
    let (metadata, values, nulls) = parts_of(batch.columns().first().ok_or_else(missing)?)?;
    let new = match edit.takes_value() {
        true => Some(parts_of(batch.columns().get(1).ok_or_else(missing)?)?),
        false => None,
    };
    if edit.takes_value() && paths.len() != 1 {
        return Err(argument("one path is needed"));
    }
    let nulls = NullBuffer::union(nulls.as_ref(), new.as_ref().and_then(|(_, _, nulls)| nulls.as_ref()));
    let mut editor = Editor::default();
    let (mut new_metadata, mut new_values) = (ByteColumn::new(values.len()), ByteColumn::new(values.len()));
    let (mut there, mut failed) = (Vec::with_capacity(values.len()), BooleanBufferBuilder::new(values.len()));
    for row in 0..values.len() {
        let mut done = None;
        if nulls.as_ref().is_none_or(|n| n.is_valid(row)) {
            let value = values.value(row);
            let argument = new.as_ref().map(|(m, v, _)| (m.value(row), v.value(row)));
            let start = (new_metadata.bytes.len(), new_values.bytes.len());
            let found = editor
                .row(
                    (metadata.value(row), value),
                    argument,
                    edit,
                    paths,
                    &mut new_metadata.bytes,
                    &mut new_values.bytes,
                )
                .map_err(|e| e.row(row as u64))?;
            match found {
                Done::Changed => {
                    let size = new_metadata.bytes.len() - start.0 + new_values.bytes.len() - start.1;
                    if size > MAX_SIZE {
                        return Err(too_large(size).row(row as u64));
                    }
                }
                Done::Unchanged => {
                    new_metadata.bytes.extend_from_slice(metadata.value(row));
                    new_values.bytes.extend_from_slice(value);
                }
                Done::Failed => {}
            }
            done = Some(found);
        }
        there.push(done.is_some_and(|done| done != Done::Failed));
        failed.append(done == Some(Done::Failed));
        new_metadata.end_row()?;
        new_values.end_row()?;
    }
    let array = build_variant(&new_metadata.finish()?, new_values.finish()?, Some(NullBuffer::from(there)))?;
    let fields =
        vec![mark(Field::new("v", array.data_type().clone(), true)), Field::new("failed", DataType::Boolean, false)];
    let columns: Vec<ArrayRef> = vec![Arc::new(array), Arc::new(BooleanArray::new(failed.finish(), None))];
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn argument(message: &str) -> Error {
    Error::new(Code::InvalidArgument, message)
}

fn too_large(size: usize) -> Error {
    Error::new(Code::TooLarge, format!("a value of {size} bytes is beyond the limit of {MAX_SIZE}"))
}

#[derive(Default)]
struct Editor {
    decoder: VariantDecoder,
    names: Names,
    tape: Tape,
    argument: Tape,
    /// What is spliced into the tape.
    added: Vec<Node>,
    parents: Vec<usize>,
    /// Open containers: where they end in the old tape, and their place in the new one.
    open: Vec<(usize, usize)>,
    dictionaries: OwnDictionaries,
    writer: ValueWriter,
}

impl Editor {
    fn row(
        &mut self,
        (metadata, value): (&[u8], &[u8]),
        argument: Option<(&[u8], &[u8])>,
        edit: Edit,
        paths: &[Vec<Step>],
        metadata_out: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Done> {
        if self.names.is_full() {
            self.names.truncate(0);
        }
        self.decoder.decode(metadata, value, &mut self.tape, &mut self.names)?;
        let mut done = Done::Unchanged;
        match edit {
            Edit::StripNulls { arrays } => {
                if self.strip(arrays) {
                    done = Done::Changed;
                }
            }
            Edit::Delete => {
                for steps in paths {
                    if let Place::Found(at) = find(&self.tape, &self.names, steps, &mut self.parents) {
                        self.remove(at);
                        done = Done::Changed;
                    }
                }
                if done == Done::Unchanged
                    && paths.iter().any(|steps| is_unused(&self.tape, &self.names, metadata, steps))
                {
                    done = Done::Changed;
                }
            }
            Edit::Set { .. } | Edit::Insert | Edit::Append => {
                if let (Some((metadata, value)), Some(steps)) = (argument, paths.first()) {
                    self.decoder.decode(metadata, value, &mut self.argument, &mut self.names)?;
                    done = self.put(value, edit, steps)?;
                }
            }
        }
        if done == Done::Changed {
            let view = self.tape.view(value, &self.names);
            let dictionary = self.dictionaries.of(&view, 0);
            metadata_out.extend_from_slice(dictionary.base_bytes());
            self.writer.subtree(&view, dictionary, 0, out);
        }
        Ok(done)
    }

    fn put(&mut self, source: &[u8], edit: Edit, steps: &[Step]) -> Result<Done> {
        let place = find(&self.tape, &self.names, steps, &mut self.parents);
        match (edit, place) {
            (_, Place::Mismatch) => Ok(Done::Failed),
            (Edit::Set { .. }, Place::Found(at)) => {
                let Some(node) = self.tape.nodes.get(at) else { return Ok(Done::Failed) };
                let (name, end) = (node.name, node.next(at));
                self.added.clear();
                self.copy_argument(source, name, at);
                self.check_depth(self.parents.len())?;
                self.splice(at, end, 0);
                Ok(Done::Changed)
            }
            (Edit::Append, Place::Found(at)) => {
                let Some(array) = self.tape.nodes.get(at).filter(|node| node.kind == Kind::Array) else {
                    return Ok(Done::Failed);
                };
                let end = array.next(at);
                self.parents.push(at);
                self.added.clear();
                self.copy_argument(source, NO_NAME, end);
                self.check_depth(self.parents.len())?;
                self.splice(end, end, 1);
                Ok(Done::Changed)
            }
            (Edit::Insert, Place::Found(at)) => {
                if !matches!(steps.last(), Some(Step::Index(_))) {
                    return Ok(Done::Failed);
                }
                self.added.clear();
                self.copy_argument(source, NO_NAME, at);
                self.check_depth(self.parents.len())?;
                self.splice(at, at, 1);
                Ok(Done::Changed)
            }
            (Edit::Set { create: true } | Edit::Insert, Place::Absent(depth)) => self.create(source, steps, depth),
            _ => Ok(Done::Unchanged),
        }
    }

    /// Adds to the last parent, which lacks the step of this number, what the rest of the path names.
    fn create(&mut self, source: &[u8], steps: &[Step], depth: usize) -> Result<Done> {
        let Some((&parent, container)) = self.parents.last().and_then(|at| Some((at, *self.tape.nodes.get(*at)?)))
        else {
            return Ok(Done::Failed);
        };
        let at = container.next(parent);
        self.added.clear();
        let (mut children, mut made, mut count) = (0, Vec::new(), container.a as usize);
        for (number, step) in steps.iter().enumerate().skip(depth) {
            let name = match step {
                Step::Key(key) => self.names.intern(key),
                Step::Index(index) => {
                    let pad = index.saturating_sub(count);
                    // An element takes two bytes at least: a null and its offset.
                    if pad > MAX_SIZE / 2 {
                        return Err(too_large(pad.saturating_mul(2)));
                    }
                    self.added.extend(std::iter::repeat_n(Node::new(Kind::Null, NO_NAME), pad));
                    match made.last().and_then(|&at: &usize| self.added.get_mut(at)) {
                        Some(node) => node.a += pad as u32,
                        None => children += pad,
                    }
                    NO_NAME
                }
            };
            match made.last().and_then(|&at: &usize| self.added.get_mut(at)) {
                Some(node) => node.a += 1,
                None => children += 1,
            }
            match steps.get(number + 1) {
                Some(next) => {
                    let kind = if matches!(next, Step::Key(_)) { Kind::Object } else { Kind::Array };
                    made.push(self.added.len());
                    self.added.push(Node::new(kind, name));
                    count = 0;
                }
                None => self.copy_argument(source, name, at),
            }
        }
        let end = (at + self.added.len()) as u32;
        for &made in &made {
            if let Some(node) = self.added.get_mut(made) {
                node.b = end;
            }
        }
        self.check_depth(self.parents.len() + made.len())?;
        self.splice(at, at, children as u32);
        Ok(Done::Changed)
    }

    /// Appends the argument to what is added at `at` in the tape, as a child of this name.
    fn copy_argument(&mut self, source: &[u8], name: u32, at: usize) {
        let base = (at + self.added.len()) as u32;
        let wide = self.tape.wide.len() as u32;
        self.tape.wide.extend_from_slice(&self.argument.wide);
        for (index, node) in self.argument.nodes.iter().enumerate() {
            let mut node = *node;
            match node.kind {
                Kind::Object | Kind::Array => node.b += base,
                Kind::Decimal | Kind::Uuid => node.a += wide,
                Kind::Str | Kind::Binary => {
                    let start = node.a as usize;
                    let bytes = source.get(start..start + node.b as usize).unwrap_or(&[]);
                    node.a = self.tape.scratch.len() as u32;
                    node.aux = 1;
                    self.tape.scratch.extend_from_slice(bytes);
                }
                _ => {}
            }
            if index == 0 {
                node.name = name;
            }
            self.added.push(node);
        }
    }

    /// Refuses what would be deeper than a reader takes; `around` containers stand around the argument.
    fn check_depth(&self, around: usize) -> Result<()> {
        let (mut open, mut deepest): (Vec<usize>, usize) = (Vec::new(), 0);
        for (at, node) in self.argument.nodes.iter().enumerate() {
            while open.last().is_some_and(|&end| end <= at) {
                open.pop();
            }
            if node.is_container() {
                open.push(node.next(at));
                deepest = deepest.max(open.len());
            }
        }
        if around + deepest > MAX_VALUE_DEPTH {
            let message = format!("objects and arrays would nest deeper than {MAX_VALUE_DEPTH} levels");
            return Err(Error::new(Code::TooDeep, message));
        }
        Ok(())
    }

    fn remove(&mut self, at: usize) {
        let Some(end) = self.tape.nodes.get(at).map(|node| node.next(at)) else { return };
        self.added.clear();
        if let Some(parent) = self.parents.last().and_then(|&parent| self.tape.nodes.get_mut(parent)) {
            parent.a -= 1;
        }
        self.splice(at, end, 0);
    }

    /// Puts `added` in the place of the nodes `at..end` below `parents`; the last of them gets this many children more.
    fn splice(&mut self, at: usize, end: usize, children: u32) {
        let (gone, new) = ((end - at) as u32, self.added.len() as u32);
        for &parent in &self.parents {
            if let Some(node) = self.tape.nodes.get_mut(parent) {
                node.b = node.b + new - gone;
            }
        }
        if let Some(node) = self.parents.last().and_then(|&parent| self.tape.nodes.get_mut(parent)) {
            node.a += children;
        }
        for node in self.tape.nodes.get_mut(end..).unwrap_or_default() {
            if node.is_container() {
                node.b = node.b + new - gone;
            }
        }
        self.tape.nodes.splice(at..end, self.added.iter().copied());
    }

    /// Removes nulls inside of objects, and of arrays if `arrays`; says whether there was one.
    fn strip(&mut self, arrays: bool) -> bool {
        let (nodes, made) = (&self.tape.nodes, &mut self.added);
        made.clear();
        self.open.clear();
        for (at, node) in nodes.iter().enumerate() {
            close(&mut self.open, made, at);
            if let Some(&(_, parent)) = self.open.last()
                && let Some(parent) = made.get_mut(parent)
                && node.kind == Kind::Null
                && (arrays || parent.kind == Kind::Object)
            {
                parent.a -= 1;
                continue;
            }
            if node.is_container() {
                self.open.push((node.next(at), made.len()));
            }
            made.push(*node);
        }
        close(&mut self.open, made, nodes.len());
        if made.len() == nodes.len() {
            return false;
        }
        std::mem::swap(&mut self.tape.nodes, &mut self.added);
        true
    }
}

/// Ends the containers that end at `at` in the old tape.
fn close(open: &mut Vec<(usize, usize)>, made: &mut [Node], at: usize) {
    let end = made.len() as u32;
    while let Some(&(until, place)) = open.last()
        && until <= at
    {
        open.pop();
        if let Some(node) = made.get_mut(place) {
            node.b = end;
        }
    }
}
