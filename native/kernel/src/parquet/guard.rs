//! The Parquet library may panic on corrupt bytes.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::error::{Code, Error, Result};

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
            Err(Error::new(Code::CorruptFile, format!("{file} is not a readable Parquet file: {text}")))
        }
    }
}
