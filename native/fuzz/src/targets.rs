//! What is fuzzed: bytes in, and whatever the kernel makes of them. Errors are fine; panics of ours, hangs and memory out
//! of proportion are not.

#![allow(clippy::single_range_in_vec_init)]

use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use mica_kernel::Result;
use mica_kernel::batch::values::{json_to_variant, type_texts, variant_to_json};
use mica_kernel::check::Check;
use mica_kernel::convert::shred::{infer_column, shred_batch};
use mica_kernel::infer::Limits;
use mica_kernel::ingest::JsonIngest;
use mica_kernel::item::{Item, ItemKind};
use mica_kernel::json::{Compression, DuplicateKeys, Format, OnError, ParseOptions, ReaderOptions};
use mica_kernel::layout::recognise::Early;
use mica_kernel::layout::{Layout, standard};
use mica_kernel::parquet::search::Search;
use mica_kernel::parquet::source::Source;
use mica_kernel::parquet::write::{FileWriter, WriteOptions};
use mica_kernel::read::scan::{ScanOptions, ScanStep};
use mica_kernel::read::together::Files;
use mica_kernel::text::zone::Zone;

use crate::memory::Memory;

/// Its name, what it does with an input, and what it begins with.
type Target = (&'static str, fn(&[u8]) -> Result<()>, fn() -> Vec<Vec<u8>>);

pub const TARGETS: [Target; 3] = [("file", file, files), ("json", json, texts), ("value", value, values)];

/// A Parquet file: read whole, by rows and by a filter, checked and inspected.
fn file(input: &[u8]) -> Result<()> {
    let bytes = Bytes::copy_from_slice(input);
    let source = || -> Result<Box<dyn Source>> { Ok(Box::new(Memory(bytes.clone()))) };
    let twice = Files::open([source(), source()], &[], &Early::Recognise)?;
    let file = twice.first().clone();
    let mut done = Ok(());
    for field in file.schema().fields() {
        let item =
            Item { name: "c".into(), column: vec![field.name().clone()], kind: ItemKind::Whole, untyped_in: vec![] };
        let items = vec![item];
        let rows = file.num_rows();
        for (ranges, filter) in [(None, vec![]), (Some(vec![rows.min(2)..rows.min(5)]), items.clone())] {
            done = done.and((|| {
                let options = ScanOptions { ranges, max_rows: 1024, max_bytes: 1 << 20, ..ScanOptions::default() };
                let mut scan = twice.scan(&items, &filter, &options)?;
                while let Some(step) = scan.step()? {
                    if let ScanStep::Judge(batch) = step {
                        scan.keep(&(0..batch.num_rows()).map(|row| Some(row % 2 == 0)).collect())?;
                    }
                }
                file.bounds(&items, true, None)?;
                let texts = Arc::new(StringArray::from(vec!["a text"]));
                file.search(&items[0], &mut Search::new(texts), &vec![0..rows]).map(drop)
            })());
        }
    }
    let mut check = Check::new(file.clone(), 2);
    while check.next_batch()?.is_some() {}
    done.and(file.inspect().map(drop))
}

/// JSON in any format and compression, which the first byte chooses.
fn json(input: &[u8]) -> Result<()> {
    let Some((&how, text)) = input.split_first() else { return Ok(()) };
    let options = ReaderOptions {
        name: "fuzz".into(),
        format: [Format::Auto, Format::Ndjson, Format::Json][how as usize % 3],
        compression: [Compression::None, Compression::Gzip, Compression::Zstd][how as usize / 3 % 3],
        path: None,
        start: 0,
        end: None,
        on_error: if how & 0x80 == 0 { OnError::Fail } else { OnError::Collect },
        replace_invalid_utf8: how & 0x20 != 0,
        max_row: 1 << 20,
    };
    let duplicate_keys = if how & 0x40 == 0 { DuplicateKeys::Error } else { DuplicateKeys::LastWins };
    let mut ingest = JsonIngest::new("v", options, ParseOptions { duplicate_keys, ..ParseOptions::default() })?;
    ingest.reader().feed(text)?;
    ingest.reader().finish();
    let (tree, _) = ingest.infer(Limits::default())?;
    while let Some(rows) = ingest.next_batch(&tree, 100, 1 << 20)? {
        let batch = rows.to_batch()?;
        ingest.take_errors()?;
        let whole = mica_kernel::values::reconstruct::unshred(batch.column(0).as_any().downcast_ref().unwrap(), "v")?;
        let field = standard::mark(Field::new("v", arrow::array::Array::data_type(&whole).clone(), true));
        let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(whole)]).unwrap();
        variant_to_json(&batch, &Zone::UTC)?;
    }
    Ok(())
}

