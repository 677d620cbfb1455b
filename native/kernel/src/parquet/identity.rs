//! Which file it is, and in which state: two local files with the same identity have the same bytes.
//!
//! A file that was changed a moment ago may be changed again within the same tick of the file system's clock, so it has
//! none yet.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long ago a file must have been changed, beside the second of its change itself.
const SETTLED: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    name: String,
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    /// That of a local file; `None` if it was changed a moment ago.
    pub fn of(name: &str, meta: &Metadata) -> Option<Self> {
        let changed = u64::try_from(meta.ctime().max(meta.mtime())).ok()?;
        let settled = UNIX_EPOCH.checked_add(Duration::from_secs(changed.checked_add(1)?))?.checked_add(SETTLED)?;
        (SystemTime::now() > settled).then(|| Identity {
            name: name.to_string(),
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}
