//! Values of Variants with bytes behind their ends: parquet-java (1.18.1, `VariantValueWriter`) writes a value that was
//! part of an object or array together with what followed it there.
//!
//! A value says its own length (VariantEncoding.md, "Value encoding"), so parquet-java, Spark, Iceberg, DuckDB and
//! arrow-go read such files. Here the bytes are cut off before anything looks at them: they belong to other values, and
//! must neither be read nor be written again. `check` reads what is stored, and names them (rule 15).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, StructArray, make_array};
use arrow_schema::DataType;
use parquet::file::metadata::ParquetMetaData;

use crate::codec::head::length;
use crate::error::Result;
use crate::layout::standard::{VALUE, is_variant};
use crate::parquet::schema::Node;

/// Whether the file is of parquet-java's own writer. Spark has another, and says so in the footer.
pub fn may_be(metadata: &ParquetMetaData) -> bool {
    let footer = metadata.file_metadata();
    let by_spark =
        || footer.key_value_metadata().is_some_and(|pairs| pairs.iter().any(|p| p.key == "org.apache.spark.version"));
    footer.created_by().is_some_and(|writer| writer.starts_with("parquet-mr")) && !by_spark()
}

/// The batch without these bytes; `columns` are the file's.
pub fn cut(batch: RecordBatch, columns: &[Node]) -> Result<RecordBatch> {
    let node = |name: &str| columns.iter().find(|node| node.field.name() == name).filter(|node| has_variant(node));
    if !batch.schema_ref().fields().iter().any(|field| node(field.name()).is_some()) {
        return Ok(batch);
    }
    let cells = batch.schema_ref().fields().iter().zip(batch.columns());
    let arrays = cells.map(|(field, array)| match node(field.name()) {
        Some(node) => column(array, node),
        None => Ok(array.clone()),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), arrays.collect::<Result<_>>()?, &options)?)
}

fn has_variant(node: &Node) -> bool {
    is_variant(&node.field) || node.children.iter().any(has_variant)
}

/// A column with Variants in it, or around one: of its structs a file's projection may lack fields.
fn column(array: &ArrayRef, node: &Node) -> Result<ArrayRef> {
    if is_variant(&node.field) {
        return inside(array);
    }
    let child = |at: usize, child: &ArrayRef| {
        let named = match array.data_type() {
            DataType::Struct(fields) => fields.get(at).and_then(|field| node.child(field.name())),
            _ => node.children.first(),
        };
        named.map_or_else(|| Ok(child.clone()), |node| column(child, node))
    };
    with_children(array, child)
}

/// Within a Variant, at any depth: a column of bytes that is called `value` holds values.
fn inside(array: &ArrayRef) -> Result<ArrayRef> {
    with_children(array, |at, child| match (array.data_type(), child.as_binary_opt::<i32>()) {
        (DataType::Struct(fields), Some(values)) if fields.get(at).is_some_and(|field| field.name() == VALUE) => {
            Ok(without_rest(values).map_or_else(|| child.clone(), |cut| Arc::new(cut)))
        }
        _ => inside(child),
    })
}

fn with_children(array: &ArrayRef, new: impl Fn(usize, &ArrayRef) -> Result<ArrayRef>) -> Result<ArrayRef> {
    if let Some(group) = array.as_struct_opt() {
        let columns = group.columns().iter().enumerate().map(|(at, child)| new(at, child)).collect::<Result<_>>()?;
        let nulls = group.nulls().cloned();
        return Ok(Arc::new(StructArray::try_new_with_length(group.fields().clone(), columns, nulls, group.len())?));
    }
    if !array.data_type().is_nested() {
        return Ok(array.clone());
    }
    let data = array.to_data();
    let children = data.child_data().iter().enumerate();
    let children = children.map(|(at, child)| Ok(new(at, &make_array(child.clone()))?.to_data()));
    let children = children.collect::<Result<_>>()?;
    Ok(make_array(data.into_builder().child_data(children).build()?))
}

/// `None` where no value has bytes behind it. What is no value stays, for whoever validates it.
fn without_rest(values: &BinaryArray) -> Option<BinaryArray> {
    let end = |value: &[u8]| length(value, 0).unwrap_or(value.len());
    if values.iter().flatten().all(|value| end(value) >= value.len()) {
        return None;
    }
    Some(values.iter().map(|value| value.map(|value| value.get(..end(value)).unwrap_or(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_where_it_says() {
        // A null and a string of parquet-java, of an array [null, "x"]; an int8, an object, and what is no value.
        let rows: [Option<&[u8]>; 6] =
            [Some(b"\0\x05x"), Some(b"\x05x"), None, Some(b"\x0c\x01\x0c\x02"), Some(b"\x02\0\0\0"), Some(b"\xfc")];
        let cut = without_rest(&rows.into_iter().collect()).unwrap();
        let values: [Option<&[u8]>; 6] =
            [Some(b"\0"), Some(b"\x05x"), None, Some(b"\x0c\x01"), Some(b"\x02\0\0"), Some(b"\xfc")];
        assert_eq!(cut, values.into_iter().collect());
        assert_eq!(without_rest(&cut), None);
    }
}