/// Metadata and value of a Variant, the first byte the length of the metadata: printed, typed and shredded.
fn value(input: &[u8]) -> Result<()> {
    let Some((&length, bytes)) = input.split_first() else { return Ok(()) };
    let (metadata, value) = bytes.split_at(bytes.len().min(length.into()));
    let fields = vec![Field::new("metadata", DataType::Binary, false), Field::new("value", DataType::Binary, true)];
    let part = |bytes| Arc::new(BinaryArray::from_vec(vec![bytes])) as ArrayRef;
    let column = StructArray::new(fields.into(), vec![part(metadata), part(value)], None);
    let field = standard::mark(Field::new("v", arrow::array::Array::data_type(&column).clone(), true));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(column)]).unwrap();
    variant_to_json(&batch, &Zone::UTC)?;
    type_texts(&batch)?;
    let path = vec!["v".to_string()];
    let (tree, _) = infer_column(&batch, &path, Limits::default())?;
    for layout in [Layout::Standard, Layout::Early] {
        shred_batch(&batch, &[(path.clone(), tree.clone())], layout)?;
    }
    Ok(())
}

const DOCUMENTS: [&str; 5] = [
    r#"{"a":1,"b":{"c":"x","d":[1,2,"three",{"c":null}]},"e":[{"c":1},{"c":"y","z":0}]}"#,
    r#"{"a":"one","b":{"c":2.5e3},"other":[true,false],"t":"2024-01-01"}"#,
    r#"{"b":7,"e":"no list","":{"é":"\ud83d\ude00"}}"#,
    r#"{"a":12345678901234567890123456789,"b":{"c":"0123456789"},"b2":-1.50}"#,
    r#"[[1],[],{}]"#,
];

fn variants() -> RecordBatch {
    let texts: ArrayRef = Arc::new(StringArray::from(DOCUMENTS.to_vec()));
    let schema = Arc::new(Schema::new(vec![Field::new("json", DataType::Utf8, true)]));
    json_to_variant(&RecordBatch::try_new(schema, vec![texts]).unwrap(), ParseOptions::default()).unwrap()
}

fn files() -> Vec<Vec<u8>> {
    let batch = variants();
    let path = vec!["v".to_string()];
    let (tree, _) =
        infer_column(&batch, &path, Limits { min_share: 0.0, typed_share: 0.5, ..Limits::default() }).unwrap();
    let made = |layout| {
        let batch = shred_batch(&batch, &[(path.clone(), tree.clone())], layout).unwrap();
        let options = WriteOptions { row_group_rows: 3, page_rows: 2, ..WriteOptions::default() };
        let mut writer = FileWriter::new(batch.schema(), None, options).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        writer.take_bytes()
    };
    vec![made(Layout::Standard), made(Layout::Early)]
}

fn texts() -> Vec<Vec<u8>> {
    let lines = DOCUMENTS.join("\n");
    let array = format!("[{}]", DOCUMENTS.join(",\n"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(lines.as_bytes()).unwrap();
    let zstd = zstd::encode_all(array.as_bytes(), 1).unwrap();
    let with = |how: u8, text: &[u8]| [&[how], text].concat();
    vec![
        with(0, lines.as_bytes()),
        with(0x81, lines.as_bytes()),
        with(2, array.as_bytes()),
        with(0, b"{\n\"a\":1}\n{\"a\":2}"),
        with(0x40, b"{\"a\":1,\"b\":{\"a\":1,\"a\":2},\"b\":3}"),
        with(3, &gzip.finish().unwrap()),
        with(6, &zstd),
    ]
}

fn values() -> Vec<Vec<u8>> {
    let batch = variants();
    let column: &StructArray = batch.column(0).as_any().downcast_ref().unwrap();
    let part = |name, row| {
        let bytes: &BinaryArray = column.column_by_name(name).unwrap().as_any().downcast_ref().unwrap();
        bytes.value(row).to_vec()
    };
    let rows = (0..DOCUMENTS.len()).map(|row| (part("metadata", row), part("value", row)));
    rows.map(|(metadata, value)| [&[metadata.len() as u8][..], &metadata, &value].concat()).collect()
}
