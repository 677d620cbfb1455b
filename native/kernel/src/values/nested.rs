//! Variants wherever they stand in a column: a tree of structs, lists and maps comes back with every variant in
//! it unshredded. Columns without one pass through untouched.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeListArray, ListArray, MapArray, StructArray, make_array};
use arrow_schema::{DataType, Field, FieldRef, Fields};

use crate::error::{Code, Error, Result};
use crate::layout::standard::is_variant;
use crate::values::bytes::variant_fields;
use crate::values::reconstruct::unshred;

/// Whether a variant stands in this field or below it.
pub fn holds_variant(field: &Field) -> bool {
    is_variant(field)
        || match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|f| holds_variant(f)),
            DataType::List(f) | DataType::LargeList(f) | DataType::Map(f, _) => holds_variant(f),
            _ => false,
        }
}

/// The field after [`unshred_nested`].
pub fn unshredded_field(field: &FieldRef) -> FieldRef {
    if !holds_variant(field) {
        return field.clone();
    }
    let data_type = if is_variant(field) {
        DataType::Struct(variant_fields())
    } else {
        match field.data_type() {
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(unshredded_field).collect::<Fields>()),
            DataType::List(f) => DataType::List(unshredded_field(f)),
            DataType::LargeList(f) => DataType::LargeList(unshredded_field(f)),
            DataType::Map(f, sorted) => DataType::Map(unshredded_field(f), *sorted),
            other => other.clone(),
        }
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// The column without nulls of required fields: where a struct in a list is null, the library says so of all in it, and
/// who looks at types takes that for a value that lacks.
pub fn without_hidden_nulls(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Struct(fields) if fields.iter().any(may_hide) => {
            let group = array.as_struct();
            let children = fields.iter().zip(group.columns()).map(|(field, child)| {
                let child = without_hidden_nulls(child)?;
                if field.is_nullable() || child.nulls().is_none() {
                    return Ok(child);
                }
                Ok(make_array(child.to_data().into_builder().nulls(None).build()?))
            });
            Arc::new(StructArray::try_new(fields.clone(), children.collect::<Result<_>>()?, group.nulls().cloned())?)
        }
        DataType::List(element) if may_hide(element) => {
            let list = array.as_list::<i32>();
            let values = without_hidden_nulls(list.values())?;
            Arc::new(ListArray::try_new(element.clone(), list.offsets().clone(), values, list.nulls().cloned())?)
        }
        DataType::Map(entries, sorted) if may_hide(entries) => {
            let map = array.as_map();
            let values: ArrayRef = Arc::new(map.entries().clone());
            let values = without_hidden_nulls(&values)?.as_struct().clone();
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(entries.clone(), offsets, values, nulls, *sorted)?)
        }
        _ => array.clone(),
    })
}

/// Whether the field is required, or one in it, Variants aside.
fn may_hide(field: &FieldRef) -> bool {
    let within = match field.data_type() {
        _ if is_variant(field) => return false,
        DataType::Struct(fields) => fields.iter().any(may_hide),
        DataType::List(element) | DataType::Map(element, _) => may_hide(element),
        _ => false,
    };
    within || !field.is_nullable()
}

/// Unshreds every variant in `array`; `field` says where they are (its struct children are found by name, so a
/// projected array fits the whole field), `path` names the column in errors.
pub fn unshred_nested(field: &FieldRef, array: &ArrayRef, path: &str) -> Result<ArrayRef> {
    if !holds_variant(field) {
        return Ok(array.clone());
    }
    let unexpected = || {
        Error::new(
            Code::CorruptFile,
            format!("{path} is {} where {} was expected", array.data_type(), field.data_type()),
        )
        .path(path)
    };
    if is_variant(field) {
        return Ok(Arc::new(unshred(array.as_struct_opt().ok_or_else(unexpected)?, path)?));
    }
    match field.data_type() {
        DataType::Struct(fields) => {
            let group = array.as_struct_opt().ok_or_else(unexpected)?;
            let mut children = Vec::with_capacity(fields.len());
            let mut types = Vec::with_capacity(fields.len());
            for child in fields {
                let column = group.column_by_name(child.name()).ok_or_else(unexpected)?;
                children.push(unshred_nested(child, column, &format!("{path}.{}", child.name()))?);
                types.push(unshredded_field(child));
            }
            Ok(Arc::new(StructArray::try_new(types.into(), children, group.nulls().cloned())?))
        }
        DataType::List(element) => {
            let list = array.as_list_opt::<i32>().ok_or_else(unexpected)?;
            let values = unshred_nested(element, list.values(), &format!("{path}.{}", element.name()))
                .map_err(|e| outer_row(e, list.value_offsets()))?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Ok(Arc::new(ListArray::try_new(unshredded_field(element), offsets, values, nulls)?))
        }
        DataType::LargeList(element) => {
            let list = array.as_list_opt::<i64>().ok_or_else(unexpected)?;
            let values = unshred_nested(element, list.values(), &format!("{path}.{}", element.name()))?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Ok(Arc::new(LargeListArray::try_new(unshredded_field(element), offsets, values, nulls)?))
        }
        DataType::Map(entries, sorted) => {
            let map = array.as_map_opt().ok_or_else(unexpected)?;
            let values: ArrayRef = Arc::new(map.entries().clone());
            let values = unshred_nested(entries, &values, &format!("{path}.{}", entries.name()))
                .map_err(|e| outer_row(e, map.value_offsets()))?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            let values = values.as_struct().clone();
            Ok(Arc::new(MapArray::try_new(unshredded_field(entries), offsets, values, nulls, *sorted)?))
        }
        _ => Ok(array.clone()),
    }
}

/// An element's row number as that of the row it lies in.
fn outer_row(mut error: Error, offsets: &[i32]) -> Error {
    if let Some(element) = error.row {
        let row = offsets.partition_point(|&end| end as u64 <= element);
        error.row = Some(row.saturating_sub(1) as u64);
    }
    error
}
