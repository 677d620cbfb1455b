//! Variants by arrow-rs' own plain functions. `arrow_rs FILE` prints those of a Parquet file: one JSON text a line, NULL
//! for SQL NULL. `arrow_rs FILE LIKE` writes one of such lines, with the columns of the file LIKE.
//! The differential campaign asks it; nothing of mica's kernel is in the way.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::io::stdin;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::LogicalType;
use parquet::schema::types::{SchemaDescriptor, Type};
use parquet_variant_compute::{VariantArray, json_to_variant, shred_variant, unshred_variant};
use parquet_variant_json::VariantToJson;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a Parquet file");
    match arguments.next() {
        Some(like) => write(&path, &like),
        None => read(&path),
    }
}

fn read(path: &str) {
    for batch in opened(path).build().unwrap() {
        let batch = batch.unwrap();
        let column = batch.column(0).as_struct();
        let whole = unshred_variant(&VariantArray::try_new(column).unwrap()).unwrap();
        for row in 0..whole.len() {
            if whole.is_null(row) {
                println!("NULL");
            } else {
                println!("{}", whole.value(row).to_json_string().unwrap());
            }
        }
    }
}

fn write(path: &str, like: &str) {
    let texts = stdin().lines().map(Result::unwrap).map(|line| (line != "NULL").then_some(line));
    let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
    let mut rows = json_to_variant(&texts).unwrap();
    if let Some(typed) = typed(opened(like).schema().field(0)) {
        rows = shred_variant(&rows, &typed).unwrap();
    }
    let schema = Arc::new(Schema::new(vec![rows.field("v")]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![ArrayRef::from(rows)]).unwrap();
    let options = ArrowWriterOptions::new().with_parquet_schema(annotated(&schema));
    let mut writer = ArrowWriter::try_new_with_options(File::create(path).unwrap(), schema, options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The schema with the annotation of variants, which arrow-rs writes with a feature that mica's kernel does without.
fn annotated(schema: &Schema) -> SchemaDescriptor {
    let plain = ArrowSchemaConverter::new().convert(schema).unwrap();
    let column = &plain.root_schema().get_fields()[0];
    let column = Type::group_type_builder(column.name())
        .with_repetition(column.get_basic_info().repetition())
        .with_logical_type(Some(LogicalType::variant(Some(1))))
        .with_fields(column.get_fields().to_vec())
        .build();
    let root = Type::group_type_builder("schema").with_fields(vec![Arc::new(column.unwrap())]).build();
    SchemaDescriptor::new(Arc::new(root.unwrap()))
}

fn opened(path: &str) -> ParquetRecordBatchReaderBuilder<File> {
    ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap()
}

/// The type to shred by, of a shredded column's groups; what has no type of its own stays in `value`.
fn typed(group: &Field) -> Option<DataType> {
    let DataType::Struct(columns) = group.data_type() else { return None };
    let (_, column) = columns.find("typed_value")?;
    Some(match column.data_type() {
        DataType::Struct(fields) => {
            let plain = fields.iter().filter_map(|field| Some(Field::new(field.name(), typed(field)?, true)));
            DataType::Struct(plain.collect::<Fields>())
        }
        DataType::List(element) => DataType::List(Arc::new(Field::new("element", typed(element)?, true))),
        other => other.clone(),
    })
}
