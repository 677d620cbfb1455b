//! Shredding of existing Variants beside arrow-rs, on one core: `cargo run --release --example shred -- events.ndjson`.
//!
//! mica validates every value on the way, arrow-rs does not.

mod common;

use std::error::Error;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Fields};
use mica_kernel::convert::shred::{infer_column, shred_batch};
use mica_kernel::infer::Limits;
use mica_kernel::ingest::JsonIngest;
use mica_kernel::json::{Compression, Format, OnError, ParseOptions, ReaderOptions};
use mica_kernel::layout::Layout;
use mica_kernel::tree::Tree;
use mica_kernel::values::reconstruct::unshred;
use parquet_variant_compute::{VariantArray, shred_variant};

/// arrow-rs wants every level as a plain type and knows no untyped fields: those are left out.
fn plain(tree: &Tree) -> Option<DataType> {
    if let Some(fields) = &tree.object {
        let fields = fields.iter().filter_map(|f| Some(arrow::datatypes::Field::new(&f.name, plain(&f.tree)?, true)));
        let fields: Fields = fields.collect();
        return (!fields.is_empty()).then_some(DataType::Struct(fields));
    }
    if let Some(element) = &tree.array {
        return Some(DataType::new_list(plain(element)?, true));
    }
    tree.leaf.map(|leaf| leaf.to_arrow())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which NDJSON file?")?;
    let reader = ReaderOptions {
        name: path.clone(),
        format: Format::Ndjson,
        compression: Compression::None,
        path: Some(path),
        start: 0,
        end: None,
        on_error: OnError::Fail,
        replace_invalid_utf8: false,
        max_row: 64 << 20,
    };
    let mut ingest = JsonIngest::new("v", reader, ParseOptions::default())?;
    let mut batches = Vec::new();
    while let Some(batch) = ingest.next_batch(&Tree::untyped(), 65_536, 64 << 20)? {
        batches.push(batch.to_batch()?);
    }
    let name = ["v".to_owned()];
    let (inferred, _) = infer_column(batches.first().ok_or("an empty file")?, &name, Limits::default())?;
    let wanted = plain(&inferred).ok_or("nothing to shred")?;
    let tree = Tree::from_arrow(&wanted)?;
    let ours = |batch: &RecordBatch| shred_batch(batch, &[(name.to_vec(), tree.clone())], Layout::Standard);
    let theirs = |batch: &RecordBatch| -> Result<ArrayRef, Box<dyn Error>> {
        let array = VariantArray::try_new(batch.column(0).as_struct())?;
        Ok(shred_variant(&array, &wanted)?.into())
    };
    let (mut rows, mut bytes) = (0, 0);
    for batch in &batches {
        let mine = unshred(ours(batch)?.column(0).as_struct(), "v")?;
        let other = unshred(theirs(batch)?.as_struct(), "v")?;
        common::same("rows shredded and rebuilt", &(Arc::new(mine) as _), &(Arc::new(other) as _))?;
        rows += batch.num_rows();
        bytes += batch.get_array_memory_size();
    }
    common::compare(
        &format!("variant -> shredded columns, {rows} rows, {:.0} MB of variants", bytes as f64 / 1e6),
        bytes,
        5,
        common::each(&batches, |batch| Ok(ours(batch)?)),
        common::each(&batches, theirs),
    )?;
    Ok(())
}
