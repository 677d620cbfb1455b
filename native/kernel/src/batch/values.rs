//! Whole columns of values: JSON text and Variants as Arrow arrays. Nulls stay null; an error names its row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, RecordBatch};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, Field, Schema};

use crate::batch::type_text::TypePrinter;
use crate::codec::decode::VariantDecoder;
use crate::codec::dictionary::OwnDictionaries;
use crate::codec::encode::ValueWriter;
use crate::error::{Code, Error, Result};
use crate::flavour;
use crate::json::variant::VariantPrinter;
use crate::json::{JsonParser, ParseOptions};
use crate::layout::standard;
use crate::names::Names;
use crate::tape::Tape;
use crate::text::utf8::decode_like_java;
use crate::text::zone::Zone;
use crate::values::bytes::{ByteColumn, TextColumn, build_variant};

/// JSON texts (strings or binary of any flavour, column 0) as the variant column `v`. Binary that is no UTF-8 is
/// repaired as Spark does it.
pub fn json_to_variant(batch: &RecordBatch, options: ParseOptions) -> Result<RecordBatch> {
    parse_texts(batch, options, |_, e| Err(e))
}

/// The same, with the column `failed`: texts that are no JSON are null.
pub fn try_json_to_variant(batch: &RecordBatch, options: ParseOptions) -> Result<RecordBatch> {
    let mut failed = vec![false; batch.num_rows()];
    let made = parse_texts(batch, options, |row, _| {
        if let Some(slot) = failed.get_mut(row) {
            *slot = true;
        }
        Ok(())
    })?;
    let mut fields = made.schema().fields().to_vec();
    fields.push(Arc::new(Field::new("failed", DataType::Boolean, false)));
    let columns = vec![made.column(0).clone(), Arc::new(BooleanArray::from(failed)) as ArrayRef];
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// `refuse` gets the rows that cannot be parsed; those that it lets pass are null.
fn parse_texts(
    batch: &RecordBatch,
    options: ParseOptions,
    mut refuse: impl FnMut(usize, Error) -> Result<()>,
) -> Result<RecordBatch> {
    let texts = bytes_of(column(batch, 0)?)?;
    let (mut parser, mut tape, mut names) = (JsonParser::new(options), Tape::default(), Names::new());
    let (mut dictionaries, mut writer) = (OwnDictionaries::default(), ValueWriter::default());
    let (mut metadata, mut values) = (ByteColumn::new(texts.len()), ByteColumn::new(texts.len()));
    // A Variant takes about what its text does; growing step by step would move what is there each time.
    values.bytes.reserve(texts.iter().flatten().map(<[u8]>::len).sum());
    let mut repaired = String::new();
    let mut refused: Vec<usize> = Vec::new();
    for row in 0..texts.len() {
        if texts.is_valid(row) {
            let bytes = texts.value(row);
            let text = match simdutf8::basic::from_utf8(bytes) {
                Ok(text) => text,
                Err(_) => {
                    repaired.clear();
                    decode_like_java(bytes, &mut repaired);
                    &repaired
                }
            };
            match parser.parse(text, &mut tape, &mut names) {
                Ok(()) => {
                    let view = tape.view(text.as_bytes(), &names);
                    let dictionary = dictionaries.of(&view, 0);
                    metadata.bytes.extend_from_slice(dictionary.base_bytes());
                    writer.subtree(&view, dictionary, 0, &mut values.bytes);
                }
                Err(e) => {
                    refuse(row, e.row(row as u64))?;
                    refused.push(row);
                }
            }
            forget(&mut names);
        }
        metadata.end_row()?;
        values.end_row()?;
    }
    let mut nulls = texts.nulls().cloned();
    if !refused.is_empty() {
        let mut there = BooleanBufferBuilder::new(texts.len());
        there.append_n(texts.len(), true);
        refused.iter().for_each(|&row| there.set_bit(row, false));
        nulls = NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(there.finish())));
    }
    variants(metadata, values, nulls)
}

/// The variant column 0 as the string column `json`.
pub fn variant_to_json(batch: &RecordBatch, zone: &Zone) -> Result<RecordBatch> {
    let mut printer = VariantPrinter::default();
    let mut texts = TextColumn::new(batch.num_rows());
    each_value(batch, |row, metadata, value| {
        let Some(value) = value else { return texts.append_null() };
        printer.print(metadata, value, zone, &mut texts.row).map_err(|e| e.row(row as u64))?;
        texts.end_row()
    })?;
    one_column(Field::new("json", DataType::Utf8, true), Arc::new(texts.finish()))
}

