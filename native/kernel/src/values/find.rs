//! One path in one row of an early column. A field is where `object` has it, or else in the `untyped_value` of a
//! level above it: "if object[field] is null: (key, untyped_value[field])". In both it is refused.

use crate::codec::untyped::split;
use crate::error::{Error, Result};
use crate::layout::early::malformed;
use crate::path::Step;
use crate::values::early::State;
use crate::values::extract::{Finder, Found};
use crate::values::level::{Level, VariantColumn, is_null};

impl Finder<'_> {
    pub(crate) fn find_early<'c>(&mut self, column: &'c VariantColumn, row: usize) -> Result<Found<'c>> {
        let (mut level, mut at) = (&column.root, row);
        let steps = self.steps;
        for (depth, step) in steps.iter().enumerate() {
            if is_null(&level.nulls, at) {
                return Ok(Found::Missing);
            }
            let (untyped, state) = self.state(level, at)?;
            if let (Step::Key(key), Some(object)) = (step, &level.object)
                && !is_null(&object.nulls, at)
                && let Some(field) = object.find(key)
            {
                let here = field.level.is_present(at);
                if let Some((metadata, value)) = untyped.filter(|_| state == State::Partial)
                    && let (there, Found::Bytes { .. }) = self.in_value(level, metadata, value, depth, step)?
                {
                    if here {
                        let message = format!("{} and {} both hold the field {key:?}", level.path, level.value_path());
                        return Err(malformed(&level.path, message));
                    }
                    return Ok(there);
                }
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
                return match untyped.filter(|_| state != State::Null) {
                    Some((metadata, value)) => self.load(level, metadata, value, depth),
                    None => Ok(Found::Missing),
                };
            }
        }
        if is_null(&level.nulls, at) {
            return Ok(Found::Missing);
        }
        match self.state(level, at)? {
            (Some((metadata, value)), State::Untyped | State::Null) => self.load(level, metadata, value, steps.len()),
            _ if level.object.as_ref().is_some_and(|o| !is_null(&o.nulls, at)) => Ok(Found::Subtree(level, at)),
            _ if level.array.as_ref().is_some_and(|a| !is_null(&a.nulls, at)) => Ok(Found::Subtree(level, at)),
            _ => Ok(match &level.leaf {
                Some(leaf) if level.is_typed(at) => Found::Leaf(leaf, at),
                _ => Found::Missing,
            }),
        }
    }

    /// The untyped value of this slot in its two parts, and what the slot is.
    #[allow(clippy::type_complexity)]
    fn state<'c>(&self, level: &'c Level, at: usize) -> Result<(Option<(&'c [u8], &'c [u8])>, State)> {
        let untyped = match &level.value {
            Some(values) if level.has_value(at) => {
                Some(split(values.value(at)).map_err(|e| e.path(level.value_path()))?)
            }
            _ => None,
        };
        let state = level.early_state(at, untyped.map(|(_, value)| value))?;
        Ok((untyped, state))
    }

    fn load<'c>(&mut self, level: &Level, metadata: &'c [u8], value: &'c [u8], depth: usize) -> Result<Found<'c>> {
        self.dictionary.load(metadata).map_err(|e: Error| e.path(level.value_path()))?;
        self.follow(level, metadata, value, depth)
    }

    /// What the path finds in an object, and whether the object has the step's field at all.
    fn in_value<'c>(
        &mut self,
        level: &Level,
        metadata: &'c [u8],
        value: &'c [u8],
        depth: usize,
        step: &Step,
    ) -> Result<(Found<'c>, Found<'c>)> {
        let there = self.load(level, metadata, value, depth)?;
        let field = match self.child(value, step).map_err(|e| e.path(level.value_path()))? {
            Some(value) => Found::Bytes { metadata, value },
            None => Found::Missing,
        };
        Ok((there, field))
    }
}
