//! Shredding of existing Variants beside arrow-rs, on one core: `cargo run --release --example shred -- events.ndjson`.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::DataType;
use mica_kernel::batch::{infer_column, shred_batch};
use mica_kernel::infer::Limits;
use mica_kernel::ingest::JsonIngest;
use mica_kernel::json::{Compression, Format, OnError, ParseOptions, ReaderOptions};
use mica_kernel::layout::Layout;
use mica_kernel::tree::Tree;
use parquet_variant_compute::{VariantArray, shred_variant};

/// arrow-rs wants every level as a plain type and knows no untyped fields: those are left out.
fn plain(tree: &Tree) -> Option<DataType> {
    if let Some(fields) = &tree.object {
        let fields = fields.iter().filter_map(|f| Some(arrow::datatypes::Field::new(&f.name, plain(&f.tree)?, true)));
        return Some(DataType::Struct(fields.collect()));
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
        max_row: 64 << 20,
    };
    let mut ingest = JsonIngest::new("v", reader, ParseOptions::default())?;
    let mut batches = Vec::new();
    while let Some(batch) = ingest.next_batch(&Tree::untyped(), 65_536, 64 << 20)? {
        batches.push(batch);
    }
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let name = ["v".to_owned()];
    let inferred = infer_column(batches.first().ok_or("an empty file")?, &name, Limits::default())?;
    let wanted = plain(&inferred).ok_or("nothing to shred")?;
    let tree = Tree::from_arrow(&wanted)?;
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        let start = Instant::now();
        for batch in &batches {
            black_box(shred_batch(batch, &[(name.to_vec(), tree.clone())], Layout::Standard)?);
        }
        ours = ours.min(start.elapsed());
        let start = Instant::now();
        for batch in &batches {
            let array = VariantArray::try_new(batch.column(0).as_struct())?;
            let column: ArrayRef = shred_variant(&array, &wanted)?.into();
            black_box(column.len());
        }
        theirs = theirs.min(start.elapsed());
    }
    println!("{rows} rows");
    println!(
        "ours, validation included {ours:?}, arrow-rs {theirs:?}: {:.2} times",
        theirs.as_secs_f64() / ours.as_secs_f64()
    );
    Ok(())
}
