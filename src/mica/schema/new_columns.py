"""The columns and nested fields that incoming rows have and a table lacks.

The rule: what the table has stays as it is, and new fields come behind the old ones of their level: in structs, in
structs inside arrays, and in the values of maps. A new field may be null, and so may what is in it. Types are never
widened here.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from mica.errors import UserError
from mica.schema.arrow import from_arrow, is_list, is_variant
from mica.schema.types import VARIANT, ArrayType, DataType, MapType, StructField, StructType


def with_new(table: StructType, incoming: pa.Schema) -> StructType:
    """The table's schema with the columns and fields of `incoming` that it lacks; the same object if there are none.

    Errors: UNSUPPORTED_TYPE for a new column whose type is unknown or unsupported.
    """
    found = _struct(table, list(incoming), "")
    return table if found == table else found


def _struct(table: StructType, incoming: list[pa.Field], at: str) -> StructType:
    given = {f.name.lower(): f for f in incoming}
    fields = [
        replace(f, type=_type(f.type, given[f.name.lower()], f"{at}{f.name}")) if f.name.lower() in given else f
        for f in table.fields
    ]
    return StructType((*fields, *(_new(f, at) for f in incoming if table.find(f.name) is None)))


def _type(table: DataType, incoming: pa.Field, at: str) -> DataType:
    if table == VARIANT or is_variant(incoming):
        return table
    match table:
        case StructType() if pa.types.is_struct(incoming.type):
            return _struct(table, list(incoming.type), f"{at}.")
        case ArrayType(element) if is_list(incoming.type):
            return replace(table, element=_type(element, incoming.type.value_field, f"{at}.element"))
        case MapType(_, value) if pa.types.is_map(incoming.type):
            return replace(table, value=_type(value, incoming.type.item_field, f"{at}.value"))
    return table


def _new(incoming: pa.Field, at: str) -> StructField:
    if pa.types.is_null(incoming.type):
        name = f"{at}{incoming.name}"
        raise UserError(
            "UNSUPPORTED_TYPE",
            f"the new column {name!r} has no type: every value is null",
            hint="Cast it to a type, or leave it out.",
            column=name,
        )
    (found,) = from_arrow(pa.schema([incoming.with_nullable(True)])).fields
    return replace(found, type=nullable(found.type))


def nullable(type_: DataType) -> DataType:
    """The type with nulls allowed everywhere in it: what one batch has in every row, the next may lack."""
    match type_:
        case StructType(fields):
            return StructType(tuple(replace(f, type=nullable(f.type), nullable=True) for f in fields))
        case ArrayType(element):
            return ArrayType(nullable(element))
        case MapType(key, value):
            return MapType(key, nullable(value))
    return type_
