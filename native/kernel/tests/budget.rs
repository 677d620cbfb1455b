//! Work and memory in proportion to the input: no work is quadratic, and what is kept between rows stays within the budget
//! whatever the rows hold.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mica_kernel::batch::type_text::TypePrinter;
use mica_kernel::codec::known::KnownNames;
use mica_kernel::codec::metadata::write;
use mica_kernel::codec::validate::Validator;
use mica_kernel::infer::Limits;
use mica_kernel::ingest::JsonIngest;
use mica_kernel::json::{
    Compression, DuplicateKeys, Format, JsonParser, Next, OnError, ParseOptions, ReaderOptions, RowReader,
};
use mica_kernel::names::Names;
use mica_kernel::tape::Tape;
use mica_kernel::tree::Tree;

const PARSE: ParseOptions =
    ParseOptions { duplicate_keys: DuplicateKeys::LastWins, max_size: 128 << 20, max_depth: 1000, ignore_rest: false };

/// Work on 32 times the input takes 32 times as long where it is linear, 1024 times where it is quadratic. The bound is
/// between, because 32 times the input does not fit the machine's caches.
const TIMES: usize = 32;
const MOST: f64 = 256.0;

/// The time that this thread was running, which the machine's other work leaves as it is; elsewhere than on Linux the time
/// that passed. The kernel counts the running slice when the thread offers to give way.
fn running() -> Option<Duration> {
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(stat.split(' ').next()?.parse().ok()?))
}

fn timed(work: impl FnOnce()) -> Duration {
    let (began, running_before) = (Instant::now(), running());
    work();
    let passed = began.elapsed();
    running().zip(running_before).map_or(passed, |(after, before)| after.saturating_sub(before))
}

/// Whether `long` takes at most `most` times as long as `short`. Another process only ever adds time, so the least of
/// several tries counts; where a try of `long` was unlucky it is measured again.
fn within(what: &str, most: f64, mut short: impl FnMut() -> Duration, mut long: impl FnMut() -> Duration) -> bool {
    let mut least = (0..5).map(|_| short()).min().unwrap();
    let mut ratios = Vec::new();
    while ratios.len() < 6 && ratios.last().is_none_or(|&ratio| ratio > most) {
        ratios.push(long().as_secs_f64() / least.as_secs_f64());
        least = least.min(short());
    }
    println!("{what}: {ratios:.1?} times as long, at most {most}");
    ratios.last().is_some_and(|&ratio| ratio <= most)
}

/// Whether `run` takes time in proportion to its input, from a size that takes a millisecond.
fn is_linear(what: &str, run: impl Fn(usize) -> Duration, mut size: usize) -> bool {
    while (0..3).map(|_| run(size)).min().unwrap() < Duration::from_millis(1) {
        size *= 2;
    }
    within(&format!("{what}: {TIMES} times {size}"), MOST, || run(size), || run(TIMES * size))
}

#[test]
fn quadratic_work_is_found() {
    // Twenty times slower on two tries of three, as on a machine that does other things.
    let noisy = |nanos: usize| {
        static TRIES: AtomicUsize = AtomicUsize::new(0);
        let busy = if TRIES.fetch_add(1, Relaxed).is_multiple_of(3) { 1 } else { 20 };
        Duration::from_nanos(nanos as u64 * busy)
    };
    assert!(is_linear("n", noisy, 1000));
    assert!(is_linear("n log n", |n| noisy(n * n.ilog2() as usize), 1000));
    assert!(!is_linear("n squared", |n| noisy(n * n), 1000));
    assert!(!is_linear("n squared, slowly", |n| noisy(n * (1000 + n)), 1000));
}

