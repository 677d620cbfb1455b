//! Byte arrays without the nulls between them: their bytes, where each of them is, and the row that has it.
//!
//! A row without a value costs nothing, and a value that comes again may have the bytes of the first.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, BinaryViewBuilder, StringArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::DataType;

use crate::error::{Code, Error, Result};

/// Bytes of one column of one batch: Arrow's offsets have 32 bits.
const MAX_BYTES: usize = i32::MAX as usize;

#[derive(Default)]
pub struct Placed {
    /// The row of each value, in order.
    rows: Vec<u32>,
    /// Where each value begins, and its length.
    spans: Vec<(u32, u32)>,
    data: Vec<u8>,
    /// Of all values, as if each had its own.
    bytes: usize,
}

#[cold]
fn too_large() -> Error {
    Error::new(Code::TooLarge, "one column of one batch exceeds 2 GiB: pass fewer rows at a time")
}

impl Placed {
    /// The value of a row behind all others.
    #[inline]
    pub fn put(&mut self, row: usize, value: &[u8]) -> Result<()> {
        let begin = self.data.len();
        if self.bytes + value.len() > MAX_BYTES {
            return Err(too_large());
        }
        self.data.extend_from_slice(value);
        self.add(row, begin, value.len());
        Ok(())
    }

    /// The same, written in place.
    #[inline]
    pub fn put_with(&mut self, row: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let begin = self.data.len();
        write(&mut self.data);
        let length = self.data.len().saturating_sub(begin);
        if self.bytes + length > MAX_BYTES {
            return Err(too_large());
        }
        self.add(row, begin, length);
        Ok(())
    }

    /// A row has what a value before it has.
    #[inline]
    pub fn put_again(&mut self, row: usize, value: usize) -> Result<()> {
        let Some(&(begin, length)) = self.spans.get(value) else { return Ok(()) };
        if self.bytes + length as usize > MAX_BYTES {
            return Err(too_large());
        }
        self.add(row, begin as usize, length as usize);
        Ok(())
    }

    #[inline]
    fn add(&mut self, row: usize, begin: usize, length: usize) {
        self.rows.push(row as u32);
        self.spans.push((begin as u32, length as u32));
        self.bytes += length;
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes of all values together, each counted where it comes again.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    pub fn value(&self, at: usize) -> &[u8] {
        let Some(&(begin, length)) = self.spans.get(at) else { return &[] };
        self.data.get(begin as usize..begin as usize + length as usize).unwrap_or(&[])
    }

    /// The values of these rows.
    pub fn values_of(&self, rows: &Range<usize>) -> Range<usize> {
        let before = |end: usize| self.rows.partition_point(|&row| (row as usize) < end);
        before(rows.start)..before(rows.end)
    }

    /// The rows of these values.
    pub fn rows_of(&self, values: Range<usize>) -> &[u32] {
        self.rows.get(values).unwrap_or(&[])
    }

    /// Forgets the values and keeps the room for others.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.spans.clear();
        self.data.clear();
        self.bytes = 0;
    }

    /// These rows as an array: those without a value are null, or empty where nothing may be null.
    pub fn to_array(&self, rows: &Range<usize>, data_type: &DataType, nullable: bool) -> Result<ArrayRef> {
        let values = self.values_of(rows);
        let places = self.rows_of(values.clone()).iter().map(|&row| row as usize - rows.start);
        if *data_type == DataType::BinaryView {
            return self.views(rows.len(), places.zip(values));
        }
        let nulls = (nullable && values.len() < rows.len()).then(|| {
            let mut valid = vec![false; rows.len()];
            places.clone().for_each(|place| valid.get_mut(place).into_iter().for_each(|valid| *valid = true));
            NullBuffer::new(BooleanBuffer::from(valid))
        });
        let mut offsets = Vec::with_capacity(rows.len() + 1);
        let mut data = Vec::with_capacity(if values.len() == self.len() { self.bytes } else { 0 });
        offsets.push(0);
        for (place, value) in places.zip(values) {
            offsets.resize(place + 1, data.len() as i32);
            data.extend_from_slice(self.value(value));
            offsets.push(data.len() as i32);
        }
        offsets.resize(rows.len() + 1, data.len() as i32);
        let (offsets, data) = (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(data));
        Ok(match data_type {
            DataType::Utf8 => Arc::new(StringArray::try_new(offsets, data, nulls)?),
            _ => Arc::new(BinaryArray::try_new(offsets, data, nulls)?),
        })
    }

    /// As views, of which those of one value share its bytes.
    fn views(&self, rows: usize, values: impl Iterator<Item = (usize, usize)>) -> Result<ArrayRef> {
        let mut views = BinaryViewBuilder::with_capacity(rows);
        let block = views.append_block(Buffer::from_slice_ref(&self.data));
        let mut next = 0;
        for (place, value) in values {
            for _ in next..place {
                views.try_append_value(b"")?;
            }
            if let Some(&(begin, length)) = self.spans.get(value) {
                views.try_append_view(block, begin, length)?;
            }
            next = place + 1;
        }
        for _ in next..rows {
            views.try_append_value(b"")?;
        }
        Ok(Arc::new(views.finish()))
    }
}
