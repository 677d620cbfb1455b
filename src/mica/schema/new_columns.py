"""The columns and nested fields that incoming rows have and a table lacks.

The rule: what the table has stays as it is, and new fields come behind the old ones of their level: in structs, in
structs inside arrays, and in the values of maps. A new field may be null, and so may what is in it; it keeps its
collations, its length and its comment, and is no generated, identity or default column. Types are never widened here.
"""

from __future__ import annotations

from dataclasses import replace

from mica.errors import UserError
from mica.schema.collations import COLLATIONS
from mica.schema.edit import map_fields, unknown_types
from mica.schema.special import DEFAULT, EXISTS_DEFAULT
from mica.schema.types import VOID, ArrayType, DataType, MapType, StructField, StructType


def with_new(table: StructType, incoming: StructType) -> StructType:
    """The table's schema with the columns and fields of `incoming` that it lacks; the same object if there are none.

    Errors: UNSUPPORTED_TYPE for a new column whose type is unknown or unsupported.
    """
    found = _struct(table, incoming, "")
    return table if found == table else found


def _struct(table: StructType, incoming: StructType, at: str) -> StructType:
    given = {f.name.lower(): f for f in incoming}
    fields = [
        replace(f, type=_type(f.type, given[f.name.lower()].type, f"{at}{f.name}")) if f.name.lower() in given else f
        for f in table.fields
    ]
    return StructType((*fields, *(_new(f, at) for f in incoming if table.find(f.name) is None)))


def _type(table: DataType, incoming: DataType, at: str) -> DataType:
    match table, incoming:
        case StructType(), StructType():
            return _struct(table, incoming, f"{at}.")
        case ArrayType(element), ArrayType(given):
            return replace(table, element=_type(element, given, f"{at}.element"))
        case MapType(_, value), MapType(_, given):
            return replace(table, value=_type(value, given, f"{at}.value"))
    return table


def _new(incoming: StructField, at: str) -> StructField:
    name = f"{at}{incoming.name}"
    if incoming.type == VOID:
        raise UserError(
            "UNSUPPORTED_TYPE",
            f"the new column {name!r} has no type: every value is null",
            hint="Cast it to a type, or leave it out.",
            column=name,
        )
    for place, unknown in unknown_types(incoming.type, name):
        raise UserError(
            "UNSUPPORTED_TYPE",
            f"the column {place!r} has the type {unknown.name}, which no Delta type holds",
            hint="Cast it first.",
            column=place,
        )
    found = replace(incoming, type=nullable(incoming.type), nullable=True)
    return described(StructType((found,))).fields[0]


def described(schema: StructType) -> StructType:
    """The schema with the metadata of fields that tell of them, without what a table says of its values."""
    return map_fields(schema, _described)


def bare(schema: StructType) -> StructType:
    """The schema without metadata of fields but their collations: what a query gives a statement are values, and
    delta-spark takes no lengths and comments of them."""
    return map_fields(schema, lambda f: f.with_metadata(dict.fromkeys(key for key in f.metadata if key != COLLATIONS)))


def _described(f: StructField) -> StructField:
    """The field without what another table says of its values."""
    return f.with_metadata(
        dict.fromkeys(key for key in f.metadata if key.startswith("delta.") or key in (DEFAULT, EXISTS_DEFAULT))
    )


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
