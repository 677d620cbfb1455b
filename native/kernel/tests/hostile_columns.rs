//! Damaged shredded columns and damaged Parquet files: nothing panics out of the kernel, and what is accepted is
//! sound: every value that comes back is one that the decoder accepts.

use std::sync::Arc;

use crate::common::memory::Memory;
use crate::common::random::Random;
use crate::common::sound::{assert_sound, tree};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Schema};
use mica_kernel::Result;
use mica_kernel::batch::values::{json_to_variant, variant_to_json};
use mica_kernel::convert::moving::move_nested;
use mica_kernel::convert::shred::shred_batch;
use mica_kernel::item::{Item, ItemKind, Target};
use mica_kernel::json::ParseOptions;
use mica_kernel::layout::recognise::Early;
use mica_kernel::layout::{Layout, standard};
use mica_kernel::parquet::file::FileReader;
use mica_kernel::parquet::search::Search;
use mica_kernel::path::Step;
use mica_kernel::read::scan::{Scan, ScanOptions, ScanStep};
use mica_kernel::read::texts::Texts;
use mica_kernel::text::zone::Zone;
use mica_kernel::values::extract::extract_path;
use mica_kernel::values::level::VariantColumn;
use mica_kernel::values::reconstruct::unshred;
use parquet::arrow::ArrowWriter;

const DOCUMENTS: [&str; 6] = [
    r#"{"a":1,"b":{"c":"x","d":[1,2,"three",{"c":null}]},"e":[{"c":1},{"c":"y","z":0}]}"#,
    r#"{"a":"one","b":{"c":2.5},"other":[true,false]}"#,
    r#"{"b":7,"e":"no list"}"#,
    r#"{"a":null,"b":{},"e":[]}"#,
    "17",
    r#"[{"a":1}]"#,
];

fn shredded(layout: Layout) -> RecordBatch {
    let texts: ArrayRef = Arc::new(StringArray::from(DOCUMENTS.to_vec()));
    let schema = Arc::new(Schema::new(vec![Field::new("json", DataType::Utf8, true)]));
    let batch = RecordBatch::try_new(schema, vec![texts]).unwrap();
    let variants = json_to_variant(&batch, ParseOptions::default()).unwrap();
    shred_batch(&variants, &[(vec!["v".into()], tree())], layout).unwrap()
}

fn paths() -> Vec<Vec<Step>> {
    let keys = [vec![], vec!["a"], vec!["b", "c"], vec!["b", "d"], vec!["e"], vec!["other"]];
    let mut paths = keys.map(|path| path.into_iter().map(|key| Step::Key(key.into())).collect::<Vec<_>>()).to_vec();
    paths.push([paths[3].clone(), vec![Step::Index(1)]].concat());
    paths.push([paths[4].clone(), vec![Step::Index(0)]].concat());
    paths
}

/// Where the whole column is sound, every path has what it has there.
fn assert_one_answer(opened: &VariantColumn, whole: Option<&VariantColumn>, path: &[Step]) {
    let list = Target::Type(DataType::new_list(DataType::Int64, true));
    for target in [Target::Variant, Target::Json, Target::Type(DataType::Utf8), Target::Type(DataType::Int64), list] {
        match (extract_path(opened, path, &target, "UTC"), whole) {
            (Ok(found), _) if target == Target::Variant => assert_sound(found.values.as_struct()),
            (Ok(found), Some(whole)) => {
                let expected = extract_path(whole, path, &target, "UTC").unwrap();
                assert_eq!(&found.values, &expected.values, "{path:?}");
                assert_eq!(found.failed, expected.failed, "{path:?}");
            }
            (Err(e), Some(_)) => panic!("{path:?}: {e:?} where the whole is sound"),
            _ => {}
        }
    }
}

