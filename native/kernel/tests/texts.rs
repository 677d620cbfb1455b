//! Texts that are codes of a dictionary, read without the library's decoder beside it: files as many writers make them, and
//! damaged ones.

use std::sync::Arc;

use crate::common::memory::Memory;
use crate::common::random::Random;
use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use mica_kernel::Result;
use mica_kernel::item::{Item, ItemKind, Target};
use mica_kernel::layout::recognise::Early;
use mica_kernel::layout::standard::mark;
use mica_kernel::parquet::file::FileReader;
use mica_kernel::path::Step;
use mica_kernel::read::scan::{Scan, ScanOptions, ScanStep};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, PageType, ZstdLevel};
use parquet::file::metadata::{PageEncodingStats, ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

/// Makes the values of so many rows, or also nulls.
type Column = fn(&mut Random, usize, bool) -> ArrayRef;

/// From 1 to one of these numbers.
fn some_of(random: &mut Random, most: &[usize]) -> usize {
    let most = most[random.next(most.len())];
    1 + random.next(most)
}

/// Texts of a few values: short, of up to 32 bytes, longer, empty, not ASCII.
fn texts(random: &mut Random, rows: usize, nulls: bool) -> ArrayRef {
    let values = some_of(random, &[1, 3, 20, 400]);
    let longest = [3, 16, 17, 32, 33, 90][random.next(6)];
    let one = |random: &mut Random| -> String {
        let letters = ["a", "b", "é", "語", "🙂", "0"];
        let mut text = String::new();
        let length = random.next(longest + 1);
        while text.len() < length {
            text.push_str(letters[random.next(letters.len())]);
        }
        while text.len() > longest {
            text.pop();
        }
        text
    };
    let values: Vec<String> = (0..values).map(|_| one(random)).collect();
    let often = [2, 40, 1000][random.next(3)];
    let (mut last, mut there) = (0, true);
    let mut row = |random: &mut Random| {
        if random.next(often) == 0 {
            (last, there) = (random.next(values.len()), !nulls || random.next(3) > 0);
        }
        there.then(|| values[last].as_str())
    };
    Arc::new((0..rows).map(|_| row(random)).collect::<StringArray>())
}

/// A required column, an optional one, and the path `v:o.t` of a shredded Variant.
fn batch(random: &mut Random, rows: usize, column: Column) -> RecordBatch {
    let object = |name: &str, typed: ArrayRef| -> StructArray {
        let field = Field::new(name, typed.data_type().clone(), true);
        StructArray::new(Fields::from(vec![field]), vec![typed], None)
    };
    let some = |random: &mut Random| NullBuffer::from((0..rows).map(|_| random.next(9) > 0).collect::<Vec<_>>());
    let leaf = object("typed_value", column(random, rows, true));
    let inner = StructArray::new(
        Fields::from(vec![Field::new("t", leaf.data_type().clone(), false)]),
        vec![Arc::new(leaf)],
        Some(some(random)),
    );
    let o = object("typed_value", Arc::new(inner));
    let outer =
        StructArray::from(vec![(Arc::new(Field::new("o", o.data_type().clone(), false)), Arc::new(o) as ArrayRef)]);
    let metadata = arrow::array::BinaryArray::from_iter_values((0..rows).map(|_| [1u8, 0, 0]));
    let v = StructArray::new(
        Fields::from(vec![
            Field::new("metadata", DataType::Binary, false),
            Field::new("typed_value", outer.data_type().clone(), true),
        ]),
        vec![Arc::new(metadata), Arc::new(outer)],
        None,
    );
    let plain = [column(random, rows, false), column(random, rows, true)];
    let schema = Schema::new(vec![
        Field::new("required", plain[0].data_type().clone(), false),
        Field::new("optional", plain[1].data_type().clone(), true),
        mark(Field::new("v", v.data_type().clone(), true)),
    ]);
    let columns = plain.into_iter().chain([Arc::new(v) as ArrayRef]).collect();
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn file(random: &mut Random, batch: &RecordBatch, encoding: Option<Encoding>) -> Vec<u8> {
    let version = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][random.next(2)];
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
    ];
    let mut properties = WriterProperties::builder();
    for column in ["required", "optional", "v.typed_value.o.typed_value.t.typed_value"] {
        let column = ColumnPath::new(column.split('.').map(str::to_owned).collect());
        if let Some(encoding) = encoding {
            properties = properties.set_column_dictionary_enabled(column.clone(), false);
            properties = properties.set_column_encoding(column, encoding);
        }
    }
    let properties = properties
        .set_writer_version(version)
        .set_compression(codecs[random.next(codecs.len())])
        .set_data_page_row_count_limit(some_of(random, &[30, 5000]))
        .set_write_batch_size(1 + random.next(600))
        .set_max_row_group_row_count(Some(1 + random.next(2 * batch.num_rows())))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// One column of all rows, in batches of at most so many.
fn read(bytes: &Bytes, column: &str, data_type: DataType, max_rows: usize) -> Result<Vec<ArrayRef>> {
    let file = Arc::new(FileReader::open(Box::new(Memory(bytes.clone())), &[], &Early::Deny)?);
    let kind = match column {
        "v" => ItemKind::Path {
            steps: vec![Step::Key("o".into()), Step::Key("t".into())],
            target: Target::Type(data_type),
        },
        _ => ItemKind::Whole,
    };
    let item = Item { name: "0".into(), column: vec![column.into()], kind, untyped_in: vec![] };
    let mut scan = Scan::new(file, vec![item], vec![], ScanOptions { max_rows, ..ScanOptions::default() })?;
    let mut found = Vec::new();
    while let Some(ScanStep::Rows(batch)) = scan.step()? {
        batch.column(0).to_data().validate_full().unwrap();
        found.push(batch.column(0).clone());
    }
    Ok(found)
}

fn joined(arrays: &[ArrayRef]) -> Option<ArrayRef> {
    (!arrays.is_empty()).then(|| concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>()).unwrap())
}

