//! The variants of a Parquet file as arrow-rs' own plain functions read them: one JSON text a line, NULL for SQL NULL.
//! The differential campaign asks it; nothing of mica's kernel is in the way.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;

use arrow::array::AsArray;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet_variant_compute::{VariantArray, unshred_variant};
use parquet_variant_json::VariantToJson;

fn main() {
    let path = std::env::args().nth(1).expect("a Parquet file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    for batch in reader {
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
