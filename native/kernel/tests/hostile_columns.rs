//! Damaged shredded columns and damaged Parquet files: nothing panics out of the kernel, and what is accepted is
//! sound: every value that comes back is one that the decoder accepts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use mica_kernel::Result;
use mica_kernel::batch::shred_batch;
use mica_kernel::decode::VariantDecoder;
use mica_kernel::extract::{Step, Target, extract_path};
use mica_kernel::json::ParseOptions;
use mica_kernel::layout::Layout;
use mica_kernel::level::VariantColumn;
use mica_kernel::names::Names;
use mica_kernel::read::FileReader;
use mica_kernel::read::early::Early;
use mica_kernel::read::items::{Item, ItemKind};
use mica_kernel::read::scan::{Scan, ScanOptions, Step as ScanStep};
use mica_kernel::reconstruct::unshred;
use mica_kernel::source::Source;
use mica_kernel::tape::Tape;
use mica_kernel::tree::{Field as TreeField, LeafType, Tree};
use mica_kernel::values::json_to_variant;
use parquet::arrow::ArrowWriter;

const DOCUMENTS: [&str; 6] = [
    r#"{"a":1,"b":{"c":"x","d":[1,2,"three",{"c":null}]},"e":[{"c":1},{"c":"y","z":0}]}"#,
    r#"{"a":"one","b":{"c":2.5},"other":[true,false]}"#,
    r#"{"b":7,"e":"no list"}"#,
    r#"{"a":null,"b":{},"e":[]}"#,
    "17",
    r#"[{"a":1}]"#,
];

/// A small generator of our own: the count of cases matters more here than shrinking does.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below.max(1)
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.next(3) {
            let at = self.next(bytes.len() + 1);
            match self.next(4) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.next(8),
                1 if at < bytes.len() => bytes[at] = [0, 1, 2, 3, 0x7f, 0x80, 0xff][self.next(7)],
                2 => bytes.truncate(at),
                _ => bytes.insert(at, self.next(256) as u8),
            }
        }
    }
}

fn tree() -> Tree {
    let field = |name: &str, tree| TreeField { name: name.into(), tree };
    let c = || field("c", Tree::leaf(LeafType::String));
    let d = field("d", Tree::array(Tree::leaf(LeafType::Int64)));
    let e = Tree::array(Tree::object(vec![c()]).unwrap());
    let b = Tree::object(vec![c(), d]).unwrap();
    Tree::object(vec![field("a", Tree::leaf(LeafType::Int64)), field("b", b), field("e", e)]).unwrap()
}

fn shredded(layout: Layout) -> RecordBatch {
    let texts: ArrayRef = Arc::new(StringArray::from(DOCUMENTS.to_vec()));
    let schema = Arc::new(Schema::new(vec![Field::new("json", DataType::Utf8, true)]));
    let batch = RecordBatch::try_new(schema, vec![texts]).unwrap();
    let variants = json_to_variant(&batch, ParseOptions::default()).unwrap();
    shred_batch(&variants, &[(vec!["v".into()], tree())], layout).unwrap()
}

