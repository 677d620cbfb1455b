//! Which columns of a file are of the early layout, which has no annotation.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

use crate::error::{Code, Error, Result};
use crate::layout::early::{check, recognise};
use crate::layout::standard::{METADATA, VALUE, is_variant, mark};

/// How the columns of the early layout are recognised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Early {
    /// There are none: a plain struct may look alike.
    #[default]
    Deny,
    /// By the rule of `layout/early.rs`.
    Recognise,
    /// These columns, names from the top, and no others.
    These(Vec<Vec<String>>),
}

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
            let message = format!("{path} is {}, not a group of the early layout", field.data_type());
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
