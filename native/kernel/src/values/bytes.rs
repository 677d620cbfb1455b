//! Unshredded Variants, and texts, under construction.

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, GenericByteBuilder, StringBuilder};
use arrow_array::types::ByteArrayType;
use arrow_array::{ArrayRef, BinaryArray, StringArray, StructArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};

use crate::codec::metadata::unmark;
use crate::error::{Code, Error, Result};
use crate::layout::standard::{METADATA, VALUE};
use crate::limits::check_room;

/// The fields of an unshredded variant column as we write it.
pub fn variant_fields() -> Fields {
    Fields::from(vec![Field::new(METADATA, DataType::Binary, false), Field::new(VALUE, DataType::Binary, false)])
}

/// So many rows say how much memory all of them will take, which is asked for at once: growing copies what is there.
const FIRST_ROWS: usize = 256;
const MOST_FORESEEN: usize = 256 << 20;

/// A binary column under construction. Its bytes are written in place, row after row.
pub struct ByteColumn {
    pub bytes: Vec<u8>,
    offsets: Vec<i32>,
    rows: usize,
}

impl ByteColumn {
    pub fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        ByteColumn { bytes: Vec::new(), offsets, rows }
    }

    pub fn end_row(&mut self) -> Result<()> {
        self.offsets.push(i32::try_from(self.bytes.len()).map_err(|_| Error::no_room())?);
        if self.offsets.len() == FIRST_ROWS {
            self.bytes.reserve(foreseen(self.bytes.len(), self.rows) - self.bytes.len());
        }
        Ok(())
    }

    /// Takes the word on the order of their names from rows of metadata.
    pub fn unmark(&mut self) {
        for &start in &self.offsets {
            self.bytes.get_mut(start as usize).map(unmark);
        }
    }

    pub fn finish(self) -> Result<BinaryArray> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Ok(BinaryArray::try_new(offsets, Buffer::from_vec(self.bytes), None)?)
    }
}

/// A column of texts under construction.
pub struct TextColumn {
    /// The text at hand.
    pub row: Vec<u8>,
    texts: StringBuilder,
    rows: usize,
}

impl TextColumn {
    pub fn new(rows: usize) -> Self {
        TextColumn { row: Vec::new(), texts: StringBuilder::with_capacity(rows, 0), rows }
    }

    /// Appends the text at hand.
    pub fn end_row(&mut self) -> Result<()> {
        let row = std::mem::take(&mut self.row);
        let appended = self.append(&row);
        self.row = row;
        self.row.clear();
        appended
    }

    /// Appends a text, which must be UTF-8: that is looked at while it is in the cache.
    pub fn append(&mut self, text: &[u8]) -> Result<()> {
        let text = simdutf8::basic::from_utf8(text)
            .map_err(|_| Error::new(Code::Internal, "a text that was made is not UTF-8"))?;
        append(&mut self.texts, text)?;
        self.foresee()
    }

    pub fn append_null(&mut self) -> Result<()> {
        self.texts.append_null();
        self.foresee()
    }

    fn foresee(&mut self) -> Result<()> {
        if self.texts.len() == FIRST_ROWS && self.rows > FIRST_ROWS {
            let first = self.texts.finish();
            let bytes = foreseen(first.value_data().len(), self.rows);
            self.texts = StringBuilder::with_capacity(self.rows, bytes);
            self.texts.append_array(&first)?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> StringArray {
        self.texts.finish()
    }
}

/// The bytes of so many rows, by those of the first ones.
fn foreseen(first: usize, rows: usize) -> usize {
    let more = first / FIRST_ROWS * rows.saturating_sub(FIRST_ROWS);
    first + more.saturating_add(more / 8).min(MOST_FORESEEN)
}

/// Appends a value, if there is room for it: Arrow's builders panic where there is none.
#[inline]
pub fn append<T: ByteArrayType<Offset = i32>>(builder: &mut GenericByteBuilder<T>, value: &T::Native) -> Result<()> {
    let bytes: &[u8] = value.as_ref();
    check_room(builder.values_slice().len() + bytes.len())?;
    builder.append_value(value);
    Ok(())
}

/// Joins the two columns of a variant. The metadata of a null row may be null: Arrow wants it filled where the
/// field is required, so its validity is dropped (the bytes beneath a null are empty or stale, never read).
pub fn build_variant(metadata: &BinaryArray, values: BinaryArray, nulls: Option<NullBuffer>) -> Result<StructArray> {
    let metadata = BinaryArray::try_new(metadata.offsets().clone(), metadata.values().clone(), None)?;
    let columns: Vec<ArrayRef> = vec![Arc::new(metadata), Arc::new(values)];
    Ok(StructArray::try_new(variant_fields(), columns, nulls)?)
}
