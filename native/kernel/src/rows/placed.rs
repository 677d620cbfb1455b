//! Byte arrays without the nulls between them: their bytes, where each of them is, and the row that has it.
//!
//! A row without a value costs nothing, and a value that comes again may have the bytes of the first.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::copy::push;
use crate::error::{Code, Error, Result};

/// Bytes of one column of one batch: Arrow's offsets have 32 bits.
const MAX_BYTES: usize = i32::MAX as usize;

#[derive(Default)]
pub struct Placed {
    /// In the order of their rows.
    values: Vec<Value>,
    data: Vec<u8>,
    /// Bytes of the values that have those of others.
    again: usize,
}

#[derive(Clone, Copy)]
struct Value {
    row: u32,
    begin: u32,
    length: u32,
}

#[cold]
fn too_large() -> Error {
    Error::new(Code::TooLarge, "one column of one batch exceeds 2 GiB: pass fewer rows at a time")
}

impl Placed {
    /// The value of a row behind all others.
    #[inline]
    pub fn put(&mut self, row: usize, value: &[u8]) -> Result<()> {
        self.put_with(row, |data| push(data, value))
    }

    /// The same, written in place.
    #[inline]
    pub fn put_with(&mut self, row: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let begin = self.data.len();
        write(&mut self.data);
        if self.data.len() > MAX_BYTES {
            return Err(too_large());
        }
        self.values.push(Value { row: row as u32, begin: begin as u32, length: (self.data.len() - begin) as u32 });
        Ok(())
    }

    /// A row has what the value of this number has.
    #[inline]
    pub fn put_again(&mut self, row: usize, value: usize) {
        if let Some(&value) = self.values.get(value) {
            self.again += value.length as usize;
            self.values.push(Value { row: row as u32, ..value });
        }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Bytes of all values together, each counted where it comes again.
    pub fn bytes(&self) -> usize {
        self.data.len() + self.again
    }

    #[inline]
    pub fn value(&self, at: usize) -> &[u8] {
        let Some(&Value { begin, length, .. }) = self.values.get(at) else { return &[] };
        self.data.get(begin as usize..begin as usize + length as usize).unwrap_or(&[])
    }

    /// The numbers of the values of these rows.
    pub fn values_of(&self, rows: &Range<usize>) -> Range<usize> {
        let before = |end: usize| self.values.partition_point(|value| (value.row as usize) < end);
        before(rows.start)..before(rows.end)
    }

    /// Where the values of these rows are, counted from the first of the rows.
    pub fn places_of(&self, rows: &Range<usize>) -> impl ExactSizeIterator<Item = usize> + Clone {
        let (start, values) = (rows.start, self.values.get(self.values_of(rows)).unwrap_or(&[]));
        values.iter().map(move |value| value.row as usize - start)
    }

    /// Without the values, with the room for others.
    pub fn cleared(mut self) -> Placed {
        self.values.clear();
        self.data.clear();
        self.again = 0;
        self
    }

    /// None of the values, and room for about as many.
    pub fn room_for_as_many(&self) -> Placed {
        let more = |many: usize| many + many / 8;
        let (values, data) = (Vec::with_capacity(more(self.len())), Vec::with_capacity(more(self.data.len())));
        Placed { values, data, again: 0 }
    }

    /// These rows as an array: those without a value are null, or empty where nothing may be null.
    pub fn to_array(&self, rows: &Range<usize>, data_type: &DataType, nullable: bool) -> Result<ArrayRef> {
        let (values, places) = (self.values_of(rows), self.places_of(rows));
        if *data_type == DataType::BinaryView {
            return self.views(rows.len(), places.zip(values));
        }
        if self.bytes() > MAX_BYTES {
            return Err(too_large());
        }
        let nulls = (nullable && values.len() < rows.len()).then(|| {
            let mut valid = vec![false; rows.len()];
            places.clone().for_each(|place| valid.get_mut(place).into_iter().for_each(|valid| *valid = true));
            NullBuffer::new(BooleanBuffer::from(valid))
        });
        let mut offsets = Vec::with_capacity(rows.len() + 1);
        let mut data = Vec::with_capacity(if values.len() == self.len() { self.bytes() } else { 0 });
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
            if let Some(&Value { begin, length, .. }) = self.values.get(value) {
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
