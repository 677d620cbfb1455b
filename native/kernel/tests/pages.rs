//! Pages as other writers make them, and as none should: each file is made page by page.

use std::sync::Arc;

use crate::common::memory::Memory;
use crate::common::thrift::Value;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use mica_kernel::error::Code;
use mica_kernel::item::{Item, ItemKind};
use mica_kernel::layout::recognise::Early;
use mica_kernel::parquet::file::FileReader;
use mica_kernel::parquet::search::Search;
use mica_kernel::read::scan::{Scan, ScanOptions, ScanStep};
use mica_kernel::{Error, Result};
use parquet::arrow::ArrowWriter;

const BOOLEAN: i64 = 0;
const INT32: i64 = 1;
const BYTE_ARRAY: i64 = 6;

const REQUIRED: i64 = 0;
const OPTIONAL: i64 = 1;
const REPEATED: i64 = 2;

const PLAIN: i64 = 0;
const RLE: i64 = 3;
const BIT_PACKED: i64 = 4;
const RLE_DICTIONARY: i64 = 8;

const UNCOMPRESSED: i64 = 0;
const ZSTD: i64 = 6;

const UTF8: i64 = 0;
const ENUM: i64 = 4;
const DECIMAL: i64 = 5;

fn int(value: i64) -> Value {
    Value::Int(5, value)
}

fn long(value: usize) -> Value {
    Value::Int(6, value as i64)
}

fn text(text: &str) -> Value {
    Value::Binary(text.into())
}

/// A page: its header without sizes, its bytes as they are stored, and how many it states.
struct Stored(Vec<(i16, Value)>, Vec<u8>, usize);

fn stored(kind: i64, header: (i16, Value), bytes: Vec<u8>) -> Stored {
    let size = bytes.len();
    Stored(vec![(1, int(kind)), header], bytes, size)
}

/// A page of version 1.
fn data(values: usize, encoding: i64, definitions: i64, repetitions: i64, bytes: Vec<u8>) -> Stored {
    let numbers = [values as i64, encoding, definitions, repetitions].map(int);
    stored(0, (5, Value::Struct((1..).zip(numbers).collect())), bytes)
}

fn dictionary(values: i64, bytes: Vec<u8>) -> Stored {
    stored(2, (7, Value::Struct(vec![(1, int(values)), (2, int(PLAIN))])), bytes)
}

/// So many levels of one bit, all equal, behind their length.
fn levels(count: u32, level: u8) -> Vec<u8> {
    let mut runs = Vec::new();
    Value::Int(5, i64::from(count)).write(&mut runs); // the length of a run is written as a number of Thrift's is
    runs.push(level);
    [&(runs.len() as u32).to_le_bytes()[..], &runs].concat()
}

fn plain(texts: &[&[u8]]) -> Vec<u8> {
    texts.iter().flat_map(|text| [&(text.len() as u32).to_le_bytes()[..], text].concat()).collect()
}

/// A column of one leaf: the fields of its element, its groups from the top, codec and pages.
struct Column {
    physical: i64,
    repetition: i64,
    more: Vec<(i16, Value)>,
    list: bool,
    codec: i64,
    pages: Vec<Stored>,
    values: usize,
}

fn column(physical: i64, repetition: i64, values: usize, pages: Vec<Stored>) -> Column {
    Column { physical, repetition, more: vec![], list: false, codec: UNCOMPRESSED, pages, values }
}

/// A file with one column, `x`.
fn file(column: Column, rows: usize) -> Vec<u8> {
    let group = |name: &str, repetition: i64, more: Vec<(i16, Value)>| {
        Value::Struct([vec![(3, int(repetition)), (4, text(name)), (5, int(1))], more].concat())
    };
    let mut schema = vec![Value::Struct(vec![(4, text("schema")), (5, int(1))])];
    let mut path = vec![text("x")];
    if column.list {
        schema.extend([group("x", REQUIRED, vec![(6, int(3))]), group("list", REPEATED, vec![])]);
        path.extend([text("list"), text("element")]);
    }
    let leaf = vec![(1, int(column.physical)), (3, int(column.repetition)), (4, path[path.len() - 1].clone())];
    schema.push(Value::Struct([leaf, column.more].concat()));

    let (mut bytes, mut uncompressed, mut first, mut dictionary) = (b"PAR1".to_vec(), 0, None, None);
    for Stored(mut header, body, size) in column.pages {
        let place = if header[0].1 == int(2) { &mut dictionary } else { &mut first };
        place.get_or_insert(bytes.len());
        header.splice(1..1, [(2, int(size as i64)), (3, int(body.len() as i64))]);
        let header = Value::Struct(header).bytes();
        uncompressed += header.len() + size;
        bytes.extend([header, body].concat());
    }
    let mut chunk = vec![
        (1, int(column.physical)),
        (2, Value::List(5, [PLAIN, RLE, BIT_PACKED, RLE_DICTIONARY].map(int).to_vec())),
        (3, Value::List(8, path)),
        (4, int(column.codec)),
        (5, long(column.values)),
        (6, long(uncompressed)),
        (7, long(bytes.len() - 4)),
        (9, long(first.unwrap())),
    ];
    chunk.extend(dictionary.map(|at| (11, long(at))));
    let chunk = Value::Struct(vec![(2, long(4)), (3, Value::Struct(chunk))]);
    let group = Value::Struct(vec![(1, Value::List(12, vec![chunk])), (2, long(bytes.len() - 4)), (3, long(rows))]);
    let footer = vec![(1, int(1)), (2, Value::List(12, schema)), (3, long(rows)), (4, Value::List(12, vec![group]))];
    let footer = Value::Struct(footer).bytes();
    [bytes, footer.clone(), (footer.len() as u32).to_le_bytes().to_vec(), b"PAR1".to_vec()].concat()
}