/// The types of the values of the variant column 0 as the string column `type`.
pub fn type_texts(batch: &RecordBatch) -> Result<RecordBatch> {
    let mut printer = TypePrinter::default();
    let mut texts = TextColumn::new(batch.num_rows());
    each_row(batch, |tape, names, row| {
        let Some(value) = row else { return texts.append_null() };
        printer.print(&tape.view(value, names), 0, &mut texts.row)?;
        texts.end_row()
    })?;
    one_column(Field::new("type", DataType::Utf8, true), Arc::new(texts.finish()))
}

/// Refuses the first row of the variant column 0 that breaks the encoding.
pub fn validate(batch: &RecordBatch) -> Result<()> {
    each_row(batch, |_, _, _| Ok(()))
}

/// Decodes every row of the variant column 0; `use_row` gets the value bytes, or `None` for null.
fn each_row(batch: &RecordBatch, mut use_row: impl FnMut(&Tape, &Names, Option<&[u8]>) -> Result<()>) -> Result<()> {
    let (mut decoder, mut tape, mut names) = (VariantDecoder::new(), Tape::default(), Names::new());
    each_value(batch, |row, metadata, value| {
        if let Some(value) = value {
            decoder.decode(metadata, value, &mut tape, &mut names).map_err(|e| e.row(row as u64))?;
        }
        use_row(&tape, &names, value)?;
        forget(&mut names);
        Ok(())
    })
}

/// Calls with row, metadata and value of the variant column 0; the value is `None` where the row is null.
fn each_value(batch: &RecordBatch, mut use_row: impl FnMut(usize, &[u8], Option<&[u8]>) -> Result<()>) -> Result<()> {
    let (metadata, values, nulls) = parts_of(column(batch, 0)?)?;
    for row in 0..metadata.len() {
        if nulls.as_ref().is_some_and(|n| n.is_null(row)) {
            use_row(row, &[], None)?;
            continue;
        }
        if metadata.is_null(row) || values.is_null(row) {
            let message = "a variant has no metadata or no value";
            return Err(Error::new(Code::MalformedVariant, message).rule(2).row(row as u64));
        }
        use_row(row, metadata.value(row), Some(values.value(row)))?;
    }
    Ok(())
}

/// Metadata, value and nulls of an unshredded variant column; its fields are found by name.
pub fn parts_of(array: &ArrayRef) -> Result<(BinaryViewArray, BinaryViewArray, Option<NullBuffer>)> {
    let Some(column) = array.as_struct_opt() else {
        return Err(argument(&format!(
            "a variant column is a struct of metadata and value, not {}",
            array.data_type()
        )));
    };
    let part = |name: &str| {
        let part = column.column_by_name(name);
        bytes_of(part.ok_or_else(|| argument(&format!("the variant column has no field {name:?}")))?)
    };
    if column.column_by_name("typed_value").is_some() {
        return Err(argument("the variant column is shredded: unshred it first"));
    }
    Ok((part("metadata")?, part("value")?, column.nulls().cloned()))
}

fn forget(names: &mut Names) {
    if names.is_full() {
        names.truncate(0);
    }
}

fn column(batch: &RecordBatch, index: usize) -> Result<&ArrayRef> {
    batch.columns().get(index).ok_or_else(|| argument("the batch has too few columns"))
}

fn argument(message: &str) -> Error {
    Error::new(Code::InvalidArgument, message)
}

/// Strings or binary of any flavour, without a copy of the bytes where Arrow can.
pub fn bytes_of(array: &ArrayRef) -> Result<BinaryViewArray> {
    match array.data_type() {
        DataType::Dictionary(..) => bytes_of(&flavour::decoded(array)?),
        DataType::Null => Ok(BinaryViewArray::new_null(array.len())),
        other => {
            flavour::binary_view(array).ok_or_else(|| argument(&format!("expected strings or binary, got {other}")))
        }
    }
}

/// The batch of one variant column `v`.
pub fn variants(metadata: ByteColumn, values: ByteColumn, nulls: Option<NullBuffer>) -> Result<RecordBatch> {
    let array = build_variant(&metadata.finish()?, values.finish()?, nulls)?;
    one_column(standard::mark(Field::new("v", array.data_type().clone(), true)), Arc::new(array))
}

fn one_column(field: Field, array: ArrayRef) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array])?)
}