/// The array with one binary cell, or one null mark, somewhere in it damaged.
fn damaged(array: &ArrayRef, random: &mut Random) -> ArrayRef {
    match array.data_type() {
        DataType::Binary => {
            let binary = array.as_binary::<i32>();
            let victim = random.next(array.len());
            let mut cells: Vec<Option<Vec<u8>>> = binary.iter().map(|cell| cell.map(<[u8]>::to_vec)).collect();
            match cells.get_mut(victim) {
                Some(Some(bytes)) => random.damage(bytes),
                // A value of two bytes too many, or an `untyped_value` of one byte, or of an object without fields.
                Some(cell) if random.next(2) == 0 => *cell = Some(vec![[0u8, 2, 3, 12][random.next(4)], 0, 0]),
                Some(cell) => *cell = Some(vec![1, 0, 0, [0u8, 2, 3, 12][random.next(4)], 0, 0]),
                None => {}
            }
            Arc::new(cells.iter().map(|c| c.as_deref()).collect::<BinaryArray>())
        }
        DataType::Struct(fields) => {
            let group = array.as_struct();
            let at = random.next(group.num_columns() + 1);
            let mut columns = group.columns().to_vec();
            let mut nulls = group.nulls().cloned();
            if at < columns.len() {
                columns[at] = damaged(&columns[at], random);
            } else {
                let flip = random.next(group.len());
                let marks = (0..group.len()).map(|row| group.is_valid(row) != (row == flip));
                nulls = Some(NullBuffer::from_iter(marks));
            }
            let fields = fields
                .iter()
                .zip(&columns)
                .map(|(f, c)| f.as_ref().clone().with_nullable(true).with_data_type(c.data_type().clone()))
                .collect::<Vec<_>>();
            Arc::new(StructArray::try_new(fields.into(), columns, nulls).unwrap())
        }
        DataType::List(element) => {
            let list = array.as_list::<i32>();
            let values = damaged(list.values(), random);
            let element = element.as_ref().clone().with_data_type(values.data_type().clone()).with_nullable(true);
            let element = Arc::new(element);
            let offsets = OffsetBuffer::new(ScalarBuffer::from(list.value_offsets().to_vec()));
            Arc::new(ListArray::try_new(element, offsets, values, list.nulls().cloned()).unwrap())
        }
        _ => array.clone(),
    }
}

fn assert_sound(variant: &StructArray) {
    let (metadata, values) = (variant.column(0).as_binary::<i32>(), variant.column(1).as_binary::<i32>());
    let (mut decoder, mut tape, mut names) = (VariantDecoder::new(), Tape::default(), Names::new());
    for row in (0..variant.len()).filter(|&row| variant.is_valid(row)) {
        let found = decoder.decode(metadata.value(row), values.value(row), &mut tape, &mut names);
        let found = found.unwrap_or_else(|e| panic!("row {row} came back unsound: {e}"));
        assert!(!found.unsorted_ids, "row {row} came back with unsorted ids");
    }
}

fn paths() -> [Vec<Step>; 6] {
    [vec![], vec!["a"], vec!["b", "c"], vec!["b", "d"], vec!["e"], vec!["other"]]
        .map(|path| path.into_iter().map(|key| Step::Key(key.into())).collect::<Vec<_>>())
}

#[test]
fn damaged_columns_are_refused_or_read_soundly() {
    let column = shredded(Layout::Standard).column(0).clone();
    let mut random = Random(3);
    let (mut accepted, mut refused) = (0, 0);
    let paths = paths();
    for case in 0..60_000 {
        let array = damaged(&column, &mut random);
        match unshred(array.as_struct(), "v") {
            Ok(variant) => {
                accepted += 1;
                assert_sound(&variant);
            }
            Err(e) => {
                refused += 1;
                assert!(e.rule.is_some() && e.path.is_some(), "{e:?}");
            }
        }
        if let Ok(opened) = VariantColumn::open(array.as_struct(), "v") {
            let path = &paths[case % paths.len()];
            for target in [Target::Variant, Target::Type(DataType::Utf8), Target::Type(DataType::Int64)] {
                if let Ok(found) = extract_path(&opened, path, &target, "UTC")
                    && target == Target::Variant
                {
                    assert_sound(found.values.as_struct());
                }
            }
        }
    }
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} accepted, {refused} refused");
}

