//! One open Parquet file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::{Fields, SchemaRef};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::ParquetMetaData;

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::layout::recognise::{Early, mark_early};
use crate::layout::standard::is_variant;
use crate::parquet::guard::guard;
use crate::parquet::legacy::Legacy;
use crate::parquet::page_index::PageIndex;
use crate::parquet::schema::Node;
use crate::parquet::source::Source;
use crate::parquet::{footer, schema};
use crate::tree::Tree;

/// One open Parquet file.
pub struct FileReader {
    source: Box<dyn Source>,
    metadata: Arc<ParquetMetaData>,
    /// How arrow-rs decodes it: INT96 as instants in microseconds, the metadata of variants as views.
    pub(super) decoding: Fields,
    /// The same for people, with variant columns marked.
    schema: SchemaRef,
    columns: Vec<Node>,
    /// Where each row group begins.
    first_rows: Vec<u64>,
    pub(super) pages: Arc<PageIndex>,
    /// What has to be done to dates and timestamps; nothing in the files of today.
    pub(super) legacy: Option<Legacy>,
    bytes_read: AtomicU64,
}

impl FileReader {
    /// Reads the footer. `variants` are columns that the caller knows to be variants, `early` says how columns of
    /// the early layout are told.
    pub fn open(source: Box<dyn Source>, variants: &[Vec<String>], early: &Early) -> Result<Self> {
        guard(source.name(), || {
            let mut read = 0;
            let metadata = footer::load(source.as_ref(), &mut read)?;
            let pages =
                PageIndex::new(metadata.num_row_groups(), metadata.file_metadata().schema_descr().num_columns());
            let metadata = Arc::new(metadata.into_builder().set_page_index(Some(pages.clone())).build());
            // The embedded Arrow schema is ignored: the Parquet types say what the data is, whoever wrote it.
            let parquet = metadata.file_metadata().schema_descr();
            let plain = parquet_to_arrow_schema(parquet, None).map_err(|e| footer::corrupt(source.as_ref(), &e))?;
            let plain = schema::reading_schema(plain, parquet);
            let marked = mark_early(&plain, early).map_err(|e| in_file(e, source.name()))?;
            let marked = schema::mark_variants(&marked, variants);
            let schema = Arc::new(marked.map_err(|e| in_file(e, source.name()))?);
            let columns = Node::columns(schema.fields());
            let decoding = schema::decoding_fields(&plain, &schema);
            let first_rows = first_rows(&metadata);
            let legacy = Legacy::of(&metadata, source.name());
            Ok((metadata, decoding, schema, columns, first_rows, pages, legacy, read))
        })
        .map(|(metadata, decoding, schema, columns, first_rows, pages, legacy, read)| FileReader {
            source,
            metadata,
            decoding,
            schema,
            columns,
            first_rows,
            pages,
            legacy,
            bytes_read: AtomicU64::new(read),
        })
    }

    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// Storage layout, variant columns marked.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    pub(super) fn shared_metadata(&self) -> &Arc<ParquetMetaData> {
        &self.metadata
    }

    pub(super) fn source(&self) -> &dyn Source {
        self.source.as_ref()
    }

    pub fn columns(&self) -> &[Node] {
        &self.columns
    }

    /// The layout and the shredding tree of the variant column at a path of names; `None` where there is none.
    pub fn tree(&self, column: &[String]) -> Result<Option<(Layout, Tree)>> {
        let node = schema::find(&self.columns, column).filter(|node| is_variant(&node.field));
        node.map(|node| Layout::tree_of(node.field.data_type(), &column.join("."))).transpose()
    }

    pub fn num_rows(&self) -> u64 {
        self.metadata.file_metadata().num_rows().max(0) as u64
    }

    /// The row of the file that is the first of a row group.
    pub fn first_row(&self, group: usize) -> u64 {
        self.first_rows.get(group).copied().unwrap_or_else(|| self.num_rows())
    }

    /// Bytes fetched so far, footer included.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    pub(crate) fn fetch(&self, ranges: &[std::ops::Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        let mut read = 0;
        let bytes = crate::parquet::source::fetch(self.source.as_ref(), ranges, &mut read)?;
        self.bytes_read.fetch_add(read, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Whether the source wants to know what will be fetched next.
    pub(crate) fn plans(&self) -> bool {
        self.source.plans()
    }

    pub(crate) fn announce(&self, ranges: &[std::ops::Range<u64>]) -> Result<()> {
        crate::parquet::source::announce(self.source.as_ref(), ranges)
    }
}

fn first_rows(metadata: &ParquetMetaData) -> Vec<u64> {
    let rows = metadata.row_groups().iter().map(|group| group.num_rows().max(0) as u64);
    rows.scan(0, |first, rows| Some(std::mem::replace(first, *first + rows))).collect()
}

fn in_file(mut error: Error, file: &str) -> Error {
    error.message = format!("{file}: {}", error.message);
    error
}
