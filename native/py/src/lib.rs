//! Registration of the kernel as `mica._native`; each module registers its own functions and classes.

use pyo3::prelude::*;

mod batch;
mod columns;
mod error;
mod ingest;
mod read;
mod request;
mod transcribe;
mod values;

/// Arrow allocates much and in threads, and a footer is thousands of small parts: the system's allocator took half of the
/// time to open a file. `variant/kernel/door.py` says how long freed memory is kept.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("KernelError", m.py().get_type::<error::KernelError>())?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    batch::register(m)?;
    columns::register(m)?;
    ingest::register(m)?;
    read::register(m)?;
    transcribe::register(m)?;
    values::register(m)?;
    Ok(())
}
