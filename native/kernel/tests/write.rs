//! Files: what their footer says, and which columns and paths get bounds.

use std::collections::HashMap;
use std::sync::Arc;

use crate::common::{infer, shred, some};
use arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use bytes::Bytes;
use mica_kernel::Code;
use mica_kernel::infer::Limits;
use mica_kernel::layout::Layout;
use mica_kernel::names::{NO_NAME, Names};
use mica_kernel::parquet::write::{FileWriter, Summary, WriteOptions, parse_compression};
use mica_kernel::shred::Shredder;
use mica_kernel::tape::{Kind, Node, Tape};
use mica_kernel::tree::Tree;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::LogicalType;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

fn write(batch: &RecordBatch, options: WriteOptions) -> (Summary, Bytes, ParquetMetaData) {
    let mut writer = FileWriter::new(batch.schema(), None, options).unwrap();
    writer.write(batch).unwrap();
    let summary = writer.close().unwrap();
    let bytes = Bytes::from(writer.take_bytes());
    assert_eq!(summary.size, bytes.len() as u64);
    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .parse_and_finish(&bytes)
        .unwrap();
    (summary, bytes, metadata)
}

fn plain(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn variant(column: StructArray, tree: &Tree) -> RecordBatch {
    let schema = Schema::new(vec![Layout::Standard.variant_field("v", tree, true)]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(column)]).unwrap()
}

fn part(summary: &Summary, part: &str) -> StructArray {
    summary.bounds.plain.column_by_name(part).unwrap().as_struct().clone()
}

type Bounds = HashMap<String, (i64, Vec<u8>, Vec<u8>)>;

fn paths(summary: &Summary) -> Bounds {
    let batch = &summary.bounds.paths;
    let column = |name: &str| batch.column_by_name(name).unwrap();
    (0..batch.num_rows())
        .map(|i| {
            let path = column("path").as_string::<i32>().value(i).to_owned();
            let rows = column("rows").as_primitive::<Int64Type>().value(i);
            let value = |name| column(name).as_binary::<i32>().value(i).to_vec();
            (path, (rows, value("min"), value("max")))
        })
        .collect()
}

fn json_paths(lines: &[Option<&str>], data_type: &DataType) -> Bounds {
    let tree = Tree::from_arrow(data_type).unwrap();
    paths(&write(&variant(shred(lines, &tree, &[]).unwrap(), &tree), WriteOptions::default()).0)
}

fn object(fields: &[(&str, DataType)]) -> DataType {
    DataType::Struct(fields.iter().map(|(name, t)| Field::new(*name, t.clone(), true)).collect())
}

#[test]
fn plain_columns_have_bounds_and_null_counts_in_their_own_type() {
    let inner: ArrayRef = Arc::new(Int32Array::from(vec![Some(5), None, Some(-1)]));
    let nested = StructArray::try_from(vec![("i", inner)]).unwrap();
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), None, Some(vec![])]);
    let batch = plain(vec![
        ("id", Arc::new(Int64Array::from(vec![3, 1, 2]))),
        ("s", Arc::new(nested)),
        ("list", Arc::new(list)),
        ("nan", Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0]))),
        ("none", Arc::new(Int32Array::new_null(3))),
    ]);
    let (summary, _, _) = write(&batch, WriteOptions { row_group_rows: 2, ..WriteOptions::default() });
    assert_eq!((summary.rows, summary.row_groups), (3, 2));
    let (min, max, nulls) = (part(&summary, "min"), part(&summary, "max"), part(&summary, "null_count"));
    let long = |of: &StructArray, name: &str| of.column_by_name(name).unwrap().as_primitive::<Int64Type>().value(0);
    assert_eq!((long(&min, "id"), long(&max, "id"), long(&nulls, "id")), (1, 3, 0));
    let inner = min.column_by_name("s").unwrap().as_struct().column(0).as_primitive::<Int32Type>().value(0);
    assert_eq!(inner, -1);
    assert_eq!(long(nulls.column_by_name("s").unwrap().as_struct(), "i"), 1);
    assert_eq!((long(&nulls, "list"), long(&nulls, "none")), (1, 3));
    assert!(min.column_by_name("list").is_none());
    assert!(min.column_by_name("nan").unwrap().is_null(0) && max.column_by_name("nan").unwrap().is_null(0));
    assert!(min.column_by_name("none").unwrap().is_null(0));
}

