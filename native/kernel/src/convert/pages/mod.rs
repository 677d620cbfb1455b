//! A file of mica's as one of the other layout, or of the same, page by page: no value is decoded, and names and levels
//! alone change.
//!
//! **When a file can be transcribed:** mica wrote it (so its bounds are those of a writer that is known), its dates and
//! timestamps are by today's calendar (`parquet::legacy`), and every column that changes its layout is fully shredded:
//! no residual of it holds a value. What is in the wanted layout already is copied, residuals and all. Everything else is
//! for [`convert::moving`](crate::convert::moving), which decodes; levels and counts that contradict the footer are left
//! to it too, and it says what is wrong.
//!
//! - `levels`: definition levels, run by run
//! - `plan`: which column becomes which
//! - `chunk`: one column chunk

pub mod chunk;
pub mod levels;
pub mod plan;

use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, ParquetMetaData, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;

use crate::codec::dictionary::Dictionary;
use crate::convert::pages::chunk::{Maker, Old};
use crate::convert::pages::levels::unfit;
use crate::convert::pages::plan::{LeafPlan, Make, Moved, plan};
use crate::error::Result;
use crate::layout::early::{SHREDDED_BY_MICA, UNTYPED_VALUE, shredded_columns, tree_of as early_tree};
use crate::layout::standard::{VALUE, is_variant};
use crate::layout::{Layout, standard};
use crate::names::Names;
use crate::parquet::file::FileReader;
use crate::parquet::guard::guard;
use crate::parquet::parts::Parts;
use crate::parquet::residuals::{CREATED_BY, hides_above};
use crate::parquet::schema::Node;
use crate::parquet::write::pages::Pages;
use crate::parquet::write::schema::parquet_schema;
use crate::parquet::write::{Sink, Summary, WriteOptions, bounds, failed};
use crate::tree::Tree;
use crate::values::nested::holds_variant;

/// A file in the making out of the pages of another.
pub struct Transcription {
    file: Arc<FileReader>,
    schema: SchemaRef,
    leaves: Vec<LeafPlan>,
    maker: Maker,
    writer: SerializedFileWriter<Sink>,
    next_group: usize,
    /// Of the columns that no footer counts, in the order of [`bounds::counted_columns`].
    nulls: Vec<i64>,
    /// Whether any column changes.
    moves: bool,
    late: bool,
}

impl Transcription {
    /// The columns of these names, all of the file's, in this layout; `None` where that takes more than pages. Nothing
    /// is written then.
    pub fn new(
        file: Arc<FileReader>,
        columns: &[(String, bool)],
        layout: Layout,
        path: Option<&str>,
        options: &WriteOptions,
    ) -> Result<Option<Self>> {
        let name = file.name().to_string();
        guard(&name, || Self::prepare(file, columns, layout, path, options))
    }

    fn prepare(
        file: Arc<FileReader>,
        columns: &[(String, bool)],
        layout: Layout,
        path: Option<&str>,
        options: &WriteOptions,
    ) -> Result<Option<Self>> {
        let metadata = file.metadata();
        let by_mica = metadata.file_metadata().created_by().is_some_and(|by| by.starts_with(CREATED_BY));
        let takes_pages = by_mica && !file.is_legacy() && options.bloom_filters.is_empty();
        if !takes_pages || columns.len() != file.columns().len() {
            return Ok(None);
        }
        let Some(maker) = Maker::new(options.compression)? else { return Ok(None) };
        let mut drawing = Drawing { layout, metadata, moved: Vec::new(), nulls: Vec::new(), late: false };
        let mut fields = Vec::new();
        for (name, nullable) in columns {
            let node = file.columns().iter().find(|c| c.field.name() == name);
            let Some(field) = node.map(|node| drawing.field(node, &mut Vec::new(), 0)).transpose()?.flatten() else {
                return Ok(None);
            };
            fields.push(field.as_ref().clone().with_nullable(*nullable));
        }
        let schema = Arc::new(Schema::new(fields));
        let Ok(descriptor) = parquet_schema(&schema) else { return Ok(None) };
        let from = metadata.file_metadata().schema_descr();
        let Some(leaves) = plan(from, &descriptor, &drawing.moved) else { return Ok(None) };
        if !metadata.row_groups().iter().all(|group| promises(group, &leaves)) {
            return Ok(None);
        }
        let early = shredded_columns(schema.fields()).map(|named| vec![KeyValue::new(SHREDDED_BY_MICA.into(), named)]);
        let properties = WriterProperties::builder()
            .set_created_by(options.created_by.clone())
            .set_compression(options.compression)
            .set_key_value_metadata(early)
            .build();
        let sink = Sink::open(path)?;
        let writer =
            SerializedFileWriter::new(sink, descriptor.root_schema_ptr(), Arc::new(properties)).map_err(failed)?;
        let (moves, nulls, late) = (!drawing.moved.is_empty(), drawing.nulls, drawing.late);
        Ok(Some(Transcription { file, schema, leaves, maker, writer, next_group: 0, nulls, moves, late }))
    }

