//! Whole columns of values: JSON text, Variants and z85 as Arrow arrays. Nulls stay null; an error names its row.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, GenericListArray, StringArray, StructArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::record_batch::RecordBatch;

use crate::decode::VariantDecoder;
use crate::early::untyped::metadata_length;
use crate::encode::{Dictionary, DictionaryCache, EMPTY_METADATA, TapeEncoder, VariantWriter};
use crate::error::{Code, Error, Result};
use crate::json::utf8::decode_like_java;
use crate::json::{JsonParser, ParseOptions};
use crate::names::Names;
use crate::residual;
use crate::standard;
use crate::tape::Tape;
use crate::to_json::JsonPrinter;
use crate::type_text::TypePrinter;
use crate::z85;
use crate::zone::Zone;

/// Names beyond this many bytes are forgotten between rows: unbounded keys cost bounded memory.
const MAX_NAMES: usize = 64 << 20;

/// JSON texts (strings or binary of any flavour, column 0) as the variant column `v`. Binary that is no UTF-8 is
/// repaired as Spark does it.
pub fn json_to_variant(batch: &RecordBatch, options: ParseOptions) -> Result<RecordBatch> {
    let texts = bytes_of(column(batch, 0)?)?;
    let (mut parser, mut tape, mut names) = (JsonParser::new(options), Tape::default(), Names::new());
    let (mut cache, mut encoder) = (DictionaryCache::new(), TapeEncoder::new());
    let (mut metadata, mut values) = (Bytes::new(texts.len()), Bytes::new(texts.len()));
    let mut repaired = String::new();
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
            let encoded = parser.parse(text, &mut tape, &mut names).and_then(|()| {
                let view = tape.view(text.as_bytes(), &names);
                let dictionary = cache.of(&view, 0)?;
                metadata.data.extend_from_slice(dictionary.metadata());
                encoder.encode(&view, 0, dictionary, &mut values.data)
            });
            encoded.map_err(|e| e.row(row as u64))?;
            forget(&mut names);
        }
        metadata.end()?;
        values.end()?;
    }
    variants(metadata, values, texts.nulls().cloned())
}

/// The variant column 0 as the string column `json`.
pub fn variant_to_json(batch: &RecordBatch, zone: &Zone) -> Result<RecordBatch> {
    let mut printer = JsonPrinter::new();
    let mut texts = Bytes::new(batch.num_rows());
    let nulls = each_row(batch, |tape, names, row| {
        if let Some(value) = row {
            printer.print(&tape.view(value, names), 0, zone, &mut texts.data);
        }
        texts.end()
    })?;
    let array = StringArray::try_new(texts.offsets(), Buffer::from_vec(texts.data), nulls)?;
    one_column(Field::new("json", DataType::Utf8, true), Arc::new(array))
}

/// The types of the values of the variant column 0 as the string column `type`.
pub fn type_texts(batch: &RecordBatch) -> Result<RecordBatch> {
    let mut printer = TypePrinter::default();
    let mut texts = Bytes::new(batch.num_rows());
    let nulls = each_row(batch, |tape, names, row| {
        if let Some(value) = row {
            printer.print(&tape.view(value, names), 0, &mut texts.data);
        }
        texts.end()
    })?;
    let array = StringArray::try_new(texts.offsets(), Buffer::from_vec(texts.data), nulls)?;
    one_column(Field::new("type", DataType::Utf8, true), Arc::new(array))
}

/// Refuses the first row of the variant column 0 that breaks the encoding.
pub fn validate(batch: &RecordBatch) -> Result<()> {
    each_row(batch, |_, _, _| Ok(())).map(|_| ())
}

