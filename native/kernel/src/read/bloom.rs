//! Bloom filters, for equality: which row groups may hold one of some values. A filter can only say no for sure,
//! and only where it speaks of every value: for a variant path where the matching `value` is all null (rule 41).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Date32Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType};
use parquet::basic::Type as PhysicalType;
use parquet::bloom_filter::Sbbf;

use crate::error::Result;
use crate::read::bounds::resolve;
use crate::read::projection::all_null;
use crate::read::scan::Item;
use crate::read::{FileReader, footer, guard};

impl FileReader {
    /// For each row group whether `leaf` may equal any of `values` there; true where no filter can tell.
    pub fn may_contain(&self, leaf: &Item, values: &ArrayRef) -> Result<BooleanArray> {
        guard(self.name(), || {
            let resolved = resolve(self, leaf)?;
            let groups = self.metadata().row_groups();
            let unknown = || Ok(BooleanArray::from(vec![true; groups.len()]));
            let (Some(column), false) = (resolved.typed, resolved.nulls_only || resolved.opaque) else {
                return unknown();
            };
            let physical = self.metadata().file_metadata().schema_descr().column(column).physical_type();
            let Some(wanted) = stored(values, &resolved.data_type, physical) else { return unknown() };
            let mut may = Vec::with_capacity(groups.len());
            for group in groups {
                let hidden = resolved.residuals.iter().any(|&residual| !all_null(group, residual));
                let place = group
                    .columns()
                    .get(column)
                    .and_then(|c| Some((c.bloom_filter_offset()?, c.bloom_filter_length()?)));
                let Some((offset, length)) = place.filter(|_| !hidden) else {
                    may.push(true);
                    continue;
                };
                let range = offset.max(0) as u64..(offset.max(0) as u64).saturating_add(length.max(0) as u64);
                let bytes = self.fetch(std::slice::from_ref(&range))?;
                let filter = bytes.first().map(|b| Sbbf::from_bytes(b)).transpose();
                let filter = filter.map_err(|e| footer::corrupt(self.source(), &e))?;
                may.push(filter.is_none_or(|filter| wanted.iter().any(|value| filter.check(value.as_slice()))));
            }
            Ok(BooleanArray::from(may))
        })
    }
}

/// The values as the column stores them; `None` where that is not certain (floats have two zeros, decimals several
/// forms). A value that the column's type cannot hold is in no row of it, and left out; so is null.
fn stored(values: &ArrayRef, data_type: &DataType, physical: PhysicalType) -> Option<Vec<Vec<u8>>> {
    let known = matches!(
        data_type,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(..)
            | DataType::Utf8
            | DataType::Binary
            | DataType::FixedSizeBinary(16)
    );
    let same_class = values.data_type() == data_type
        || values.data_type().is_signed_integer() && data_type.is_signed_integer()
        || matches!(values.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
            && data_type == &DataType::Utf8;
    if !known || !same_class {
        return None;
    }
    let cast = cast_with_options(values, data_type, &CastOptions { safe: true, ..CastOptions::default() }).ok()?;
    let widened: Option<ArrayRef> = match physical {
        PhysicalType::INT32 => cast_with_options(&cast, &DataType::Int32, &CastOptions::default()).ok(),
        _ => None,
    };
    let array: &Arc<dyn Array> = widened.as_ref().unwrap_or(&cast);
    let rows = (0..array.len()).filter(|&row| array.is_valid(row));
    Some(match (array.data_type(), physical) {
        (DataType::Int32, PhysicalType::INT32) => {
            let array = array.as_primitive::<Int32Type>();
            rows.map(|row| array.value(row).to_le_bytes().to_vec()).collect()
        }
        (DataType::Date32, PhysicalType::INT32) => {
            let array = array.as_primitive::<Date32Type>();
            rows.map(|row| array.value(row).to_le_bytes().to_vec()).collect()
        }
        (DataType::Int64, PhysicalType::INT64) => {
            let array = array.as_primitive::<Int64Type>();
            rows.map(|row| array.value(row).to_le_bytes().to_vec()).collect()
        }
        (DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, _), PhysicalType::INT64) => {
            let array = array.as_primitive::<TimestampMicrosecondType>();
            rows.map(|row| array.value(row).to_le_bytes().to_vec()).collect()
        }
        (DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, _), PhysicalType::INT64) => {
            let array = array.as_primitive::<TimestampNanosecondType>();
            rows.map(|row| array.value(row).to_le_bytes().to_vec()).collect()
        }
        (DataType::Utf8, PhysicalType::BYTE_ARRAY) => {
            let array = array.as_string::<i32>();
            rows.map(|row| array.value(row).as_bytes().to_vec()).collect()
        }
        (DataType::Binary, PhysicalType::BYTE_ARRAY) => {
            let array = array.as_binary::<i32>();
            rows.map(|row| array.value(row).to_vec()).collect()
        }
        (DataType::FixedSizeBinary(_), PhysicalType::FIXED_LEN_BYTE_ARRAY) => {
            let array = array.as_fixed_size_binary();
            rows.map(|row| array.value(row).to_vec()).collect()
        }
        _ => return None,
    })
}
