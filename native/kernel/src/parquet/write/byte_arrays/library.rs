//! Pages of the library, which tests compare with.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};

/// No more are on a page of the library.
pub const PAGE_ROWS: usize = 20_000;

/// A sequence that looks like chance.
pub fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

/// The numbers of a page as the library encodes them, with a dictionary if that is asked for.
pub fn page(numbers: &[i32], encoding: Encoding) -> Bytes {
    let coded = encoding == Encoding::RLE_DICTIONARY;
    let properties = WriterProperties::builder().set_dictionary_enabled(coded);
    let properties = if coded { properties } else { properties.set_encoding(encoding) };
    let column: ArrayRef = Arc::new(Int32Array::from(numbers.to_vec()));
    let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    let file = SerializedFileReader::new(Bytes::from(writer.into_inner().unwrap())).unwrap();
    let pages = file.get_row_group(0).unwrap().get_column_page_reader(0).unwrap();
    let data = pages.map(Result::unwrap).find(|page| !matches!(page, Page::DictionaryPage { .. }));
    data.unwrap().buffer().clone()
}