    /// Whether any column changes its layout; otherwise the file is copied.
    pub fn moves(&self) -> bool {
        self.moves
    }

    /// Whether a Variant may hold a type that Spark's lack (`late`): the answer "no" is certain.
    pub fn may_hold_late_types(&self) -> bool {
        self.late
    }

    /// Writes the next row group; whether there was one. DOES_NOT_FIT where its pages hold what the footer denies.
    pub fn step(&mut self) -> Result<bool> {
        let file = self.file.clone();
        guard(file.name(), || self.group())
    }

    fn group(&mut self) -> Result<bool> {
        let file = self.file.clone();
        let index = self.next_group;
        let Some(group) = file.metadata().row_groups().get(index) else { return Ok(false) };
        self.next_group += 1;
        let from: Vec<usize> = self.leaves.iter().map(|leaf| leaf.from).collect();
        file.load_pages(&[index], &from, true)?;
        let chunks =
            from.iter().map(|&leaf| group.columns().get(leaf).ok_or_else(unfit)).collect::<Result<Vec<_>>>()?;
        let ranges: Vec<_> = chunks.iter().map(|c| c.byte_range()).map(|(start, len)| start..start + len).collect();
        let parts = file.fetch_pages(index, &from, &ranges)?;
        let pages = file.metadata().page_index().ok_or_else(unfit)?;
        let columns = self.writer.schema_descr().columns().to_vec();
        let mut writer = self.writer.next_row_group().map_err(failed)?;
        for (((leaf, column), meta), part) in self.leaves.iter().zip(&columns).zip(chunks).zip(parts) {
            let old = Old {
                meta,
                rows: group.num_rows(),
                offsets: pages.offset_index(index, leaf.from).ok_or_else(unfit)?,
                columns: pages.column_index(index, leaf.from),
                part: Arc::new(Parts::new(vec![part])),
            };
            let new = self.maker.make(&old, &leaf.make, column)?;
            let pages = Pages::of(new.pages()?).map_err(|_| unfit())?;
            let (chunk, close) = pages.close(new.close).map_err(failed)?;
            writer.append_column(&chunk, close).map_err(failed)?;
        }
        writer.close().map_err(failed)?;
        Ok(true)
    }

    /// Bytes of the file so far.
    pub fn bytes_written(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    pub fn rows(&self) -> u64 {
        self.file.num_rows()
    }

    /// What was written since the last call, for a file in memory.
    pub fn take_bytes(&mut self) -> Result<Vec<u8>> {
        self.writer.flush()?;
        Ok(self.writer.inner_mut().take())
    }

    /// Ends the file, when all of its row groups are written.
    pub fn close(&mut self) -> Result<Summary> {
        let metadata = self.writer.finish().map_err(failed)?;
        let size = self.writer.bytes_written() as u64;
        self.writer.flush()?;
        let bounds = bounds::collect(&self.schema, metadata.row_groups(), &self.nulls)?;
        Ok(Summary { rows: self.rows(), size, row_groups: metadata.num_row_groups(), bounds })
    }
}

/// Whether the footer says of a row group what a transcription needs: where pages begin, and that residuals of columns
/// that move hold nothing.
fn promises(group: &RowGroupMetaData, leaves: &[LeafPlan]) -> bool {
    leaves.iter().all(|leaf| {
        group.columns().get(leaf.from).is_some_and(|chunk| {
            chunk.offset_index_offset().is_some() && (!matches!(leaf.make, Make::Empty(_)) || is_null(chunk))
        })
    })
}

/// Whether a chunk holds no value, by its footer.
fn is_null(chunk: &ColumnChunkMetaData) -> bool {
    let nulls = chunk.statistics().and_then(Statistics::null_count_opt);
    nulls.is_some() && nulls == u64::try_from(chunk.num_values()).ok()
}

/// Draws the new schema, and notes on the way which columns move and how many nulls the uncounted ones have.
struct Drawing<'a> {
    layout: Layout,
    metadata: &'a ParquetMetaData,
    moved: Vec<Moved>,
    nulls: Vec<i64>,
    late: bool,
}

