//! Reading for Python: reconstruction and extraction on Arrow batches, and Parquet files.

use pyo3::prelude::*;

pub fn register(_m: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
