//! All rows of a shredded Parquet file rebuilt on one core, by mica and by arrow-rs' `unshred_variant`, from the same
//! batches in memory: `cargo run --release --example reconstruct -- file.parquet v`.
//!
//! mica validates every residual value on the way, arrow-rs does not.

mod common;

use std::error::Error;
use std::fs::File;

use arrow::array::{Array, ArrayRef, AsArray};
use mica_kernel::values::reconstruct::unshred;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet_variant_compute::{VariantArray, unshred_variant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(column)) = (args.next(), args.next()) else {
        return Err("usage: reconstruct FILE COLUMN".into());
    };
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(File::open(path)?, options)?;
    let mut columns: Vec<ArrayRef> = Vec::new();
    for batch in reader.with_batch_size(65_536).build()? {
        columns.push(batch?.column_by_name(&column).ok_or("no such column")?.clone());
    }
    let ours = |array: &ArrayRef| unshred(array.as_struct(), &column).map_err(|e| e.message);
    let theirs = |array: &ArrayRef| -> Result<VariantArray, Box<dyn Error>> {
        Ok(unshred_variant(&VariantArray::try_new(array)?)?)
    };
    let (mut rows, mut bytes) = (0, 0);
    for array in &columns {
        let (mine, other): (ArrayRef, ArrayRef) = (std::sync::Arc::new(ours(array)?), theirs(array)?.into());
        common::same("rows rebuilt", &mine, &other)?;
        rows += array.len();
        bytes += mine.get_buffer_memory_size();
    }
    common::compare(
        &format!("shredded columns -> variant, {rows} rows, {:.0} MB of variants", bytes as f64 / 1e6),
        bytes,
        5,
        common::each(&columns, |array| Ok(ours(array)?)),
        common::each(&columns, theirs),
    )?;
    Ok(())
}
