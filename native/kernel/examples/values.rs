//! Throughput of JSON → tape → Variant → JSON beside arrow-rs, one core: `cargo run --release --example values [rows]`.
//! Ours validates every byte; arrow-rs does not.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use mica_kernel::decode::VariantDecoder;
use mica_kernel::json::{JsonParser, ParseOptions};
use mica_kernel::names::Names;
use mica_kernel::tape::Tape;
use mica_kernel::values;
use mica_kernel::zone::Zone;
use parquet_variant_compute as peer;

fn events(rows: usize) -> Vec<String> {
    let texts = [
        "hello world",
        "привет, мир",
        "こんにちは世界",
        "just setting up my feed and telling you about it",
        "a \\\"quoted\\\" line\\n",
    ];
    (0..rows)
        .map(|i| {
            let collection = ["app.bsky.feed.post", "app.bsky.feed.like", "app.bsky.graph.follow"][i % 7 % 3];
            let record = match i % 7 % 3 {
                0 => format!(
                    r#"{{"$type":"{collection}","createdAt":"2024-11-21T16:25:{:02}.{:03}Z","langs":["en"],"text":"{} {i}","reply":{{"parent":{{"cid":"bafyreia{i:050}","uri":"at://did:plc:{i:024}/{collection}/{i:013}"}},"root":{{"cid":"bafyreib{i:050}","uri":"at://did:plc:{i:024}/{collection}/{i:013}"}}}}}}"#,
                    i % 60, i % 1000, texts[i % 5]
                ),
                _ => format!(
                    r#"{{"$type":"{collection}","createdAt":"2024-11-21T16:25:{:02}.{:03}Z","subject":{{"cid":"bafyreic{i:050}","uri":"at://did:plc:{i:024}/{collection}/{i:013}"}}}}"#,
                    i % 60, i % 1000
                ),
            };
            format!(
                r#"{{"did":"did:plc:{i:024}","time_us":{},"kind":"commit","commit":{{"rev":"3lbhtyt{i:06}","operation":"create","collection":"{collection}","rkey":"3lbhtyt{i:06}","cid":"bafyreid{i:050}","record":{record}}}}}"#,
                1732206349000167u64 + i as u64 * 1000
            )
        })
        .collect()
}

/// The best of five runs, in seconds.
fn time<T, E: Into<Box<dyn Error>>>(
    name: &str,
    bytes: usize,
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<f64, Box<dyn Error>> {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        black_box(work().map_err(Into::into)?);
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:40} {:8.1} ms {:8.0} MB/s", best * 1e3, bytes as f64 / best / 1e6);
    Ok(best)
}

fn main() -> Result<(), Box<dyn Error>> {
    let rows = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(100_000);
    let lines = events(rows);
    let bytes = lines.iter().map(String::len).sum();
    println!("{rows} rows, {} bytes a row", bytes / rows);
    let (mut parser, mut tape, mut names) = (JsonParser::new(ParseOptions::default()), Tape::default(), Names::new());
    time("json -> tape", bytes, || {
        lines.iter().try_for_each(|line| {
            parser.parse(line, &mut tape, &mut names)?;
            black_box(tape.nodes.len());
            mica_kernel::Result::Ok(())
        })
    })?;
    let texts: ArrayRef = Arc::new(StringArray::from(lines));
    let schema = Arc::new(Schema::new(vec![Field::new("json", DataType::Utf8, true)]));
    let batch = RecordBatch::try_new(schema, vec![texts.clone()])?;
    let ours = time("json -> variant", bytes, || values::json_to_variant(&batch, ParseOptions::default()))?;
    let peers = time("json -> variant, arrow-rs", bytes, || peer::json_to_variant(&texts))?;
    println!("{:40} {:8.1} times", "", peers / ours);
    let variants = values::json_to_variant(&batch, ParseOptions::default())?;
    let theirs: ArrayRef = Arc::new(peer::json_to_variant(&texts)?.into_inner());
    let (metadata, value, _) = values::parts_of(variants.column(0))?;
    let mut decoder = VariantDecoder::new();
    time("variant -> tape, validated", bytes, || {
        (0..rows).try_for_each(|row| {
            decoder.decode(metadata.value(row), value.value(row), &mut tape, &mut names)?;
            black_box(tape.nodes.len());
            mica_kernel::Result::Ok(())
        })
    })?;
    let ours = time("variant -> json", bytes, || values::variant_to_json(&variants, &Zone::UTC))?;
    let peers = time("variant -> json, arrow-rs", bytes, || peer::variant_to_json(&theirs))?;
    println!("{:40} {:8.1} times", "", peers / ours);
    Ok(())
}
