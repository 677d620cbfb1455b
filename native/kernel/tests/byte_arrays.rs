//! Columns of byte arrays outside lists are encoded here: their pages are those of the library, byte for byte.

use std::sync::Arc;

use crate::common::random::Random;
use arrow::array::{ArrayRef, RecordBatch, StringArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use mica_kernel::parquet::write::{FileWriter, WriteOptions, parse_compression};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Encoding, PageType};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;

const TYPES: [DataType; 6] = [
    DataType::Utf8,
    DataType::Binary,
    DataType::LargeUtf8,
    DataType::LargeBinary,
    DataType::Utf8View,
    DataType::BinaryView,
];

/// Few values or many, alike or not, some of them larger than a page.
fn text(kind: usize, random: &mut Random) -> String {
    match kind {
        0 => format!("one of {}", random.next(5)),
        1 => format!("at://did:plc:{:08}", random.next(1 << 26)),
        2 => "é\u{10ffff}\u{7f}".repeat(random.next(30)),
        3 => format!("{}{}", "long".repeat(random.next(40).pow(2)), random.next(3)),
        _ => format!("{:0>1$}", random.next(3000), random.next(20)),
    }
}

/// An array of rows, of which at least a third are there: a column of fewer is written when its row group ends. What must
/// not be null is null at times where `around` is.
fn array(field: &Field, around: &[bool], kinds: &mut dyn Iterator<Item = usize>, random: &mut Random) -> ArrayRef {
    let often = [340, 900, 1000][random.next(3)];
    let chosen = around.iter().map(|&around| !field.is_nullable() && around || random.next(1000) < often);
    let here: Vec<bool> = chosen.collect();
    match field.data_type() {
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|field| array(field, &here, kinds, random)).collect();
            Arc::new(StructArray::new(fields.clone(), columns, Some(NullBuffer::from(here))))
        }
        data_type => {
            let kind = kinds.next().unwrap();
            let texts: StringArray = here.iter().map(|&here| here.then(|| text(kind, random))).collect();
            cast(&texts, data_type).unwrap()
        }
    }
}

fn reader(file: &Bytes) -> SerializedFileReader<Bytes> {
    let options = ReadOptionsBuilder::new().with_page_index().with_encoding_stats_as_mask(false).build();
    SerializedFileReader::new_with_options(file.clone(), options).unwrap()
}

/// What a reader sees of the chunks, by column: what the footer and the page index say, and the pages.
fn seen(file: &Bytes) -> Vec<String> {
    let reader = reader(file);
    let mut described = Vec::new();
    for at in 0..reader.num_row_groups() {
        let (group, index) = (reader.get_row_group(at).unwrap(), reader.metadata().page_index_for_row_group(at));
        for (column, chunk) in group.metadata().columns().iter().enumerate() {
            let pages: Vec<_> =
                group.get_column_page_reader(column).unwrap().map(|page| format!("{:?}", page.unwrap())).collect();
            let encodings: Vec<Encoding> = chunk.encodings().collect();
            described.push(format!(
                "{at} {} {} {:?} {encodings:?} {:?} {:?} {:?} {:?} {pages:?}",
                chunk.column_path(),
                chunk.num_values(),
                chunk.statistics(),
                chunk.page_encoding_stats(),
                chunk.unencoded_byte_array_data_bytes(),
                chunk.definition_level_histogram(),
                index.column_index(column),
            ));
        }
    }
    described
}

/// The properties by which the library encodes as our file is.
fn properties(file: &Bytes, options: &WriteOptions) -> WriterProperties {
    let reader = reader(file);
    let mut properties = WriterProperties::builder()
        .set_data_page_row_count_limit(options.page_rows)
        .set_data_page_size_limit(options.page_bytes)
        .set_dictionary_page_size_limit(options.dictionary_bytes)
        .set_max_row_group_row_count(Some(options.row_group_rows));
    for chunk in reader.metadata().row_groups().iter().flat_map(|group| group.columns()) {
        let stats = chunk.page_encoding_stats().unwrap();
        let (path, last) = (chunk.column_path().clone(), stats.last().unwrap().encoding);
        let dictionary = stats.iter().any(|stats| stats.page_type == PageType::DICTIONARY_PAGE);
        properties = properties.set_column_dictionary_enabled(path.clone(), dictionary);
        if last != Encoding::RLE_DICTIONARY {
            properties = properties.set_column_encoding(path, last);
        }
    }
    properties.set_statistics_truncate_length(Some(128)).set_column_index_truncate_length(Some(128)).build()
}

#[test]
fn chunks_are_those_of_the_library() {
    for seed in 0..24 {
        let random = &mut Random::new(seed);
        let leaf =
            |name: &str, nullable, random: &mut Random| Field::new(name, TYPES[random.next(6)].clone(), nullable);
        let inner = Fields::from(vec![leaf("a", true, random), leaf("b", false, random)]);
        let inner = Field::new("inner", DataType::Struct(inner), random.next(2) == 0);
        let outer = Field::new("outer", DataType::Struct(vec![leaf("c", true, random), inner].into()), true);
        let schema = Arc::new(Schema::new(vec![outer, leaf("d", true, random), leaf("e", false, random)]));
        let kinds: Vec<usize> = (0..5).map(|_| random.next(5)).collect();
        let options = WriteOptions {
            compression: parse_compression("none").unwrap(),
            page_rows: [300, 1024, 16 << 10][random.next(3)],
            page_bytes: [700, 20_000][random.next(2)],
            dictionary_bytes: [500, 4 << 20][random.next(2)],
            row_group_rows: [64 << 10, 1300][seed as usize % 2],
            ..WriteOptions::default()
        };
        let batches: Vec<RecordBatch> = (0..3)
            .map(|_| {
                let (rows, kinds) = (100 + random.next(2500), &mut kinds.iter().copied());
                let columns =
                    schema.fields().iter().map(|field| array(field, &vec![true; rows], kinds, random)).collect();
                RecordBatch::try_new(schema.clone(), columns).unwrap()
            })
            .collect();
        let mut ours = FileWriter::new(schema.clone(), None, options.clone()).unwrap();
        batches.iter().for_each(|batch| ours.write(batch).unwrap());
        ours.close().unwrap();
        let ours = Bytes::from(ours.take_bytes());
        let mut theirs = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties(&ours, &options))).unwrap();
        batches.iter().for_each(|batch| theirs.write(batch).unwrap());
        let theirs = Bytes::from(theirs.into_inner().unwrap());
        let (ours, theirs) = (seen(&ours), seen(&theirs));
        assert_eq!(ours.len(), theirs.len(), "seed {seed}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!(
                ours == theirs,
                "seed {seed}\n{}\n{}",
                &ours[..ours.len().min(2000)],
                &theirs[..theirs.len().min(2000)]
            );
        }
    }
}