/// `v:o.t` of the batch.
fn path(batch: &RecordBatch) -> ArrayRef {
    let child = |array: &ArrayRef, name: &str| -> ArrayRef {
        let found = array.as_any().downcast_ref::<StructArray>().unwrap();
        let values = found.column_by_name(name).unwrap();
        let nulls = NullBuffer::union(found.nulls(), values.nulls());
        arrow::array::make_array(values.to_data().into_builder().nulls(nulls).build().unwrap())
    };
    ["typed_value", "o", "typed_value", "t", "typed_value"]
        .iter()
        .fold(batch.column(2).clone(), |at, name| child(&at, name))
}

/// Values of `column` come back from files of all kinds.
pub fn come_back(data_type: &DataType, encoding: Option<Encoding>, column: Column) {
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let rows = some_of(random, &[40, 900, 6000]);
        let batch = batch(random, rows, column);
        let bytes = Bytes::from(file(random, &batch, encoding));
        let max_rows = some_of(random, &[7, 700, 9000]);
        for (name, wanted) in
            [("required", batch.column(0).clone()), ("optional", batch.column(1).clone()), ("v", path(&batch))]
        {
            let found = read(&bytes, name, data_type.clone(), max_rows)
                .unwrap_or_else(|e| panic!("seed {seed}, {name}: {e:?}"));
            assert!(found.iter().all(|array| array.len() <= max_rows), "seed {seed}, {name}");
            assert_eq!(joined(&found).as_ref(), Some(&wanted), "seed {seed}, {name}");
        }
    }
}

#[test]
fn texts_come_back_whatever_their_pages() {
    come_back(&DataType::Utf8, None, texts);
}

