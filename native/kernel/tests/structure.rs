//! Footers, page headers and page indexes that are well formed and untrue, and pages whose bytes changed: found before
//! anything is sized by them, and never rows that are not there.

use std::sync::Arc;

use crate::common::memory::Memory;
use crate::common::random::Random;
use crate::common::thrift::{File, Value, parse};
use arrow::array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use mica_kernel::check::Check;
use mica_kernel::item::{Item, ItemKind};
use mica_kernel::layout::recognise::Early;
use mica_kernel::parquet::file::FileReader;
use mica_kernel::parquet::write::{FileWriter, WriteOptions};
use mica_kernel::read::scan::{Scan, ScanOptions, ScanStep};
use mica_kernel::{Code, Error, Result};

const ROWS: i64 = 3000;

/// A plain column, one with a dictionary, and a list, in two row groups of several pages.
fn sound() -> Vec<u8> {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|i| i * 7919 % 3001)));
    let names: ArrayRef =
        Arc::new((0..ROWS).map(|i| (i % 5 > 0).then(|| format!("name {}", i % 9))).collect::<StringArray>());
    let lists = (0..ROWS).map(|i| (i % 7 > 0).then(|| (0..i % 4).map(Some).collect::<Vec<_>>()));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    let batch = RecordBatch::try_from_iter([("id", ids), ("name", names), ("list", lists)]).unwrap();
    let options = WriteOptions { row_group_rows: 2000, page_rows: 400, ..WriteOptions::default() };
    let mut writer = FileWriter::new(batch.schema(), None, options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    writer.take_bytes()
}

fn open(bytes: Vec<u8>) -> Result<Arc<FileReader>> {
    Ok(Arc::new(FileReader::open(Box::new(Memory(bytes.into())), &[], &Early::Deny)?))
}

/// A column of some rows, by their place in the file and by a filter that takes each third.
fn read(file: &Arc<FileReader>, column: &str, filtered: bool) -> Result<Vec<ArrayRef>> {
    let item = Item { name: "c".into(), column: vec![column.into()], kind: ItemKind::Whole, untyped_in: vec![] };
    let rows = file.num_rows();
    let ranges = filtered.then(|| vec![rows.min(10)..rows.min(20), rows.min(1450)..rows.min(1900)]);
    let options = ScanOptions { ranges, max_rows: 512, max_bytes: 1 << 20, ..ScanOptions::default() };
    let filter = if filtered { vec![item.clone()] } else { vec![] };
    let mut scan = Scan::new(file.clone(), vec![item], filter, options)?;
    let mut found = Vec::new();
    while let Some(step) = scan.step()? {
        match step {
            ScanStep::Rows(batch) => found.push(batch.column(0).clone()),
            ScanStep::Judge(batch) => scan.keep(&(0..batch.num_rows()).map(|row| Some(row % 3 == 0)).collect())?,
        }
    }
    Ok(found)
}

/// Reads all there is, in every way; the first error.
fn read_all(bytes: Vec<u8>) -> Result<()> {
    let file = open(bytes)?;
    let mut failed = Ok(());
    for column in file.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>() {
        for filtered in [false, true] {
            failed = failed.and(read(&file, &column, filtered).map(drop));
        }
    }
    let mut check = Check::new(file.clone(), 3);
    while check.next_batch()?.is_some() {}
    failed.and(file.inspect().map(drop))
}

fn refused(bytes: Vec<u8>) -> Error {
    read_all(bytes).expect_err("a file that lies was read")
}

fn with_footer(footer: &[u8]) -> Vec<u8> {
    [b"PAR1", footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

fn element(fields: &[(i16, Value)]) -> Value {
    Value::Struct(fields.to_vec())
}

fn footer(schema: Vec<Value>, rows: i64) -> Value {
    element(&[
        (1, Value::Int(5, 2)),
        (2, Value::List(12, schema)),
        (3, Value::Int(6, rows)),
        (4, Value::List(12, vec![])),
    ])
}

fn group(name: &str, children: i64) -> Value {
    element(&[(3, Value::Int(5, 0)), (4, Value::Binary(name.into())), (5, Value::Int(5, children))])
}

#[test]
fn a_sound_file_is_read_and_each_page_has_a_checksum() {
    let mut file = File::of(&sound()).unwrap();
    read_all(file.bytes()).unwrap();
    let mut pages = 0;
    for group in 0..2 {
        for column in 0..3 {
            for (at, mut header, length) in file.pages(group, column) {
                let Value::Int(_, size) = *header.field(3) else { panic!("no size") };
                let Value::Int(_, crc) = *header.field(4) else { panic!("no checksum") };
                assert_eq!(crc as i32, crc32fast::hash(&file.body[at + length..][..size as usize]) as i32);
                pages += 1;
            }
        }
    }
    assert_eq!(pages, 16);
}

#[test]
fn counts_of_a_footer_are_held_against_its_bytes() {
    let schema = vec![group("root", i64::from(i32::MAX))];
    assert_eq!(refused(with_footer(&footer(schema, 0).bytes())).code, Code::CorruptFile);
    for deep in [401, 20_000] {
        let mut schema: Vec<Value> = (0..deep).map(|_| group("g", 1)).collect();
        schema.push(element(&[(1, Value::Int(5, 1)), (3, Value::Int(5, 0)), (4, Value::Binary(b"x".to_vec()))]));
        let error = refused(with_footer(&footer(schema, 0).bytes()));
        assert!(error.message.contains("nests more than"), "{error}");
    }
}

/// The deepest schema that is let through is one that the library takes on a small stack.
#[test]
fn a_schema_as_deep_as_allowed_is_read_on_a_small_stack() {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        let mut schema: Vec<Value> = (0..400).map(|_| group("g", 1)).collect();
        schema.push(element(&[(1, Value::Int(5, 1)), (3, Value::Int(5, 0)), (4, Value::Binary(b"x".to_vec()))]));
        read_all(with_footer(&footer(schema, 0).bytes()))
    });
    thread.unwrap().join().unwrap().unwrap();
}

