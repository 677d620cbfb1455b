//! Phase times (processor) of JSON → tape → columns → Parquet on one core:
//! `cargo run --release --example ingest -- events.ndjson out.parquet [zstd [page_rows=8192]…]`.

#[path = "common/clock.rs"]
mod clock;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{Field, Schema};
use clock::Clock;
use mica_kernel::infer::{Limits, Sample};
use mica_kernel::json::{JsonParser, ParseOptions};
use mica_kernel::layout::standard::mark;
use mica_kernel::names::Names;
use mica_kernel::parquet::write::{FileWriter, WriteOptions, parse_compression};
use mica_kernel::rows::Rows;
use mica_kernel::shred::{BLOCK, Shredder};
use mica_kernel::tape::{Tape, Tapes};
use mica_kernel::tree::Tree;
use mica_memory as _;

fn show(name: &str, time: Duration, bytes: usize) {
    println!("{name:28} {:8.1} ms {:8.0} MB/s", time.as_secs_f64() * 1e3, bytes as f64 / time.as_secs_f64() / 1e6);
}

fn leaves(tree: &Tree) -> usize {
    match (&tree.object, &tree.array) {
        (Some(fields), _) => fields.iter().map(|f| leaves(&f.tree)).sum(),
        (_, Some(element)) => leaves(element),
        _ => 1,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let input = arguments.next().ok_or("which NDJSON file?")?;
    let output = arguments.next().ok_or("which Parquet file to write?")?;
    let compression = parse_compression(&arguments.next().unwrap_or_else(|| "zstd".into()))?;
    let text = std::fs::read_to_string(&input)?;
    let lines: Vec<&str> = text.lines().collect();
    let (mut parser, mut tape) = (JsonParser::new(ParseOptions::default()), Tape::default());

    let clock = Clock::start();
    let start = clock.read();
    let mut names = Names::new();
    let mut sample = Sample::new(Limits::default())?;
    for line in lines.iter().take(4096) {
        parser.parse(line, &mut tape, &mut names)?;
        sample.add(&tape.view_text(line, &names));
    }
    let (tree, _) = sample.tree(&names)?;
    let common = sample.common_names(&names);
    show("infer", clock.read() - start, lines.iter().take(4096).map(|l| l.len()).sum());
    println!("{} leaves", leaves(&tree));

    let mut names = Names::new();
    let mut shredder = Shredder::new(&tree, common.iter().map(String::as_str), &mut names)?.with_views();
    let start = clock.read();
    for line in &lines {
        parser.parse(line, &mut tape, &mut names)?;
        if names.is_full() {
            names.truncate(shredder.names_len());
        }
    }
    show("parse alone", clock.read() - start, text.len());

    let schema = Arc::new(Schema::new(vec![mark(Field::new("v", shredder.data_type(), true))]));
    let _ = std::fs::remove_file(&output);
    let mut options = WriteOptions { compression, ..WriteOptions::default() };
    for setting in arguments {
        let (name, value) = setting.split_once('=').ok_or("a setting is name=number")?;
        let value: usize = value.parse()?;
        match name {
            "row_group_rows" => options.row_group_rows = value,
            "page_rows" => options.page_rows = value,
            "page_bytes" => options.page_bytes = value,
            "dictionary_bytes" => options.dictionary_bytes = value,
            _ => return Err(format!("no such setting: {name}").into()),
        }
    }
    let mut writer = FileWriter::new(schema.clone(), Some(&output), options)?;
    let (mut shredding, mut finishing, mut writing) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut rows = Tapes::default();
    let whole = clock.read();
    for lines in lines.chunks(8192) {
        let start = clock.read();
        for lines in lines.chunks(BLOCK) {
            for line in lines {
                parser.parse(line, rows.room(), &mut names)?;
                rows.keep(line);
            }
            shredder.append_all(&rows.views(&names))?;
            rows.clear();
            if names.is_full() {
                names.truncate(shredder.names_len());
            }
        }
        shredding += clock.read() - start;
        let start = clock.read();
        let rows = Rows::of_one(schema.clone(), shredder.finish_column()?);
        finishing += clock.read() - start;
        let start = clock.read();
        writer.write(rows)?;
        writing += clock.read() - start;
    }
    let start = clock.read();
    let summary = writer.close()?;
    writing += clock.read() - start;
    show("parse and shred", shredding, text.len());
    show("finish columns", finishing, text.len());
    show("write", writing, text.len());
    show("all", clock.read() - whole, text.len());
    println!("{} rows, {} bytes, {} row groups", summary.rows, summary.size, summary.row_groups);
    println!("{} paths with bounds", summary.bounds.paths.num_rows());
    Ok(())
}
