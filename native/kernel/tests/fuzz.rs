//! Whatever bytes come in: metadata, values, shredded columns and whole files, mutated. Nothing of ours panics, nothing
//! takes long, and what is accepted is sound. A fixed share runs with the tests; `make fuzz` goes on for
//! `MICA_FUZZ_SECONDS` from a seed that it prints (`MICA_FUZZ_SEED` repeats it).
//!
//! libFuzzer wants a nightly compiler, which the project does without: these mutations know the formats instead.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "../../fuzz/src/targets.rs"]
mod targets;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use common::memory::{self, Memory};
use common::random::Random;
use common::sound::{assert_sound, tree};
use common::thrift;
use mica_kernel::Result;
use mica_kernel::batch::edit::{Edit, edit};
use mica_kernel::batch::late::{may_hold_late_types, without_late_types};
use mica_kernel::batch::values::{json_to_variant, validate, variant_to_json};
use mica_kernel::check::Check;
use mica_kernel::convert::moving::move_nested;
use mica_kernel::convert::pages::Transcription;
use mica_kernel::convert::shred::shred_batch;
use mica_kernel::item::{Item, ItemKind, Target};
use mica_kernel::json::ParseOptions;
use mica_kernel::layout::recognise::Early;
use mica_kernel::layout::{Layout, standard};
use mica_kernel::parquet::file::FileReader;
use mica_kernel::parquet::search::Search;
use mica_kernel::parquet::source::Source;
use mica_kernel::parquet::write::{FileWriter, WriteOptions};
use mica_kernel::path::Step;
use mica_kernel::read::scan::{Scan, ScanOptions, ScanStep};
use mica_kernel::read::together::Files;
use mica_kernel::text::zone::Zone;
use mica_kernel::values::reconstruct::unshred;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

const DOCUMENTS: [&str; 7] = [
    r#"{"a":1,"b":{"c":"x","d":[1,2,"three",{"c":null}]},"e":[{"c":1},{"c":"y","z":0}]}"#,
    r#"{"a":"one","b":{"c":2.5},"other":[true,false]}"#,
    r#"{"b":7,"e":"no list","":{"é":"\ud83d\ude00"}}"#,
    r#"{"a":null,"b":{},"e":[]}"#,
    r#"{"a":12345678901234567890123456789,"b":{"c":"0123456789012345678901234567890123456789012345678901234567890123"}}"#,
    "17",
    r#"[{"a":1}]"#,
];

/// Documents of which the tree's typed columns hold everything.
const FULL: [&str; 5] = [
    r#"{"a":1,"b":{"c":"x","d":[1,2]},"e":[{"c":"z"},{}]}"#,
    r#"{"a":-7,"b":{}}"#,
    "{}",
    r#"{"e":[]}"#,
    r#"{"b":{"d":[]},"e":[{"c":"0123456789"}]}"#,
];

fn variants(texts: &[&str]) -> RecordBatch {
    let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    let schema = Arc::new(Schema::new(vec![Field::new("json", DataType::Utf8, true)]));
    json_to_variant(&RecordBatch::try_new(schema, vec![texts]).unwrap(), ParseOptions::default()).unwrap()
}

/// An early column without the mark that Parquet's annotation would make of it: the layout has none.
fn plain(early: &RecordBatch) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("v", early.column(0).data_type().clone(), true)]);
    RecordBatch::try_new(Arc::new(schema), early.columns().to_vec()).unwrap()
}

thread_local! {
    /// What panicked inside our own sources, which start no threads; the reader turns panics of libraries into errors.
    static OURS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn watch_panics() {
    // The reader's own hook is set first, ours stands before it.
    let _ = FileReader::open(Box::new(Memory(Bytes::from_static(b"PAR1"))), &[], &Early::Deny);
    let next = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if let Some(place) = info.location().filter(|place| place.file().contains("kernel/src")) {
            OURS.with_borrow_mut(|ours| ours.push(format!("{place}: {info}")));
        }
        next(info);
    }));
}

/// The rows as JSON, objects without their order.
fn parsed(column: &StructArray) -> Vec<serde_json::Value> {
    let texts = json(column).unwrap();
    texts
        .column(0)
        .as_string::<i32>()
        .iter()
        .map(|text| serde_json::from_str(text.unwrap_or("null")).unwrap())
        .collect()
}

