//! A plain column cast as Spark's ANSI casts do it: the same table of types as for a Variant's scalars, so that a
//! value gives one answer wherever it is stored. Decimals alone keep their trailing zeros in a text, as a column's do.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::error::{Code, Error, Result};
use crate::tape::Scalar;
use crate::text::java;
use crate::text::zone::Zone;
use crate::values::cast::CastBuilder;
use crate::values::cast::number::pow10;
use crate::values::leaf::{Leaf, LeafValues};

/// Column 0 as the columns `values` (null where it is null or the cast failed) and `failed`.
pub fn cast_column(batch: &RecordBatch, target: &DataType, zone: Zone) -> Result<RecordBatch> {
    let column =
        batch.columns().first().ok_or_else(|| Error::new(Code::InvalidArgument, "the batch has no column to cast"))?;
    let leaf = Leaf::open(column, "values")
        .map_err(|_| Error::new(Code::UnsupportedType, format!("a column of {} cannot be cast", column.data_type())))?;
    let mut casts = CastBuilder::new(target, zone)?;
    // Spark holds decimals of so many digits as a long, whose fraction it cuts.
    let is_long = target.is_signed_integer() && matches!(leaf.values, LeafValues::Decimal(_, ..=18, _));
    for row in 0..column.len() {
        if column.is_null(row) {
            casts.append_null();
        } else {
            casts.append(&match leaf.scalar(row) {
                Scalar::Decimal(unscaled, scale) if is_long => {
                    Scalar::Int(pow10(scale.into()).map_or(0, |power| unscaled / power) as i64)
                }
                scalar => scalar,
            })?;
        }
    }
    let (values, failed) = casts.finish();
    let values = match &leaf.values {
        LeafValues::Decimal(decimals, _, scale) if target == &DataType::Utf8 => {
            let mut texts = StringBuilder::with_capacity(decimals.len(), decimals.len() * 8);
            let mut buffer = Vec::new();
            for value in decimals {
                buffer.clear();
                if let Some(value) = value {
                    java::push_decimal(&mut buffer, value, *scale);
                }
                texts.append_option(value.and_then(|_| std::str::from_utf8(&buffer).ok()));
            }
            Arc::new(texts.finish())
        }
        _ => values,
    };
    let fields =
        vec![Field::new("values", values.data_type().clone(), true), Field::new("failed", DataType::Boolean, false)];
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![values, Arc::new(failed)])?)
}
