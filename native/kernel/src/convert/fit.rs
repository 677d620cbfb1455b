//! Files without `untyped_value` where nothing was left over ("or it can omit them from the schema on write
//! entirely"): the first rows say where, and a later row that leaves something over there fails the write.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema};

use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::layout::early::{OBJECT, UNTYPED_VALUE};
use crate::layout::standard::{TYPED_VALUE, is_variant};

/// The schema of these rows without the `untyped_value`s that are null in all of them. One that stands alone in its
/// group stays, and so does that beside a leaf at the top: without it the column would look like a plain struct.
pub fn fitting_schema(batch: &RecordBatch) -> Schema {
    let schema = batch.schema();
    let fields: Fields = schema.fields().iter().zip(batch.columns()).map(|(f, c)| column(f, c)).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn column(field: &FieldRef, array: &ArrayRef) -> FieldRef {
    let Some(group) = array.as_struct_opt() else { return field.clone() };
    let fields: Fields = if !is_variant(field) {
        group.fields().iter().zip(group.columns()).map(|(f, c)| column(f, c)).collect()
    } else if Layout::of(group.fields()) == Layout::Early {
        level(group, true)
    } else {
        return field.clone();
    };
    Arc::new(field.as_ref().clone().with_data_type(DataType::Struct(fields)))
}

fn level(group: &StructArray, root: bool) -> Fields {
    let alone = group.num_columns() == 1 || root && group.column_by_name(TYPED_VALUE).is_some();
    let children = group.fields().iter().zip(group.columns());
    children
        .filter(|(f, c)| f.name() != UNTYPED_VALUE || alone || c.null_count() < c.len())
        .map(|(f, c)| below(f, c))
        .collect()
}

fn below(field: &FieldRef, array: &ArrayRef) -> FieldRef {
    let data_type = match array.data_type() {
        DataType::Struct(_) if field.name() == OBJECT => {
            let object = array.as_struct();
            let fields = object.fields().iter().zip(object.columns());
            let group = |(f, c): (&FieldRef, &ArrayRef)| match c.as_struct_opt() {
                Some(group) => Arc::new(f.as_ref().clone().with_data_type(DataType::Struct(level(group, false)))),
                None => f.clone(),
            };
            DataType::Struct(fields.map(group).collect())
        }
        DataType::List(element) => match array.as_list::<i32>().values().as_struct_opt() {
            Some(group) => {
                let made = element.as_ref().clone().with_data_type(DataType::Struct(level(group, false)));
                DataType::List(Arc::new(made))
            }
            None => return field.clone(),
        },
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// The batch in a schema that lacks some `untyped_value`s. Errors: DOES_NOT_FIT, with the path and the row of what
/// has no place.
pub fn fit(batch: &RecordBatch, schema: &Schema) -> Result<RecordBatch> {
    let place = Rows { offsets: None };
    let columns = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(wanted, array)| project(array, wanted.data_type(), wanted.name(), &place))
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(schema.clone()), columns, &options)?)
}

/// Which row a slot belongs to.
struct Rows<'a> {
    offsets: Option<(&'a Rows<'a>, &'a [i32])>,
}

impl Rows<'_> {
    fn of(&self, slot: usize) -> usize {
        match self.offsets {
            None => slot,
            Some((above, offsets)) => {
                let next = offsets.partition_point(|&end| end as usize <= slot);
                above.of(next.saturating_sub(1))
            }
        }
    }
}

fn project(array: &ArrayRef, wanted: &DataType, path: &str, rows: &Rows) -> Result<ArrayRef> {
    match (array.data_type(), wanted) {
        (found, wanted) if found == wanted => Ok(array.clone()),
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let group = array.as_struct();
            refuse_left_over(group, fields, path, rows)?;
            let columns = fields
                .iter()
                .map(|f| match group.column_by_name(f.name()) {
                    Some(column) => project(column, f.data_type(), &format!("{path}.{}", f.name()), rows),
                    None => Err(mismatch(path, f)),
                })
                .collect::<Result<Vec<_>>>()?;
            let (nulls, len) = (group.nulls().cloned(), group.len());
            Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, len)?))
        }
        (DataType::List(_), DataType::List(element)) => {
            let list = array.as_list::<i32>();
            let rows = Rows { offsets: Some((rows, list.value_offsets())) };
            let values = project(list.values(), element.data_type(), &format!("{path}.list.element"), &rows)?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Ok(Arc::new(ListArray::try_new(element.clone(), offsets, values, nulls)?))
        }
        _ => Ok(array.clone()),
    }
}

fn refuse_left_over(group: &StructArray, fields: &Fields, path: &str, rows: &Rows) -> Result<()> {
    for (field, column) in group.fields().iter().zip(group.columns()) {
        if fields.iter().any(|f| f.name() == field.name()) {
            continue;
        }
        if let Some(slot) = (0..column.len()).find(|&slot| column.is_valid(slot)) {
            let row = rows.of(slot);
            let message = format!(
                "a value does not fit {path}, and the file has no {} there because all of its first rows fitted",
                field.name()
            );
            return Err(Error::new(Code::DoesNotFit, message).path(path).row(row as u64));
        }
    }
    Ok(())
}

fn mismatch(path: &str, field: &ArrowField) -> Error {
    let message = format!("the batch has another schema than the file: {path} has no {}", field.name());
    Error::new(Code::InvalidArgument, message).path(path)
}
