//! Reading Parquet: one file, opened once; its bounds and its rows, by row group, page and leaf column.
//!
//! - `schema`: the schema as a tree over leaf columns
//! - `footer`, `pages`: what stands behind the rows: the footer, and the parts of the page index that are needed
//! - `thrift`, `walk`, `page_header`, `page_check`: what is checked before the Parquet library sees it
//! - `bounds`, `physical`, `bloom`, `cost`: what they say of leaves, and what reading would take
//! - `items`: what is asked for, and the answer out of decoded columns
//! - `projection`: the leaf columns that an item needs
//! - `rows`, `decoder`, `merge`, `scan`: batches
//! - `batch`: the same on an Arrow batch
//! - `legacy`: dates and timestamps by the calendar of old Sparks
//! - `nested`: variants inside structs, lists and maps
//! - `early`: which columns are of the early layout, and what its residuals may hold

pub mod batch;
pub mod bloom;
pub mod bounds;
pub mod cost;
pub(crate) mod decoder;
pub mod early;
pub mod footer;
pub mod items;
pub mod legacy;
mod merge;
pub mod nested;
pub(crate) mod page_check;
pub(crate) mod page_header;
mod pages;
pub(crate) mod part;
pub(crate) mod physical;
pub mod projection;
pub mod rows;
pub mod scan;
pub mod schema;
pub(crate) mod thrift;
mod walk;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::ParquetMetaData;

use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::source::Source;
use crate::standard::is_variant;
use crate::tree::Tree;
use early::Early;
use legacy::Legacy;
use pages::PageIndex;
use schema::Node;

/// One open Parquet file.
pub struct FileReader {
    source: Box<dyn Source>,
    metadata: Arc<ParquetMetaData>,
    /// How arrow-rs decodes it: INT96 as instants in microseconds, the metadata of variants as views.
    arrow: ArrowReaderMetadata,
    /// The same for people, with variant columns marked.
    schema: SchemaRef,
    columns: Vec<Node>,
    /// Where each row group begins.
    first_rows: Vec<u64>,
    pages: Arc<PageIndex>,
    /// What has to be done to dates and timestamps; nothing in the files of today.
    legacy: Option<Legacy>,
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
            let plain = ArrowReaderMetadata::try_new(metadata.clone(), options())
                .map_err(|e| footer::corrupt(source.as_ref(), &e))?;
            let plain = schema::reading_schema(plain.schema(), metadata.file_metadata().schema_descr());
            let marked = early::mark_early(&plain, early).map_err(|e| early::in_file(e, source.name()))?;
            let marked = schema::mark_variants(&marked, variants);
            let schema = Arc::new(marked.map_err(|e| early::in_file(e, source.name()))?);
            let columns = Node::columns(schema.fields());
            let decoding = Arc::new(schema::decoding_schema(&plain, &schema));
            let arrow = ArrowReaderMetadata::try_new(metadata.clone(), options().with_schema(decoding))
                .map_err(|e| footer::corrupt(source.as_ref(), &e))?;
            let first_rows = first_rows(&metadata);
            let legacy = Legacy::of(&metadata, source.name());
            Ok((metadata, arrow, schema, columns, first_rows, pages, legacy, read))
        })
        .map(|(metadata, arrow, schema, columns, first_rows, pages, legacy, read)| FileReader {
            source,
            metadata,
            arrow,
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

    fn source(&self) -> &dyn Source {
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
        let bytes = crate::source::fetch(self.source.as_ref(), ranges, &mut read)?;
        self.bytes_read.fetch_add(read, Ordering::Relaxed);
        Ok(bytes)
    }
}

fn first_rows(metadata: &ParquetMetaData) -> Vec<u64> {
    let rows = metadata.row_groups().iter().map(|group| group.num_rows().max(0) as u64);
    rows.scan(0, |first, rows| Some(std::mem::replace(first, *first + rows))).collect()
}

/// The embedded Arrow schema is ignored: the Parquet types say what the data is, whoever wrote it.
fn options() -> ArrowReaderOptions {
    ArrowReaderOptions::new().with_skip_arrow_metadata(true)
}

thread_local! {
    /// Whether this thread is inside of [`guard`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The Parquet library may panic on corrupt bytes: to the caller that is a corrupt file, and nothing is printed.
pub fn guard<T>(file: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                loud(info);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    match done {
        Ok(done) => done,
        Err(panic) => {
            let text = Error::panicked(panic.as_ref()).message;
            Err(Error::new(Code::CorruptFile, format!("{file} is no readable Parquet file: {text}")))
        }
    }
}
