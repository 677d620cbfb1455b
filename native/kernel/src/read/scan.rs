//! The rows of a file as batches: per row group, only the leaf columns that the items need, only the pages that
//! hold rows of the ranges asked for, each column decoded once, and batches cut by rows and by bytes.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StructArray, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::arrow::push_decoder::{ParquetPushDecoder, ParquetPushDecoderBuilder};
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::RowGroupMetaData;

use crate::error::{Code, Error, Result};
use crate::extract::{Step, Target, extract_path, path_text};
use crate::layout::Layout;
use crate::level::VariantColumn;
use crate::read::early::{hides_above, layout};
use crate::read::nested::{unshred_nested, unshredded_field};
use crate::read::schema::{Node, find};
use crate::read::{FileReader, guard, projection};
use crate::standard::is_variant;

/// What one output column is.
#[derive(Debug, Clone)]
pub struct Item {
    /// Name of the output column; the mask of failed casts gets a `!` after it.
    pub name: String,
    pub column: Vec<String>,
    pub kind: ItemKind,
}

#[derive(Debug, Clone)]
pub enum ItemKind {
    /// The whole column; variants in it unshredded.
    Whole,
    /// A path of a variant column.
    Path { steps: Vec<Step>, target: Target },
}

#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// Rows of the file, sorted and without overlap; `None` for all.
    pub ranges: Option<Vec<Range<u64>>>,
    pub max_rows: usize,
    pub max_bytes: usize,
    pub timezone: String,
}

/// A running scan.
pub struct Scan {
    file: Arc<FileReader>,
    items: Vec<Item>,
    options: ScanOptions,
    next_group: usize,
    next_row: u64,
    current: Option<Current>,
    done: bool,
}

struct Current {
    group: usize,
    /// `None` when no leaf column is needed at all.
    decoder: Option<ParquetPushDecoder>,
    leaves: Vec<usize>,
    batch_size: usize,
    /// Rows of the file that this row group gives, and how many of them were given.
    rows: Vec<Range<u64>>,
    given: u64,
}

impl Scan {
    pub fn new(file: Arc<FileReader>, items: Vec<Item>, options: ScanOptions) -> Result<Self> {
        let mut end = 0;
        for range in options.ranges.iter().flatten() {
            if range.start < end || range.end < range.start || range.end > file.num_rows() {
                return Err(Error::new(
                    Code::InvalidArgument,
                    format!(
                        "row ranges must be sorted, without overlap and within the {} rows of {}",
                        file.num_rows(),
                        file.name()
                    ),
                ));
            }
            end = range.end;
        }
        for item in &items {
            let node = find(file.columns(), &item.column).ok_or_else(|| {
                let name = item.column.join(".");
                Error::new(Code::InvalidArgument, format!("{} has no column {name}", file.name())).path(name)
            })?;
            if matches!(item.kind, ItemKind::Path { .. }) && !node.is_struct() {
                let name = item.column.join(".");
                return Err(Error::new(
                    Code::CorruptFile,
                    format!("the column {name} of {} is {}, no variant", file.name(), node.field.data_type()),
                )
                .path(name));
            }
            refuse_int96(&file, node)?;
            refuse_unknown(&file, node, &item.column.join("."))?;
        }
        Ok(Scan { file, items, options, next_group: 0, next_row: 0, current: None, done: false })
    }

