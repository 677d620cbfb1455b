//! Columns of the same rows that were read in two parts, put together again: the leaves of a filter, which were
//! decoded to judge the rows, and all others, which are decoded for the rows that pass. So each is decoded once.
//!
//! Parts are joined through structs only. What lies in a list or map is one part: it is read again where both need it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{Field, Schema};

use crate::error::{Code, Error, Result};
use crate::parquet::schema::Node;

/// The leaf columns that are reached through structs alone.
pub fn reusable(columns: &[Node], out: &mut Vec<usize>) {
    for node in columns {
        if node.is_leaf() {
            out.push(node.leaves.start);
        } else if node.is_struct() {
            reusable(&node.children, out);
        }
    }
}

/// The batch with the leaf columns `keep` (sorted) alone.
pub fn prune(columns: &[Node], batch: &RecordBatch, keep: &[usize]) -> Result<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for node in columns {
        if let Some(array) = batch.column_by_name(node.field.name())
            && let Some(array) = prune_node(node, array, keep)?
        {
            fields.push(node.field.as_ref().clone().with_data_type(array.data_type().clone()));
            arrays.push(array);
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?)
}

fn prune_node(node: &Node, array: &ArrayRef, keep: &[usize]) -> Result<Option<ArrayRef>> {
    if node.is_leaf() {
        return Ok(keep.binary_search(&node.leaves.start).is_ok().then(|| array.clone()));
    }
    let (true, Some(group)) = (node.is_struct(), array.as_struct_opt()) else { return Ok(None) };
    let (mut fields, mut children) = (Vec::new(), Vec::new());
    for child in &node.children {
        if let Some(column) = group.column_by_name(child.field.name())
            && let Some(column) = prune_node(child, column, keep)?
        {
            fields.push(Field::new(child.field.name(), column.data_type().clone(), child.field.is_nullable()));
            children.push(column);
        }
    }
    if children.is_empty() {
        return Ok(None);
    }
    Ok(Some(Arc::new(StructArray::try_new(fields.into(), children, group.nulls().cloned())?)))
}

/// The columns of both batches, which hold the same rows and no leaf column twice, in the order of the file.
pub fn join(columns: &[Node], one: &RecordBatch, other: &RecordBatch) -> Result<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for node in columns {
        let name = node.field.name();
        if let Some(array) = join_node(node, one.column_by_name(name), other.column_by_name(name))? {
            fields.push(node.field.as_ref().clone().with_data_type(array.data_type().clone()));
            arrays.push(array);
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(one.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?)
}

fn join_node(node: &Node, one: Option<&ArrayRef>, other: Option<&ArrayRef>) -> Result<Option<ArrayRef>> {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (found, None) | (None, found) => return Ok(found.cloned()),
    };
    let (Some(left), Some(right)) = (one.as_struct_opt(), other.as_struct_opt()) else {
        let name = node.field.name();
        return Err(Error::new(Code::Internal, format!("the column {name} was read twice")).path(name));
    };
    let (mut fields, mut children) = (Vec::new(), Vec::new());
    for child in &node.children {
        let name = child.field.name();
        if let Some(column) = join_node(child, left.column_by_name(name), right.column_by_name(name))? {
            fields.push(Field::new(name, column.data_type().clone(), child.field.is_nullable()));
            children.push(column);
        }
    }
    // One of them alone may know (`parquet/alone.rs`).
    let nulls = left.nulls().or(right.nulls()).cloned();
    Ok(Some(Arc::new(StructArray::try_new(fields.into(), children, nulls)?)))
}
