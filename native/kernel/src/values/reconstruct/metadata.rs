//! The metadata of rows: byte strings as they came, or views, of which equal ones are equal bytes. Byte strings are not
//! made views: that reads the start of each, and no two rows would share a view.

use arrow_array::{Array, BinaryArray, BinaryViewArray};
use arrow_buffer::NullBuffer;

use crate::codec::metadata::NO_NAMES;
use crate::error::Result;
use crate::values::bytes::ByteColumn;

#[derive(Clone, Copy)]
pub enum Metadata<'a> {
    /// No value names a field.
    Absent,
    Plain(&'a BinaryArray),
    Views(&'a BinaryViewArray),
}

impl<'a> Metadata<'a> {
    pub fn of(views: Option<&'a BinaryViewArray>) -> Self {
        views.map_or(Metadata::Absent, Metadata::Views)
    }

    /// Whether both rows have the same metadata for certain.
    #[inline]
    pub fn is_same(self, row: u32, other: u32) -> bool {
        match self {
            Metadata::Absent => true,
            Metadata::Plain(_) => row == other,
            Metadata::Views(metadata) => metadata.views().get(row as usize) == metadata.views().get(other as usize),
        }
    }

    pub fn is_null(self, row: usize) -> bool {
        match self {
            Metadata::Absent => false,
            Metadata::Plain(metadata) => metadata.is_null(row),
            Metadata::Views(metadata) => metadata.is_null(row),
        }
    }

    #[inline]
    pub fn get(self, row: usize) -> &'a [u8] {
        match self {
            Metadata::Absent => NO_NAMES,
            Metadata::Plain(metadata) => metadata.value(row),
            Metadata::Views(metadata) => metadata.value(row),
        }
    }

    /// As byte strings, without what is beneath these nulls, and if they are `misled` without a word on the order of names.
    pub fn plain(self, len: usize, nulls: Option<&NullBuffer>, misled: bool) -> Result<BinaryArray> {
        if let Metadata::Plain(metadata) = self
            && !misled
            && nulls.is_none_or(|nulls| nulls.null_count() == 0)
        {
            return Ok(metadata.clone());
        }
        let rows =
            || (0..len).map(|row| if nulls.is_none_or(|nulls| nulls.is_valid(row)) { self.get(row) } else { &[] });
        let mut out = ByteColumn::new(len);
        out.bytes.reserve(rows().map(<[u8]>::len).sum());
        for row in rows() {
            out.bytes.extend_from_slice(row);
            out.end_row()?;
        }
        if misled {
            out.unmark();
        }
        out.finish()
    }
}
