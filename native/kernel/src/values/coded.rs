//! Texts as codes into a dictionary: written out, or cast by casting each text of the dictionary once.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Schema};
use arrow_select::take::take;

use crate::error::Result;

/// Every code is a place in the dictionary, be its row null or not, and no text of the dictionary is null.
#[derive(Clone)]
pub struct CodedTexts {
    pub codes: Int32Array,
    pub texts: StringArray,
}

impl CodedTexts {
    /// `None` where the array is none, or breaks the rule.
    pub fn open(array: &ArrayRef) -> Option<Self> {
        let array = array.as_dictionary_opt::<Int32Type>()?;
        let texts = array.values().as_string_opt::<i32>().filter(|texts| texts.null_count() == 0)?;
        let end = texts.len() as i32;
        let beyond = array.keys().values().iter().fold(false, |beyond, &code| beyond | (code < 0) | (code >= end));
        (!beyond).then(|| CodedTexts { codes: array.keys().clone(), texts: texts.clone() })
    }

    /// The text of a row that is not null.
    #[inline]
    pub fn value(&self, row: usize) -> &str {
        self.texts.value(self.codes.value(row) as usize)
    }

    /// The same with more nulls.
    pub fn masked(&self, nulls: Option<&NullBuffer>) -> Self {
        let nulls = NullBuffer::union(self.codes.nulls(), nulls);
        CodedTexts { codes: Int32Array::new(self.codes.values().clone(), nulls), texts: self.texts.clone() }
    }

    /// The texts row by row.
    pub fn written(&self) -> Result<ArrayRef> {
        Ok(take(&self.texts, &self.codes, None)?)
    }

    /// The rows of what the texts became, which has a value or none for each text of the dictionary.
    pub fn spread(&self, values: &ArrayRef, failed: &BooleanArray) -> Result<(ArrayRef, BooleanArray)> {
        let is_failed = |row: usize| self.codes.is_valid(row) && failed.value(self.codes.value(row) as usize);
        let marks = match failed.has_true() {
            true => BooleanBuffer::collect_bool(self.codes.len(), is_failed),
            false => BooleanBuffer::new_unset(self.codes.len()),
        };
        Ok((take(values, &self.codes, None)?, BooleanArray::new(marks, None)))
    }
}

/// The batch with its codes written out.
pub fn written(batch: &RecordBatch) -> Result<RecordBatch> {
    if !batch.columns().iter().any(|column| matches!(column.data_type(), DataType::Dictionary(..))) {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().map(|column| match CodedTexts::open(column) {
        Some(coded) => coded.written(),
        None => Ok(column.clone()),
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let schema = batch.schema();
    let fields = schema.fields().iter().zip(&columns);
    let fields = fields.map(|(field, column)| field.as_ref().clone().with_data_type(column.data_type().clone()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns, &options)?)
}