/// Objects from parallel lists: `keys` (strings) and `values` (value bytes of primitives). Rows whose keys are null
/// are null.
pub fn build_objects(batch: &RecordBatch) -> Result<RecordBatch> {
    let (keys, values) = (list_of(column(batch, 0)?)?, list_of(column(batch, 1)?)?);
    let (texts, parts) = (bytes_of(keys.values())?, bytes_of(values.values())?);
    let (mut writer, mut tape, mut decoder) = (VariantWriter::new(), Tape::default(), VariantDecoder::new());
    let (mut metadata, mut objects) = (Bytes::new(keys.len()), Bytes::new(keys.len()));
    for row in 0..keys.len() {
        if keys.is_valid(row) {
            let places = keys.value_offsets()[row] as usize..keys.value_offsets()[row + 1] as usize;
            let first = values.value_offsets()[row] as usize;
            if values.is_null(row) || values.value_length(row) as usize != places.len() {
                return Err(argument("keys and values differ in length").row(row as u64));
            }
            let mut names = Names::new();
            let fields: Vec<u32> =
                places.clone().map(|i| text(&texts, i).map(|t| names.intern(t))).collect::<Result<_>>()?;
            if names.len() < fields.len() {
                return Err(argument("a key stands twice in one object").rule(12).row(row as u64));
            }
            let dictionary = Dictionary::sorted(fields.clone(), &names)?;
            writer.begin_object();
            for (i, name) in fields.iter().enumerate() {
                let value = if parts.is_valid(first + i) { parts.value(first + i) } else { &[0] };
                decoder.decode(&EMPTY_METADATA, value, &mut tape, &mut Names::new()).map_err(|e| e.row(row as u64))?;
                let (id, rank) = dictionary.field(*name).unwrap_or_default();
                writer.field(id, rank);
                writer.raw(value);
            }
            writer.end()?;
            metadata.data.extend_from_slice(dictionary.metadata());
            objects.data.extend_from_slice(writer.bytes());
            writer.truncate(0);
        }
        metadata.end()?;
        objects.end()?;
    }
    variants(metadata, objects, keys.nulls().cloned())
}

/// Column 0, binary, as the string column `z85`.
pub fn z85_encode(batch: &RecordBatch) -> Result<RecordBatch> {
    let bytes = bytes_of(column(batch, 0)?)?;
    let mut texts = Bytes::new(bytes.len());
    for row in 0..bytes.len() {
        if bytes.is_valid(row) {
            z85::encode(bytes.value(row), &mut texts.data);
        }
        texts.end()?;
    }
    let array = StringArray::try_new(texts.offsets(), Buffer::from_vec(texts.data), bytes.nulls().cloned())?;
    one_column(Field::new("z85", DataType::Utf8, true), Arc::new(array))
}

/// Column 0, z85 text, as the binary column `bytes`.
pub fn z85_decode(batch: &RecordBatch) -> Result<RecordBatch> {
    let texts = bytes_of(column(batch, 0)?)?;
    let mut bytes = Bytes::new(texts.len());
    for row in 0..texts.len() {
        if texts.is_valid(row) {
            z85::decode(texts.value(row), &mut bytes.data).map_err(|e| e.row(row as u64))?;
        }
        bytes.end()?;
    }
    let array = BinaryArray::try_new(bytes.offsets(), Buffer::from_vec(bytes.data), texts.nulls().cloned())?;
    one_column(Field::new("bytes", DataType::Binary, true), Arc::new(array))
}

/// Column 0, metadata and value joined in either order and maybe padded with zeros, as the variant column `v`.
/// Both parts say how long they are, and both are validated.
pub fn split_variant(batch: &RecordBatch) -> Result<RecordBatch> {
    let joined = bytes_of(column(batch, 0)?)?;
    let (mut metadata, mut values) = (Bytes::new(joined.len()), Bytes::new(joined.len()));
    let (mut decoder, mut tape, mut names) = (VariantDecoder::new(), Tape::default(), Names::new());
    for row in 0..joined.len() {
        if joined.is_valid(row) {
            let bytes = joined.value(row);
            let mut sound = |parts: Result<(usize, usize, usize)>| -> Result<(Vec<u8>, Vec<u8>)> {
                let (meta, value, end) = parts?;
                // (start of metadata, start of value, end of the later one): the earlier ends where the later begins.
                let (meta, value) = if meta < value {
                    (bytes.get(meta..value), bytes.get(value..end))
                } else {
                    (bytes.get(meta..end), bytes.get(value..meta))
                };
                let (meta, value) = (meta.unwrap_or(&[]), value.unwrap_or(&[]));
                decoder.decode(meta, value, &mut tape, &mut names)?;
                match bytes.get(end..) {
                    Some(rest) if rest.len() < 4 && rest.iter().all(|b| *b == 0) => Ok((meta.to_vec(), value.to_vec())),
                    _ => Err(Error::new(Code::MalformedVariant, "bytes follow the metadata and the value")),
                }
            };
            let first = sound(metadata_length(bytes, 0).and_then(|at| Ok((0, at, at + residual::length(bytes, at)?))));
            let (meta, value) = match first {
                Ok(parts) => parts,
                Err(e) => {
                    let second =
                        residual::length(bytes, 0).and_then(|at| Ok((at, 0, at + metadata_length(bytes, at)?)));
                    sound(second).map_err(|_| e.row(row as u64))?
                }
            };
            metadata.data.extend_from_slice(&meta);
            values.data.extend_from_slice(&value);
            forget(&mut names);
        }
        metadata.end()?;
        values.end()?;
    }
    variants(metadata, values, joined.nulls().cloned())
}

