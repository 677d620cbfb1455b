//! Validates the unshredded variants of a batch that are inside lists and maps, since they are written as they are. All
//! others are decoded, and so validated, when they are shredded or encoded.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, FieldRef};

use crate::batch::values::parts_of;
use crate::codec::decode::VariantDecoder;
use crate::error::{Code, Error, Result};
use crate::layout::standard::is_variant;
use crate::names::Names;
use crate::tape::Tape;

/// A column, or what lies in one: where the slots of each row begin, and which slots are null or below a null.
struct Level {
    path: String,
    field: FieldRef,
    array: ArrayRef,
    /// `None` above the first list, where the slots are the rows.
    starts: Option<Vec<usize>>,
    nulls: Option<NullBuffer>,
}

/// Refuses the first variant inside a list or map that breaks the encoding, with its row and path.
pub fn validate_nested(batch: &RecordBatch) -> Result<()> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let mut work: Vec<Level> = columns
        .map(|(f, a)| Level { path: f.name().clone(), field: f.clone(), array: a.clone(), starts: None, nulls: None })
        .collect();
    while let Some(level) = work.pop() {
        let nulls = NullBuffer::union(level.nulls.as_ref(), level.array.logical_nulls().as_ref());
        if is_variant(&level.field) {
            if let Some(starts) = &level.starts {
                variants(&level, starts, nulls.as_ref())?;
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
                let entries = std::sync::Arc::new(map.entries().clone());
                below(inner, entries, Some(inner_starts(starts, &ends)), None);
            }
            _ => {}
        }
    }
    Ok(())
}

fn inner_starts(starts: Option<Vec<usize>>, offsets: &[usize]) -> Vec<usize> {
    match starts {
        Some(starts) => starts.into_iter().map(|slot| offsets.get(slot).copied().unwrap_or(0)).collect(),
        None => offsets.to_vec(),
    }
}

fn variants(level: &Level, starts: &[usize], nulls: Option<&NullBuffer>) -> Result<()> {
    let (metadata, values, _) = parts_of(&level.array).map_err(|e| e.path(&level.path))?;
    let (mut decoder, mut tape, mut names) = (VariantDecoder::new(), Tape::default(), Names::new());
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
            decoder.decode(metadata.value(slot), values.value(slot), &mut tape, &mut names).map_err(place)?;
        }
        names.truncate(0);
    }
    Ok(())
}
