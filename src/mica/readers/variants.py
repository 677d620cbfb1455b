"""Variants as JSON texts, at any depth of a column.

The rule: the layout of the column stays, a Variant in it becomes a string.
"""

from __future__ import annotations

import pyarrow as pa

from mica.schema.arrow import is_variant, to_arrow_field, with_leaves
from mica.schema.lists import with_offsets
from mica.schema.types import VARIANT, ArrayType, DataType, MapType, StructField, StructType, contains
from mica.variant.values import to_json


def json_type(type_: DataType) -> pa.DataType:
    """The Arrow type with strings in place of Variants."""

    def as_text(f: pa.Field) -> pa.Field:
        return pa.field(f.name, pa.string(), f.nullable) if is_variant(f) else f

    return with_leaves(to_arrow_field(StructField("", type_)), as_text, is_variant).type


def json_array(values: pa.Array, type_: DataType, timezone: str) -> pa.Array:
    """The column with strings in place of Variants."""
    if not contains(type_, VARIANT):
        return values
    match type_:
        case StructType(fields):
            mask = values.is_null() if values.null_count else None
            inner = [json_array(values.field(i), f.type, timezone) for i, f in enumerate(fields)]
            return pa.StructArray.from_arrays(inner, fields=list(json_type(type_)), mask=mask)
        case ArrayType(element):
            offsets, values = with_offsets(values)
            flat = json_array(values.values, element, timezone)
            return pa.ListArray.from_arrays(offsets, flat, type=json_type(type_))
        case MapType(_, value):
            offsets, values = with_offsets(values)
            items = json_array(values.items, value, timezone)
            found = pa.MapArray.from_arrays(offsets, values.keys, items)
            return found.cast(json_type(type_))
    return to_json(values, timezone=timezone)
