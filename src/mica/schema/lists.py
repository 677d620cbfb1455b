"""The values inside of lists and maps, without those that no row shows.

The rule: values are what `flatten` gives, which respects slices and leaves out what lies under null rows; offsets count
from 0 into them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import to_numpy


def offsets_from_zero(array: pa.Array) -> pa.Array:
    """The offsets of a list's rows into the values of `flatten`; null rows have none."""
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    sums = pc.cumulative_sum(lengths.cast(pa.int32()))
    return pa.concat_arrays([pa.array([0], pa.int32()), sums.cast(pa.int32())])


def without_hidden(array: pa.Array) -> pa.Array:
    """The same lists or maps, without values that lie under null rows. Nearly all arrays have none and are returned as
    they are."""
    if array.null_count == 0:
        return array
    lengths = np.diff(to_numpy(array.offsets))
    if not lengths[to_numpy(array.is_null())].any():
        return array
    listed = entries_of(array) if pa.types.is_map(array.type) else array
    offsets, values, mask = offsets_from_zero(listed), listed.flatten(), array.is_null()
    if pa.types.is_map(array.type):
        return pa.MapArray.from_arrays(offsets, *values.flatten(), type=array.type, mask=mask)
    return pa.ListArray.from_arrays(offsets, values, type=array.type, mask=mask)


def offsets_of(array: pa.Array) -> pa.Array:
    """Offsets with nulls where the list is null, as `from_arrays` expects them; slices are respected. The array is one
    `without_hidden` values: `from_arrays` would give them to the row before."""
    if array.null_count == 0:
        return array.offsets
    missing = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(missing, pa.scalar(None, array.offsets.type), array.offsets)


def entries_of(array: pa.Array) -> pa.Array:
    """A map as the list of its entries, structs of key and value: few functions support maps."""
    return array.cast(pa.list_(pa.struct([array.type.key_field, _nullable(array.type.item_field)])))


def _nullable(field: pa.Field) -> pa.Field:
    """Makes the field's children nullable: a required child is null if its struct is, and Arrow's view of maps
    rejects that.
    """
    if not pa.types.is_struct(field.type):
        return field
    return field.with_type(pa.struct([_nullable(f).with_nullable(True) for f in field.type]))
