//! Some leaf columns of some rows of one row group, decoded batch by batch: only the pages that hold such rows are
//! fetched, and a batch that is too large for Arrow's offsets is tried again with fewer rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::RowGroupMetaData;

use crate::error::{Code, Error, Result};
use crate::parquet::chunks::{Batches, Manner};
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;
use crate::parquet::rows;
use crate::parquet::rows::Rows;

/// Rows of the file that lie in one row group.
#[derive(Debug, Clone)]
pub struct Window {
    pub group: usize,
    /// The rows of the whole row group.
    pub bounds: Range<u64>,
    pub rows: Rows,
}

impl Window {
    /// Its rows, if they are not all of the row group's.
    pub fn part(&self) -> Option<&Rows> {
        let whole = self.rows.len() == 1 && self.rows[0] == self.bounds;
        (!whole).then_some(&self.rows)
    }
}

pub struct Decoder {
    file: Arc<FileReader>,
    leaves: Vec<usize>,
    window: Window,
    /// `None` when no leaf column is needed at all: then rows are only counted.
    inner: Option<Batches>,
    batch_size: usize,
    manner: Manner,
    given: u64,
}

impl Decoder {
    pub fn new(
        file: Arc<FileReader>,
        leaves: Vec<usize>,
        window: Window,
        max_rows: usize,
        max_bytes: usize,
        manner: Manner,
    ) -> Result<Self> {
        let batch_size =
            file.metadata().row_groups().get(window.group).map_or(1, |g| batch_size(g, &leaves, max_rows, max_bytes));
        // Buffers are made for so many rows, and a small file's batches may wait by the thousands.
        let batch_size = batch_size.min(rows::count(&window.rows).max(1) as usize);
        let group = window.group;
        let mut decoder = Decoder { file, leaves, window, inner: None, batch_size, manner, given: 0 };
        decoder.start().map_err(|e| in_group(e, group))?;
        Ok(decoder)
    }

    /// Where the next batch begins among the rows of the window.
    pub fn given(&self) -> u64 {
        self.given
    }

    pub fn window(&self) -> &Window {
        &self.window
    }

    fn start(&mut self) -> Result<()> {
        if self.leaves.is_empty() {
            return Ok(());
        }
        let (group, part) = (self.window.group, self.window.part());
        self.inner = Some(self.file.batches(group, &self.leaves, part, self.batch_size, self.manner)?);
        Ok(())
    }

    /// The next batch, of the leaves as they were read; `None` after the last row.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        let group = self.window.group;
        loop {
            let left = rows::count(&self.window.rows) - self.given;
            let Some(inner) = &mut self.inner else {
                let rows = left.min(self.batch_size as u64) as usize;
                self.given += rows as u64;
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let empty = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
                return Ok((rows > 0).then_some(empty));
            };
            match inner.next() {
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) if batch.num_rows() as u64 <= left => {
                    self.given += batch.num_rows() as u64;
                    return self.file.legacy.as_ref().map_or(Ok(batch.clone()), |old| old.batch(&batch)).map(Some);
                }
                None if left == 0 => return Ok(None),
                Some(Ok(_)) | None => {
                    let message = format!(
                        "row group {group} of {} does not have the {} rows that its footer states",
                        self.file.name(),
                        rows::count(&self.window.rows)
                    );
                    return Err(Error::new(Code::CorruptFile, message));
                }
                // The values of one batch exceed what an Arrow array can address: fewer rows at a time.
                Some(Err(e)) if self.batch_size > 1 && e.message.contains("overflow") => {
                    self.window.rows = rows::after(&self.window.rows, self.given);
                    self.given = 0;
                    self.batch_size = (self.batch_size / 16).max(1);
                    self.start()?;
                }
                Some(Err(e)) => return Err(self.blame(&e.message)),
            }
        }
    }

    /// Finds the column that cannot be decoded, by decoding each alone.
    fn blame(&self, message: &str) -> Error {
        let (file, group) = (&self.file, self.window.group);
        let schema = file.metadata().file_metadata().schema_descr();
        let broken = |leaf: &&usize| {
            guard(file.name(), || file.each_batch(group, std::slice::from_ref(*leaf), |_| Ok(()))).is_err()
        };
        match self.leaves.iter().find(broken) {
            Some(leaf) => {
                let path = schema.column(*leaf).path().string();
                Error::new(
                    Code::CorruptFile,
                    format!("{}: row group {group}, column {path} cannot be decoded: {message}", file.name()),
                )
                .path(path)
            }
            None => Error::new(
                Code::CorruptFile,
                format!("{}: row group {group} cannot be decoded: {message}", file.name()),
            ),
        }
    }
}

impl FileReader {
    /// Decodes some leaf columns of one row group, all rows.
    pub(crate) fn each_batch(
        &self,
        group: usize,
        leaves: &[usize],
        mut seen: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.batches(group, leaves, None, 4096, Manner::default())?.try_for_each(|batch| seen(batch?))
    }
}

pub fn in_group(mut error: Error, group: usize) -> Error {
    if !error.message.contains("row group") {
        error.message = format!("{} (row group {group})", error.message);
    }
    error
}

/// What the rows of a leaf column take decoded, by its footer: surely, and at worst.
fn decoded_bytes(group: &RowGroupMetaData, leaf: usize) -> (u64, u64) {
    let Some(column) = group.columns().get(leaf) else { return (0, 0) };
    let stored = column.uncompressed_size().max(0) as u64;
    let plain = column.unencoded_byte_array_data_bytes().map(|n| n.max(0) as u64);
    let known = stored.max(plain.unwrap_or(0)).saturating_add(8 * group.num_rows().max(0) as u64);
    // A dictionary may hold long values that many rows share, and this footer does not say so.
    let hidden = plain.is_none()
        && column.dictionary_page_offset().is_some()
        && column.column_type() == PhysicalType::BYTE_ARRAY;
    (known, if hidden { (stored / 64).min(2048) } else { 0 })
}

/// What the leaves of a row group take decoded.
pub fn group_bytes(group: &RowGroupMetaData, leaves: &[usize]) -> u64 {
    leaves.iter().fold(0, |sum: u64, &leaf| sum.saturating_add(decoded_bytes(group, leaf).0))
}

/// Rows per batch, so that its decoded columns and what is built from them stay within `max_bytes`.
pub fn batch_size(group: &RowGroupMetaData, leaves: &[usize], max_rows: usize, max_bytes: usize) -> usize {
    let rows = group.num_rows().max(1) as u64;
    let (mut known, mut feared) = (1u64, 0u64);
    for &leaf in leaves {
        let (surely, at_worst) = decoded_bytes(group, leaf);
        known = known.saturating_add(surely.div_ceil(rows));
        feared = feared.saturating_add(at_worst);
    }
    let budget = max_bytes as u64 / 2;
    let cautious = (budget / known.saturating_add(feared)).max(1024);
    (budget / known).min(cautious).clamp(1, max_rows.max(1) as u64) as usize
}
