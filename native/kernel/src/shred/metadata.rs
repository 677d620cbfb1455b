//! The metadata of rows. Most rows share one: they are views of it, which nobody copies, and whoever compares rows
//! looks at the same bytes.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewBuilder};
use arrow::buffer::Buffer;
use arrow::datatypes::BinaryType;

use crate::codec::dictionary::Dictionary;
use crate::error::Result;
use crate::flavour;
use crate::names::Names;

#[derive(Default)]
pub struct Metadata {
    views: BinaryViewBuilder,
    /// Bytes of the rows, as if each had its own.
    bytes: usize,
    shared: Buffer,
    /// Where the views have the shared one.
    block: Option<u32>,
    row: Vec<u8>,
}

impl Metadata {
    /// Puts the metadata of the row that the dictionary has seen; rows in between have none.
    pub fn put(&mut self, index: usize, dictionary: &mut Dictionary, names: &Names) -> Result<()> {
        self.pad(index)?;
        if dictionary.has_extra() {
            self.row.clear();
            dictionary.finish_row(names, &mut self.row);
            self.bytes += self.row.len();
            self.views.try_append_value(&self.row)?;
            return Ok(());
        }
        if self.shared.is_empty() {
            // The names that rows share are those of the shredder's dictionary, as long as it lives.
            self.shared = Buffer::from(dictionary.base_bytes());
        }
        let block = *self.block.get_or_insert_with(|| self.views.append_block(self.shared.clone()));
        self.bytes += self.shared.len();
        Ok(self.views.try_append_view(block, 0, self.shared.len() as u32)?)
    }

    fn pad(&mut self, index: usize) -> Result<()> {
        while arrow::array::ArrayBuilder::len(&self.views) < index {
            self.views.try_append_value(b"")?;
        }
        Ok(())
    }

    pub fn byte_len(&self) -> usize {
        self.bytes
    }

    /// The array of `len` values, as views or each with bytes of its own; what was not put is empty.
    pub fn finish(&mut self, len: usize, as_views: bool) -> Result<ArrayRef> {
        self.pad(len)?;
        (self.bytes, self.block) = (0, None);
        let views = self.views.finish();
        Ok(if as_views { Arc::new(views) } else { Arc::new(flavour::gathered::<_, BinaryType>(&views)?) })
    }
}