#[test]
fn the_type_of_many_objects_of_many_keys_takes_linear_time() {
    let run = |size: usize| {
        let objects: Vec<String> = (0..size).map(|i| format!("{{\"k{i}\":{i},\"same\":{{\"k{i}\":[{i}]}}}}")).collect();
        let text = format!("[{}]", objects.join(","));
        let (mut tape, mut names, mut out) = (Tape::default(), Names::new(), Vec::new());
        JsonParser::new(PARSE).parse(&text, &mut tape, &mut names).unwrap();
        let view = tape.view(text.as_bytes(), &names);
        // Once untimed: the first time asks the system for memory.
        let mut printer = TypePrinter::default();
        printer.print(&view, 0, &mut out).unwrap();
        out.clear();
        timed(|| printer.print(&view, 0, &mut out).unwrap())
    };
    assert!(is_linear("types", run, 500));
}

#[test]
fn names_are_compared_once_however_many_objects_have_them() {
    const OBJECTS: usize = 2_000;
    let run = |length: usize| {
        let prefix = "x".repeat(length);
        let (mut names, mut metadata, mut value) = (Names::new(), Vec::new(), vec![3 | 3 << 2 | 1 << 4]);
        let ids = [format!("{prefix}b"), format!("{prefix}a")].map(|name| names.intern(&name));
        write(&names, &ids, false, &mut metadata);
        // An array of objects whose ids are in the order of the names, 1 before 0.
        let object = [2, 2, 1, 0, 0, 1, 2, 0, 0];
        value.extend((OBJECTS as u32).to_le_bytes());
        (0..=OBJECTS).for_each(|i| value.extend(((object.len() * i) as u32).to_le_bytes()));
        value.extend(object.repeat(OBJECTS));
        let mut known = KnownNames::default();
        known.load(&metadata).unwrap();
        timed(|| Validator::default().validate(known.current(), &value).unwrap())
    };
    assert!(within("objects of two long names", 20.0, || run(8), || run(1 << 16)));
}

#[test]
fn keys_that_stand_twice_at_every_level_cost_no_move_of_what_they_hold() {
    // The inner document is the last member of each level, so that every level would move it.
    const SIZE: usize = 100_000;
    let run = |levels: usize| {
        let text = format!("{}[{}0]{}", "{\"a\":1,\"a\":".repeat(levels), "0,".repeat(SIZE), "}".repeat(levels));
        let (mut tape, mut names, mut parser) = (Tape::default(), Names::new(), JsonParser::new(PARSE));
        let took = timed(|| parser.parse(&text, &mut tape, &mut names).unwrap());
        assert_eq!(tape.nodes.len(), levels + SIZE + 2);
        took
    };
    assert!(within("900 levels of duplicates", 20.0, || run(0), || run(900)));
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
        rows += batch.len() as u64;
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
        // Text that takes its time to decompress: a line that takes a millisecond should be short.
        let mut seed = 1_u32;
        let letters = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + (seed >> 24) as u8 % 26)
        });
        let text: String = letters.take(size).collect();
        let packed = zstd([format!("{{\"a\":\"{text}\"}}\n").into_bytes()].into_iter());
        let options = reader(Compression::Zstd, OnError::Fail);
        let mut reader = RowReader::new(ReaderOptions { max_row: 1 << 30, ..options }).unwrap();
        reader.feed(&packed).unwrap();
        reader.finish();
        timed(|| assert!(matches!(reader.next_row(), Ok(Next::Row(text)) if text.len() > size)))
    };
    assert!(is_linear("a long line", run, 1 << 18));
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
    // Large lines, good and bad, at each place among small rows.
    let large = |end: &str| format!("{{\"a\":[{}1{end}\n", "1,".repeat(1 << 20)).into_bytes();
    let places = |end: &'static str| (0..64).map(move |place| [b"{\"a\":1}\n".repeat(place), large(end)].concat());
    let packed = zstd(places("]}").chain(places("]")));
    assert_eq!(ingest(&packed, Compression::Zstd, OnError::Collect, |_| {}), 64 + 2 * (0..64).sum::<u64>());
    println!("after large lines: {} MiB", resident());
    assert!(resident() < 512, "{} MiB", resident());
}