#[test]
fn a_footer_bounds_floats_only_where_no_value_is_nan() {
    let halves = [0.5, f64::NAN, 0.5, 0.25];
    let doubles: ArrayRef =
        Arc::new(Float64Array::from(halves.map(Some).into_iter().chain([None]).collect::<Vec<_>>()));
    let floats: ArrayRef =
        Arc::new(Float32Array::from(halves.map(|v| v as f32).into_iter().chain([0.5]).collect::<Vec<_>>()));
    let batch = plain(vec![("d", doubles), ("f", floats)]);
    let (summary, _, metadata) = write(&batch, WriteOptions { row_group_rows: 3, ..WriteOptions::default() });
    let statistics =
        |group: usize, column: usize| metadata.row_group(group).column(column).statistics().unwrap().clone();
    for column in 0..2 {
        let with_nan = statistics(0, column);
        assert!(with_nan.min_bytes_opt().is_none() && with_nan.max_bytes_opt().is_none());
        assert_eq!((with_nan.nan_count_opt(), with_nan.null_count_opt()), (Some(1), Some(0)));
        let without = statistics(1, column);
        assert!(without.min_bytes_opt().is_some() && without.max_bytes_opt().is_some());
        assert_eq!((without.nan_count_opt(), without.null_count_opt()), (Some(0), Some(u64::from(column == 0))));
    }
    assert!(part(&summary, "min").column_by_name("d").unwrap().is_null(0));
}

/// A column of lists without a column index where the library would take a page with values for one of nulls.
#[test]
fn a_page_of_lists_with_as_many_nulls_as_rows_is_none_of_nulls() {
    let index = |rows: Vec<Option<Vec<Option<i32>>>>| {
        let batch = plain(vec![("l", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows)))]);
        let mut writer = FileWriter::new(batch.schema(), None, WriteOptions::default()).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = reader.parse_and_finish(&Bytes::from(writer.take_bytes())).unwrap();
        assert_eq!(metadata.page_index_for_row_group(0).page_locations(0).unwrap().len(), 1);
        metadata.page_index_for_row_group(0).column_index(0).map(|index| index.is_null_page(0))
    };
    assert_eq!(index(vec![Some(vec![Some(1), None]), Some(vec![Some(2), None])]), None);
    assert_eq!(index(vec![Some(vec![Some(1)]), Some(vec![Some(2), None])]), Some(false));
    assert_eq!(index(vec![None, Some(vec![]), Some(vec![None])]), Some(true));
}

#[test]
fn long_strings_are_cut_and_their_maximum_stays_one() {
    let long = "ж".repeat(40);
    let batch = plain(vec![("s", Arc::new(StringArray::from(vec![long.as_str(), "b"])))]);
    let (summary, _, _) = write(&batch, WriteOptions::default());
    let text = |of: &str| part(&summary, of).column(0).as_string::<i32>().value(0).to_owned();
    assert_eq!(text("min"), "b");
    assert_eq!(text("max"), format!("{}\u{10FFFF}", "ж".repeat(32)));
    let worst = format!("{}\u{10FFFF}\u{10FFFF}", "x".repeat(32));
    let batch = plain(vec![("s", Arc::new(StringArray::from(vec![worst.as_str(), "b"])))]);
    let (summary, _, _) = write(&batch, WriteOptions::default());
    assert!(part(&summary, "min").column(0).is_null(0), "no string sorts after that one for sure");
}

#[test]
fn a_path_has_bounds_when_every_row_that_has_it_has_it_in_its_type() {
    let t = object(&[("a", DataType::Int64), ("o", object(&[("it's", DataType::Utf8)]))]);
    let found = json_paths(&[Some("{\"a\": 5}"), Some("{}"), Some("{\"a\": -2, \"o\": {\"it's\": \"x\"}}"), None], &t);
    let int = |v: i64| [&[6 << 2], &v.to_le_bytes()[..]].concat();
    assert_eq!(found["$['a']"], (2, int(-2), int(5)));
    assert_eq!(found["$['o']['it\\'s']"], (1, vec![1 | 1 << 2, b'x'], vec![1 | 1 << 2, b'x']));
    for odd in ["null", "\"x\"", "1.5", "[1]", "{}"] {
        let odd = format!("{{\"a\": {odd}, \"o\": {{\"it's\": \"y\"}}}}");
        let found = json_paths(&[Some("{\"a\": 5}"), Some(&odd)], &t);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["$['o']['it\\'s']"], "{odd}");
    }
    // An object that is another type in some row does not have the fields there.
    assert!(json_paths(&[Some("{\"o\": {\"it's\": \"y\"}}"), Some("{\"o\": 7}")], &t).contains_key("$['o']['it\\'s']"));
}

#[test]
fn a_root_leaf_has_the_path_of_the_root_and_nothing_below_an_array_has_one() {
    assert_eq!(json_paths(&some(&["1", "2"]), &DataType::Int64)["$"].0, 2);
    let list = DataType::new_list(object(&[("x", DataType::Int64)]), true);
    let found =
        json_paths(&some(&["{\"l\": [{\"x\": 1}], \"b\": 1}"]), &object(&[("l", list), ("b", DataType::Int64)]));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["$['b']"]);
}

