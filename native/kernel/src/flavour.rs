//! Strings, bytes and lists of one of Arrow's flavours (short offsets, long offsets, views, codes) as the flavour that is
//! asked for.
//!
//! `cast` of the crate `arrow` knows them too, with every other pair of types: a tenth of the build.

use arrow_array::builder::GenericByteBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, GenericByteArray, GenericByteViewArray, GenericListViewArray,
    LargeBinaryArray, ListArray, OffsetSizeTrait, StringArray, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;

/// Binary or strings as views, whose bytes are shared; `None` for anything else.
pub fn binary_view(array: &dyn Array) -> Option<BinaryViewArray> {
    Some(match array.data_type() {
        DataType::BinaryView => array.as_binary_view().clone(),
        DataType::Binary => array.as_binary::<i32>().into(),
        DataType::LargeBinary => array.as_binary::<i64>().into(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().collect(),
        DataType::Utf8View => array.as_string_view().clone().to_binary_view(),
        DataType::Utf8 => (&BinaryArray::from(array.as_string::<i32>().clone())).into(),
        DataType::LargeUtf8 => (&LargeBinaryArray::from(array.as_string::<i64>().clone())).into(),
        _ => return None,
    })
}

/// Binary with short offsets; `None` for what is no binary, an error beyond 2 GiB.
pub fn binary(array: &dyn Array) -> Result<Option<BinaryArray>, ArrowError> {
    Ok(Some(match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().clone(),
        DataType::LargeBinary => shortened(array.as_binary::<i64>())?,
        DataType::BinaryView => gathered(array.as_binary_view())?,
        _ => return Ok(None),
    }))
}

/// Strings with short offsets; `None` for what are no strings, an error beyond 2 GiB.
pub fn string(array: &dyn Array) -> Result<Option<StringArray>, ArrowError> {
    Ok(Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().clone(),
        DataType::LargeUtf8 => shortened(array.as_string::<i64>())?,
        DataType::Utf8View => gathered(array.as_string_view())?,
        _ => return Ok(None),
    }))
}

/// The values of an array that is coded by a dictionary.
pub fn decoded(array: &dyn Array) -> Result<ArrayRef, ArrowError> {
    let coded = array.as_any_dictionary();
    take(coded.values(), coded.keys(), None)
}

/// Lists with short offsets; `None` for what are no lists, an error beyond 2^31 elements.
pub fn list(array: &dyn Array) -> Result<Option<ListArray>, ArrowError> {
    let (element, offsets, values) = match array.data_type() {
        DataType::List(_) => return Ok(Some(array.as_list::<i32>().clone())),
        DataType::LargeList(element) => {
            let list = array.as_list::<i64>();
            let (offsets, first, len) = short_offsets(list.offsets())?;
            (element, offsets, list.values().slice(first, len))
        }
        DataType::FixedSizeList(element, size) => {
            let list = array.as_fixed_size_list();
            fits(list.values().len())?;
            let lengths = std::iter::repeat_n(*size as usize, list.len());
            (element, OffsetBuffer::from_lengths(lengths), list.values().clone())
        }
        DataType::ListView(element) => {
            let (offsets, values) = in_order(array.as_list_view::<i32>())?;
            (element, offsets, values)
        }
        DataType::LargeListView(element) => {
            let (offsets, values) = in_order(array.as_list_view::<i64>())?;
            (element, offsets, values)
        }
        _ => return Ok(None),
    };
    ListArray::try_new(element.clone(), offsets, values, array.nulls().cloned()).map(Some)
}

/// The offsets and elements of lists that lie anywhere, one after the other; what is beneath nulls is left out.
fn in_order<O: OffsetSizeTrait>(lists: &GenericListViewArray<O>) -> Result<(OffsetBuffer<i32>, ArrayRef), ArrowError> {
    let size = |row: usize| if lists.is_valid(row) { lists.value_size(row).as_usize() } else { 0 };
    fits((0..lists.len()).map(size).sum())?;
    let first = |row: usize| lists.value_offset(row).as_usize();
    let places = (0..lists.len()).flat_map(|row| first(row)..first(row) + size(row));
    let values = take(lists.values(), &UInt64Array::from_iter_values(places.map(|place| place as u64)), None)?;
    Ok((OffsetBuffer::from_lengths((0..lists.len()).map(size)), values))
}

/// Long offsets made short; the bytes are shared.
fn shortened<L, S>(array: &GenericByteArray<L>) -> Result<GenericByteArray<S>, ArrowError>
where
    L: ByteArrayType<Offset = i64>,
    S: ByteArrayType<Offset = i32>,
{
    let (offsets, first, len) = short_offsets(array.offsets())?;
    let values = array.values().slice_with_length(first, len);
    GenericByteArray::try_new(offsets, values, array.nulls().cloned())
}

/// The same offsets made short and from 0 on, and where what they name begins and how much it is.
fn short_offsets(long: &OffsetBuffer<i64>) -> Result<(OffsetBuffer<i32>, usize, usize), ArrowError> {
    let (first, last) = (long.first() as usize, long.last() as usize);
    let len = fits(last - first)?;
    Ok((OffsetBuffer::from_lengths(long.lengths()), first, len))
}

