//! Rows on their way from a shredder to a file: structs and their columns as Arrow has them, but byte arrays as the
//! shredder puts them, without their nulls ([`Placed`]). Arrow's arrays are made of them where somebody wants these.

mod placed;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, SchemaRef};

use crate::error::{Code, Error, Result};

pub use placed::Placed;

/// One column of some rows.
#[derive(Clone)]
pub enum Column {
    Array(ArrayRef),
    Struct {
        children: Vec<Column>,
        nulls: Option<NullBuffer>,
        len: usize,
    },
    /// Byte arrays of these rows.
    Bytes {
        placed: Arc<Placed>,
        rows: Range<usize>,
    },
}

/// Bytes in memory of the rows of an array, about. Arrow counts the buffers of views whole, however few rows of them a
/// slice has: cut by size, rows would go one by one.
fn bytes_of(array: &ArrayRef) -> usize {
    if let Some(group) = array.as_struct_opt() {
        return group.columns().iter().map(bytes_of).sum::<usize>() + array.len() / 8;
    }
    if let Some(views) = array.as_binary_view_opt() {
        return views.lengths().map(|length| length as usize).sum::<usize>() + size_of::<u128>() * array.len();
    }
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

impl Column {
    pub fn len(&self) -> usize {
        match self {
            Column::Array(array) => array.len(),
            Column::Struct { len, .. } => *len,
            Column::Bytes { rows, .. } => rows.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The nulls of a struct, or of an array.
    pub fn nulls(&self) -> Option<NullBuffer> {
        match self {
            Column::Array(array) => array.logical_nulls(),
            Column::Struct { nulls, .. } => nulls.clone(),
            Column::Bytes { .. } => None,
        }
    }

    /// A column of a struct.
    pub fn child(&self, at: usize) -> Option<Column> {
        match self {
            Column::Array(array) => array.as_struct_opt()?.columns().get(at).cloned().map(Column::Array),
            Column::Struct { children, .. } => children.get(at).cloned(),
            Column::Bytes { .. } => None,
        }
    }

    /// How many rows have a value, whatever the structs around say.
    pub fn values(&self) -> usize {
        match self {
            Column::Bytes { placed, rows } => placed.values_of(rows).len(),
            other => other.len() - other.nulls().map_or(0, |nulls| nulls.null_count()),
        }
    }

    /// Bytes in memory of these rows, about.
    pub fn bytes(&self) -> usize {
        match self {
            Column::Array(array) => bytes_of(array),
            Column::Struct { children, len, .. } => children.iter().map(Column::bytes).sum::<usize>() + len / 8,
            Column::Bytes { placed, rows } if placed.len() == placed.values_of(rows).len() => {
                placed.bytes() + size_of::<u32>() * rows.len()
            }
            Column::Bytes { placed, rows } => {
                let values = placed.values_of(rows).map(|at| placed.value(at).len());
                values.sum::<usize>() + size_of::<u32>() * rows.len()
            }
        }
    }

    /// So many rows from one on, which the column has.
    pub fn slice(&self, from: usize, len: usize) -> Column {
        match self {
            Column::Array(array) => Column::Array(array.slice(from, len)),
            Column::Struct { children, nulls, .. } => Column::Struct {
                children: children.iter().map(|child| child.slice(from, len)).collect(),
                nulls: nulls.as_ref().map(|nulls| nulls.slice(from, len)),
                len,
            },
            Column::Bytes { placed, rows } => {
                Column::Bytes { placed: placed.clone(), rows: rows.start + from..rows.start + from + len }
            }
        }
    }

    /// The column as an array of its field.
    pub fn to_array(&self, field: &Field) -> Result<ArrayRef> {
        match (self, field.data_type()) {
            (Column::Array(array), _) => Ok(array.clone()),
            (Column::Bytes { placed, rows }, data_type) => placed.to_array(rows, data_type, field.is_nullable()),
            (Column::Struct { children, nulls, len }, DataType::Struct(fields)) => {
                let arrays = children.iter().zip(fields).map(|(child, field)| child.to_array(field));
                let arrays = arrays.collect::<Result<Vec<_>>>()?;
                Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls.clone(), *len)?))
            }
            (Column::Struct { .. }, other) => {
                Err(Error::new(Code::InvalidArgument, format!("a struct is no column of type {other}")))
            }
        }
    }
}

/// Rows with a schema: what a record batch is to arrays.
#[derive(Clone)]
pub struct Rows {
    schema: SchemaRef,
    columns: Vec<Column>,
    len: usize,
}

impl Rows {
    /// Rows of one column.
    pub fn of_one(schema: SchemaRef, column: Column) -> Rows {
        Rows { schema, len: column.len(), columns: vec![column] }
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum()
    }

    /// So many rows from one on, both cut to those that there are.
    pub fn slice(&self, from: usize, len: usize) -> Rows {
        let from = from.min(self.len);
        let len = len.min(self.len - from);
        let columns = self.columns.iter().map(|column| column.slice(from, len)).collect();
        Rows { schema: self.schema.clone(), columns, len }
    }

    pub fn to_batch(&self) -> Result<RecordBatch> {
        let fields = self.schema.fields().iter();
        let arrays = self.columns.iter().zip(fields).map(|(column, field)| column.to_array(field));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.len));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?)
    }
}

impl From<&RecordBatch> for Rows {
    fn from(batch: &RecordBatch) -> Self {
        let columns = batch.columns().iter().cloned().map(Column::Array).collect();
        Rows { schema: batch.schema(), columns, len: batch.num_rows() }
    }
}