/// One kind of input: seeds, and what is done with a mutated one. True when it was accepted.
struct Room {
    columns: RecordBatch,
    shredded: RecordBatch,
    early: RecordBatch,
    files: Vec<Vec<u8>>,
}

impl Room {
    fn new() -> Self {
        let columns = variants(&DOCUMENTS);
        let shredded = shred_batch(&columns, &[(vec!["v".into()], tree())], Layout::Standard).unwrap();
        let early = shred_batch(&columns, &[(vec!["v".into()], tree())], Layout::Early).unwrap();
        let mut files: Vec<Vec<u8>> = Vec::new();
        for batch in [&columns, &shredded, &plain(&early)] {
            let mut bytes = Vec::new();
            let properties = WriterProperties::builder().set_max_row_group_row_count(Some(3)).build();
            let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
            writer.write(batch).unwrap();
            writer.close().unwrap();
            files.push(bytes);
        }
        // By mica: what is left over in the first two is nothing in the others, whose pages move to the other layout.
        for texts in [&DOCUMENTS[..], &FULL[..]] {
            for layout in [Layout::Standard, Layout::Early] {
                let batch = shred_batch(&variants(texts), &[(vec!["v".into()], tree())], layout).unwrap();
                let options = WriteOptions { row_group_rows: 3, page_rows: 2, ..WriteOptions::default() };
                let mut writer = FileWriter::new(batch.schema(), None, options).unwrap();
                writer.write(&batch).unwrap();
                writer.close().unwrap();
                files.push(writer.take_bytes());
            }
        }
        files.extend(shared_files());
        Room { columns, shredded, early, files }
    }

    /// Metadata and value of a row, damaged, as an unshredded column.
    fn value(&self, random: &mut Random) -> bool {
        let column = self.columns.column(0).as_struct();
        let row = random.next(column.len());
        let mut parts: Vec<Vec<u8>> = (0..2).map(|i| column.column(i).as_binary::<i32>().value(row).to_vec()).collect();
        let part = usize::from(random.next(3) > 0);
        random.damage(&mut parts[part]);
        let columns: Vec<ArrayRef> =
            parts.iter().map(|bytes| Arc::new(BinaryArray::from_vec(vec![bytes])) as ArrayRef).collect();
        let array = StructArray::new(column.fields().clone(), columns, None);
        let schema = self.columns.schema();
        let batch = RecordBatch::try_new(schema, vec![Arc::new(array.clone())]).unwrap();
        let sound = validate(&batch).is_ok();
        if sound {
            variant_to_json(&batch, &Zone::UTC).unwrap();
            without_late_types(&batch, true, &Zone::UTC).unwrap();
            assert!(may_hold_late_types(&batch) || without_late_types(&batch, false, &Zone::UTC).is_ok(), "{parts:?}");
            let step = [Step::Key("a".into()), Step::Index(random.next(3)), Step::Key("b".into())];
            let paths = vec![step[..1 + random.next(3)].to_vec()];
            let pair =
                RecordBatch::try_from_iter([("v", batch.column(0).clone()), ("new", batch.column(0).clone())]).unwrap();
            for change in [
                Edit::Set { create: true },
                Edit::Insert,
                Edit::Append,
                Edit::Delete,
                Edit::StripNulls { arrays: true },
            ] {
                // A row that does not change keeps its bytes, in whatever order its keys are.
                validate(&edit(&pair, change, &paths).unwrap().project(&[0]).unwrap()).unwrap();
            }
            let again = shred_batch(&batch, &[(vec!["v".into()], tree())], Layout::Standard).unwrap();
            assert_sound(&unshred(again.column(0).as_struct(), "v").unwrap());
        }
        // Reading heals what has one meaning, and agrees on everything else.
        match unshred(&array, "v") {
            Ok(read) => {
                assert!(sound, "reading took what validation refuses: {parts:?}");
                assert_sound(&read);
                let (ours, given) = (parsed(&read), parsed(&array));
                assert!(ours == given, "reading changed what was read: {parts:?}, {given:?} became {ours:?}");
            }
            Err(e) => assert!(!sound || e.rule.is_some(), "{e:?}"),
        }
        sound
    }

