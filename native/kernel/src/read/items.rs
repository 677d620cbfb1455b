//! What is asked of a file or a batch, and one answer to it: a whole column with its variants unshredded, or a path
//! of a variant as two columns, the values and the mask of failed casts. Files and batches in memory answer alike.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, FieldRef, Schema};

use crate::convert::moving::move_nested;
use crate::error::{Code, Error, Result};
use crate::item::{Item, ItemKind};
use crate::path::path_text;
use crate::values::extract::extract_path;
use crate::values::level::VariantColumn;
use crate::values::nested::{unshred_nested, unshredded_field, without_hidden_nulls};

/// The columns of a batch under construction.
#[derive(Default)]
pub struct Answers {
    /// Whether the texts of paths may be codes.
    coded: bool,
    fields: Vec<FieldRef>,
    arrays: Vec<ArrayRef>,
}

impl Answers {
    /// Of which the texts of paths may be codes.
    pub fn coded() -> Self {
        Answers { coded: true, ..Self::default() }
    }

    pub fn push(&mut self, field: Field, array: ArrayRef) {
        self.fields.push(Arc::new(field));
        self.arrays.push(array);
    }

    pub fn finish(self, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(self.fields)), self.arrays, &options)?)
    }
}

/// Answers one item. `field` is the whole column's, `column` what was read of it (`None`: nothing needed reading,
/// no row of these holds anything of it).
pub fn answer(
    item: &Item,
    field: &FieldRef,
    column: Option<&ArrayRef>,
    rows: usize,
    timezone: &str,
    out: &mut Answers,
) -> Result<()> {
    let path = item.path();
    match &item.kind {
        ItemKind::Whole => {
            let wanted = unshredded_field(field);
            let array = match column {
                Some(array) => without_hidden_nulls(&unshred_nested(field, array, &path)?)?,
                None => new_null_array(wanted.data_type(), rows),
            };
            let data_type = array.data_type().clone();
            out.push(
                wanted.as_ref().clone().with_name(&item.name).with_data_type(data_type).with_nullable(true),
                array,
            );
        }
        ItemKind::There => {
            let nulls = column.map_or_else(|| Some(NullBuffer::new_null(rows)), |array| array.nulls().cloned());
            let there = Arc::new(BooleanArray::new(BooleanBuffer::new_set(rows), nulls));
            out.push(Field::new(&item.name, DataType::Boolean, true), there);
        }
        ItemKind::Moved(layout) => {
            let missing = || Error::new(Code::InvalidArgument, format!("{path} was not read")).path(&path);
            let (made, array, rebuilt) = move_nested(field, column.ok_or_else(missing)?, *layout, &path)?;
            out.push(made.as_ref().clone().with_name(&item.name).with_nullable(true), array);
            let mask = Arc::new(BooleanArray::from(rebuilt));
            out.push(Field::new(format!("{}!", item.name), DataType::Boolean, false), mask);
        }
        ItemKind::Path { steps, target } => {
            let variant = variant_of(column, field, &path, rows)?;
            let found = extract_path(&variant, steps, target, timezone);
            let found = found.and_then(|found| if out.coded { Ok(found) } else { found.written() });
            let found = found.map_err(|e| e.path(path_text(&path, steps)))?;
            out.push(found.field(&item.name), found.values);
            out.push(Field::new(format!("{}!", item.name), DataType::Boolean, false), Arc::new(found.failed));
        }
    }
    Ok(())
}

/// Whether texts are decoded as codes: where a filter looks at them, or leaves out rows. They gain nothing where all are
/// copied in any case, and columns that are given out as they are stored have none.
pub fn takes_codes(items: &[Item], filter: &[Item]) -> bool {
    !filter.is_empty() && !items.iter().any(|item| matches!(item.kind, ItemKind::Moved(_)))
}

/// Where the masks of failed casts are among the answers to the items.
pub fn masks_of(items: &[Item]) -> Vec<usize> {
    let mut columns = 0;
    let mask = |item: &Item| {
        columns += if matches!(item.kind, ItemKind::Whole | ItemKind::There) { 1 } else { 2 };
        matches!(item.kind, ItemKind::Path { .. }).then_some(columns - 1)
    };
    items.iter().filter_map(mask).collect()
}

/// The answers without these masks, if no row of them failed.
pub fn without_masks(answers: RecordBatch, masks: &[usize]) -> Result<RecordBatch> {
    let failed = |at: &usize| answers.columns().get(*at).and_then(|mask| mask.as_boolean_opt()).is_none_or(has_true);
    if masks.is_empty() || masks.iter().any(failed) {
        return Ok(answers);
    }
    let kept: Vec<usize> = (0..answers.num_columns()).filter(|at| masks.binary_search(at).is_err()).collect();
    Ok(answers.project(&kept)?)
}

fn has_true(mask: &BooleanArray) -> bool {
    mask.true_count() > 0
}

/// The columns of the items of these names, and their masks.
pub fn columns_of(answers: &RecordBatch, names: &[&str]) -> Result<RecordBatch> {
    let schema = answers.schema();
    let of_item = |name: &str| names.contains(&name.strip_suffix('!').unwrap_or(name)) || names.contains(&name);
    let columns = schema.fields().iter().enumerate().filter(|(_, field)| of_item(field.name()));
    Ok(answers.project(&columns.map(|(at, _)| at).collect::<Vec<_>>())?)
}

fn variant_of(column: Option<&ArrayRef>, field: &Field, path: &str, rows: usize) -> Result<VariantColumn> {
    match column {
        Some(array) => match array.as_struct_opt() {
            Some(group) => VariantColumn::open(group, path),
            None => Err(Error::new(
                Code::InvalidArgument,
                format!("the column {path} is {}, not a variant", field.data_type()),
            )
            .path(path)),
        },
        None => VariantColumn::open(&StructArray::new_empty_fields(rows, Some(NullBuffer::new_null(rows))), path),
    }
}

/// The column as it was read, at a path of names through structs; `None` when nothing of it was.
pub fn column_at(batch: &RecordBatch, names: &[String]) -> Result<Option<ArrayRef>> {
    let Some((first, rest)) = names.split_first() else { return Ok(None) };
    let Some(mut array) = batch.column_by_name(first).cloned() else { return Ok(None) };
    for name in rest {
        let Some(group) = array.as_struct_opt() else { return Ok(None) };
        let Some(child) = group.column_by_name(name) else { return Ok(None) };
        array = with_nulls(child, group.nulls())?;
    }
    Ok(Some(array))
}

/// A struct's child is null where the struct is.
fn with_nulls(child: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    let Some(nulls) = nulls else { return Ok(child.clone()) };
    if child.data_type().is_null() {
        return Ok(child.clone()); // it is null everywhere, and holds no bitmap that would say so
    }
    let both = NullBuffer::union(child.nulls(), Some(nulls));
    Ok(arrow_array::make_array(child.to_data().into_builder().nulls(both).build()?))
}
