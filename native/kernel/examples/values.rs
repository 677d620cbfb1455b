//! JSON → Variant → JSON beside arrow-rs, on one core: `cargo run --release --example values -- events.ndjson`.
//!
//! mica validates every byte of a Variant before it prints it, arrow-rs does not.

mod common;

use std::error::Error;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use mica_kernel::batch::values::{json_to_variant, variant_to_json};
use mica_kernel::json::ParseOptions;
use mica_kernel::text::zone::Zone;
use parquet_variant_compute as peer;

/// Lines of a batch.
const ROWS: usize = 65_536;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which NDJSON file?")?;
    let text = std::fs::read_to_string(path)?;
    let lines: Vec<&str> = text.lines().collect();
    let texts: Vec<ArrayRef> = lines.chunks(ROWS).map(|l| Arc::new(StringArray::from(l.to_vec())) as _).collect();
    let schema = Arc::new(Schema::new(vec![Field::new("json", DataType::Utf8, true)]));
    let batches = texts.iter().map(|t| RecordBatch::try_new(schema.clone(), vec![t.clone()]));
    let batches = batches.collect::<Result<Vec<_>, _>>()?;
    let parsed = |batch: &RecordBatch| json_to_variant(batch, ParseOptions::default());
    let printed = |batch: &RecordBatch| variant_to_json(batch, &Zone::UTC);

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for batch in &batches {
        let mine = parsed(batch)?;
        let other: ArrayRef = peer::json_to_variant(batch.column(0))?.into();
        common::same("rows parsed", mine.column(0), &other)?;
        let (a, b) = (printed(&mine)?, peer::variant_to_json(&other)?);
        common::same_texts("rows printed", a.column(0).as_string::<i32>(), &b)?;
        ours.push(mine);
        theirs.push(other);
    }
    common::compare(
        &format!("json -> variant, {} rows, {:.0} MB of JSON", lines.len(), text.len() as f64 / 1e6),
        text.len(),
        5,
        common::each(&batches, |batch| Ok(parsed(batch)?)),
        common::each(&texts, |text| Ok(peer::json_to_variant(text)?)),
    )?;
    common::compare(
        &format!("variant -> json, {} rows", ours.iter().map(RecordBatch::num_rows).sum::<usize>()),
        text.len(),
        5,
        common::each(&ours, |batch| Ok(printed(batch)?)),
        common::each(&theirs, |array| Ok(peer::variant_to_json(array)?)),
    )?;
    Ok(())
}