/// The column as it is stored, and which rows were put together on the way.
fn moved(column: &ArrayRef) -> Result<(ArrayRef, Vec<bool>)> {
    let field = Arc::new(standard::mark(Field::new("v", column.data_type().clone(), true)));
    let (_, moved, rebuilt) = move_nested(&field, column, Layout::Standard, "v")?;
    Ok((moved, rebuilt))
}

fn json(values: &StructArray) -> RecordBatch {
    let field = standard::mark(Field::new("v", values.data_type().clone(), true));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(values.clone())]).unwrap();
    variant_to_json(&batch, &Zone::UTC).unwrap()
}

#[test]
fn damaged_columns_are_refused_or_read_soundly() {
    let column = shredded(Layout::Standard).column(0).clone();
    let mut random = Random::new(3);
    let (mut accepted, mut refused, mut some_rebuilt) = (0, 0, 0);
    let paths = paths();
    for case in 0..60_000 {
        let array = random.damaged(&column);
        let stored = moved(&array);
        let whole = match unshred(array.as_struct(), "v") {
            Ok(variant) => {
                accepted += 1;
                assert_sound(&variant);
                // What is written again as it is stored is read as before, and obeys the layout.
                let (stored, rebuilt) = stored.unwrap();
                assert_eq!(json(&variant), json(&unshred(stored.as_struct(), "v").unwrap()), "{array:?}");
                some_rebuilt += rebuilt.contains(&true) as usize;
                assert!(!moved(&stored).unwrap().1.contains(&true), "{array:?}");
                Some(VariantColumn::open(&variant, "v").unwrap())
            }
            Err(e) => {
                refused += 1;
                assert!(e.rule.is_some() && e.path.is_some(), "{e:?}");
                assert!(stored.is_err(), "{array:?}");
                None
            }
        };
        if let Ok(opened) = VariantColumn::open(array.as_struct(), "v") {
            assert_one_answer(&opened, whole.as_ref(), &paths[case % paths.len()]);
        }
    }
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} accepted, {refused} refused");
    assert!(some_rebuilt > 1_000, "{some_rebuilt} with rows that were put together");
}

/// Of an early column that is accepted, every path is where reconstruction has it.
#[test]
fn damaged_early_columns_are_refused_or_give_one_answer() {
    let column = shredded(Layout::Early).column(0).clone();
    let mut random = Random::new(7);
    let (mut accepted, mut refused) = (0, 0);
    let paths = paths();
    for case in 0..60_000 {
        let array = random.damaged(&column);
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
        assert_one_answer(&opened, whole.as_ref(), &paths[case % paths.len()]);
    }
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} accepted, {refused} refused");
}

fn read_all(bytes: Vec<u8>) -> Result<usize> {
    let file = Arc::new(FileReader::open(Box::new(Memory(bytes.into())), &[], &Early::Recognise)?);
    let items = vec![
        Item { name: "0".into(), column: vec!["v".into()], kind: ItemKind::Whole, untyped_in: vec![] },
        Item {
            name: "1".into(),
            column: vec!["v".into()],
            kind: ItemKind::Path {
                steps: vec![Step::Key("b".into()), Step::Key("c".into())],
                target: Target::Type(DataType::Utf8),
            },
            untyped_in: vec![0],
        },
    ];
    for pages in [false, true] {
        file.bounds(&items, pages, None)?;
    }
    file.cost(&items, None)?;
    file.inspect()?;
    let every = 0..file.num_rows();
    file.search(&items[1], &mut Search::new(Arc::new(StringArray::from(vec!["a text"]))), &vec![every])?;
    let mut rows = 0;
    for ranges in [None, Some(vec![1..3, 5..6])] {
        let judged = items[1..].to_vec();
        for filter in [vec![], judged] {
            let options = ScanOptions {
                ranges: ranges.clone(),
                texts: Texts::new(vec![(0, vec!["a text".into()])], ranges.is_some()),
                max_rows: 4,
                max_bytes: 1 << 20,
                ..ScanOptions::default()
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

    let mut random = Random::new(5);
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
