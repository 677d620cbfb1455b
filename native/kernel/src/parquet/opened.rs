//! Footers that were parsed before: a file that is opened again, and has not changed, is not parsed again.

use std::collections::HashMap;
use std::sync::Arc;

use parquet::file::metadata::ParquetMetaData;

use crate::layout::recognise::Early;
use crate::parquet::file_schema::FileSchema;
use crate::parquet::identity::Identity;
use crate::parquet::legacy::Legacy;
use crate::parquet::page_index::PageIndex;
use crate::shared::Shared;

/// What all that is kept may take, in bytes: about six hundred files of sixty leaf columns. Of files that are read in turns,
/// and are more than these, none is there when it is opened again.
const KEPT_BYTES: usize = 64 << 20;

static KNOWN: Shared<Known> = Shared::new(Known { files: None, bytes: 0, clock: 0 });

struct Known {
    files: Option<HashMap<Identity, Kept>>,
    bytes: usize,
    /// Counts uses: the least recently used are dropped first.
    clock: u64,
}

struct Kept {
    variants: Vec<Vec<String>>,
    early: Early,
    opened: Opened,
    bytes: usize,
    used: u64,
}

/// What is made of a footer.
#[derive(Clone)]
pub struct Opened {
    pub metadata: Arc<ParquetMetaData>,
    pub schema: Arc<FileSchema>,
    /// Where each row group begins.
    pub first_rows: Arc<[u64]>,
    pub pages: Arc<PageIndex>,
    /// What has to be done to dates and timestamps; nothing in the files of today.
    pub legacy: Option<Legacy>,
    /// The bytes that were fetched for it.
    pub bytes_read: u64,
}

/// What was made of this file's footer before, for the same question.
pub fn known(identity: &Identity, variants: &[Vec<String>], early: &Early) -> Option<Opened> {
    let mut known = KNOWN.held()?;
    known.clock += 1;
    let used = known.clock;
    let kept = known.files.as_mut()?.get_mut(identity)?;
    if kept.variants != variants || kept.early != *early {
        return None;
    }
    kept.used = used;
    Some(kept.opened.clone())
}

/// Keeps it for the next time, and drops what was not used for long.
pub fn keep(identity: Identity, variants: &[Vec<String>], early: &Early, opened: &Opened) {
    // Page indexes are loaded later, and take about as much again.
    let bytes = opened.metadata.memory_size().saturating_mul(2);
    if bytes > KEPT_BYTES / 8 {
        return;
    }
    let Some(mut known) = KNOWN.held() else { return };
    known.clock += 1;
    let used = known.clock;
    let kept = Kept { variants: variants.to_vec(), early: early.clone(), opened: opened.clone(), bytes, used };
    let before = known.files.get_or_insert_default().insert(identity, kept);
    known.bytes = known.bytes.saturating_add(bytes).saturating_sub(before.map_or(0, |kept| kept.bytes));
    if known.bytes <= KEPT_BYTES {
        return;
    }
    let Some(files) = known.files.as_mut() else { return };
    let mut uses: Vec<u64> = files.values().map(|kept| kept.used).collect();
    uses.sort_unstable();
    let oldest = uses.get(uses.len() / 4).copied().unwrap_or(0);
    files.retain(|_, kept| kept.used > oldest);
    known.bytes = known.files.iter().flatten().map(|(_, kept)| kept.bytes).sum();
}
