//! All rows of a shredded Parquet file rebuilt on one core, by mica and by arrow-rs' `unshred_variant`, from the
//! same batches in memory. Usage: `cargo run --release --example reconstruct FILE COLUMN`.
//!
//! mica validates every residual value on the way, arrow-rs does not.

use std::error::Error;
use std::fs::File;
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, AsArray};
use mica_kernel::reconstruct::unshred;
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
        let batch = batch?;
        columns.push(batch.column_by_name(&column).ok_or("no such column")?.clone());
    }
    let rows: usize = columns.iter().map(|c| c.len()).sum();

    let (ours, bytes) = best(|| {
        let mut bytes = 0;
        for array in &columns {
            let variant = unshred(array.as_struct(), &column).map_err(|e| e.message)?;
            bytes += variant.column(1).get_buffer_memory_size();
        }
        Ok(bytes)
    })?;
    println!("mica      {rows} rows  {:.3} s  {:.0} MB of values", ours.as_secs_f64(), bytes as f64 / 1e6);
    let (theirs, _) = best(|| {
        for array in &columns {
            unshred_variant(&VariantArray::try_new(array)?)?;
        }
        Ok(0)
    })?;
    println!("arrow-rs  {rows} rows  {:.3} s", theirs.as_secs_f64());
    println!("ratio     {:.2}", theirs.as_secs_f64() / ours.as_secs_f64());
    Ok(())
}

/// The fastest of three runs.
fn best(mut run: impl FnMut() -> Result<usize, Box<dyn Error>>) -> Result<(Duration, usize), Box<dyn Error>> {
    let mut fastest = Duration::MAX;
    let mut result = 0;
    for _ in 0..3 {
        let start = Instant::now();
        result = run()?;
        fastest = fastest.min(start.elapsed());
    }
    Ok((fastest, result))
}
