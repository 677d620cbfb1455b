//! The same questions asked of an Arrow batch in memory, whose variants are in the storage or the unshredded
//! layout: ingest asks them for computed columns, `to_python` for its values.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, FieldRef, Schema};

use crate::error::{Code, Error, Result};
use crate::item::Item;
use crate::read::items::{Answers, answer, column_at};
use crate::values::nested::{unshred_nested, unshredded_field};

/// The schema of such batches, unshredded.
pub fn unshredded_schema(schema: &Schema) -> Schema {
    let fields: Vec<FieldRef> = schema.fields().iter().map(unshredded_field).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// Every variant of the batch unshredded; all else as it is.
pub fn unshred(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        columns.push(unshred_nested(field, column, field.name())?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(unshredded_schema(&schema)), columns, &options)?)
}

/// The items as columns, named by the items; a path gives its values and the mask of failed casts.
pub fn extract(batch: &RecordBatch, items: &[Item], timezone: &str) -> Result<RecordBatch> {
    let mut out = Answers::default();
    for item in items {
        let (field, column) = field_at(batch, &item.column).zip(column_at(batch, &item.column)?).ok_or_else(|| {
            let path = item.path();
            Error::new(Code::InvalidArgument, format!("the batch has no column {path}")).path(path)
        })?;
        answer(item, &field, Some(&column), batch.num_rows(), timezone, &mut out)?;
    }
    out.finish(batch.num_rows())
}

fn field_at(batch: &RecordBatch, names: &[String]) -> Option<FieldRef> {
    let (first, rest) = names.split_first()?;
    let mut field = batch.schema().fields().iter().find(|f| f.name() == first)?.clone();
    for name in rest {
        let DataType::Struct(children) = field.data_type() else { return None };
        let child = children.iter().find(|f| f.name() == name)?.clone();
        field = child;
    }
    Some(field)
}