fn open(bytes: Vec<u8>) -> Result<Arc<FileReader>> {
    Ok(Arc::new(FileReader::open(Box::new(Memory(bytes.into())), &[], &Early::Recognise)?))
}

fn item() -> Item {
    Item { name: "x".into(), column: vec!["x".into()], kind: ItemKind::Whole, untyped_in: vec![] }
}

/// The column `x` in batches of at most so many bytes, about.
fn batches(bytes: Vec<u8>, max_bytes: usize) -> Result<Vec<ArrayRef>> {
    let options = ScanOptions { max_bytes, ..ScanOptions::default() };
    let mut scan = Scan::new(open(bytes)?, vec![item()], vec![], options)?;
    let mut found = Vec::new();
    while let Some(step) = scan.step()? {
        let ScanStep::Rows(batch) = step else { panic!("nothing is judged") };
        found.push(batch.column(0).clone());
    }
    Ok(found)
}

fn read(bytes: Vec<u8>) -> Result<ArrayRef> {
    let found = batches(bytes, 1 << 20)?;
    Ok(concat(&found.iter().map(AsRef::as_ref).collect::<Vec<_>>()).unwrap())
}

fn refused(bytes: Vec<u8>) -> Error {
    read(bytes).unwrap_err()
}

fn numbers(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_le_bytes).collect()
}

#[test]
fn levels_that_are_bit_packed_are_refused_and_those_that_are_not_there_are_not_minded() {
    let optional = || [levels(8, 1), numbers(0..8)].concat();
    for (repetition, definitions, repetitions, body, reads) in [
        (REQUIRED, RLE, RLE, numbers(0..8), true),
        // As parquet-java writes flat columns.
        (REQUIRED, BIT_PACKED, BIT_PACKED, numbers(0..8), true),
        (OPTIONAL, RLE, BIT_PACKED, optional(), true),
        (OPTIONAL, BIT_PACKED, BIT_PACKED, [vec![0xff], numbers(0..8)].concat(), false),
    ] {
        let page = data(8, PLAIN, definitions, repetitions, body);
        let found = read(file(column(INT32, repetition, 8, vec![page]), 8));
        match found {
            Ok(found) => assert!(reads && found.as_primitive::<Int32Type>().values() == &[0, 1, 2, 3, 4, 5, 6, 7]),
            Err(e) => assert!(!reads && e.code == Code::UnsupportedType && e.message.contains("BIT_PACKED"), "{e}"),
        }
    }
    let body = [vec![0], levels(8, 1), numbers(0..8)].concat();
    let list = Column { list: true, ..column(INT32, REQUIRED, 8, vec![data(8, PLAIN, RLE, BIT_PACKED, body)]) };
    assert!(refused(file(list, 8)).message.contains("BIT_PACKED"));
}

#[test]
fn plain_pages_are_searched_whatever_is_said_of_levels_that_are_not_there() {
    for repetitions in [RLE, BIT_PACKED] {
        let page = |page: usize| {
            let texts: Vec<String> = (0..100).map(|at| format!("key-{page}-{at}")).collect();
            let texts = plain(&texts.iter().map(String::as_bytes).collect::<Vec<_>>());
            data(100, PLAIN, RLE, repetitions, [levels(100, 1), texts].concat())
        };
        let column = column(BYTE_ARRAY, OPTIONAL, 400, (0..4).map(page).collect());
        let file = open(file(Column { more: vec![(6, int(UTF8))], ..column }, 400)).unwrap();
        let (every, third) = (0..400, 200..300);
        for (wanted, rows) in [("key-2-7", vec![third]), ("nope", vec![])] {
            let mut search = Search::new(Arc::new(StringArray::from(vec![wanted])));
            assert_eq!(file.search(&item(), &mut search, &vec![every.clone()]).unwrap(), rows);
        }
    }
}