/// Decodes every row of the variant column 0; `use_row` gets the value bytes, or `None` for null.
fn each_row(
    batch: &RecordBatch,
    mut use_row: impl FnMut(&Tape, &Names, Option<&[u8]>) -> Result<()>,
) -> Result<Option<NullBuffer>> {
    let (metadata, values, nulls) = parts_of(column(batch, 0)?)?;
    let (mut decoder, mut tape, mut names) = (VariantDecoder::new(), Tape::default(), Names::new());
    for row in 0..metadata.len() {
        if nulls.as_ref().is_some_and(|n| n.is_null(row)) {
            use_row(&tape, &names, None)?;
            continue;
        }
        if metadata.is_null(row) || values.is_null(row) {
            let message = "a variant has no metadata or no value";
            return Err(Error::new(Code::MalformedVariant, message).rule(2).row(row as u64));
        }
        let value = values.value(row);
        decoder.decode(metadata.value(row), value, &mut tape, &mut names).map_err(|e| e.row(row as u64))?;
        use_row(&tape, &names, Some(value))?;
        forget(&mut names);
    }
    Ok(nulls)
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
    if names.text_len() > MAX_NAMES {
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
    let views = match array.data_type() {
        DataType::BinaryView => array.clone(),
        DataType::Binary | DataType::LargeBinary | DataType::Utf8View => cast(array, &DataType::BinaryView)?,
        DataType::FixedSizeBinary(_) | DataType::Utf8 => cast(&cast(array, &DataType::Binary)?, &DataType::BinaryView)?,
        DataType::LargeUtf8 => cast(&cast(array, &DataType::LargeBinary)?, &DataType::BinaryView)?,
        DataType::Dictionary(_, value) => return bytes_of(&cast(array, value)?),
        DataType::Null => cast(array, &DataType::BinaryView)?,
        other => return Err(argument(&format!("strings or binary are needed here, not {other}"))),
    };
    views.as_binary_view_opt().cloned().ok_or_else(|| argument("Arrow gave no views"))
}

fn text(texts: &BinaryViewArray, at: usize) -> Result<&str> {
    simdutf8::basic::from_utf8(texts.value(at)).map_err(|_| argument("a key is no UTF-8"))
}

fn list_of(array: &ArrayRef) -> Result<GenericListArray<i32>> {
    let wrong = || argument(&format!("a list is needed here, not {}", array.data_type()));
    let list = match array.data_type() {
        DataType::List(_) => array.clone(),
        DataType::LargeList(field) => cast(array, &DataType::List(field.clone()))?,
        _ => return Err(wrong()),
    };
    list.as_list_opt().cloned().ok_or_else(wrong)
}

/// A binary column while it grows.
pub struct Bytes {
    pub data: Vec<u8>,
    ends: Vec<i32>,
}

impl Bytes {
    pub fn new(rows: usize) -> Self {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        Bytes { data: Vec::new(), ends }
    }

    /// The bytes since the last end are one row's.
    pub fn end(&mut self) -> Result<()> {
        let too_large = |_| Error::new(Code::TooLarge, "a batch is beyond 2 GiB: cut it into smaller ones");
        self.ends.push(i32::try_from(self.data.len()).map_err(too_large)?);
        Ok(())
    }

    fn offsets(&self) -> OffsetBuffer<i32> {
        OffsetBuffer::new(self.ends.clone().into())
    }
}

/// The batch of one variant column `v`.
pub fn variants(metadata: Bytes, values: Bytes, nulls: Option<NullBuffer>) -> Result<RecordBatch> {
    let binary = |bytes: Bytes| BinaryArray::try_new(bytes.offsets(), Buffer::from_vec(bytes.data), None).map(Arc::new);
    let fields = Fields::from(vec![
        Field::new("metadata", DataType::Binary, false),
        Field::new("value", DataType::Binary, false),
    ]);
    let array = StructArray::try_new(fields.clone(), vec![binary(metadata)?, binary(values)?], nulls)?;
    one_column(standard::mark(Field::new("v", DataType::Struct(fields), true)), Arc::new(array))
}

fn one_column(field: Field, array: ArrayRef) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array])?)
}
