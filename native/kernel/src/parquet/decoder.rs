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
use crate::parquet::rows::Rows;
use crate::parquet::{padded, rows};

/// What is decoded at a time where all rows of a row group are looked at.
const ROWS: usize = 8192;
const BYTES: usize = 32 << 20;

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
        let meta = file.metadata().row_groups().get(window.group);
        if let Some(e) = meta.and_then(|meta| leaves.iter().find_map(|&leaf| too_long(meta, leaf, file.name()))) {
            return Err(e);
        }
        let batch_size = meta.map_or(1, |meta| batch_size(meta, &leaves, max_rows, max_bytes));
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
        // Where a row group has no rows, its footer may name no pages.
        if self.leaves.is_empty() || rows::count(&self.window.rows) == 0 {
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
            match guard(self.file.name(), || inner.next().transpose()).transpose() {
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) if batch.num_rows() as u64 <= left => {
                    self.given += batch.num_rows() as u64;
                    if self.manner.stored {
                        return Ok(Some(batch));
                    }
                    let batch = if self.file.padded { padded::cut(batch, self.file.columns())? } else { batch };
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

    /// The error of the column that cannot be decoded, which is found by decoding each alone; says what the library's
    /// error means where that is known.
    fn blame(&self, message: &str) -> Error {
        let (file, group) = (&self.file, self.window.group);
        let place = format!("{}: row group {group}", file.name());
        let [leaf] = self.leaves.as_slice() else {
            let alone =
                |leaf| guard(file.name(), || file.each_batch(group, std::slice::from_ref(leaf), |_| Ok(()))).err();
            let unknown = || Error::new(Code::CorruptFile, format!("{place} cannot be decoded: {message}"));
            return self.leaves.iter().find_map(alone).unwrap_or_else(unknown);
        };
        let path = file.metadata().file_metadata().schema_descr().column(*leaf).path().string();
        let (code, what) = if message.contains("non UTF-8 data") {
            (Code::InvalidUtf8, "holds a STRING that is not UTF-8".into())
        } else if message.contains("Array too large") {
            (Code::UnsupportedType, "holds a DECIMAL of more than 16 bytes, which mica does not read".into())
        } else {
            (Code::CorruptFile, format!("cannot be decoded: {message}"))
        };
        Error::new(code, format!("{place}, column {path} {what}")).path(path)
    }
}

impl FileReader {
    /// Decodes some leaf columns of one row group, all rows.
    pub(crate) fn each_batch(
        self: &Arc<Self>,
        group: usize,
        leaves: &[usize],
        mut seen: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let mut decoder = self.decoder(group, leaves.to_vec(), false)?;
        while let Some(batch) = decoder.next()? {
            seen(batch)?;
        }
        Ok(())
    }

    /// Some leaf columns of one row group, all rows, as they are stored; `alone` as in [`Manner`].
    pub(crate) fn decoder(self: &Arc<Self>, group: usize, leaves: Vec<usize>, alone: bool) -> Result<Decoder> {
        let rows = self.metadata().row_groups().get(group).map_or(0, |meta| meta.num_rows().max(0) as u64);
        let bounds = self.first_row(group)..self.first_row(group) + rows;
        let window = Window { group, rows: vec![bounds.clone()], bounds };
        Decoder::new(self.clone(), leaves, window, ROWS, BYTES, Manner { alone, stored: true, ..Manner::default() })
    }
}

pub fn in_group(mut error: Error, group: usize) -> Error {
    if !error.message.contains("row group") {
        error.message = format!("{} (row group {group})", error.message);
    }
    error
}

/// Values of a leaf column, nulls and empty lists counted.
fn values(group: &RowGroupMetaData, leaf: usize) -> u64 {
    group.columns().get(leaf).map_or(0, |column| column.num_values().max(group.num_rows()).max(0) as u64)
}

/// What the rows of a leaf column take decoded, by its footer: surely, and at worst.
fn decoded_bytes(group: &RowGroupMetaData, leaf: usize) -> (u64, u64) {
    let Some(column) = group.columns().get(leaf) else { return (0, 0) };
    let values = values(group, leaf);
    let stored = column.uncompressed_size().max(0) as u64;
    let plain = column.unencoded_byte_array_data_bytes().map(|n| n.max(0) as u64);
    let held = stored.max(plain.unwrap_or(0));
    // However few bytes equal values are stored in.
    let spread = values.saturating_mul(column.column_descr().type_length().clamp(8, i32::MAX) as u64);
    let known = match column.column_descr().max_rep_level() {
        0 => held.saturating_add(spread),
        // Elements have two levels each.
        _ => held.max(spread).saturating_add(values.saturating_mul(4)),
    };
    // A dictionary may hold long values that many rows share, and this footer does not say so.
    let hidden = plain.is_none()
        && column.dictionary_page_offset().is_some()
        && column.column_type() == PhysicalType::BYTE_ARRAY;
    (known, if hidden { values.saturating_mul((stored / 64).min(2048)) } else { 0 })
}

/// The error where the lists of a column are so long that no array has room for the elements of one row.
fn too_long(group: &RowGroupMetaData, leaf: usize, file: &str) -> Option<Error> {
    let column = group.columns().get(leaf).filter(|column| column.column_descr().max_rep_level() > 0)?;
    let (rows, values) = (group.num_rows().max(1) as u64, values(group, leaf));
    let bits = match column.column_type() {
        PhysicalType::BOOLEAN => 1,
        // Of texts their offsets.
        PhysicalType::INT32 | PhysicalType::FLOAT | PhysicalType::BYTE_ARRAY => 32,
        PhysicalType::INT64 | PhysicalType::DOUBLE | PhysicalType::INT96 => 64,
        PhysicalType::FIXED_LEN_BYTE_ARRAY => 8 * column.column_descr().type_length().max(1) as u64,
    };
    let texts = column.unencoded_byte_array_data_bytes().map_or(0, |bytes| bytes.max(0) as u64);
    let bytes = texts.max(values.saturating_mul(bits) / 8) / rows;
    (bytes.max(values / rows) > i32::MAX as u64).then(|| {
        let path = column.column_path().string();
        let message =
            format!("{file}: column {path} has {values} values in {rows} rows: no array has room for those of a row");
        Error::new(Code::TooLarge, message).path(path)
    })
}

/// What the leaves of a row group take decoded.
pub fn group_bytes(group: &RowGroupMetaData, leaves: &[usize]) -> u64 {
    leaves.iter().fold(0, |sum: u64, &leaf| sum.saturating_add(decoded_bytes(group, leaf).0))
}

/// Rows per batch, so that its decoded columns and what is built from them stay within `max_bytes`.
pub fn batch_size(group: &RowGroupMetaData, leaves: &[usize], max_rows: usize, max_bytes: usize) -> usize {
    let rows = group.num_rows().max(1) as u64;
    let (mut known, mut feared, mut longest) = (1u64, 0u64, 1u64);
    for &leaf in leaves {
        longest = longest.max(values(group, leaf) / rows);
        let (surely, at_worst) = decoded_bytes(group, leaf);
        known = known.saturating_add(surely.div_ceil(rows));
        feared = feared.saturating_add(at_worst / rows);
    }
    let budget = max_bytes as u64 / 2;
    // Whatever is feared, it is seldom so: rows and elements this few are read together.
    let cautious = (budget / known.saturating_add(feared)).max(1024.min((1 << 14) / longest));
    (budget / known).min(cautious).clamp(1, max_rows.max(1) as u64) as usize
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::{batch_size, too_long};

    /// Lists whose footer says nothing of the bytes of texts, which may be a dictionary's.
    fn lists(element: &str, rows: i64, values: i64) -> RowGroupMetaData {
        let text = format!("message m {{ required group x (LIST) {{ repeated group list {{ {element}; }} }} }}");
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(parse_message_type(&text).unwrap())));
        let column = ColumnChunkMetaData::builder(schema.column(0))
            .set_num_values(values)
            .set_total_uncompressed_size(1 << 20)
            .set_dictionary_page_offset(Some(4));
        let group =
            RowGroupMetaData::builder(schema).set_num_rows(rows).set_column_metadata(vec![column.build().unwrap()]);
        group.build().unwrap()
    }

    #[test]
    fn what_a_footer_does_not_say_of_texts_is_feared_within_reason() {
        for (rows, values, wanted) in [(20_000, 20_000, 1024), (10_000, 200_000, 819), (100, 1_000_000, 1)] {
            let group = lists("optional binary element", rows, values);
            assert_eq!(batch_size(&group, &[0], 8192, 1 << 20), wanted, "{values} in {rows}");
        }
    }

    #[test]
    fn a_row_is_too_long_if_no_array_holds_its_elements() {
        for (element, most) in [
            ("required boolean element", i64::from(i32::MAX)),
            ("required int32 element", (1 << 29) - 1),
            ("optional int64 element", (1 << 28) - 1),
            ("required fixed_len_byte_array(16) element", (1 << 27) - 1),
        ] {
            for (values, refused) in [(most, false), (most + 1, true)] {
                assert_eq!(too_long(&lists(element, 1, values), 0, "f").is_some(), refused, "{element} {values}");
            }
        }
    }
}
