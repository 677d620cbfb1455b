//! Decimals of more digits than their column says, which Arrow lets stand: Parquet would keep the lowest bytes of them,
//! another number. They are refused.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type, DecimalType};
use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait, PrimitiveArray};
use arrow_schema::{DataType, Fields};

use crate::error::{Code, Error, Result};
use crate::rows::Column;
use crate::shred::column::power_of_ten;

/// The places of the columns that hold decimals at any depth.
pub fn decimal_columns(fields: &Fields) -> Vec<usize> {
    (0..fields.len()).filter(|&at| holds_decimals(fields[at].data_type())).collect()
}

fn holds_decimals(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| holds_decimals(field.data_type())),
        DataType::List(inner) | DataType::LargeList(inner) | DataType::Map(inner, _) => {
            holds_decimals(inner.data_type())
        }
        other => other.is_decimal(),
    }
}

/// Refuses a column of this type that holds such a value; `path` names it in the error.
pub fn check_digits(data_type: &DataType, column: &Column, path: &str) -> Result<()> {
    match (data_type, column) {
        (_, Column::Array(array)) => check_array(array, path),
        (DataType::Struct(fields), Column::Struct { children, .. }) => fields
            .iter()
            .zip(children)
            .try_for_each(|(field, child)| check_digits(field.data_type(), child, &format!("{path}.{}", field.name()))),
        _ => Ok(()),
    }
}

fn check_array(array: &ArrayRef, path: &str) -> Result<()> {
    match array.data_type() {
        DataType::Decimal32(precision, scale) => {
            check_values::<Decimal32Type>(array.as_primitive(), (*precision, *scale), path)
        }
        DataType::Decimal64(precision, scale) => {
            check_values::<Decimal64Type>(array.as_primitive(), (*precision, *scale), path)
        }
        DataType::Decimal128(precision, scale) => {
            check_values::<Decimal128Type>(array.as_primitive(), (*precision, *scale), path)
        }
        DataType::Struct(fields) => fields
            .iter()
            .zip(array.as_struct().columns())
            .filter(|(field, _)| holds_decimals(field.data_type()))
            .try_for_each(|(field, child)| check_array(child, &format!("{path}.{}", field.name()))),
        DataType::List(_) => check_elements(array.as_list::<i32>(), path),
        DataType::LargeList(_) => check_elements(array.as_list::<i64>(), path),
        DataType::Map(..) => {
            let map = array.as_map();
            let (first, end) = (map.value_offsets()[0] as usize, map.value_offsets()[map.len()] as usize);
            let entries = map.entries().slice(first, end - first);
            ["key", "value"].into_iter().zip(entries.columns()).try_for_each(|(name, values)| {
                if holds_decimals(values.data_type()) { check_array(values, &format!("{path}.{name}")) } else { Ok(()) }
            })
        }
        _ => Ok(()),
    }
}

fn check_elements<O: OffsetSizeTrait>(list: &GenericListArray<O>, path: &str) -> Result<()> {
    let (first, end) = (list.value_offsets()[0].as_usize(), list.value_offsets()[list.len()].as_usize());
    check_array(&list.values().slice(first, end - first), &format!("{path}.element"))
}

fn check_values<T: DecimalType>(array: &PrimitiveArray<T>, (precision, scale): (u8, i8), path: &str) -> Result<()>
where
    T::Native: Into<i128>,
{
    let least = power_of_ten(precision).unsigned_abs();
    // All values first, those under nulls too, since a test without a branch takes a fraction of the time.
    if array.values().iter().all(|&value| value.into().unsigned_abs() < least) {
        return Ok(());
    }
    let Some(value) = array.iter().flatten().find(|&value| value.into().unsigned_abs() >= least) else { return Ok(()) };
    let text = T::format_decimal(value, 38, scale);
    let message = format!("{path} is DECIMAL({precision},{scale}) and holds {text}, which has more digits");
    Err(Error::new(Code::InvalidValue, message).path(path))
}
