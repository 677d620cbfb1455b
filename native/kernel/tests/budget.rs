//! Work and memory in proportion to the input: twice the input takes at most 2.5 times the time, and what is kept
//! between rows stays within the budget whatever the rows hold.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;
use std::time::{Duration, Instant};

use mica_kernel::infer::Limits;
use mica_kernel::ingest::JsonIngest;
use mica_kernel::json::{
    Compression, DuplicateKeys, Format, JsonParser, Next, OnError, ParseOptions, ReaderOptions, RowReader,
};
use mica_kernel::names::Names;
use mica_kernel::tape::Tape;
use mica_kernel::tree::Tree;
use mica_kernel::type_text::TypePrinter;

const PARSE: ParseOptions =
    ParseOptions { duplicate_keys: DuplicateKeys::LastWins, max_size: 128 << 20, max_depth: 1000 };

/// Fails where twice the input takes more than 2.5 times as long. The machine is shared: the best of several tries
/// counts, and where a pair is unlucky it is measured again.
fn linear(what: &str, mut run: impl FnMut(usize) -> Duration, mut size: usize) {
    while run(size) < Duration::from_millis(20) {
        size *= 2;
    }
    let mut best = |size| (0..3).map(|_| run(size)).min().unwrap();
    let ratios: Vec<f64> = (0..5).map(|_| best(2 * size).as_secs_f64() / best(size).as_secs_f64()).collect();
    println!("{what}: twice {size} takes {ratios:.2?} times as long");
    assert!(ratios.iter().any(|&ratio| ratio <= 2.5), "{what}: {ratios:?}");
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

#[test]
fn the_type_of_many_objects_of_many_keys_takes_linear_time() {
    let run = |size: usize| {
        let objects: Vec<String> = (0..size).map(|i| format!("{{\"k{i}\":{i},\"same\":{{\"k{i}\":[{i}]}}}}")).collect();
        let text = format!("[{}]", objects.join(","));
        let (mut tape, mut names, mut out) = (Tape::default(), Names::new(), Vec::new());
        JsonParser::new(PARSE).parse(&text, &mut tape, &mut names).unwrap();
        let view = tape.view(text.as_bytes(), &names);
        timed(|| TypePrinter::default().print(&view, 0, &mut out))
    };
    linear("types", run, 500);
}

#[test]
fn keys_that_stand_twice_at_every_level_take_linear_time() {
    // The inner document is the last member of each level, so that every level would move it.
    let run = |size: usize| {
        let inner = format!("[{}0]", "0,".repeat(size));
        let text = (0..900).fold(inner, |inner, _| format!("{{\"a\":1,\"a\":{inner}}}"));
        let (mut tape, mut names, mut parser) = (Tape::default(), Names::new(), JsonParser::new(PARSE));
        let took = timed(|| parser.parse(&text, &mut tape, &mut names).unwrap());
        assert_eq!(tape.nodes.len(), 900 + size + 2);
        took
    };
    linear("duplicates", run, 1000);
    let (small, deep) = (run(100_000), {
        let text = format!("[{}0]", "0,".repeat(100_000));
        timed(|| JsonParser::new(PARSE).parse(&text, &mut Tape::default(), &mut Names::new()).unwrap())
    });
    println!("900 levels of duplicates: {small:?}, none: {deep:?}");
    assert!(small < deep * 20 + Duration::from_millis(20), "{small:?} {deep:?}");
}

fn reader(compression: Compression, on_error: OnError) -> ReaderOptions {
    ReaderOptions {
        name: "test".into(),
        format: Format::Auto,
        compression,
        path: None,
        start: 0,
        end: None,
        on_error,
        replace_invalid_utf8: false,
        max_row: 64 << 20,
    }
}

fn ingest(bytes: &[u8], compression: Compression, on_error: OnError, mut seen: impl FnMut(usize)) -> u64 {
    let mut ingest = JsonIngest::new("v", reader(compression, on_error), PARSE).unwrap();
    ingest.reader().feed(bytes).unwrap();
    ingest.reader().finish();
    ingest.infer(Limits::default()).unwrap();
    let mut rows = 0;
    while let Some(batch) = ingest.next_batch(&Tree::untyped(), 16_384, 16 << 20).unwrap() {
        rows += batch.num_rows() as u64;
        seen(ingest.take_errors().unwrap().num_rows());
    }
    seen(ingest.take_errors().unwrap().num_rows());
    rows
}

fn zstd(bytes: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    bytes.for_each(|piece| encoder.write_all(&piece).unwrap());
    encoder.finish().unwrap()
}

#[test]
fn a_long_line_that_was_compressed_takes_linear_time() {
    let run = |size: usize| {
        let packed = zstd([format!("{{\"a\":\"{}\"}}\n", "x".repeat(size)).into_bytes()].into_iter());
        let options = reader(Compression::Zstd, OnError::Fail);
        let mut reader = RowReader::new(ReaderOptions { max_row: 1 << 30, ..options }).unwrap();
        reader.feed(&packed).unwrap();
        reader.finish();
        timed(|| assert!(matches!(reader.next_row(), Ok(Next::Row(text)) if text.len() > size)))
    };
    linear("a long line", run, 32 << 20);
}

/// The most memory of this process so far, in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB").to_string();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// All of them in one process: a high water mark cannot be taken back.
#[test]
fn memory_stays_within_the_budget() {
    // Blank lines, half a GB of them: nobody's, before the first row and behind it.
    let blank = vec![b'\n'; 16 << 20];
    let blanks = || (0..16).map(|_| blank.clone());
    let row = || std::iter::once(b"{\"a\":1}\n".to_vec());
    let packed = zstd(blanks().chain(row()).chain(blanks()).chain(row()));
    assert_eq!(ingest(&packed, Compression::Zstd, OnError::Fail, |_| {}), 2);
    println!("after {} bytes of blank lines: {} MiB", packed.len(), resident());
    // Lines that are no documents.
    let packed = zstd((0..10).map(|_| b"no\n".repeat(350_000)));
    let (mut bad, mut most) = (0, 0);
    ingest(&packed, Compression::Zstd, OnError::Collect, |rows| {
        bad += rows;
        most = most.max(rows);
    });
    assert_eq!(bad, 10 * 350_000);
    assert!(most <= 4096, "{most}");
    println!("after bad lines: {} MiB", resident());
    // A new key of 1 MB in each of 300 rows.
    let rows = (0..300).map(|i| format!("{{\"{}{i}\":1}}\n", "k".repeat(1 << 20)).into_bytes());
    let packed = zstd(rows);
    assert_eq!(ingest(&packed, Compression::Zstd, OnError::Fail, |_| {}), 300);
    println!("after long keys: {} MiB", resident());
    assert!(resident() < 512, "{} MiB", resident());
}