/// Of an early column that is accepted, every path is where reconstruction has it.
#[test]
fn damaged_early_columns_are_refused_or_give_one_answer() {
    let column = shredded(Layout::Early).column(0).clone();
    let mut random = Random(7);
    let (mut accepted, mut refused) = (0, 0);
    for case in 0..60_000 {
        let array = damaged(&column, &mut random);
        let whole = match unshred(array.as_struct(), "v") {
            Ok(variant) => {
                accepted += 1;
                assert_sound(&variant);
                Some(VariantColumn::open(&variant, "v").unwrap())
            }
            Err(e) => {
                refused += 1;
                assert!(e.path.is_some(), "{e:?}");
                None
            }
        };
        let opened = VariantColumn::open(array.as_struct(), "v").unwrap();
        let path = &paths()[case % paths().len()];
        for target in [Target::Variant, Target::Type(DataType::Utf8), Target::Type(DataType::Int64)] {
            match (extract_path(&opened, path, &target, "UTC"), &whole) {
                (Ok(found), _) if target == Target::Variant => assert_sound(found.values.as_struct()),
                (Ok(found), Some(whole)) => {
                    let expected = extract_path(whole, path, &target, "UTC").unwrap();
                    assert_eq!(&found.values, &expected.values, "case {case}, {path:?}");
                    assert_eq!(found.failed, expected.failed);
                }
                (Err(e), Some(_)) => panic!("case {case}, {path:?}: {e:?} where the whole is sound"),
                _ => {}
            }
        }
    }
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} accepted, {refused} refused");
}

struct Memory(Bytes);

impl Source for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        Ok(ranges.iter().map(|r| self.0.slice(r.start as usize..r.end as usize)).collect())
    }
}

fn read_all(bytes: Vec<u8>) -> Result<usize> {
    let file = Arc::new(FileReader::open(Box::new(Memory(bytes.into())), &[], &Early::Recognise)?);
    let items = vec![
        Item { name: "0".into(), column: vec!["v".into()], kind: ItemKind::Whole },
        Item {
            name: "1".into(),
            column: vec!["v".into()],
            kind: ItemKind::Path {
                steps: vec![Step::Key("b".into()), Step::Key("c".into())],
                target: Target::Type(DataType::Utf8),
            },
        },
    ];
    for pages in [false, true] {
        file.bounds(&items, pages, None)?;
    }
    file.cost(&items, None)?;
    file.inspect()?;
    let mut rows = 0;
    for ranges in [None, Some(vec![1..3, 5..6])] {
        let judged = items[1..].to_vec();
        for filter in [vec![], judged] {
            let options = ScanOptions {
                ranges: ranges.clone(),
                limit: None,
                max_rows: 4,
                max_bytes: 1 << 20,
                timezone: "UTC".into(),
            };
            let mut scan = Scan::new(file.clone(), items.clone(), filter.clone(), options)?;
            while let Some(step) = scan.step()? {
                match step {
                    ScanStep::Rows(batch) if filter.is_empty() => rows += batch.num_rows(),
                    ScanStep::Rows(_) => {}
                    ScanStep::Judge(batch) => {
                        let every_other = (0..batch.num_rows()).map(|row| row % 2 == 0);
                        scan.keep(&every_other.map(Some).collect())?;
                    }
                }
            }
        }
    }
    Ok(rows)
}

#[test]
fn damaged_files_are_refused_or_read_whole() {
    damage_files(shredded(Layout::Standard));
}

#[test]
fn damaged_early_files_are_refused_or_read_whole() {
    let early = shredded(Layout::Early);
    // Parquet's own annotation is none of this layout's.
    let plain = Schema::new(vec![Field::new("v", early.column(0).data_type().clone(), true)]);
    damage_files(RecordBatch::try_new(Arc::new(plain), early.columns().to_vec()).unwrap());
}

fn damage_files(batch: RecordBatch) {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert_eq!(read_all(bytes.clone()).unwrap(), DOCUMENTS.len() + 3);

    let mut random = Random(5);
    let mut refused = 0;
    for _ in 0..4_000 {
        let mut copy = bytes.clone();
        match random.next(4) {
            0 => copy.truncate(random.next(bytes.len())),
            _ => {
                for _ in 0..1 + random.next(4) {
                    let at = random.next(copy.len());
                    copy[at] = random.next(256) as u8;
                }
            }
        }
        refused += read_all(copy).is_err() as usize;
    }
    assert!(refused > 1_000, "only {refused} refused");
}
