//! The types that the encoding got late: time, timestamps in nanoseconds and UUID (ids 17 to 20). Some readers do not
//! know them and make nulls of them: for those they are refused with their place, or become texts.
//!
//! Most values hold none, so a walk over the headers comes first, and only a row that holds one is decoded.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, FieldRef, TimeUnit};

use crate::batch::values::{bytes_of, parts_of, variants};
use crate::codec::decode::VariantDecoder;
use crate::codec::dictionary::OwnDictionaries;
use crate::codec::encode::ValueWriter;
use crate::codec::head::{head, number};
use crate::codec::primitive::id;
use crate::error::{Code, Error, Result};
use crate::json::print::push_plain;
use crate::layout::standard::{METADATA, TYPED_VALUE, is_variant};
use crate::names::Names;
use crate::path::{push_index, push_key};
use crate::tape::{Kind, Node, Tape, TapeView};
use crate::text::zone::Zone;
use crate::values::bytes::ByteColumn;

/// The variant column 0 without values of the late types: they become texts where `as_text` asks for it, spelled as in
/// JSON; otherwise the first one is an error with its row and its path.
pub fn without_late_types(batch: &RecordBatch, as_text: bool, zone: &Zone) -> Result<RecordBatch> {
    let Some(column) = batch.columns().first() else {
        return Err(Error::new(Code::InvalidArgument, "the batch has no column"));
    };
    let (metadata, values, nulls) = parts_of(column)?;
    let is_null = |row| nulls.as_ref().is_some_and(|n| n.is_null(row)) || metadata.is_null(row) || values.is_null(row);
    let mut work = Vec::new();
    let mut late = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        let found = !is_null(row) && holds_late(values.value(row), &mut work).map_err(|e| e.row(row as u64))?;
        late.push(found);
    }
    if !late.contains(&true) {
        return Ok(batch.clone());
    }
    let (mut decoder, mut tape, mut names) = (VariantDecoder::new(), Tape::default(), Names::new());
    let (mut dictionaries, mut writer) = (OwnDictionaries::default(), ValueWriter::default());
    let (mut new_metadata, mut new_values) = (ByteColumn::new(values.len()), ByteColumn::new(values.len()));
    for (row, late) in late.into_iter().enumerate() {
        if late {
            let place = |e: Error| e.row(row as u64);
            let value = values.value(row);
            decoder.decode(metadata.value(row), value, &mut tape, &mut names).map_err(place)?;
            if !as_text {
                return Err(refused(&tape.view(value, &names)).row(row as u64));
            }
            spell(&mut tape, value, &names, zone);
            let view = tape.view(value, &names);
            let dictionary = dictionaries.of(&view, 0);
            new_metadata.bytes.extend_from_slice(dictionary.base_bytes());
            writer.subtree(&view, dictionary, 0, &mut new_values.bytes);
        } else if !is_null(row) {
            new_metadata.bytes.extend_from_slice(metadata.value(row));
            new_values.bytes.extend_from_slice(values.value(row));
        }
        new_metadata.end_row()?;
        new_values.end_row()?;
    }
    let made = variants(new_metadata, new_values, nulls)?;
    let schema = batch.schema();
    let field = schema.field(0).clone().with_data_type(made.column(0).data_type().clone());
    let schema = arrow_schema::Schema::new(vec![field]);
    Ok(RecordBatch::try_new(Arc::new(schema), vec![made.column(0).clone()])?)
}