impl Drawing<'_> {
    /// The field of a column; `None` where it does not move page by page. `above`: how many of the groups around it
    /// are optional.
    fn field(&mut self, node: &Node, names: &mut Vec<String>, above: usize) -> Result<Option<FieldRef>> {
        names.push(node.field.name().clone());
        let level = above + node.field.is_nullable() as usize;
        let found = match node.field.data_type() {
            DataType::Struct(fields) if is_variant(&node.field) => {
                let made = self.variant(&node.field, fields, node, names)?;
                if made.is_some() { self.count(node, level).and(made) } else { None }
            }
            DataType::Struct(_) => {
                let mut fields = Vec::new();
                for child in &node.children {
                    match self.field(child, names, level)? {
                        Some(field) => fields.push(field),
                        None => return Ok(None),
                    }
                }
                let made = DataType::Struct(fields.into());
                Some(Arc::new(ArrowField::clone(&node.field).with_data_type(made)))
            }
            // No writer of mica shreds Variants there; whoever did is decoded.
            data_type if data_type.is_nested() && holds_variant(&node.field) => None,
            data_type if data_type.is_nested() => self.count(node, level).map(|()| node.field.clone()),
            _ => Some(node.field.clone()),
        };
        names.pop();
        Ok(found)
    }

    fn variant(
        &mut self,
        field: &FieldRef,
        fields: &Fields,
        node: &Node,
        names: &[String],
    ) -> Result<Option<FieldRef>> {
        let from = Layout::of(fields);
        self.late |= self.may_be_late(node);
        if hides_above(names, node, self.metadata) {
            return Ok(None); // another writer shredded it
        }
        let tree = match from {
            Layout::Standard => standard::tree_of(field.data_type())?,
            Layout::Early => early_tree(fields, field.name())?,
        };
        if from == self.layout || tree.is_untyped() && from == Layout::Standard {
            return Ok(Some(field.clone()));
        }
        if tree.is_untyped() {
            return Ok(None);
        }
        let mut all = Names::new();
        let mut base = Vec::new();
        intern(&tree, &mut all, &mut base);
        let metadata = Dictionary::new(&all, base).base_bytes().to_vec();
        self.moved.push(Moved { names: names.to_vec(), from, metadata });
        let made = self.layout.variant_field(field.name(), &tree, field.is_nullable());
        Ok(Some(Arc::new(made)))
    }

    /// Whether there is a leaf of a late type, or a residual with a value.
    fn may_be_late(&self, node: &Node) -> bool {
        if !node.children.is_empty() {
            return node.children.iter().any(|child| self.may_be_late(child));
        }
        match node.field.data_type() {
            DataType::Time64(_) | DataType::Timestamp(TimeUnit::Nanosecond, _) | DataType::FixedSizeBinary(_) => true,
            _ if !matches!(node.field.name().as_str(), VALUE | UNTYPED_VALUE) => false,
            _ => !self
                .metadata
                .row_groups()
                .iter()
                .all(|group| group.columns().get(node.leaves.start).is_some_and(is_null)),
        }
    }

    /// Counts the nulls of a column that the footer has no counts of, by the levels of a leaf below it: those beneath
    /// its own.
    fn count(&mut self, node: &Node, level: usize) -> Option<()> {
        let mut nulls = 0;
        for group in self.metadata.row_groups() {
            let chunk = group.columns().get(node.leaves.start)?;
            if level > 0 {
                let levels = chunk.definition_level_histogram()?.values();
                nulls += levels.get(..level)?.iter().sum::<i64>();
            }
        }
        self.nulls.push(nulls);
        Some(())
    }
}

/// The names of all fields of a tree.
fn intern(tree: &Tree, names: &mut Names, base: &mut Vec<u32>) {
    for field in tree.object.iter().flatten() {
        base.push(names.intern(&field.name));
        intern(&field.tree, names, base);
    }
    if let Some(element) = &tree.array {
        intern(element, names, base);
    }
}
