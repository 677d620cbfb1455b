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

/// The leaves as fields of a batch, of these types of the whole file.
pub fn fields(parquet: &SchemaDescriptor, nodes: &[Node], types: &Fields, leaves: &[usize]) -> Fields {
    let mut found = Vec::with_capacity(leaves.len());
    types_of(nodes, types, leaves, &mut found);
    let field = |(leaf, data_type): (usize, DataType)| {
        Field::new(leaf.to_string(), data_type, parquet.column(leaf).max_def_level() > 0)
    };
    found.into_iter().map(field).collect()
}

/// The leaves as columns of a file.
pub fn columns(parquet: &SchemaDescriptor, leaves: &[usize]) -> ParquetResult<SchemaDescriptor> {
    let column = |&leaf: &usize| {
        let column = parquet.column(leaf);
        let repetition = if column.max_def_level() > 0 { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let made = Type::primitive_type_builder(&leaf.to_string(), column.physical_type())
            .with_repetition(repetition)
            .with_converted_type(column.converted_type())
            .with_logical_type(column.logical_type_ref().cloned())
            .with_length(column.type_length())
            .with_precision(column.type_precision())
            .with_scale(column.type_scale())
            .build()?;
        Ok(Arc::new(made))
    };
    let columns = leaves.iter().map(column).collect::<ParquetResult<Vec<_>>>()?;
    let root = Type::group_type_builder("schema").with_fields(columns).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
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