/// Pages that are plain because a dictionary would be too large, and a footer that says that all are encoded by it.
#[test]
fn plain_pages_are_read_whatever_the_footer_says() {
    let random = &mut Random::new(7);
    for nulls in [false, true] {
        let texts = |row: usize| (!nulls || !row.is_multiple_of(7)).then(|| format!("text {}", row % 900));
        let column: StringArray = (0..3000).map(texts).collect();
        let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8, nulls)]));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(column)]).unwrap();
        let properties = WriterProperties::builder()
            .set_dictionary_page_size_limit(900)
            .set_data_page_row_count_limit(100)
            .set_write_batch_size(50)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        let mut bytes = writer.into_inner().unwrap();
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes.clone())).unwrap();
        let chunk = metadata.row_group(0).column(0).clone();
        let mut encodings = chunk.page_encoding_stats_mask().unwrap().encodings();
        assert!(encodings.any(|encoding| encoding == Encoding::PLAIN));
        drop(encodings);
        let stats = [(PageType::DICTIONARY_PAGE, Encoding::PLAIN), (PageType::DATA_PAGE, Encoding::RLE_DICTIONARY)];
        let stats = stats.map(|(page_type, encoding)| PageEncodingStats { page_type, encoding, count: 1 });
        let chunk = chunk.into_builder().set_page_encoding_stats(stats.to_vec()).build().unwrap();
        let group = metadata.row_group(0).clone().into_builder().set_column_metadata(vec![chunk]).build().unwrap();
        let metadata = metadata.into_builder().set_row_groups(vec![group]).build();
        bytes.truncate(footer(&bytes));
        ParquetMetaDataWriter::new(&mut bytes, &metadata).finish().unwrap();
        let found = read(&bytes.into(), "t", DataType::Utf8, 1 + random.next(999)).unwrap();
        assert_eq!(joined(&found).as_ref(), Some(batch.column(0)));
    }
}

/// Where the footer begins.
fn footer(bytes: &[u8]) -> usize {
    bytes.len() - 8 - u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap()) as usize
}

/// Flips bits of files with values of `column`, and counts the answers that both give, that are refused, and that only the library gives.
pub fn damaged(data_type: &DataType, encoding: Option<Encoding>, column: Column) -> (usize, usize, usize) {
    let (mut refused, mut read_by_both, mut refused_here) = (0, 0, 0);
    for seed in 0..4000 {
        let random = &mut Random::new(seed);
        let rows = 1 + random.next(300);
        let batch = batch(random, rows, column);
        let mut bytes = file(random, &batch, encoding);
        let end = footer(&bytes);
        for _ in 0..1 + random.next(3) {
            bytes[4 + random.next(end - 4)] ^= 1 << random.next(8);
        }
        let bytes = Bytes::from(bytes);
        for (at, column) in ["required", "optional"].iter().enumerate() {
            let ours = read(&bytes, column, data_type.clone(), 100);
            let library = std::panic::catch_unwind(|| {
                let reader = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).ok()?;
                let mask = parquet::arrow::ProjectionMask::roots(reader.parquet_schema(), [at]);
                let batches = reader.with_projection(mask).build().ok()?.collect::<std::result::Result<Vec<_>, _>>();
                joined(&batches.ok()?.iter().map(|batch| batch.column(0).clone()).collect::<Vec<_>>())
            });
            match (ours, library) {
                (Ok(ours), Ok(Some(library))) if library.len() == rows => {
                    assert_eq!(joined(&ours), Some(library), "seed {seed}, {column}");
                    read_by_both += 1;
                }
                (Err(_), Ok(Some(library))) if library.len() == rows => refused_here += 1,
                (ours, _) => refused += usize::from(ours.is_err()),
            }
        }
    }
    (read_by_both, refused, refused_here)
}

#[test]
fn texts_of_damaged_pages_are_refused_or_those_that_the_library_reads() {
    let (read_by_both, refused, refused_here) = damaged(&DataType::Utf8, None, texts);
    assert!(read_by_both > 1000 && refused > 1000, "{read_by_both} {refused}");
    // Levels that are no levels.
    assert!(refused_here * 20 < read_by_both, "{refused_here} were read by the library alone, {read_by_both} by both");
}
