//! The same questions asked of an Arrow batch in memory, whose variants are in the storage or the unshredded
//! layout: ingest asks them for computed columns, `to_python` for its values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};

use crate::error::{Code, Error, Result};
use crate::extract::{extract_path, path_text};
use crate::level::VariantColumn;
use crate::read::nested::{unshred_nested, unshredded_field};
use crate::read::scan::{Item, ItemKind, column_at};

/// Every variant of the batch unshredded; all else as it is.
pub fn unshred(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let mut fields: Vec<FieldRef> = Vec::with_capacity(batch.num_columns());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        columns.push(unshred_nested(field, column, field.name())?);
        fields.push(unshredded_field(field));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    Ok(RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?)
}

/// The items as columns, named by the items; a path gives its values and the mask of failed casts.
pub fn extract(batch: &RecordBatch, items: &[Item], timezone: &str) -> Result<RecordBatch> {
    let mut fields: Vec<FieldRef> = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for item in items {
        let path = item.column.join(".");
        let missing = || Error::new(Code::InvalidArgument, format!("the batch has no column {path}")).path(&path);
        let column = column_at(batch, &item.column)?.ok_or_else(missing)?;
        match &item.kind {
            ItemKind::Whole => {
                let field = field_at(batch, &item.column).ok_or_else(missing)?;
                let column = unshred_nested(&field, &column, &path)?;
                let field = unshredded_field(&field);
                fields.push(Arc::new(field.as_ref().clone().with_name(&item.name).with_nullable(true)));
                columns.push(column);
            }
            ItemKind::Path { steps, target } => {
                let group = column.as_struct_opt().ok_or_else(|| {
                    Error::new(
                        Code::InvalidArgument,
                        format!("the column {path} is {}, no variant", column.data_type()),
                    )
                    .path(&path)
                })?;
                let variant = VariantColumn::open(group, &path)?;
                let found =
                    extract_path(&variant, steps, target, timezone).map_err(|e| e.path(path_text(&path, steps)))?;
                fields.push(Arc::new(found.field(&item.name)));
                columns.push(found.values);
                fields.push(Arc::new(Field::new(format!("{}!", item.name), DataType::Boolean, false)));
                columns.push(Arc::new(found.failed));
            }
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

fn field_at(batch: &RecordBatch, names: &[String]) -> Option<FieldRef> {
    let (first, rest) = names.split_first()?;
    let mut field = batch.schema().fields().iter().find(|f| f.name() == first).cloned()?;
    for name in rest {
        let DataType::Struct(children) = field.data_type() else { return None };
        let child = children.iter().find(|f| f.name() == name).cloned()?;
        field = child;
    }
    Some(field)
}
