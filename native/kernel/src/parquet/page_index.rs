//! What is loaded of a file's page index.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use parquet::file::metadata::page_index::PageIndexProvider;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;

type Loaded<T> = OnceLock<Option<Box<T>>>;

#[derive(Debug, Default)]
pub struct Slot {
    pub columns: Loaded<ColumnIndexMetaData>,
    pub offsets: Loaded<OffsetIndexMetaData>,
}

/// What has been loaded so far. It stands in the file's metadata, where the Parquet library looks for it.
#[derive(Debug)]
pub struct PageIndex {
    groups: Vec<OnceLock<Box<[Slot]>>>,
    leaves: usize,
}

impl PageIndex {
    pub fn new(groups: usize, leaves: usize) -> Arc<Self> {
        Arc::new(PageIndex { groups: (0..groups).map(|_| OnceLock::new()).collect(), leaves })
    }

    pub fn slot(&self, group: usize, leaf: usize) -> Option<&Slot> {
        let slots = self.groups.get(group)?.get_or_init(|| (0..self.leaves).map(|_| Slot::default()).collect());
        slots.get(leaf)
    }
}

impl PageIndexProvider for PageIndex {
    fn has_offset_indexes(&self) -> bool {
        true
    }

    fn has_column_indexes(&self) -> bool {
        true
    }

    fn column_index(&self, group: usize, leaf: usize) -> Option<&ColumnIndexMetaData> {
        self.groups.get(group)?.get()?.get(leaf)?.columns.get()?.as_deref()
    }

    fn offset_index(&self, group: usize, leaf: usize) -> Option<&OffsetIndexMetaData> {
        self.groups.get(group)?.get()?.get(leaf)?.offsets.get()?.as_deref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Slot {
    pub fn absent(&self, bounds: bool) {
        if bounds {
            self.columns.get_or_init(|| None);
        } else {
            self.offsets.get_or_init(|| None);
        }
    }
}