#[test]
fn bounds_are_in_the_leaf_s_type_and_scale_and_some_types_have_none() {
    let found = json_paths(
        &some(&["{\"d\": 1, \"e\": 1, \"b\": true}", "{\"d\": 2.5, \"e\": 3}"]),
        &object(&[("d", DataType::Decimal128(9, 2)), ("e", DataType::Decimal128(38, 0)), ("b", DataType::Boolean)]),
    );
    assert_eq!(found["$['d']"].1, [&[8 << 2, 2], &100_i32.to_le_bytes()[..]].concat());
    assert_eq!(found["$['e']"].2, [&[10 << 2, 0], &3_i128.to_le_bytes()[..]].concat());
    assert!(!found.contains_key("$['b']"));
}

/// A column of one leaf at the root, from nodes made by hand.
fn leaf_paths(data_type: &DataType, nodes: &[Node]) -> Bounds {
    let tree = Tree::from_arrow(data_type).unwrap();
    let (mut names, mut tape) = (Names::new(), Tape::default());
    let mut shredder = Shredder::new(&tree, [], &mut names).unwrap();
    for node in nodes {
        tape.clear();
        tape.nodes.push(*node);
        shredder.append(&tape.view(&[], &names)).unwrap();
    }
    paths(&write(&variant(shredder.finish().unwrap(), &tree), WriteOptions::default()).0)
}

#[test]
fn a_nan_leaves_a_path_without_bounds() {
    let double = |v: f64| Node::with_bits(Kind::Double, NO_NAME, v.to_bits());
    assert_eq!(leaf_paths(&DataType::Float64, &[double(1.0), double(-2.0)])["$"].1[1..], (-2.0_f64).to_le_bytes());
    assert!(leaf_paths(&DataType::Float64, &[double(1.0), double(f64::NAN)]).is_empty());
    assert!(leaf_paths(&DataType::Float64, &[double(f64::NAN)]).is_empty());
}

#[test]
fn dates_and_timestamps_have_bounds_and_nanoseconds_have_none() {
    use arrow::datatypes::TimeUnit::{Microsecond, Nanosecond};
    let utc = || Some("UTC".into());
    let node = |kind, v: i64| Node::with_bits(kind, NO_NAME, v as u64);
    assert_eq!(leaf_paths(&DataType::Date32, &[node(Kind::Date, 19_000)])["$"].1[0], 11 << 2);
    let micros = leaf_paths(&DataType::Timestamp(Microsecond, utc()), &[node(Kind::Timestamp, 7)]);
    assert_eq!(micros["$"].1, [&[12 << 2], &7_i64.to_le_bytes()[..]].concat());
    assert_eq!(leaf_paths(&DataType::Timestamp(Microsecond, None), &[node(Kind::TimestampNtz, 7)])["$"].1[0], 13 << 2);
    assert!(leaf_paths(&DataType::Timestamp(Nanosecond, utc()), &[node(Kind::TimestampNanos, 7)]).is_empty());
}

#[test]
fn the_footer_marks_variants_with_their_version_and_lists_in_three_levels() {
    let lines = some(&["{\"l\": [1, 2], \"a\": \"x\", \"u\": 1}", "{\"l\": [], \"a\": \"y\", \"u\": \"s\"}"]);
    let tree = infer(&lines, Limits::default());
    let (_, _, metadata) = write(&variant(shred(&lines, &tree, &[]).unwrap(), &tree), WriteOptions::default());
    let schema = metadata.file_metadata().schema_descr();
    let root = &schema.root_schema().get_fields()[0];
    assert_eq!(root.get_basic_info().logical_type_ref(), Some(&LogicalType::variant(Some(1))));
    let columns: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
    assert_eq!(
        columns,
        [
            "v.metadata",
            "v.value",
            "v.typed_value.a.value",
            "v.typed_value.a.typed_value",
            "v.typed_value.l.value",
            "v.typed_value.l.typed_value.list.element.value",
            "v.typed_value.l.typed_value.list.element.typed_value",
            "v.typed_value.u.value",
        ]
    );
    assert!(metadata.file_metadata().created_by().unwrap().starts_with("mica version "));
    assert!(metadata.page_index().unwrap().has_column_indexes(), "a page index for each row group");
}

