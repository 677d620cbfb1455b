//! Texts that are decoded as codes, each a place in the dictionary of its column chunk, instead of copied one by one.
//!
//! These are the shredded texts of variants in the standard layout, reached through structs alone, if every page of the
//! chunk is encoded by the dictionary, and if they fit in one array when they are copied after all.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields};
use parquet::basic::{ConvertedType, Encoding};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::layout::Layout;
use crate::layout::standard::is_variant;
use crate::parquet::level::{LevelColumns, layout};
use crate::parquet::schema::Node;

/// Those of the leaves (sorted).
pub fn texts(columns: &[Node], group: &RowGroupMetaData, leaves: &[usize]) -> Vec<usize> {
    let mut found = Vec::new();
    for node in columns {
        through_structs(node, group, leaves, &mut found);
    }
    found
}

fn through_structs(node: &Node, group: &RowGroupMetaData, leaves: &[usize], found: &mut Vec<usize>) {
    if !node.has_any(leaves) {
    } else if is_variant(&node.field) && layout(node) == Layout::Standard {
        of_level(LevelColumns::of(node, Layout::Standard), group, leaves, found);
    } else if node.is_struct() && !is_variant(&node.field) {
        node.children.iter().for_each(|child| through_structs(child, group, leaves, found));
    }
}

fn of_level(level: LevelColumns<'_>, group: &RowGroupMetaData, leaves: &[usize], found: &mut Vec<usize>) {
    if let Some(leaf) = level.leaf.filter(|leaf| leaf.field.data_type() == &DataType::Utf8 && leaf.has_any(leaves)) {
        found.extend(group.columns().get(leaf.leaves.start).filter(|chunk| is_coded(chunk)).map(|_| leaf.leaves.start));
    }
    for field in level.object.iter().flat_map(|object| &object.children).filter(|field| field.has_any(leaves)) {
        of_level(LevelColumns::of(field, Layout::Standard), group, leaves, found);
    }
}

/// Whether the texts of the chunk are all codes, and fit in one array when they are copied.
pub fn is_coded(chunk: &ColumnChunkMetaData) -> bool {
    let copied = match chunk.unencoded_byte_array_data_bytes() {
        Some(bytes) => bytes,
        None => chunk.num_values().saturating_mul(chunk.uncompressed_size()),
    };
    chunk.column_descr().converted_type() == ConvertedType::UTF8 && copied <= i32::MAX as i64 && all_coded(chunk)
}

/// Whether every page is encoded by the dictionary.
pub fn all_coded(chunk: &ColumnChunkMetaData) -> bool {
    all_pages(chunk, |encoding| matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY))
}

/// Whether the footer says of every page how it is encoded, and each is so.
pub fn all_pages(chunk: &ColumnChunkMetaData, encoded: impl Fn(Encoding) -> bool) -> bool {
    chunk.page_encoding_stats_mask().is_some_and(|pages| {
        let mut encodings = pages.encodings().peekable();
        encodings.peek().is_some() && encodings.all(encoded)
    })
}

/// The types to decode with: those of `fields`, and these leaves as codes.
pub fn as_codes(fields: &Fields, columns: &[Node], leaves: &[usize]) -> Fields {
    let one = |(field, node): (&FieldRef, &Node)| -> FieldRef {
        let data_type = match field.data_type() {
            _ if !node.has_any(leaves) => return field.clone(),
            DataType::Struct(children) => DataType::Struct(as_codes(children, &node.children, leaves)),
            text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(text.clone())),
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    fields.iter().zip(columns).map(one).collect()
}
