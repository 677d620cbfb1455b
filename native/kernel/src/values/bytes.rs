//! Unshredded Variants under construction.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, StringArray, StructArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Fields};

use crate::error::{Code, Error, Result};
use crate::layout::standard::{METADATA, VALUE};

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
        let end = i32::try_from(self.bytes.len())
            .map_err(|_| Error::new(Code::TooLarge, "the values of one batch exceed 2 GiB: use smaller batches"))?;
        self.offsets.push(end);
        if self.offsets.len() == FIRST_ROWS {
            let more = self.bytes.len() / FIRST_ROWS * self.rows.saturating_sub(FIRST_ROWS);
            self.bytes.reserve(more.saturating_add(more / 8).min(MOST_FORESEEN));
        }
        Ok(())
    }

    pub fn finish(self) -> Result<BinaryArray> {
        let (offsets, bytes) = self.into_parts();
        Ok(BinaryArray::try_new(offsets, bytes, None)?)
    }

    /// The same as text, which the bytes must be.
    pub fn finish_text(self, nulls: Option<NullBuffer>) -> Result<StringArray> {
        let (offsets, bytes) = self.into_parts();
        Ok(StringArray::try_new(offsets, bytes, nulls)?)
    }

    fn into_parts(self) -> (OffsetBuffer<i32>, Buffer) {
        (OffsetBuffer::new(ScalarBuffer::from(self.offsets)), Buffer::from_vec(self.bytes))
    }
}

/// Joins the two columns of a variant. The metadata of a null row may be null: Arrow wants it filled where the
/// field is required, so its validity is dropped (the bytes beneath a null are empty or stale, never read).
pub fn build_variant(metadata: &BinaryArray, values: BinaryArray, nulls: Option<NullBuffer>) -> Result<StructArray> {
    let metadata = BinaryArray::try_new(metadata.offsets().clone(), metadata.values().clone(), None)?;
    let columns: Vec<ArrayRef> = vec![Arc::new(metadata), Arc::new(values)];
    Ok(StructArray::try_new(variant_fields(), columns, nulls)?)
}