#[test]
fn row_groups_pages_key_values_and_bloom_filters_are_as_asked_for() {
    let batch = plain(vec![("id", Arc::new(Int64Array::from_iter_values(0..10_000)))]);
    let options = WriteOptions {
        row_group_rows: 4_000,
        page_rows: 1_024,
        key_value_metadata: vec![("k".into(), "w".into())],
        bloom_filters: vec![vec!["id".into()]],
        compression: parse_compression("zstd(3)").unwrap(),
        ..WriteOptions::default()
    };
    let (summary, _, metadata) = write(&batch, options);
    assert_eq!(summary.row_groups, 3);
    let pages = metadata.page_index_for_row_group(0).offset_index(0).unwrap().page_locations().len();
    assert_eq!(pages, 4);
    assert!(metadata.row_group(0).column(0).bloom_filter_offset().is_some());
    let pairs = metadata.file_metadata().key_value_metadata().unwrap();
    assert_eq!((pairs[0].key.as_str(), pairs[0].value.as_deref()), ("k", Some("w")));
    assert!(parse_compression("zstd(99)").is_err() && parse_compression("zip").is_err());
}

#[test]
fn a_dictionary_is_made_for_what_repeats_near_or_far_and_for_nothing_else() {
    // splitmix64
    let mixed = |n: i64| {
        let n = (n as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        n ^ (n >> 31)
    };
    let texts = |of: &dyn Fn(i64) -> u64, from: i64| -> ArrayRef {
        Arc::new((from..from + 10_000).map(|i| Some(format!("{:020}", of(i)))).collect::<StringArray>())
    };
    let batches: Vec<RecordBatch> = (0..4)
        .map(|n| {
            let from = n * 10_000;
            plain(vec![
                ("id", texts(&mixed, from)),
                // Each value comes back within a few hundred rows, then never again.
                ("near", texts(&|i| mixed(i / 500 * 100 + (mixed(i) % 200) as i64), from)),
                // Ten thousand people, anywhere.
                ("far", texts(&|i| mixed((mixed(i) % 10_000) as i64), from)),
                ("time", Arc::new(Int64Array::from_iter_values((from..from + 10_000).map(|i| i / 7)))),
            ])
        })
        .collect();
    let mut writer = FileWriter::new(batches[0].schema(), None, WriteOptions::default()).unwrap();
    for batch in &batches {
        writer.write(batch).unwrap();
        assert!(writer.bytes_written() > 100_000, "rows that wait for a choice count, too");
    }
    assert_eq!(writer.close().unwrap().rows, 40_000);
    let bytes = Bytes::from(writer.take_bytes());
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes).unwrap();
    let group = metadata.row_group(0);
    let chosen: Vec<bool> = group.columns().iter().map(|c| c.dictionary_page_offset().is_some()).collect();
    assert_eq!(chosen, [false, true, true, false]);
    let found = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().with_batch_size(10_000).build().unwrap();
    let found: Vec<RecordBatch> = found.map(Result::unwrap).collect();
    let whole = |batches: &[RecordBatch]| concat_batches(&batches[0].schema(), batches).unwrap().columns().to_vec();
    assert_eq!(whole(&batches), whole(&found));
}

#[test]
fn an_empty_file_is_a_file() {
    let tree = Tree::untyped();
    let column = Layout::Standard.variant_field("v", &tree, true);
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true), column]));
    let mut writer = FileWriter::new(schema, None, WriteOptions::default()).unwrap();
    let summary = writer.close().unwrap();
    assert_eq!((summary.rows, summary.row_groups, summary.bounds.paths.num_rows()), (0, 0, 0));
    assert!(part(&summary, "min").column_by_name("id").unwrap().is_null(0));
    assert!(writer.take_bytes().ends_with(b"PAR1"));
    assert_eq!(writer.close().err().unwrap().code, Code::InvalidArgument);
}

#[test]
fn a_file_that_exists_is_not_overwritten_and_a_strange_batch_is_refused() {
    let batch = plain(vec![("id", Arc::new(Int64Array::from(vec![1])))]);
    let path = std::env::temp_dir().join(format!("mica-write-{}", std::process::id()));
    std::fs::write(&path, b"mine").unwrap();
    let open = || FileWriter::new(batch.schema(), path.to_str(), WriteOptions::default());
    assert_eq!(open().err().unwrap().code, Code::Io);
    std::fs::remove_file(&path).unwrap();
    let mut writer = open().unwrap();
    let other = plain(vec![("id", Arc::new(Int32Array::from(vec![1])))]);
    assert_eq!(writer.write(&other).err().unwrap().code, Code::InvalidArgument);
    writer.write(&batch).unwrap();
    let summary = writer.close().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), summary.size);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn many_small_batches_are_not_counted_again_and_again() {
    let batch = plain(vec![("id", Arc::new(Int64Array::from(vec![1])))]);
    let mut writer = FileWriter::new(batch.schema(), None, WriteOptions::default()).unwrap();
    let began = std::time::Instant::now();
    for _ in 0..20_000 {
        writer.write(&batch).unwrap();
        assert!(writer.bytes_written() < 1 << 20);
    }
    // A tenth of a second; ten and more if each write looked at all that wait.
    assert!(began.elapsed().as_secs() < 5);
    assert_eq!(writer.close().unwrap().rows, 20_000);
}
