//! Leaf columns that are decoded as if they were columns of the file, and put back into their structs.
//!
//! The library finds out for each struct around a leaf where it is null. A reader of typed leaves alone
//! (`projection::alone`) does not need that: a leaf is null wherever one of its structs is. These structs have no nulls
//! here, but for those of a required child, which is null nowhere else.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::basic::Repetition;
use parquet::errors::Result as ParquetResult;
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::error::{Code, Error, Result};
use crate::parquet::schema::Node;

/// The leaves as columns, and the types to decode with out of those of the whole file.
pub fn columns(
    parquet: &SchemaDescriptor,
    nodes: &[Node],
    types: &Fields,
    leaves: &[usize],
) -> ParquetResult<(SchemaDescriptor, Fields)> {
    let mut found = Vec::with_capacity(leaves.len());
    types_of(nodes, types, leaves, &mut found);
    let (mut fields, mut columns) = (Vec::with_capacity(found.len()), Vec::with_capacity(found.len()));
    for (leaf, data_type) in found {
        let column = parquet.column(leaf);
        let (name, nullable) = (leaf.to_string(), column.max_def_level() > 0);
        let repetition = if nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let made = Type::primitive_type_builder(&name, column.physical_type())
            .with_repetition(repetition)
            .with_converted_type(column.converted_type())
            .with_logical_type(column.logical_type_ref().cloned())
            .with_length(column.type_length())
            .with_precision(column.type_precision())
            .with_scale(column.type_scale())
            .build()?;
        columns.push(Arc::new(made));
        fields.push(Field::new(name, data_type, nullable));
    }
    let root = Type::group_type_builder("schema").with_fields(columns).build()?;
    Ok((SchemaDescriptor::new(Arc::new(root)), fields.into()))
}

fn types_of(nodes: &[Node], types: &Fields, leaves: &[usize], out: &mut Vec<(usize, DataType)>) {
    for (node, field) in nodes.iter().zip(types).filter(|(node, _)| node.has_any(leaves)) {
        match field.data_type() {
            DataType::Struct(children) => types_of(&node.children, children, leaves, out),
            leaf => out.push((node.leaves.start, leaf.clone())),
        }
    }
}

/// The leaves of a batch in their structs again.
pub fn nested(nodes: &[Node], leaves: &[usize], batch: &RecordBatch) -> Result<RecordBatch> {
    let mut columns = batch.columns().iter();
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for node in nodes.iter().filter(|node| node.has_any(leaves)) {
        let array = nested_node(node, leaves, &mut columns)?;
        fields.push(node.field.as_ref().clone().with_data_type(array.data_type().clone()).with_nullable(true));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?)
}

fn nested_node<'a>(
    node: &Node,
    leaves: &[usize],
    columns: &mut impl Iterator<Item = &'a ArrayRef>,
) -> Result<ArrayRef> {
    if !node.is_struct() {
        let lacking = || Error::new(Code::Internal, "fewer columns were decoded than asked for");
        return Ok(columns.next().ok_or_else(lacking)?.clone());
    }
    let (mut fields, mut children, mut nulls) = (Vec::new(), Vec::new(), None);
    for child in node.children.iter().filter(|child| child.has_any(leaves)) {
        let array = nested_node(child, leaves, columns)?;
        if !child.field.is_nullable() && nulls.is_none() {
            nulls = array.nulls().cloned();
        }
        fields.push(Field::new(child.field.name(), array.data_type().clone(), child.field.is_nullable()));
        children.push(array);
    }
    Ok(Arc::new(StructArray::try_new(fields.into(), children, nulls)?))
}
