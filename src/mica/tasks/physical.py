"""Rows of a table by the names and field ids that its files have.

The rule: rows have the schema's names until they reach a file; there, fields at any depth get their physical names and
their ids if columns are mapped. No value is copied. A table without mapping is written as it is.

Source: PROTOCOL.md, "Writer Requirements for Column Mapping".
"""

from __future__ import annotations

import pyarrow as pa

from mica.schema.arrow import is_list, is_variant
from mica.schema.lists import with_offsets
from mica.schema.types import ArrayType, DataType, MapType, StructField, StructType
from mica.stats.columns import FIELD_ID, physical_name

_PARQUET_ID = b"PARQUET:field_id"


def is_mapped(schema: StructType) -> bool:
    """Whether columns have ids: then files have them too."""
    return any(FIELD_ID in f.metadata for f in schema.fields)


def physical(batch: pa.RecordBatch, schema: StructType) -> pa.RecordBatch:
    """The rows (columns of `schema`, in any number, and others) as a file has them. Variants may be in their storage
    layout.
    """
    known = {f.name: f for f in schema.fields}
    fields = [_field(f, known[f.name]) if f.name in known else f for f in batch.schema]
    arrays = [_as(a, f) for a, f in zip(batch.columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _as(array: pa.Array, wanted: pa.Field) -> pa.Array:
    """The values under the names of the field. (`view` refuses nulls around children that are not null.)"""
    type_ = wanted.type
    if not pa.types.is_nested(type_) or is_variant(wanted) or array.type.equals(type_, check_metadata=True):
        return array
    if pa.types.is_struct(type_):
        children = [_as(array.field(i), f) for i, f in enumerate(type_)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask) if children else array
    offsets, array = with_offsets(array)
    if pa.types.is_map(type_):
        keys, items = _as(array.keys, type_.key_field), _as(array.items, type_.item_field)
        return pa.MapArray.from_arrays(offsets, keys, items, type=type_)
    return pa.ListArray.from_arrays(offsets, _as(array.values, type_.value_field), type=type_)


def _field(found: pa.Field, wanted: StructField) -> pa.Field:
    type_ = found.type if is_variant(found) else _type(found.type, wanted.type)
    asked = wanted.metadata.get(FIELD_ID)
    metadata = {**(found.metadata or {}), **({} if asked is None else {_PARQUET_ID: str(asked).encode()})}
    return pa.field(physical_name(wanted), type_, found.nullable, metadata)


def _type(found: pa.DataType, wanted: DataType) -> pa.DataType:
    match wanted:
        case StructType() if pa.types.is_struct(found):
            return pa.struct([_field(f, wanted.field(f.name)) for f in found])
        case ArrayType(element) if is_list(found):
            inner = found.value_field
            return pa.list_(inner if is_variant(inner) else inner.with_type(_type(inner.type, element)))
        case MapType(key, value) if pa.types.is_map(found):
            keys, items = found.key_field, found.item_field
            items = items if is_variant(items) else items.with_type(_type(items.type, value))
            return pa.map_(keys.with_type(_type(keys.type, key)), items)
    return found
