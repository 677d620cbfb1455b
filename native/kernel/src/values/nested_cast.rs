//! Values as arrays, maps and structs, as Spark's `variant_get` casts them: an array becomes an array, an object a map
//! or a struct, whose fields are found by their exact names. Inside, a value that does not fit is null, and its row is
//! marked as failed. A JSON null is null, except where a VARIANT is asked for.
//!
//! What recurses here walks the type asked for, whose depth is limited, never the data.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use hashbrown::HashMap;

use crate::codec::dictionary::OwnDictionaries;
use crate::codec::encode::ValueWriter;
use crate::error::{Code, Error, Result};
use crate::layout::standard::is_variant;
use crate::limits::MAX_TREE_DEPTH;
use crate::tape::{Kind, TapeView};
use crate::text::zone::Zone;
use crate::values::bytes::{ByteColumn, append, build_variant};
use crate::values::cast::CastBuilder;

/// A column under construction, with those inside of it.
pub struct NestedBuilder {
    kind: Of,
    nulls: Vec<bool>,
}

enum Of {
    Scalar(Box<CastBuilder>),
    Variant(Box<Variants>),
    Array { element: FieldRef, offsets: Vec<i32>, values: Box<NestedBuilder> },
    Map { entries: FieldRef, fields: Fields, offsets: Vec<i32>, keys: StringBuilder, values: Box<NestedBuilder> },
    Struct { fields: Fields, places: HashMap<String, usize>, children: Vec<NestedBuilder>, found: Vec<Option<usize>> },
}

struct Variants {
    metadata: ByteColumn,
    values: ByteColumn,
    dictionaries: OwnDictionaries,
    writer: ValueWriter,
}

/// Whether a type is one of those here.
pub fn is_nested(wanted: &DataType) -> bool {
    matches!(wanted, DataType::List(_) | DataType::Map(..) | DataType::Struct(_))
}

impl NestedBuilder {
    /// For a type of Spark in Arrow's spelling.
    pub fn new(wanted: &DataType, zone: Zone) -> Result<Self> {
        Self::of(&Field::new("values", wanted.clone(), true), zone, 0)
    }

    fn of(field: &Field, zone: Zone, depth: usize) -> Result<Self> {
        if depth > MAX_TREE_DEPTH {
            let message = format!("a type nests deeper than {MAX_TREE_DEPTH} levels");
            return Err(Error::new(Code::UnsupportedType, message));
        }
        let refused = || {
            let message = format!("a variant path cannot be cast to {}", field.data_type());
            Error::new(Code::UnsupportedType, message)
        };
        if !field.is_nullable() {
            return Err(refused());
        }
        let kind = match field.data_type() {
            _ if is_variant(field) => Of::Variant(Box::new(Variants {
                metadata: ByteColumn::new(0),
                values: ByteColumn::new(0),
                dictionaries: OwnDictionaries::default(),
                writer: ValueWriter::default(),
            })),
            DataType::List(element) => {
                let values = Box::new(Self::of(element, zone, depth + 1)?);
                Of::Array { element: element.clone(), offsets: vec![0], values }
            }
            DataType::Map(entries, false) => {
                let DataType::Struct(fields) = entries.data_type() else { return Err(refused()) };
                let [key, value] = fields.as_ref() else { return Err(refused()) };
                if key.data_type() != &DataType::Utf8 {
                    return Err(refused());
                }
                let values = Box::new(Self::of(value, zone, depth + 1)?);
                let fields = fields.clone();
                Of::Map { entries: entries.clone(), fields, offsets: vec![0], keys: StringBuilder::new(), values }
            }
            DataType::Struct(fields) => {
                let children: Result<Vec<_>> = fields.iter().map(|f| Self::of(f, zone, depth + 1)).collect();
                let places = fields.iter().enumerate().map(|(place, f)| (f.name().clone(), place)).collect();
                Of::Struct { fields: fields.clone(), places, children: children?, found: vec![None; fields.len()] }
            }
            scalar => Of::Scalar(Box::new(CastBuilder::new(scalar, zone)?)),
        };
        Ok(NestedBuilder { kind, nulls: Vec::new() })
    }