    /// A shredded column with a cell or a null mark damaged.
    fn columns(&self, random: &mut Random) -> bool {
        let early = random.next(3) == 0;
        let mut column = if early { &self.early } else { &self.shredded }.column(0).clone();
        for _ in 0..1 + random.next(2) {
            column = random.damaged(&column);
        }
        let field = Arc::new(self.shredded.schema().field(0).clone().with_data_type(column.data_type().clone()));
        let moved = move_nested(&field, &column, if early { Layout::Standard } else { Layout::Early }, "v");
        match unshred(column.as_struct(), "v") {
            Ok(read) => {
                assert_sound(&read);
                let schema = Arc::new(Schema::new(vec![field]));
                let given = RecordBatch::try_new(schema, vec![column]).unwrap();
                let whole = RecordBatch::try_new(self.columns.schema(), vec![Arc::new(read.clone())]).unwrap();
                assert!(may_hold_late_types(&given) || without_late_types(&whole, false, &Zone::UTC).is_ok());
                match moved {
                    Ok((_, moved, _)) => {
                        assert_eq!(json(&read).unwrap(), json(&unshred(moved.as_struct(), "v").unwrap()).unwrap())
                    }
                    // Moving validates what stands below a null group, too, which no Parquet file has.
                    Err(e) => assert!(!early, "{e:?}"),
                }
                true
            }
            Err(e) => {
                // The text of the early layout has no numbered rules.
                assert!((early || e.rule.is_some()) && e.path.is_some(), "{e:?}");
                false
            }
        }
    }

    /// A whole file, damaged anywhere or in its footer.
    fn file(&self, random: &mut Random) -> bool {
        let seed = &self.files[random.next(self.files.len())];
        let mut bytes = seed.clone();
        random.damage_file(&mut bytes);
        read_all(bytes).is_ok()
    }

    /// A whole file whose footer or page headers are well formed and untrue.
    fn structure(&self, random: &mut Random) -> bool {
        let seed = &self.files[random.next(self.files.len())];
        let Some(mut file) = thrift::File::of(seed) else { return false };
        file.damage(random);
        read_all(file.bytes()).is_ok()
    }
}

/// Values as texts.
fn json(values: &StructArray) -> Result<RecordBatch> {
    let field = standard::mark(Field::new("v", values.data_type().clone(), true));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(values.clone())]).unwrap();
    variant_to_json(&batch, &Zone::UTC)
}

/// A column whole, as texts, of all rows.
fn texts(file: &Arc<FileReader>, column: &str) -> Result<Vec<Option<String>>> {
    let item = Item { name: "v".into(), column: vec![column.into()], kind: ItemKind::Whole, untyped_in: vec![] };
    let timezone = "UTC".into();
    let options = ScanOptions { max_rows: 4096, max_bytes: 1 << 20, timezone, ..ScanOptions::default() };
    let mut scan = Scan::new(file.clone(), vec![item], vec![], options)?;
    let mut found = Vec::new();
    while let Some(ScanStep::Rows(batch)) = scan.step()? {
        // A damaged footer may make another struct of the column.
        let rows = json(batch.column(0).as_struct())?;
        found.extend(rows.column(0).as_string::<i32>().iter().map(|text| text.map(str::to_string)));
    }
    Ok(found)
}

/// The file in each layout by its pages, where they move: what was readable reads the same then.
fn transcribed(file: &Arc<FileReader>) {
    let columns: Vec<(String, bool)> =
        file.schema().fields().iter().map(|f| (f.name().clone(), f.is_nullable())).collect();
    for layout in [Layout::Standard, Layout::Early] {
        let made = || -> Result<Option<Vec<u8>>> {
            let options = WriteOptions::default();
            let Some(mut made) = Transcription::new(file.clone(), &columns, layout, None, &options)? else {
                return Ok(None);
            };
            while made.step()? {}
            made.close()?;
            made.take_bytes().map(Some)
        };
        let Ok(Some(bytes)) = made() else { continue };
        MOVED.fetch_add(1, Ordering::Relaxed);
        let Ok(before) = texts(file, "v") else { continue };
        let after = FileReader::open(Box::new(Memory(bytes.into())), &[], &Early::Recognise).unwrap();
        assert_eq!(before, texts(&Arc::new(after), "v").unwrap());
    }
}

/// Damaged files whose pages moved all the same.
static MOVED: AtomicUsize = AtomicUsize::new(0);