    /// The next batch; `None` when the scan is over. After an error the scan is over too.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.done {
            return Ok(None);
        }
        let file = self.file.clone();
        let result = guard(file.name(), || self.step());
        self.done = !matches!(result, Ok(Some(_)));
        result
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(current) = &mut self.current else {
                if !self.open_group()? {
                    return Ok(None);
                }
                continue;
            };
            let group = current.group;
            let Some(decoder) = &mut current.decoder else {
                let left = current.rows.iter().map(|r| r.end - r.start).sum::<u64>() - current.given;
                let rows = left.min(current.batch_size as u64) as usize;
                if rows == 0 {
                    self.current = None;
                    continue;
                }
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let empty = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
                return self.answer(empty).map(Some);
            };
            match decoder.try_decode() {
                Ok(DecodeResult::NeedsData(ranges)) => {
                    let bytes = self.file.fetch(&ranges).map_err(|e| in_group(e, group))?;
                    decoder.push_ranges(ranges, bytes).map_err(|e| in_group(e.into(), group))?;
                }
                Ok(DecodeResult::Data(batch)) if batch.num_rows() == 0 => {}
                Ok(DecodeResult::Data(batch)) => return self.answer(batch).map(Some),
                Ok(DecodeResult::Finished) => {
                    let wanted = current.rows.iter().map(|r| r.end - r.start).sum::<u64>();
                    if current.given != wanted {
                        return Err(Error::new(
                            Code::CorruptFile,
                            format!(
                                "row group {group} of {} gave {} rows where its footer promises {wanted}",
                                self.file.name(),
                                current.given
                            ),
                        ));
                    }
                    self.current = None;
                }
                // The values of one batch exceed what an Arrow array can address: fewer rows at a time.
                Err(e) if current.batch_size > 1 && e.to_string().contains("overflow") => self.shrink()?,
                Err(e) => {
                    let leaves = current.leaves.clone();
                    return Err(self.blame(group, &leaves, &e.to_string()));
                }
            }
        }
    }

    /// Prepares the next row group that holds rows asked for; false when there is none.
    fn open_group(&mut self) -> Result<bool> {
        let file = self.file.clone();
        while let Some(group) = file.metadata().row_groups().get(self.next_group) {
            let index = self.next_group;
            let first = self.next_row;
            let end = first + group.num_rows() as u64;
            self.next_group += 1;
            self.next_row = end;
            let rows = match &self.options.ranges {
                Some(ranges) => clip(ranges, first, end),
                None if first < end => vec![Range { start: first, end }],
                None => vec![],
            };
            if rows.is_empty() {
                continue;
            }
            let leaves = self.leaves(group)?;
            let batch_size = batch_size(group, &leaves, &self.options);
            let decoder = if leaves.is_empty() {
                None
            } else {
                Some(self.decoder(index, &leaves, batch_size, &rows, first, end).map_err(|e| in_group(e, index))?)
            };
            self.current = Some(Current { group: index, decoder, leaves, batch_size, rows, given: 0 });
            return Ok(true);
        }
        Ok(false)
    }

    /// Goes on with the rows not yet given, in batches a sixteenth as long.
    fn shrink(&mut self) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let group = current.group;
        let Some(meta) = self.file.metadata().row_groups().get(group) else { return Ok(()) };
        let first = self.next_row - meta.num_rows() as u64;
        let rows = after(&current.rows, current.given);
        let batch_size = (current.batch_size / 16).max(1);
        let decoder = self.decoder(group, &current.leaves, batch_size, &rows, first, self.next_row)?;
        self.current = Some(Current { decoder: Some(decoder), batch_size, rows, given: 0, ..current });
        Ok(())
    }

    fn leaves(&self, group: &RowGroupMetaData) -> Result<Vec<usize>> {
        let mut leaves = Vec::new();
        for item in &self.items {
            let Some(node) = find(self.file.columns(), &item.column) else { continue };
            match &item.kind {
                ItemKind::Whole => projection::whole(node, group, &mut leaves),
                ItemKind::Path { steps, .. } => {
                    let above = hides_above(node, self.file.metadata());
                    projection::path(node, steps, above, group, &mut leaves);
                }
            }
        }
        leaves.sort_unstable();
        leaves.dedup();
        Ok(leaves)
    }

    fn decoder(
        &self,
        group: usize,
        leaves: &[usize],
        batch_size: usize,
        rows: &[Range<u64>],
        first: u64,
        end: u64,
    ) -> Result<ParquetPushDecoder> {
        let whole = rows.len() == 1 && rows[0] == (first..end);
        // Only a selection needs to know where pages begin.
        let arrow = if whole { self.file.arrow.clone() } else { self.file.with_pages()?.1.clone() };
        let mask = ProjectionMask::leaves(arrow.parquet_schema(), leaves.iter().copied());
        let mut builder = ParquetPushDecoderBuilder::new_with_metadata(arrow)
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(batch_size);
        if !whole {
            builder = builder.with_row_selection(selection(rows, first, end));
        }
        Ok(builder.build()?)
    }

    /// Turns the decoded leaves into the columns asked for.
    fn answer(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let Some(current) = &mut self.current else {
            return Err(Error::new(Code::Internal, "a batch without a row group"));
        };
        let start = current.given;
        current.given += batch.num_rows() as u64;
        let (rows, group) = (&current.rows, current.group);
        evaluate(&self.file, &self.items, &batch, &self.options.timezone).map_err(|mut e| {
            e.row = e.row.map(|row| absolute(rows, start + row));
            e.message = format!("{} (row group {group} of {})", e.message, self.file.name());
            e
        })
    }

    /// Finds the column that cannot be decoded, by decoding each alone.
    fn blame(&self, group: usize, leaves: &[usize], message: &str) -> Error {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let guilty = leaves
            .iter()
            .find(|leaf| guard(self.file.name(), || self.file.each_batch(group, &[**leaf], |_| Ok(()))).is_err());
        match guilty {
            Some(leaf) => {
                let path = schema.column(*leaf).path().string();
                Error::new(
                    Code::CorruptFile,
                    format!("{}: row group {group}, column {path} cannot be decoded: {message}", self.file.name()),
                )
                .path(path)
            }
            None => Error::new(
                Code::CorruptFile,
                format!("{}: row group {group} cannot be decoded: {message}", self.file.name()),
            ),
        }
    }
}

