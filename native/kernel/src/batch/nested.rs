//! The unshredded variants of a batch that are inside lists and maps, since they are written as they are: validated, and
//! put in order. All others are decoded, and so validated, when they are shredded or encoded.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, FieldRef, Schema};

use crate::batch::values::parts_of;
use crate::codec::known::KnownNames;
use crate::codec::validate::Validator;
use crate::error::{Code, Error, Result};
use crate::layout::standard::is_variant;
use crate::values::nested::{unshred_nested, unshredded_field};

/// A column, or what lies in one: where the slots of each row begin, and which slots are null or below a null.
struct Level {
    path: String,
    field: FieldRef,
    array: ArrayRef,
    /// `None` above the first list, where the slots are the rows.
    starts: Option<Vec<usize>>,
    nulls: Option<NullBuffer>,
}

/// The batch with the ids of objects inside lists and maps in the order of their names (rule 10), `None` where they are:
/// other writers sort names by other rules. Refuses the first variant that breaks the encoding otherwise, with its row and
/// path.
pub fn settle_nested(batch: &RecordBatch) -> Result<Option<RecordBatch>> {
    if !any_unsorted(batch)? {
        return Ok(None);
    }
    let schema = batch.schema();
    let settled = schema.fields().iter().zip(batch.columns()).map(|(field, array)| {
        // A column that is a variant itself is encoded anew.
        if is_variant(field) {
            return Ok((field.clone(), array.clone()));
        }
        Ok((unshredded_field(field), unshred_nested(field, array, field.name())?))
    });
    let (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>) = settled.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    Ok(Some(RecordBatch::try_new(Arc::new(schema), columns)?))
}

fn any_unsorted(batch: &RecordBatch) -> Result<bool> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let mut work: Vec<Level> = columns
        .map(|(f, a)| Level { path: f.name().clone(), field: f.clone(), array: a.clone(), starts: None, nulls: None })
        .collect();
    let mut unsorted = false;
    while let Some(level) = work.pop() {
        let nulls = NullBuffer::union(level.nulls.as_ref(), level.array.logical_nulls().as_ref());
        if is_variant(&level.field) {
            if let Some(starts) = &level.starts {
                unsorted |= variants(&level, starts, nulls.as_ref())?;
            }
            continue;
        }
        let starts = level.starts.clone();
        let mut below = |field: &FieldRef, array: ArrayRef, starts, nulls| {
            let path = format!("{}.{}", level.path, field.name());
            work.push(Level { path, field: field.clone(), array, starts, nulls });
        };
        match level.field.data_type() {
            DataType::Struct(fields) => {
                for (field, array) in fields.iter().zip(level.array.as_struct().columns()) {
                    below(field, array.clone(), starts.clone(), nulls.clone());
                }
            }
            DataType::List(inner) => {
                let list = level.array.as_list::<i32>();
                let ends = list.value_offsets().iter().map(|&end| end as usize).collect::<Vec<_>>();
                below(inner, list.values().clone(), Some(inner_starts(starts, &ends)), None);
            }
            DataType::LargeList(inner) => {
                let list = level.array.as_list::<i64>();
                let ends = list.value_offsets().iter().map(|&end| end as usize).collect::<Vec<_>>();
                below(inner, list.values().clone(), Some(inner_starts(starts, &ends)), None);
            }
            DataType::Map(inner, _) => {
                let map = level.array.as_map();
                let ends = map.value_offsets().iter().map(|&end| end as usize).collect::<Vec<_>>();
                let entries = Arc::new(map.entries().clone());
                below(inner, entries, Some(inner_starts(starts, &ends)), None);
            }
            _ => {}
        }
    }
    Ok(unsorted)
}

fn inner_starts(starts: Option<Vec<usize>>, offsets: &[usize]) -> Vec<usize> {
    match starts {
        Some(starts) => starts.into_iter().map(|slot| offsets.get(slot).copied().unwrap_or(0)).collect(),
        None => offsets.to_vec(),
    }
}

/// Whether one of them has ids that are not in the order of their names, or names not in the order that it says.
fn variants(level: &Level, starts: &[usize], nulls: Option<&NullBuffer>) -> Result<bool> {
    let (metadata, values, _) = parts_of(&level.array).map_err(|e| e.path(&level.path))?;
    let (mut known, mut validator, mut unsorted) = (KnownNames::default(), Validator::default(), false);
    for (row, ends) in starts.windows(2).enumerate() {
        let place = |e: Error| e.row(row as u64).path(&level.path);
        for slot in ends[0]..ends[1] {
            if nulls.is_some_and(|n| n.is_null(slot)) {
                continue;
            }
            if metadata.is_null(slot) || values.is_null(slot) {
                let message = "a variant has no metadata or no value";
                return Err(place(Error::new(Code::MalformedVariant, message).rule(2)));
            }
            known.load(metadata.value(slot)).map_err(place)?;
            validator.validate(known.current(), values.value(slot)).map_err(place)?;
            unsorted |= !validator.unsorted().is_empty();
        }
    }
    Ok(unsorted || known.misled())
}