fn read_all(bytes: Vec<u8>) -> Result<usize> {
    let bytes = bytes::Bytes::from(bytes);
    let source = || -> Result<Box<dyn Source>> { Ok(Box::new(Memory(bytes.clone()))) };
    let twice = Files::open([source(), source()], &[], &Early::Recognise)?;
    let file = twice.first().clone();
    transcribed(&file);
    let mut check = Check::new(file.clone(), 3);
    while check.next_batch()?.is_some() {}
    check.totals()?;
    let mut items = Vec::new();
    for (at, field) in file.schema().fields().iter().enumerate() {
        let column = vec![field.name().clone()];
        items.push(Item { name: at.to_string(), column: column.clone(), kind: ItemKind::Whole, untyped_in: vec![] });
        if let DataType::Struct(_) = field.data_type() {
            for layout in [Layout::Standard, Layout::Early] {
                let (name, column) = (format!("{layout:?}{at}"), column.clone());
                items.push(Item { name, column, kind: ItemKind::Moved(layout), untyped_in: vec![] });
            }
            let steps = vec![Step::Key("b".into()), Step::Key("c".into())];
            let kind = ItemKind::Path { steps, target: Target::Type(DataType::Utf8) };
            items.push(Item { name: format!("p{at}"), column, kind, untyped_in: vec![at % 3] });
        }
    }
    let mut rows = 0;
    let mut failed = None;
    // Each alone, so that one broken column does not keep the others from being read.
    for item in items {
        let one = || -> Result<usize> {
            let items = vec![item.clone()];
            for pages in [false, true] {
                file.bounds(&items, pages, None)?;
            }
            let total = file.num_rows();
            let middle = total.min(2)..total.min(5);
            let mut rows = 0;
            twice.bounds(&items, true, Some(&vec![middle.clone()]))?;
            for within in [middle.clone(), 0..total] {
                let texts = Arc::new(StringArray::from(vec!["a text", "b"]));
                twice.search(&item, &mut Search::new(texts), &vec![within])?;
            }
            for (ranges, filter) in [(None, vec![]), (Some(vec![middle]), vec![]), (None, items.clone())] {
                let timezone = "UTC".into();
                let options =
                    ScanOptions { ranges, max_rows: 4096, max_bytes: 1 << 20, timezone, ..ScanOptions::default() };
                let mut scan = twice.scan(&items, &filter, &options)?;
                while let Some(step) = scan.step()? {
                    match step {
                        ScanStep::Rows(batch) => rows += batch.num_rows(),
                        ScanStep::Judge(batch) => {
                            scan.keep(&(0..batch.num_rows()).map(|row| Some(row % 2 == 0)).collect())?;
                        }
                    }
                }
            }
            Ok(rows)
        };
        match one() {
            Ok(found) => rows += found,
            Err(e) => failed = Some(e),
        }
    }
    file.inspect()?;
    failed.map_or(Ok(rows), Err)
}

/// The files that crashed other readers, and the conformance files, where they are at hand.
fn shared_files() -> Vec<Vec<u8>> {
    let shared = std::env::var("MICA_SHARED")
        .map_or_else(|_| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let mut paths = Vec::new();
    for folder in ["bad-parquet", "parquet-shredded-variant"] {
        let Ok(entries) = std::fs::read_dir(shared.join("conformance").join(folder)) else { continue };
        paths.extend(entries.flatten().map(|entry| entry.path()));
    }
    paths.sort();
    let parquet = paths.iter().filter(|path| path.extension().is_some_and(|e| e == "parquet"));
    parquet.filter_map(|path| std::fs::read(path).ok()).filter(|bytes| bytes.len() < 100_000).collect()
}

type Fuzz = fn(&Room, &mut Random) -> bool;

/// What is mutated, and how many of each run with the tests.
const TARGETS: [(&str, Fuzz, usize); 4] = [
    ("value", Room::value, 100_000),
    ("columns", Room::columns, 80_000),
    ("file", Room::file, 25_000),
    ("structure", Room::structure, 15_000),
];
const _: () = assert!(TARGETS[0].2 + TARGETS[1].2 + TARGETS[2].2 >= 200_000);

/// One input; fails where something of ours panicked or took long, and says how to see it again. What took long is
/// measured again: the machine may have done something else.
fn one(room: &Room, name: &str, target: Fuzz, seed: u64) -> bool {
    let (accepted, took) = timed(room, name, target, seed);
    if took > SLOW {
        let (_, again) = timed(room, name, target, seed);
        assert!(again < SLOW, "{name}, seed {seed} took {took:?}, then {again:?}");
    }
    accepted
}

const SLOW: Duration = Duration::from_secs(20);

fn timed(room: &Room, name: &str, target: Fuzz, seed: u64) -> (bool, Duration) {
    let began = Instant::now();
    let accepted = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(room, &mut Random::new(seed))))
    {
        Ok(accepted) => accepted,
        Err(panic) => {
            eprintln!("{name} failed: MICA_FUZZ_SEED={seed} MICA_FUZZ_TARGET={name} make fuzz shows it again");
            std::panic::resume_unwind(panic);
        }
    };
    let ours = OURS.take();
    assert!(ours.is_empty(), "{name}, seed {seed}: {ours:?}");
    (accepted, began.elapsed())
}