impl FileReader {
    /// A decoder of some leaf columns of one row group, all rows.
    pub(crate) fn decoder(&self, group: usize, leaves: &[usize], batch_size: usize) -> Result<ParquetPushDecoder> {
        let mask = ProjectionMask::leaves(self.arrow.parquet_schema(), leaves.iter().copied());
        Ok(ParquetPushDecoderBuilder::new_with_metadata(self.arrow.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(batch_size)
            .build()?)
    }

    /// Decodes some leaf columns of one row group, all rows.
    pub(crate) fn each_batch(
        &self,
        group: usize,
        leaves: &[usize],
        mut seen: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let mut decoder = self.decoder(group, leaves, 4096)?;
        loop {
            match decoder.try_decode()? {
                DecodeResult::NeedsData(ranges) => {
                    let bytes = self.fetch(&ranges)?;
                    decoder.push_ranges(ranges, bytes)?;
                }
                DecodeResult::Data(batch) => seen(batch)?,
                DecodeResult::Finished => return Ok(()),
            }
        }
    }
}

/// INT96 is a timestamp in plain columns and no type that a variant can be shredded to (rule 21).
fn refuse_int96(file: &FileReader, node: &Node) -> Result<()> {
    if !is_variant(&node.field) {
        return node.children.iter().try_for_each(|child| refuse_int96(file, child));
    }
    let schema = file.metadata().file_metadata().schema_descr();
    match node.leaves.clone().find(|&leaf| schema.column(leaf).physical_type() == PhysicalType::INT96) {
        None => Ok(()),
        Some(leaf) => {
            let path = schema.column(leaf).path().string();
            Err(Error::new(Code::MalformedShredding, format!("{path} of {} is INT96", file.name())).rule(21).path(path))
        }
    }
}

/// What stands beside `value` and `typed_value` under another name would be passed over, and its rows would read as
/// null: a layout that is not known is refused (rules 1, 44). A projection would never see it.
fn refuse_unknown(file: &FileReader, node: &Node, path: &str) -> Result<()> {
    if !is_variant(&node.field) {
        let below = |child: &Node| refuse_unknown(file, child, &format!("{path}.{}", child.field.name()));
        return node.children.iter().try_for_each(below);
    }
    if layout(node) == Layout::Early {
        return Ok(()); // It was checked when it was recognised.
    }
    let mut groups = vec![(node, path.to_string())];
    while let Some((group, path)) = groups.pop() {
        for child in &group.children {
            let name = child.field.name().as_str();
            match name {
                "typed_value" if child.is_struct() => {
                    groups.extend(child.children.iter().map(|f| (f, format!("{path}.{name}.{}", f.field.name()))));
                }
                "typed_value" if child.is_list() => {
                    groups.extend(child.children.iter().map(|e| (e, format!("{path}.{name}.list.element"))));
                }
                "metadata" if std::ptr::eq(group, node) => {}
                "value" | "typed_value" => {}
                name if name.starts_with('_') => {}
                name => {
                    let message = format!(
                        "{path} of {} holds the field {name:?}, which is none of metadata, value and typed_value",
                        file.name()
                    );
                    return Err(Error::new(Code::MalformedShredding, message).rule(1).path(path));
                }
            }
        }
    }
    Ok(())
}

fn in_group(mut error: Error, group: usize) -> Error {
    if !error.message.contains("row group") {
        error.message = format!("{} (row group {group})", error.message);
    }
    error
}

/// The parts of sorted ranges that lie in `first..end`.
fn clip(ranges: &[Range<u64>], first: u64, end: u64) -> Vec<Range<u64>> {
    let from = ranges.partition_point(|r| r.end <= first);
    ranges[from..]
        .iter()
        .take_while(|r| r.start < end)
        .map(|r| r.start.max(first)..r.end.min(end))
        .filter(|r| r.start < r.end)
        .collect()
}

fn selection(rows: &[Range<u64>], first: u64, end: u64) -> RowSelection {
    let mut selectors = Vec::with_capacity(rows.len() * 2 + 1);
    let mut at = first;
    for range in rows {
        if range.start > at {
            selectors.push(RowSelector::skip((range.start - at) as usize));
        }
        selectors.push(RowSelector::select((range.end - range.start) as usize));
        at = range.end;
    }
    if at < end {
        selectors.push(RowSelector::skip((end - at) as usize));
    }
    RowSelection::from(selectors)
}

/// The ranges without their first `given` rows.
fn after(rows: &[Range<u64>], mut given: u64) -> Vec<Range<u64>> {
    let mut left = Vec::with_capacity(rows.len());
    for range in rows {
        let skipped = given.min(range.end - range.start);
        given -= skipped;
        if range.start + skipped < range.end {
            left.push(range.start + skipped..range.end);
        }
    }
    left
}

/// The row of the file that is the `at`-th of these ranges.
fn absolute(rows: &[Range<u64>], mut at: u64) -> u64 {
    for range in rows {
        let len = range.end - range.start;
        if at < len {
            return range.start + at;
        }
        at -= len;
    }
    rows.last().map_or(0, |r| r.end)
}

/// Rows per batch, so that its decoded columns and what is built from them stay within `max_bytes`.
pub(crate) fn batch_size(group: &RowGroupMetaData, leaves: &[usize], options: &ScanOptions) -> usize {
    let rows = group.num_rows().max(1) as u64;
    let (mut known, mut feared) = (1u64, 0u64);
    for &leaf in leaves {
        let Some(column) = group.columns().get(leaf) else { continue };
        let stored = column.uncompressed_size().max(0) as u64;
        let plain = column.unencoded_byte_array_data_bytes().map(|n| n.max(0) as u64);
        known = known.saturating_add(stored.max(plain.unwrap_or(0)).div_ceil(rows) + 8);
        // A dictionary may hold long values that many rows share, and this footer does not say so.
        if plain.is_none()
            && column.dictionary_page_offset().is_some()
            && column.column_type() == PhysicalType::BYTE_ARRAY
        {
            feared = feared.saturating_add((stored / 64).min(2048));
        }
    }
    let budget = options.max_bytes as u64 / 2;
    let cautious = (budget / known.saturating_add(feared)).max(1024);
    (budget / known).min(cautious).clamp(1, options.max_rows.max(1) as u64) as usize
}

/// One output batch from a decoded one.
fn evaluate(file: &FileReader, items: &[Item], batch: &RecordBatch, timezone: &str) -> Result<RecordBatch> {
    let mut fields: Vec<FieldRef> = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for item in items {
        let Some(node) = find(file.columns(), &item.column) else { continue };
        let path = item.column.join(".");
        let column = column_at(batch, &item.column)?;
        match &item.kind {
            ItemKind::Whole => {
                let field = unshredded_field(&node.field);
                let array = match &column {
                    Some(array) => unshred_nested(&node.field, array, &path)?,
                    None => new_null_array(field.data_type(), batch.num_rows()),
                };
                fields.push(renamed(&field, &item.name, array.data_type()));
                columns.push(array);
            }
            ItemKind::Path { steps, target } => {
                let variant = variant_at(column.as_ref(), node, &path, batch.num_rows())?;
                let found =
                    extract_path(&variant, steps, target, timezone).map_err(|e| e.path(path_text(&path, steps)))?;
                fields.push(Arc::new(found.field(&item.name)));
                columns.push(found.values);
                fields.push(Arc::new(Field::new(format!("{}!", item.name), DataType::Boolean, false)));
                columns.push(Arc::new(found.failed));
            }
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

fn renamed(field: &FieldRef, name: &str, data_type: &DataType) -> FieldRef {
    Arc::new(field.as_ref().clone().with_name(name).with_data_type(data_type.clone()).with_nullable(true))
}

/// The column as it was read; `None` when nothing of it was.
pub fn column_at(batch: &RecordBatch, names: &[String]) -> Result<Option<ArrayRef>> {
    let Some((first, rest)) = names.split_first() else { return Ok(None) };
    let Some(mut array) = batch.column_by_name(first).cloned() else { return Ok(None) };
    for name in rest {
        let Some(group) = array.as_struct_opt() else { return Ok(None) };
        let Some(child) = group.column_by_name(name) else { return Ok(None) };
        array = with_nulls(child, group.nulls())?;
    }
    Ok(Some(array))
}

/// A struct's child is null where the struct is.
fn with_nulls(child: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    let Some(nulls) = nulls else { return Ok(child.clone()) };
    let both = NullBuffer::union(child.nulls(), Some(nulls));
    Ok(arrow::array::make_array(child.to_data().into_builder().nulls(both).build()?))
}

fn variant_at(column: Option<&ArrayRef>, node: &Node, path: &str, rows: usize) -> Result<VariantColumn> {
    match column {
        Some(array) => match array.as_struct_opt() {
            Some(group) => VariantColumn::open(group, path),
            None => Err(Error::new(
                Code::CorruptFile,
                format!("the column {path} is {}, no variant", node.field.data_type()),
            )
            .path(path)),
        },
        // Nothing of the column was read: the path is in no row.
        None => VariantColumn::open(&StructArray::new_empty_fields(rows, Some(NullBuffer::new_null(rows))), path),
    }
}