/// Whether a variant of the batch, at any depth of its columns, shredded or not, may hold a late type. Null slots are
/// looked at too, and malformed values may hold one: the answer "no" is certain.
pub fn may_hold_late_types(batch: &RecordBatch) -> bool {
    let schema = batch.schema();
    let mut columns: Vec<(FieldRef, ArrayRef, bool)> =
        schema.fields().iter().zip(batch.columns()).map(|(f, a)| (f.clone(), a.clone(), false)).collect();
    let mut work = Vec::new();
    while let Some((field, array, inside)) = columns.pop() {
        let inside = inside || is_variant(&field);
        match field.data_type() {
            DataType::Struct(fields) => {
                let children = fields.iter().zip(array.as_struct().columns());
                columns.extend(children.map(|(f, a)| (f.clone(), a.clone(), inside)));
            }
            DataType::List(inner) => columns.push((inner.clone(), array.as_list::<i32>().values().clone(), inside)),
            DataType::LargeList(inner) => {
                columns.push((inner.clone(), array.as_list::<i64>().values().clone(), inside));
            }
            DataType::Map(inner, _) => {
                columns.push((inner.clone(), Arc::new(array.as_map().entries().clone()), inside))
            }
            DataType::Time64(_) | DataType::Timestamp(TimeUnit::Nanosecond, _) | DataType::FixedSizeBinary(_)
                if inside =>
            {
                return true;
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView
                if inside && !matches!(field.name().as_str(), METADATA | TYPED_VALUE) =>
            {
                let may = |v: &[u8]| !v.is_empty() && holds_late(v, &mut work).unwrap_or(true);
                let found = match array.as_binary_opt::<i32>() {
                    // Views would be made of residuals, of which most rows have none.
                    Some(values) => values.iter().flatten().any(may),
                    None => bytes_of(&array).map_or(true, |values| values.iter().flatten().any(may)),
                };
                if found {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Whether a value holds a late type anywhere. A sound one has no more nodes than bytes; one that points twice at the
/// same child could have any number, and is an error.
fn holds_late(value: &[u8], work: &mut Vec<usize>) -> Result<bool> {
    work.clear();
    work.push(0);
    let mut left = value.len();
    while let Some(at) = work.pop() {
        left = left.checked_sub(1).ok_or_else(|| Error::new(Code::MalformedVariant, "children overlap"))?;
        match value.get(at).map(|first| (first & 3, first >> 2)) {
            Some((0, type_id)) if type_id >= id::TIME => return Ok(true),
            Some((2 | 3, _)) => {
                let head = head(value, at)?;
                for index in 0..head.count {
                    let offset = number(value, head.offsets + index * head.offset_width, head.offset_width)?;
                    work.push(head.body + offset as usize);
                }
            }
            _ => {}
        }
    }
    Ok(false)
}

fn name_of(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Time => Some("a time"),
        Kind::TimestampNanos | Kind::TimestampNtzNanos => Some("a timestamp in nanoseconds"),
        Kind::Uuid => Some("a UUID"),
        _ => None,
    }
}

fn refused(view: &TapeView) -> Error {
    let found = view.nodes.iter().enumerate().find_map(|(at, node)| Some((at, name_of(node.kind)?)));
    let (at, name) = found.unwrap_or((0, "a value"));
    let path = path_of(view, at);
    Error::new(Code::UnsupportedType, format!("{name} is at {path}")).path(path)
}

/// The node's place as a normalized path.
fn path_of(view: &TapeView, wanted: usize) -> String {
    let (mut path, mut at) = (String::from("$"), 0);
    'down: while at != wanted {
        let Some(node) = view.nodes.get(at).filter(|node| node.is_container()) else { break };
        let mut child = at + 1;
        for index in 0..node.a {
            let Some(next) = view.nodes.get(child) else { break 'down };
            if wanted < next.next(child) {
                match node.kind {
                    Kind::Object => push_key(&mut path, view.names.get(next.name)),
                    _ => push_index(&mut path, index as usize),
                }
                at = child;
                continue 'down;
            }
            child = next.next(child);
        }
        break;
    }
    path
}

/// Makes texts of the late types.
fn spell(tape: &mut Tape, value: &[u8], names: &Names, zone: &Zone) {
    let mut texts = Vec::new();
    let view = tape.view(value, names);
    for (at, node) in view.nodes.iter().enumerate().filter(|(_, node)| name_of(node.kind).is_some()) {
        let mut text = Vec::new();
        if let Some(scalar) = view.scalar(node) {
            push_plain(&mut text, &scalar, zone);
        }
        texts.push((at, text));
    }
    for (at, text) in texts {
        let start = tape.scratch.len();
        tape.scratch.extend_from_slice(&text);
        if let Some(node) = tape.nodes.get_mut(at) {
            *node = Node::with_range(Kind::Str, node.name, start, text.len(), true);
        }
    }
}