#[test]
fn row_counts_are_held_against_row_groups_and_pages() {
    let lie = 1_513_803_274;
    let mut file = File::of(&sound()).unwrap();
    *file.footer.field(3) = Value::Int(6, lie);
    assert!(refused(file.bytes()).message.contains("it states 1513803274 rows"));
    let group = &mut file.footer.field(4).elements()[0];
    *group.field(3) = Value::Int(6, lie - 1000);
    assert_eq!(refused(file.bytes()).code, Code::CorruptFile);
    // Where every count of the footer says the same, the pages do not.
    for column in file.footer.field(4).elements()[0].field(1).elements() {
        *column.field(3).field(5) = Value::Int(6, lie - 1000);
    }
    let error = refused(file.bytes());
    assert!(error.code == Code::CorruptFile && error.message.contains("page"), "{error}");
}

#[test]
fn a_schema_whose_nesting_changed_is_refused_and_not_read_for_ever() {
    for index in 1..6 {
        for repetition in 0..3 {
            let mut file = File::of(&sound()).unwrap();
            let Value::Struct(fields) = &mut file.footer.field(2).elements()[index] else { panic!() };
            let Some((_, found)) = fields.iter_mut().find(|(id, _)| *id == 3) else { continue };
            let changed = *found != Value::Int(5, repetition);
            *found = Value::Int(5, repetition);
            // Some ways to read the same levels are sound; none goes on for ever.
            let read = read_all(file.bytes());
            assert!(changed || read.is_ok(), "{index} {repetition} {read:?}");
        }
        let mut file = File::of(&sound()).unwrap();
        let elements = file.footer.field(2).elements();
        elements.insert(index, elements[index].clone());
        assert_eq!(refused(file.bytes()).code, Code::CorruptFile);
    }
}

#[test]
fn counts_and_sizes_of_pages_are_held_against_their_bytes() {
    // A dictionary of 2^30 names.
    let mut file = File::of(&sound()).unwrap();
    let (at, header, length) = file.pages(0, 1).swap_remove(0);
    let mut lying = header.clone();
    *lying.field(7).field(1) = Value::Int(5, 1 << 30);
    file.body.splice(at..at + length, lying.bytes());
    file.body.drain(file.body.len() - (lying.bytes().len() - length)..);
    let error = refused(file.bytes());
    assert_eq!(error.code, Code::CorruptFile);
    // A page of 2 GB.
    let mut file = File::of(&sound()).unwrap();
    let (at, mut header, length) = file.pages(0, 0).swap_remove(0);
    *header.field(2) = Value::Int(5, i64::from(i32::MAX));
    file.body.splice(at..at + length, header.bytes());
    assert_eq!(refused(file.bytes()).code, Code::TooLarge);
}

#[test]
fn a_page_index_that_is_shifted_is_found_out_where_it_is_used() {
    for column in 0..3 {
        let mut file = File::of(&sound()).unwrap();
        let chunk = &mut file.footer.field(4).elements()[0].field(1).elements()[column];
        let (Value::Int(_, start), Value::Int(_, length)) = (chunk.field(4).clone(), chunk.field(5).clone()) else {
            panic!()
        };
        let (start, length) = (start as usize, length as usize);
        let (mut index, _) = parse(&file.body[start..start + length]).unwrap();
        for location in &mut index.field(1).elements()[1..] {
            let Value::Int(_, row) = *location.field(3) else { panic!() };
            *location.field(3) = Value::Int(6, row - 1);
        }
        let bytes = index.bytes();
        assert_eq!(bytes.len(), length);
        file.body[start..start + length].copy_from_slice(&bytes);
        let opened = open(file.bytes()).unwrap();
        let name = opened.schema().field(column).name().clone();
        let error = read(&opened, &name, true).expect_err("rows of other pages");
        assert!(error.message.contains("page index"), "{error}");
        let mut check = Check::new(opened, 3);
        while check.next_batch().unwrap().is_some() {}
        assert!(check.totals().unwrap().num_rows() > 0);
    }
}

#[test]
fn a_changed_byte_of_a_page_is_never_a_changed_value() {
    let bytes = sound();
    let mut file = File::of(&bytes).unwrap();
    let before = read(&open(bytes).unwrap(), "id", false).unwrap();
    let pages: Vec<_> =
        (0..3).flat_map(|column| file.pages(0, column).into_iter().map(move |page| (column, page))).collect();
    let mut random = Random::new(11);
    for _ in 0..200 {
        let (column, (at, header, length)) = &pages[random.next(pages.len())];
        let Value::Int(_, size) = *header.clone().field(3) else { panic!() };
        let place = at + length + random.next(size as usize);
        let mut damaged = File { body: file.body.clone(), footer: file.footer.clone() };
        damaged.body[place] ^= 1 << random.next(8);
        let opened = open(damaged.bytes()).unwrap();
        let name = opened.schema().field(*column).name().clone();
        let error = read(&opened, &name, false).expect_err("a changed page was read");
        assert!(error.message.contains("CRC"), "{error}");
        if *column > 0 {
            let after = read(&opened, "id", false).unwrap();
            assert_eq!(before.iter().map(Array::len).sum::<usize>(), after.iter().map(Array::len).sum::<usize>());
        }
    }
}
