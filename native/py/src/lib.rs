//! Registration of the kernel as `mica._native`; each module registers its own functions and classes.

use mica_memory as _;
use pyo3::prelude::*;

mod batch;
mod columns;
mod error;
mod fetched;
mod guarded;
mod handed;
mod ingest;
mod read;
mod request;
mod transcribe;
mod values;

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
