"""Filters that Spark pushes into the source, as predicates of a scan.

The rule: a filter is pushed where its meaning is certain, and Spark evaluates all of them again; so a filter that is
left out costs bytes and never rows. Strings with a collation are left to Spark.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from mica.schema.collations import COLLATIONS
from mica.schema.ddl import quote_if_needed, type_to_ddl
from mica.schema.literals import show
from mica.schema.types import STRING, DataType, Primitive, StructType

_COMPARED = {
    "EqualTo": "=", "EqualNullSafe": "<=>", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<",
    "LessThanOrEqual": "<=",
}  # fmt: skip
_MATCHED = {"StringStartsWith": "startswith", "StringEndsWith": "endswith", "StringContains": "contains"}

_INTEGERS = ("byte", "short", "integer", "long")


def text_of(filter_: Any, schema: StructType, spelled: Mapping[str, str]) -> str | None:
    """The filter (`pyspark.sql.datasource.Filter`) as a predicate over the table; None if it is left to Spark.

    `schema` has the columns that Spark sees, `spelled` the expressions of those that the table has not.
    """
    kind = type(filter_).__name__
    if kind == "Not":
        inner = text_of(filter_.child, schema, spelled)
        return None if inner is None else f"NOT ({inner})"
    path = getattr(filter_, "attribute", None)
    type_ = None if path is None else _type(schema, path)
    if path is None or type_ is None:
        return None
    column = ".".join([spelled.get(path[0], quote_if_needed(path[0])), *map(quote_if_needed, path[1:])])
    if kind in ("IsNull", "IsNotNull"):
        return f"{column} IS {'NOT ' if kind == 'IsNotNull' else ''}NULL"
    values = [constant(one, type_) for one in (filter_.value if kind == "In" else [filter_.value])]
    if not values or None in values:
        return None
    if kind == "In":
        return f"{column} IN ({', '.join(map(str, values))})"
    if kind in _MATCHED:
        return f"{_MATCHED[kind]}({column}, {values[0]})" if type_ == STRING else None
    return f"{column} {_COMPARED[kind]} {values[0]}" if kind in _COMPARED else None


def constant(value: Any, type_: DataType) -> str | None:
    """A constant of the column's type as SQL; None where it is not certain."""
    name = type_.name if isinstance(type_, Primitive) else type_to_ddl(type_).lower()
    match value:
        case bool():
            return str(value).upper() if name == "boolean" else None
        case str():
            return show(value, STRING) if type_ == STRING else None
        case bytes() | bytearray():
            return show(bytes(value), type_) if name == "binary" else None
        case dt.datetime() if name == "timestamp":
            value = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return f"CAST('{value:%Y-%m-%dT%H:%M:%S.%f}Z' AS TIMESTAMP)" if value.year > 999 else None
        case dt.datetime() if name == "timestamp_ntz":
            return f"CAST('{value:%Y-%m-%dT%H:%M:%S.%f}' AS TIMESTAMP_NTZ)" if value.year > 999 else None
        case dt.datetime():
            return None
        case dt.date():
            return f"DATE'{value:%Y-%m-%d}'" if name == "date" and value.year > 999 else None
        case float():
            # NaN and infinity are left to Spark.
            known = name in ("float", "double") and math.isfinite(value)
            return f"CAST('{value!r}' AS {type_to_ddl(type_)})" if known else None
        case int() if name in _INTEGERS:
            return f"CAST('{value}' AS {type_to_ddl(type_)})"
        case Decimal() | int() if name.startswith("decimal"):
            return f"CAST('{value:f}' AS {type_to_ddl(type_)})"
    return None


def _type(schema: StructType, path: tuple[str, ...]) -> DataType | None:
    type_: DataType = schema
    for name in path:
        found = type_.find(name) if isinstance(type_, StructType) else None
        if found is None or found.metadata.get(COLLATIONS):
            return None
        type_ = found.type
    return type_