/// The bytes of views one after the other.
pub fn gathered<V, S>(array: &GenericByteViewArray<V>) -> Result<GenericByteArray<S>, ArrowError>
where
    V: ByteViewType,
    S: ByteArrayType<Offset = i32, Native = V::Native>,
{
    let bytes = fits(array.lengths().map(|len| len as usize).sum())?;
    let mut builder = GenericByteBuilder::<S>::with_capacity(array.len(), bytes);
    builder.extend(array.iter());
    Ok(builder.finish())
}

/// The number of bytes, if short offsets can name it.
fn fits(bytes: usize) -> Result<usize, ArrowError> {
    i32::try_from(bytes).map_err(|_| ArrowError::OffsetOverflowError(bytes))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::compute::cast;
    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{
        ArrayRef, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Int32Array, LargeListArray,
        LargeStringArray, ListViewArray, StringViewArray,
    };
    use proptest::prelude::*;

    use super::*;

    /// Every flavour of the texts, and slices of it.
    fn flavours(texts: &[Option<String>]) -> Vec<ArrayRef> {
        let short = StringArray::from_iter(texts);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(BinaryArray::from(short.clone())),
            Arc::new(LargeBinaryArray::from(LargeStringArray::from_iter(texts))),
            Arc::new(StringViewArray::from_iter(texts).to_binary_view()),
            Arc::new(short),
            Arc::new(LargeStringArray::from_iter(texts)),
            Arc::new(StringViewArray::from_iter(texts)),
        ];
        let sliced = |a: &ArrayRef| a.slice(a.len() / 3, a.len() / 2);
        arrays.iter().cloned().chain(arrays.iter().map(sliced)).collect()
    }

    proptest! {
        #[test]
        fn they_are_what_arrow_casts_to(texts in prop::collection::vec(prop::option::of("[a-zäß]{0,20}"), 0..30)) {
            for array in flavours(&texts) {
                let bytes = cast(&cast(&array, &DataType::LargeBinary).unwrap(), &DataType::BinaryView).unwrap();
                prop_assert_eq!(&binary_view(&array).unwrap(), bytes.as_binary_view());
                let texts = matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
                let (as_binary, as_string) = (binary(&array).unwrap(), string(&array).unwrap());
                prop_assert_eq!((as_binary.is_none(), as_string.is_none()), (texts, !texts));
                let wanted = cast(&array, if texts { &DataType::Utf8 } else { &DataType::Binary }).unwrap();
                if let Some(made) = as_binary {
                    prop_assert_eq!(&made, wanted.as_binary::<i32>());
                }
                if let Some(made) = as_string {
                    prop_assert_eq!(&made, wanted.as_string::<i32>());
                }
            }
        }
    }

    #[test]
    fn lists_and_codes_are_what_arrow_casts_to() {
        let rows = || [Some(vec![Some(1), None]), None, Some(vec![Some(2), Some(3)]), Some(vec![Some(4), Some(5)])];
        let long: ArrayRef = Arc::new(LargeListArray::from_iter_primitive::<Int32Type, _, _>(rows()));
        let fixed: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(rows(), 2));
        for array in [&long, &fixed].into_iter().flat_map(|array| [array.clone(), array.slice(1, 2), array.slice(2, 0)])
        {
            let (DataType::LargeList(element) | DataType::FixedSizeList(element, _)) = array.data_type() else {
                panic!()
            };
            let wanted = cast(&array, &DataType::List(element.clone())).unwrap();
            assert_eq!(&list(&array).unwrap().unwrap(), wanted.as_list::<i32>());
        }
        let (element, offsets, values, nulls) = list(&fixed).unwrap().unwrap().into_parts();
        let sizes: Vec<i32> = offsets.lengths().map(|len| len as i32).collect();
        let views = ListViewArray::new(element, offsets[..4].to_vec().into(), sizes.into(), values, nulls);
        let turned = Int32Array::from(vec![Some(3), None, Some(1), Some(0)]);
        let found = list(&take(&views, &turned, None).unwrap()).unwrap().unwrap();
        assert_eq!(&found, take(&list(&fixed).unwrap().unwrap(), &turned, None).unwrap().as_list::<i32>());
        assert!(list(&StringArray::from(vec!["a"])).unwrap().is_none());
        let coded: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::from_iter([Some("b"), None, Some("a"), Some("b")]));
        assert_eq!(&decoded(&coded.slice(1, 3)).unwrap(), &cast(&coded.slice(1, 3), &DataType::Utf8).unwrap());
    }

    #[test]
    fn bytes_of_one_size_are_views_too_and_numbers_are_not() {
        let fixed =
            FixedSizeBinaryArray::try_from_iter([b"0123456789abcdef", b"fedcba9876543210"].into_iter()).unwrap();
        let views = binary_view(&fixed).unwrap();
        assert_eq!(views.iter().flatten().collect::<Vec<_>>(), [b"0123456789abcdef", b"fedcba9876543210"]);
        assert!(binary_view(&arrow_array::Int32Array::from(vec![1])).is_none());
    }
}
