//! What is made of a file's schema, once for all files that have the same.
//!
//! Files of plain columns, and those shredded by one given schema, have footers that begin with the same bytes. What these
//! mean is kept for the next file that the process opens. (Where paths are inferred nearly every file is of its own.)

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::schema::types::SchemaDescPtr;

use crate::error::{Error, Result};
use crate::layout::recognise::{Early, mark_early};
use crate::parquet::schema::Node;
use crate::parquet::source::Source;
use crate::parquet::{footer, schema};
use crate::shared::Shared;

/// Schemas that are kept, the last used first, and the bytes of one: a wide one is parsed again rather than kept.
const KEPT: usize = 16;
const KEPT_BYTES: usize = 256 << 10;

static KNOWN: Shared<VecDeque<Arc<FileSchema>>> = Shared::new(VecDeque::new());

pub struct FileSchema {
    /// The bytes that say it in a footer, from the first one on.
    said: Vec<u8>,
    /// What the caller knows of it.
    variants: Vec<Vec<String>>,
    early: Early,
    pub parquet: SchemaDescPtr,
    /// As arrow-rs decodes it: INT96 as instants in microseconds, the metadata of variants as views.
    pub decoding: SchemaRef,
    /// The same for people, with variant columns marked.
    pub schema: SchemaRef,
    pub columns: Vec<Node>,
    /// The place of each column, of several with one name the first's.
    places: HashMap<String, usize>,
}

impl FileSchema {
    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Node> {
        self.columns.get(*self.places.get(name)?)
    }

    /// The one that is said so, if a file had it before.
    pub fn known(said: &[u8], variants: &[Vec<String>], early: &Early) -> Option<Arc<Self>> {
        let mut known = KNOWN.held()?;
        let at = known.iter().position(|one| one.said == said && one.variants == variants && one.early == *early)?;
        let found = known.remove(at)?;
        known.push_front(found.clone());
        Some(found)
    }

    /// That of a file, which is kept for the next ones.
    pub fn of(
        said: &[u8],
        parquet: SchemaDescPtr,
        variants: &[Vec<String>],
        early: &Early,
        source: &dyn Source,
    ) -> Result<Arc<Self>> {
        let named = |mut error: Error| {
            error.message = format!("{}: {}", source.name(), error.message);
            error
        };
        // The embedded Arrow schema is ignored: the Parquet types say what the data is, whoever wrote it.
        let plain = parquet_to_arrow_schema(&parquet, None).map_err(|e| footer::corrupt(source, &e))?;
        let plain = schema::reading_schema(&plain, &parquet);
        let marked = schema::mark_variants(&mark_early(&plain, early).map_err(named)?, variants).map_err(named)?;
        let decoding = Arc::new(schema::decoding_schema(&plain, &marked));
        let columns = Node::columns(marked.fields());
        let places = columns.iter().enumerate().rev().map(|(at, node)| (node.field.name().clone(), at)).collect();
        let (variants, early) = (variants.to_vec(), early.clone());
        let found = Arc::new(FileSchema {
            said: said.to_vec(),
            variants,
            early,
            parquet,
            decoding,
            schema: Arc::new(marked),
            columns,
            places,
        });
        if said.len() <= KEPT_BYTES
            && let Some(mut known) = KNOWN.held()
        {
            known.push_front(found.clone());
            known.truncate(KEPT);
        }
        Ok(found)
    }
}
