//! Throughput of JSON → tape → Variant → JSON beside arrow-rs: `cargo run --release --example values [rows]`.

use std::hint::black_box;
use std::time::Instant;

use mica_kernel::encode::{DictionaryCache, TapeEncoder};
use mica_kernel::json::{JsonParser, ParseOptions};
use mica_kernel::names::Names;
use mica_kernel::tape::Tape;

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

fn time(name: &str, bytes: usize, mut work: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:40} {:8.1} ms {:8.0} MB/s", best * 1e3, bytes as f64 / best / 1e6);
}

fn main() {
    let rows = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(100_000);
    let lines = events(rows);
    let bytes = lines.iter().map(String::len).sum();
    println!("{rows} rows, {} bytes a row", bytes / rows);
    let (mut parser, mut tape, mut names) = (JsonParser::new(ParseOptions::default()), Tape::default(), Names::new());
    time("json -> tape", bytes, || {
        for line in &lines {
            parser.parse(line, &mut tape, &mut names).unwrap();
            black_box(tape.nodes.len());
        }
    });
    let (mut cache, mut encoder) = (DictionaryCache::new(), TapeEncoder::new());
    time("json -> tape -> variant", bytes, || {
        let (mut metadata, mut values) = (Vec::new(), Vec::new());
        for line in &lines {
            parser.parse(line, &mut tape, &mut names).unwrap();
            let view = tape.view(line.as_bytes(), &names);
            let dictionary = cache.of(&view, 0).unwrap();
            metadata.extend_from_slice(dictionary.metadata());
            encoder.encode(&view, 0, dictionary, &mut values).unwrap();
        }
        black_box((metadata.len(), values.len()));
    });
}