#[test]
fn pages_are_as_long_as_they_state_before_compression() {
    let body = || [levels(8, 1), numbers(0..8)].concat();
    // Zeros behind the values, and in a list behind the levels: they decompress to more than is stated.
    let mut longer = levels(8, 0);
    longer.resize(1 << 20, 0);
    longer[..4].copy_from_slice(&((1u32 << 20) - 4).to_le_bytes());
    let longer = [longer, levels(8, 1), numbers(0..8)].concat();
    for (list, body, stated, reads) in [
        (false, body(), body().len(), true),
        (false, [body(), vec![0; 1 << 20]].concat(), body().len(), false),
        (false, body(), body().len() + 1, false),
        (true, [levels(8, 0), body()].concat(), levels(8, 0).len() + body().len(), true),
        (true, longer.clone(), longer.len(), true),
        (true, longer, 1000, false),
    ] {
        let Stored(header, body, _) = data(8, PLAIN, RLE, RLE, body);
        let page = Stored(header, zstd::bulk::compress(&body, 3).unwrap(), stated);
        let repetition = if list { REQUIRED } else { OPTIONAL };
        let column = Column { list, codec: ZSTD, ..column(INT32, repetition, 8, vec![page]) };
        match read(file(column, 8)) {
            Ok(found) => assert!(reads && found.len() == 8),
            Err(e) => assert!(!reads && e.code == Code::CorruptFile, "{e}"),
        }
    }
}

#[test]
fn a_dictionary_of_booleans_takes_its_bits() {
    let codes = || data(8, RLE_DICTIONARY, RLE, RLE, vec![1, 8 << 1, 0]);
    let error = refused(file(column(BOOLEAN, REQUIRED, 8, vec![dictionary(i64::from(i32::MAX), vec![]), codes()]), 8));
    assert!(error.message.contains("states 2147483647 values in 0 bytes"), "{error}");
}

#[test]
fn a_dictionary_that_is_nowhere_is_none() {
    for offset in [0, -1, 4, 1 << 40] {
        let mut file = crate::common::thrift::File::of(&file(
            column(INT32, REQUIRED, 8, vec![data(8, PLAIN, RLE, RLE, numbers(0..8))]),
            8,
        ))
        .unwrap();
        let chunk = file.footer.field(4).elements()[0].field(1).elements()[0].field(3);
        let Value::Struct(fields) = chunk else { panic!("no struct") };
        fields.push((11, Value::Int(6, offset)));
        assert_eq!(read(file.bytes()).unwrap().len(), 8, "{offset}");
    }
}

#[test]
fn an_enum_is_a_text() {
    let page = data(2, PLAIN, RLE, RLE, plain(&[b"a", b"b"]));
    let column = Column { more: vec![(6, int(ENUM))], ..column(BYTE_ARRAY, REQUIRED, 2, vec![page]) };
    let bytes = file(column, 2);
    assert_eq!(open(bytes.clone()).unwrap().annotations(), [Some("ENUM")]);
    assert_eq!(read(bytes).unwrap().as_string::<i32>(), &StringArray::from(vec!["a", "b"]));
}

#[test]
fn what_the_library_does_not_read_is_named() {
    let decimal = vec![(6, int(DECIMAL)), (7, int(2)), (8, int(38))];
    for (more, value, code, words) in [
        (vec![(6, int(UTF8))], vec![0xff, 0xfe], Code::InvalidUtf8, "column x holds a STRING that is not UTF-8"),
        (decimal, vec![0; 20], Code::UnsupportedType, "column x holds a DECIMAL of more than 16 bytes"),
    ] {
        let page = data(2, PLAIN, RLE, RLE, plain(&[b"a", &value]));
        let error = refused(file(Column { more, ..column(BYTE_ARRAY, REQUIRED, 2, vec![page]) }, 2));
        assert!(error.code == code && error.message.contains(words), "{error}");
    }
}

#[test]
fn batches_of_lists_are_as_large_as_their_elements() {
    let (rows, length) = (1000, 2000);
    let element = Arc::new(Field::new("element", DataType::Int64, true));
    let values = Arc::new(Int64Array::from(vec![0; rows * length]));
    let offsets = OffsetBuffer::from_lengths(vec![length; rows]);
    let list: ArrayRef = Arc::new(ListArray::new(element.clone(), offsets, values, None));
    let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::List(element), true)]));
    let batch = RecordBatch::try_new(schema, vec![list.clone()]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    assert!(bytes.len() < 10_000);
    let found = batches(bytes, 1 << 20).unwrap();
    assert_eq!(found.iter().map(Array::len).sum::<usize>(), rows);
    assert!(found.iter().all(|array| array.len() * length * 8 <= 1 << 20), "{}", found[0].len());

    // A billion nulls in one row.
    let count = 1_000_000_000;
    let runs = |length: u32, level| levels(length, level).split_off(4);
    let repetitions = [runs(1, 0), runs(count - 1, 1)].concat();
    let body = [(repetitions.len() as u32).to_le_bytes().to_vec(), repetitions, levels(count, 1)].concat();
    let pages = vec![data(count as usize, PLAIN, RLE, RLE, body)];
    let error = refused(file(Column { list: true, ..column(INT32, OPTIONAL, count as usize, pages) }, 1));
    assert!(error.code == Code::TooLarge && error.message.contains("column x.list.element has 1000000000 values"));
}