    /// Appends the node at `at`; whether everything in it had a cast.
    pub fn append(&mut self, view: &TapeView, at: usize) -> Result<bool> {
        let Some(node) = view.nodes.get(at) else {
            self.append_null()?;
            return Ok(true);
        };
        match &mut self.kind {
            Of::Scalar(builder) => return builder.append_node(view, at),
            Of::Variant(variants) => {
                let dictionary = variants.dictionaries.of(view, at);
                variants.metadata.bytes.extend_from_slice(dictionary.base_bytes());
                variants.writer.subtree(view, dictionary, at, &mut variants.values.bytes);
                variants.metadata.end_row()?;
                variants.values.end_row()?;
                self.nulls.push(true);
                return Ok(true);
            }
            _ => {}
        }
        let fits = match (&mut self.kind, node.kind) {
            (Of::Array { offsets, values, .. }, Kind::Array) => {
                let (mut fits, mut child) = (true, at + 1);
                for _ in 0..node.a {
                    fits &= values.append(view, child)?;
                    child = view.nodes.get(child).map_or(child, |node| node.next(child));
                }
                offsets.push(end(values.nulls_len())?);
                fits
            }
            (Of::Map { offsets, keys, values, .. }, Kind::Object) => {
                let (mut fits, mut child) = (true, at + 1);
                for _ in 0..node.a {
                    let Some(field) = view.nodes.get(child) else { break };
                    append(keys, view.names.get(field.name))?;
                    fits &= values.append(view, child)?;
                    child = field.next(child);
                }
                offsets.push(end(values.nulls_len())?);
                fits
            }
            (Of::Struct { places, children, found, .. }, Kind::Object) => {
                found.fill(None);
                let mut child = at + 1;
                for _ in 0..node.a {
                    let Some(field) = view.nodes.get(child) else { break };
                    if let Some(slot) = places.get(view.names.get(field.name)).and_then(|&place| found.get_mut(place)) {
                        *slot = Some(child);
                    }
                    child = field.next(child);
                }
                let mut fits = true;
                for (builder, at) in children.iter_mut().zip(found.iter()) {
                    match at {
                        Some(at) => fits &= builder.append(view, *at)?,
                        None => builder.append_null()?,
                    }
                }
                fits
            }
            _ => {
                self.append_null()?;
                return Ok(node.kind == Kind::Null);
            }
        };
        self.nulls.push(true);
        Ok(fits)
    }

    /// Appends null.
    pub fn append_null(&mut self) -> Result<()> {
        match &mut self.kind {
            Of::Scalar(builder) => {
                builder.append_null();
                return Ok(());
            }
            Of::Variant(variants) => {
                variants.metadata.end_row()?;
                variants.values.end_row()?;
            }
            Of::Array { offsets, .. } | Of::Map { offsets, .. } => {
                let last = offsets.last().copied().unwrap_or(0);
                offsets.push(last);
            }
            Of::Struct { children, .. } => children.iter_mut().try_for_each(Self::append_null)?,
        }
        self.nulls.push(false);
        Ok(())
    }

    fn nulls_len(&self) -> usize {
        match &self.kind {
            Of::Scalar(builder) => builder.len(),
            _ => self.nulls.len(),
        }
    }

    /// The column.
    pub fn finish(self) -> Result<ArrayRef> {
        let length = self.nulls_len();
        let nulls = Some(NullBuffer::from(self.nulls)).filter(|nulls| nulls.null_count() > 0);
        Ok(match self.kind {
            Of::Scalar(mut builder) => builder.finish().0,
            Of::Variant(variants) => {
                Arc::new(build_variant(&variants.metadata.finish()?, variants.values.finish()?, nulls)?)
            }
            Of::Array { element, offsets, values } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                Arc::new(ListArray::try_new(element, offsets, values.finish()?, nulls)?)
            }
            Of::Map { entries, fields, offsets, mut keys, values } => {
                let columns = vec![Arc::new(keys.finish()) as ArrayRef, values.finish()?];
                let made = StructArray::try_new(fields, columns, None)?;
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                Arc::new(MapArray::try_new(entries, offsets, made, nulls, false)?)
            }
            Of::Struct { fields, children, .. } => {
                let columns: Result<Vec<_>> = children.into_iter().map(Self::finish).collect();
                Arc::new(StructArray::try_new_with_length(fields, columns?, nulls, length)?)
            }
        })
    }
}

fn end(values: usize) -> Result<i32> {
    i32::try_from(values).map_err(|_| Error::new(Code::TooLarge, "a batch has too many elements: use smaller batches"))
}
