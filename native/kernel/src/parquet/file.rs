//! One open Parquet file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_schema::SchemaRef;
use parquet::file::metadata::ParquetMetaData;

use crate::error::Result;
use crate::layout::Layout;
use crate::layout::recognise::Early;
use crate::layout::standard::is_variant;
use crate::parquet::file_schema::FileSchema;
use crate::parquet::guard::guard;
use crate::parquet::legacy::Legacy;
use crate::parquet::opened::Opened;
use crate::parquet::page_index::PageIndex;
use crate::parquet::schema::Node;
use crate::parquet::source::Source;
use crate::parquet::{footer, opened, padded, schema};
use crate::tree::Tree;

/// One open Parquet file.
pub struct FileReader {
    source: Box<dyn Source>,
    pub(super) metadata: Arc<ParquetMetaData>,
    pub(super) schema: Arc<FileSchema>,
    /// Where each row group begins.
    first_rows: Arc<[u64]>,
    pub(super) pages: Arc<PageIndex>,
    /// What has to be done to dates and timestamps; nothing in the files of today.
    pub(super) legacy: Option<Legacy>,
    /// Whether its Variants may have bytes behind their ends.
    pub(super) padded: bool,
    bytes_read: AtomicU64,
}

impl FileReader {
    /// Reads the footer. `variants` are columns that the caller knows to be variants, `early` says how columns of
    /// the early layout are told.
    pub fn open(source: Box<dyn Source>, variants: &[Vec<String>], early: &Early) -> Result<Self> {
        let identity = source.identity();
        let opened = match identity.as_ref().and_then(|identity| opened::known(identity, variants, early)) {
            Some(opened) => opened,
            None => {
                let opened = guard(source.name(), || read_footer(source.as_ref(), variants, early))?;
                if let Some(identity) = identity {
                    opened::keep(identity, variants, early, &opened);
                }
                opened
            }
        };
        let Opened { metadata, schema, first_rows, pages, legacy, bytes_read } = opened;
        let (padded, bytes_read) = (padded::may_be(&metadata), AtomicU64::new(bytes_read));
        Ok(FileReader { source, metadata, schema, first_rows, pages, legacy, padded, bytes_read })
    }

    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// Storage layout, variant columns marked.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema.schema
    }

    pub fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    pub(super) fn source(&self) -> &dyn Source {
        self.source.as_ref()
    }

    pub fn columns(&self) -> &[Node] {
        &self.schema.columns
    }

    /// Finds a column by its names, through structs.
    pub fn find(&self, names: &[String]) -> Option<&Node> {
        let (first, rest) = names.split_first()?;
        self.schema.column(first)?.find(rest)
    }

    /// The layout and the shredding tree of the variant column at a path of names; `None` where there is none.
    pub fn tree(&self, column: &[String]) -> Result<Option<(Layout, Tree)>> {
        let node = self.find(column).filter(|node| is_variant(&node.field));
        node.map(|node| Layout::tree_of(node.field.data_type(), &column.join("."))).transpose()
    }

    pub fn num_rows(&self) -> u64 {
        self.metadata.file_metadata().num_rows().max(0) as u64
    }

    /// What it says of its leaves outside of variants, beyond Arrow's types.
    pub fn annotations(&self) -> Vec<Option<&'static str>> {
        schema::annotations(&self.schema.columns, self.metadata.file_metadata().schema_descr())
    }

    /// Whether its values are read as others than its pages hold ([`legacy`](crate::parquet::legacy)).
    pub fn is_legacy(&self) -> bool {
        self.legacy.is_some()
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
    pub fn plans(&self) -> bool {
        self.source.plans()
    }

    pub(crate) fn announce(&self, ranges: &[std::ops::Range<u64>]) -> Result<()> {
        crate::parquet::source::announce(self.source.as_ref(), ranges)
    }
}

fn read_footer(source: &dyn Source, variants: &[Vec<String>], early: &Early) -> Result<Opened> {
    let mut bytes_read = 0;
    let footer = footer::load(source, &mut bytes_read)?;
    let known = FileSchema::known(footer.schema(), variants, early);
    let metadata = footer.decode(source, known.as_ref().map(|known| known.parquet.clone()))?;
    let pages = PageIndex::new(metadata.num_row_groups(), metadata.file_metadata().schema_descr().num_columns());
    let metadata = Arc::new(metadata.into_builder().set_page_index(Some(pages.clone())).build());
    let schema = match known {
        Some(known) => known,
        None => {
            let parquet = metadata.file_metadata().schema_descr_ptr();
            FileSchema::of(footer.schema(), parquet, variants, early, source)?
        }
    };
    let first_rows = first_rows(&metadata).into();
    let legacy = Legacy::of(&metadata, source.name());
    Ok(Opened { metadata, schema, first_rows, pages, legacy, bytes_read })
}

fn first_rows(metadata: &ParquetMetaData) -> Vec<u64> {
    let rows = metadata.row_groups().iter().map(|group| group.num_rows().max(0) as u64);
    rows.scan(0, |first, rows| Some(std::mem::replace(first, *first + rows))).collect()
}