/// Inputs that failed once in `make fuzz`; those of files are the same while the folders of bad files are.
const FOUND: [(usize, u64); 4] = [
    (0, 1795188950627408666), // an object out of order whose header was another value
    (2, 1795192079235007056), // page headers that contradict the page index, copied
    (2, 1795192356985864069),
    (2, 1795192926104123760),
];

#[test]
fn a_fixed_share() {
    watch_panics();
    let room = Room::new();
    for (at, seed) in FOUND {
        let (name, target, _) = TARGETS[at];
        one(&room, name, target, seed);
    }
    for (name, target, count) in TARGETS {
        let accepted =
            in_two(|half| (half..count as u64).step_by(2).filter(|&seed| one(&room, name, target, seed)).count());
        assert!(accepted > count / 100, "{name}: only {accepted} of {count} were accepted");
        assert!(accepted < count, "{name}: every input was accepted");
        println!("{name}: {count} mutated inputs, {accepted} accepted, no panic of ours");
    }
    let moved = MOVED.load(Ordering::Relaxed);
    assert!(moved > 100, "only {moved} files moved page by page");
    println!("files that were mutated: {}, seven of them made here; {moved} times the pages moved", room.files.len());
    let (resident, address) = (memory("VmHWM:"), memory("VmPeak:"));
    println!("memory of the whole run: {resident:?} MiB resident, {address:?} MiB of addresses");
    // Nothing is allocated out of proportion: no input is larger than 100 KB.
    assert!(resident.is_none_or(|mib| mib < 128), "{resident:?} MiB");
    assert!(address.is_none_or(|mib| mib < 1024), "{address:?} MiB");
}

/// Both halves of a work, each in a thread of its own.
fn in_two(work: impl Fn(u64) -> usize + Sync) -> usize {
    let work = &work;
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || work(half)));
        halves.map(|half| half.join().unwrap()).iter().sum()
    })
}

/// The most memory of this process so far, in MiB, where the system tells it.
fn memory(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

/// `make fuzz`.
#[test]
#[ignore = "runs for MICA_FUZZ_SECONDS"]
fn for_a_while() {
    watch_panics();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let chosen = std::env::var("MICA_FUZZ_TARGET").unwrap_or_default();
    let seconds = number("MICA_FUZZ_SECONDS").unwrap_or(60);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let first = number("MICA_FUZZ_SEED").unwrap_or(now);
    println!("MICA_FUZZ_SEED={first}");
    let room = Room::new();
    let began = Instant::now();
    let mut counts = [(0u64, 0u64); TARGETS.len()];
    let mut seed = first;
    while began.elapsed() < Duration::from_secs(seconds) {
        for (at, (name, target, _)) in TARGETS.into_iter().enumerate() {
            if !chosen.is_empty() && chosen != name {
                continue;
            }
            for _ in 0..if matches!(name, "file" | "structure") { 1 } else { 20 } {
                counts[at].0 += 1;
                counts[at].1 += u64::from(one(&room, name, target, seed));
                seed = seed.wrapping_add(1);
            }
        }
    }
    for ((name, ..), (inputs, accepted)) in TARGETS.iter().zip(counts) {
        println!("{name}: {inputs} inputs, {accepted} accepted, no panic of ours");
    }
}

/// What `make fuzz` changes with the compiler's help is compiled here too, and passes.
#[test]
fn the_guided_targets_take_what_they_begin_with() {
    for (name, run, begins) in targets::TARGETS {
        let taken = begins().iter().filter(|input| run(input).is_ok()).count();
        assert!(taken * 2 > begins().len(), "{name} takes {taken} of {}", begins().len());
    }
}
