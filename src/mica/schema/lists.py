"""The values inside of lists and maps, without those that no row shows.

The rule: values are what `flatten` gives, which respects slices and leaves out what lies under null rows; offsets count
from 0 into them. Where the layout of a list or map stays, `with_offsets` gives both without a copy.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy


def offsets_from_zero(array: pa.Array) -> pa.Array:
    """The offsets of a list's rows into the values of `flatten`; null rows have none."""
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    sums = pc.cumulative_sum(lengths.cast(pa.int32()))
    return pa.concat_arrays([arrow_array([0], pa.int32()), sums.cast(pa.int32())])


def with_offsets(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The offsets of lists or maps as `from_arrays` expects them, null where the row is null, and the array whose
    `values`, `keys` and `items` they count; slices are respected. It is a copy where null rows hide values, which
    `from_arrays` would give to the row before; nearly all arrays hide none."""
    if array.null_count == 0:
        return array.offsets, array
    null = array.is_null()
    if np.diff(to_numpy(array.offsets))[to_numpy(null)].any():
        array = pc.copied(array)
    missing = pa.concat_arrays([null, arrow_array([False])])
    return pc.if_else(missing, scalar(None, array.offsets.type), array.offsets), array


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
