//! Columns of the early layout in a file: which ones are, and where a path's value may hide.
//!
//! **The rule of the residuals.** A writer may leave in `untyped_value` whatever it likes ("This specification is not
//! strict"), so the value of a path may be in the `untyped_value` of its own level and of every level above it. Each of
//! these must be null in every row, or a Variant null in every row that has one, before bounds of the typed leaf count;
//! and whoever reads the path reads all the others.
//!
//! Of a column that mica shredded (`created_by` says that mica wrote the file, and a key of the footer names the column:
//! `SHREDDED_BY_MICA`) it is known that an object always stands in `object`, and that what is left over of it holds no
//! field that is shredded: levels above the path's own hold nothing of it. At the path's own
//! level mica keeps whatever is not exactly of the leaf's type, which a cast may turn into any value of it (the
//! string "123" into the number): nothing more is known there.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use parquet::basic::ColumnOrder;
use parquet::file::metadata::{KeyValue, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use crate::codec::untyped::is_null;
use crate::error::{Code, Error, Result};
use crate::layout::Layout;
use crate::layout::early::{SHREDDED_BY_MICA, check, recognise, spelled};
use crate::layout::standard::{METADATA, VALUE, is_variant, mark};
use crate::parquet::schema::Node;

/// How the columns of the early layout are told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Early {
    /// There are none: a plain struct may look alike.
    #[default]
    Deny,
    /// By the rule of `early/mod.rs`.
    Recognise,
    /// These columns, names from the top, and no others.
    These(Vec<Vec<String>>),
}

/// What `created_by` begins with in files that mica wrote.
pub const CREATED_BY: &str = "mica version ";

/// The schema with early columns marked as variants.
pub fn mark_early(schema: &Schema, early: &Early) -> Result<Schema> {
    let fields = match early {
        Early::Deny => return Ok(schema.clone()),
        Early::Recognise => schema.fields().iter().map(|f| recognised(f, f.name())).collect::<Result<Fields>>()?,
        Early::These(columns) => {
            let mut fields = schema.fields().clone();
            for names in columns {
                fields = forced(&fields, names, &names.join("."))?;
            }
            fields
        }
    };
    Ok(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn recognised(field: &FieldRef, path: &str) -> Result<FieldRef> {
    if is_variant(field) {
        return Ok(field.clone());
    }
    if recognise(field, path)? {
        return Ok(Arc::new(mark(field.as_ref().clone())));
    }
    let inside = |f: &FieldRef| recognised(f, &format!("{path}.{}", f.name()));
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inside).collect::<Result<Fields>>()?),
        DataType::List(f) => DataType::List(inside(f)?),
        DataType::LargeList(f) => DataType::LargeList(inside(f)?),
        DataType::Map(f, sorted) => DataType::Map(inside(f)?, *sorted),
        _ => return Ok(field.clone()),
    };
    Ok(Arc::new(field.as_ref().clone().with_data_type(data_type)))
}

fn forced(fields: &Fields, names: &[String], path: &str) -> Result<Fields> {
    let Some((name, rest)) = names.split_first() else { return Ok(fields.clone()) };
    let force = |field: &FieldRef| -> Result<FieldRef> {
        let DataType::Struct(children) = field.data_type() else {
            let message = format!("{path} is {}, no group of the early layout", field.data_type());
            return Err(Error::new(Code::MalformedShredding, message).path(path));
        };
        if !rest.is_empty() {
            let made = DataType::Struct(forced(children, rest, path)?);
            return Ok(Arc::new(Field::clone(field).with_data_type(made)));
        }
        // A file may hold the same column unshredded, or in the standard layout.
        let has = |name: &str| children.find(name).is_some();
        if is_variant(field) || has(METADATA) && has(VALUE) {
            return Ok(Arc::new(mark(field.as_ref().clone())));
        }
        check(children, path)?;
        Ok(Arc::new(mark(field.as_ref().clone())))
    };
    // A column that one of several files lacks is null there.
    fields.iter().map(|f| if f.name() == name { force(f) } else { Ok(f.clone()) }).collect()
}

pub fn in_file(mut error: Error, file: &str) -> Error {
    error.message = format!("{file}: {}", error.message);
    error
}

/// Whether the levels above a path's own may hold its value; `names` are those of the column from the top.
pub fn hides_above(names: &[String], column: &Node, metadata: &ParquetMetaData) -> bool {
    let file = metadata.file_metadata();
    let by_mica = || {
        let key = |pair: &&KeyValue| pair.key == SHREDDED_BY_MICA;
        let named = file.key_value_metadata().into_iter().flatten().find(key).and_then(|pair| pair.value.as_deref());
        file.created_by().is_some_and(|by| by.starts_with(CREATED_BY))
            && named.is_some_and(|named| named.lines().any(|line| line == spelled(names)))
    };
    layout(column) == Layout::Early && !by_mica()
}

/// The layout of a variant column in the file.
pub fn layout(column: &Node) -> Layout {
    match column.field.data_type() {
        DataType::Struct(fields) if is_variant(&column.field) => Layout::of(fields),
        _ => Layout::Standard,
    }
}

/// Whether what an early residual holds in a row group is the Variant null alone, by its bounds.
pub fn only_variant_nulls(metadata: &ParquetMetaData, group: &RowGroupMetaData, leaf: usize) -> bool {
    let statistics = group.columns().get(leaf).and_then(|c| c.statistics());
    let Some(Statistics::ByteArray(bounds)) = statistics.filter(|s| !s.is_min_max_deprecated()) else { return false };
    let (Some(min), Some(max)) = (bounds.min_opt(), bounds.max_opt()) else { return false };
    ordered(metadata, leaf) && min == max && is_null(min.data())
}

/// The same of one page.
pub fn page_of_variant_nulls(
    metadata: &ParquetMetaData,
    index: &ColumnIndexMetaData,
    leaf: usize,
    page: usize,
) -> bool {
    let ColumnIndexMetaData::BYTE_ARRAY(bounds) = index else { return false };
    let (Some(min), Some(max)) = (bounds.min_value(page), bounds.max_value(page)) else { return false };
    ordered(metadata, leaf) && min == max && is_null(min)
}

fn ordered(metadata: &ParquetMetaData, leaf: usize) -> bool {
    matches!(metadata.file_metadata().column_order(leaf), ColumnOrder::TYPE_DEFINED_ORDER(_))
}
