//! The metadata of rows. Most rows share one, whose bytes nobody copies, and whoever compares rows looks at the same ones.

use crate::codec::dictionary::Dictionary;
use crate::error::Result;
use crate::names::Names;
use crate::rows::Column;
use crate::shred::column::Bytes;

#[derive(Default)]
pub struct Metadata {
    rows: Bytes,
    /// The number of the first that is the shared one, in the batch.
    shared: Option<usize>,
}

impl Metadata {
    /// Puts the metadata of the row that the dictionary has seen; rows in between have none.
    pub fn put(&mut self, index: usize, dictionary: &mut Dictionary, names: &Names) -> Result<()> {
        if dictionary.has_extra() {
            return self.rows.put_with(index, |out| dictionary.finish_row(names, out));
        }
        if let Some(value) = self.shared {
            self.rows.put_again(index, value);
            return Ok(());
        }
        self.shared = Some(self.rows.values());
        self.rows.put(index, dictionary.base_bytes())
    }

    pub fn byte_len(&self) -> usize {
        self.rows.byte_len()
    }

    /// The column of `len` rows.
    pub fn finish(&mut self, len: usize) -> Column {
        self.shared = None;
        self.rows.finish(len)
    }
}
