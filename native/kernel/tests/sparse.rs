//! Columns with few values in a row group are written on a way of their own: their files say what the library's say.

use std::sync::Arc;

use crate::common::random::Random;
use arrow::array::{ArrayRef, BinaryArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use bytes::Bytes;
use mica_kernel::parquet::write::{FileWriter, WriteOptions, parse_compression};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;

const ROW_GROUP: usize = 1000;

fn schema() -> SchemaRef {
    let required = Field::new("r", DataType::Struct(vec![field("b", DataType::Binary)].into()), false);
    let inner = Fields::from(vec![field("s", DataType::Utf8), field("i", DataType::Int64), required]);
    let list = DataType::List(Arc::new(field("element", DataType::Utf8)));
    let outer = vec![field("a", DataType::Struct(inner)), field("d", DataType::Float64), field("l", list)];
    let whole = Field::new("whole", DataType::Utf8, false);
    Arc::new(Schema::new(vec![field("v", DataType::Struct(outer.into())), field("t", DataType::Utf8), whole]))
}

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

/// An array of which none, few, half or all are there.
fn array(field: &Field, rows: usize, random: &mut Random) -> ArrayRef {
    let of = [0, 1, 20, 500, 1000][random.next(5)];
    let mut some = || !field.is_nullable() || random.next(1000) < of;
    let here: Vec<bool> = (0..rows).map(|_| some()).collect();
    let mut value = |here: bool| here.then(|| random.next(40));
    match field.data_type() {
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|field| array(field, rows, random)).collect();
            let nulls = field.is_nullable().then(|| NullBuffer::from(here));
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rows).unwrap())
        }
        DataType::List(element) => {
            let lengths: Vec<usize> = here.iter().map(|&here| value(here).map_or(0, |n| n % 3)).collect();
            let values = array(element, lengths.iter().sum(), random);
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(ListArray::try_new(element.clone(), offsets, values, Some(NullBuffer::from(here))).unwrap())
        }
        DataType::Int64 => Arc::new(here.iter().map(|&h| value(h).map(|v| v as i64)).collect::<Int64Array>()),
        DataType::Float64 => Arc::new(here.iter().map(|&h| value(h).map(|v| v as f64)).collect::<Float64Array>()),
        DataType::Binary => Arc::new(here.iter().map(|&h| value(h).map(|v| vec![v as u8; v])).collect::<BinaryArray>()),
        _ => Arc::new(here.iter().map(|&h| value(h).map(|v| format!("{v:0v$}"))).collect::<StringArray>()),
    }
}

fn metadata(file: &Bytes) -> ParquetMetaData {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    reader.parse_and_finish(file).unwrap()
}

/// What the footer says of each column chunk, and the nulls that the page index counts.
fn said(metadata: &ParquetMetaData) -> Vec<String> {
    let mut out = Vec::new();
    for (at, group) in metadata.row_groups().iter().enumerate() {
        let pages = metadata.page_index_for_row_group(at);
        for (column, chunk) in group.columns().iter().enumerate() {
            // A page of empty lists leaves a column without an index, and pages are cut elsewhere.
            let flat = chunk.column_descr().max_rep_level() == 0;
            let index = pages.column_index(column).filter(|_| flat);
            let nulls: Option<i64> =
                index.map(|index| (0..index.num_pages() as usize).map(|page| index.null_count(page).unwrap()).sum());
            let statistics = chunk.statistics().unwrap();
            let bounds = statistics.min_bytes_opt().zip(statistics.max_bytes_opt());
            out.push(format!(
                "{at} {} {} {:?} {flat} {nulls:?} {bounds:?} {:?} {:?}",
                chunk.column_path(),
                chunk.num_values(),
                statistics.null_count_opt(),
                chunk.unencoded_byte_array_data_bytes(),
                chunk.definition_level_histogram(),
            ));
        }
    }
    out
}

fn rows(file: Bytes, schema: &SchemaRef) -> Vec<ArrayRef> {
    let found = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let found: Vec<RecordBatch> = found.map(Result::unwrap).collect();
    concat_batches(&Arc::new(Schema::new(found[0].schema().fields().clone())), &found)
        .unwrap()
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| arrow::compute::cast(column, field.data_type()).unwrap())
        .collect()
}

#[test]
fn files_with_sparse_columns_say_and_hold_what_those_of_the_library_do() {
    let schema = schema();
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let batches: Vec<RecordBatch> = (0..1 + random.next(6))
            .map(|_| {
                let rows = 1 + random.next(900);
                let columns = schema.fields().iter().map(|field| array(field, rows, random)).collect();
                RecordBatch::try_new(schema.clone(), columns).unwrap()
            })
            .collect();
        let compression = parse_compression(["none", "snappy", "zstd"][random.next(3)]).unwrap();
        let page_rows = [50, 1024][random.next(2)];
        let options = WriteOptions { row_group_rows: ROW_GROUP, page_rows, compression, ..WriteOptions::default() };
        let mut ours = FileWriter::new(schema.clone(), None, options).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(ROW_GROUP)).build();
        let mut theirs = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties)).unwrap();
        for batch in &batches {
            ours.write(batch).unwrap();
            theirs.write(batch).unwrap();
        }
        ours.close().unwrap();
        let (ours, theirs) = (Bytes::from(ours.take_bytes()), Bytes::from(theirs.into_inner().unwrap()));
        let (mine, other) = (metadata(&ours), metadata(&theirs));
        let stated = said(&mine).into_iter().zip(said(&other));
        stated.for_each(|(mine, other)| assert_eq!(mine, other));
        let used = mine.row_groups().iter().flat_map(|g| g.columns()).all(|c| c.compression() == compression);
        assert!(used, "seed {seed}");
        let written = concat_batches(&schema, &batches).unwrap().columns().to_vec();
        assert_eq!(rows(ours, &schema), written, "seed {seed}");
    }
}
