"""Converts tables for pandas, polars and JSON: Variants become Python values, other columns follow Arrow.

The rule: a value that the target cannot hold exactly becomes a Python object; it is never rounded.
"""

from __future__ import annotations

import base64
import contextlib
import decimal
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from mica import compute as pc
from mica.errors import extra
from mica.schema.types import DOUBLE, FLOAT, VARIANT, ArrayType, DataType, MapType, Primitive, StructType, contains
from mica.variant.values import to_json, to_python

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_FLOATS = (DOUBLE, FLOAT)


def to_pandas(table: pa.Table, schema: StructType) -> pd.DataFrame:
    """Converts the table to a pandas DataFrame; columns that hold Variants have the dtype object."""
    library = extra("pandas", "to_pandas")
    held = {f.name for f in schema.fields if contains(f.type, VARIANT)}
    try:
        frame = table.drop_columns(sorted(held)).to_pandas() if held else table.to_pandas()
    except (OverflowError, ValueError):
        held = set(schema.names)  # a date beyond the year 9999
    if not held:
        return frame
    columns: dict[str, Any] = {}
    for f in schema.fields:
        columns[f.name] = (
            library.Series(python_values(table.column(f.name), f.type), dtype=object)
            if f.name in held
            else frame[f.name]
        )
    whole: pd.DataFrame = library.DataFrame(columns)
    return whole


def to_polars(table: pa.Table, schema: StructType) -> pl.DataFrame:
    """Converts the table to a polars DataFrame; columns that hold Variants have the type Object."""
    library = extra("polars", "to_polars")
    columns = []
    for f in schema.fields:
        column = table.column(f.name)
        if contains(f.type, VARIANT):
            columns.append(library.Series(f.name, python_values(column, f.type), dtype=library.Object))
        else:
            columns.append(library.Series(f.name, library.from_arrow(column)))
    whole: pl.DataFrame = library.DataFrame(columns)
    return whole


def python_values(
    column: pa.ChunkedArray | pa.Array, type_: DataType, variants: Callable[[pa.Array], list[Any]] = to_python
) -> list[Any]:
    """Returns a column's values in Python; `variants` converts the Variants, at any depth."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in python_values(chunk, type_, variants)]
    if not contains(type_, VARIANT):
        with contextlib.suppress(OverflowError, ValueError):
            values: list[Any] = column.to_pylist()
            return values
        # Python's dates end with the year 9999: later ones become texts.
        if isinstance(type_, Primitive):
            texts: list[Any] = column.cast(pa.string()).to_pylist()
            return texts
    present = column.is_valid().to_pylist()
    match type_:
        case StructType(fields):
            inner = [python_values(column.field(i), f.type, variants) for i, f in enumerate(fields)]
            names = [f.name for f in fields]
            made: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*inner, strict=True)]
        case ArrayType(element):
            made = _sliced(column, python_values(column.values, element, variants))
        case MapType(key, value):
            keys, items = python_values(column.keys, key), python_values(column.items, value, variants)
            pairs = list(zip(keys, items, strict=True))
            made = _sliced(column, pairs)
        case _:
            return variants(column)
    return [value if there else None for value, there in zip(made, present, strict=True)]


def _sliced(column: pa.Array, values: list[Any]) -> list[Any]:
    offsets = column.offsets.to_pylist()
    return [values[start:end] for start, end in itertools.pairwise(offsets)]


def json_lines(batches: Iterable[pa.RecordBatch], schema: StructType) -> Iterator[bytes]:
    """Yields rows as NDJSON, one batch at a time. The kernel formats Variants; decimals keep their digits, binary is
    base64, maps are objects, and NaN and infinities are strings, as in Spark's to_json.
    """
    names = schema.names
    for batch in batches:
        columns = [_json_values(column, f.type) for column, f in zip(batch.columns, schema.fields, strict=True)]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        yield b"".join(orjson.dumps(row, default=_plain, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _json_values(column: pa.Array, type_: DataType) -> list[Any]:
    """Converts a column's values to what orjson accepts."""
    values = python_values(column, type_, _fragments)
    if type_ in _FLOATS and pc.all(pc.is_finite(column)).as_py() is not False:
        return values
    return [_spelled(value, type_) for value in values] if _needs_spelling(type_) else values


def _fragments(variants: pa.Array) -> list[Any]:
    return [None if text is None else orjson.Fragment(text) for text in to_json(variants).to_pylist()]


def _needs_spelling(type_: DataType) -> bool:
    match type_:
        case StructType(fields):
            return any(_needs_spelling(f.type) for f in fields)
        case ArrayType(element):
            return _needs_spelling(element)
        case MapType():
            return True
        case _:
            return type_ in _FLOATS


def _spelled(value: Any, type_: DataType) -> Any:
    """Converts maps to objects and NaN and infinities to strings; JSON has neither."""
    match type_:
        case _ if value is None:
            return None
        case StructType(fields):
            return {f.name: _spelled(value[f.name], f.type) for f in fields}
        case ArrayType(element):
            return [_spelled(one, element) for one in value]
        case MapType(key, item):
            return {_key(_spelled(k, key)): _spelled(v, item) for k, v in value}
        case _:
            return _SPELLED.get(repr(value), value) if type_ in _FLOATS else value


def _key(key: Any) -> str:
    """Converts a map's key to a name: strings unchanged, other keys as JSON text."""
    if isinstance(key, str):
        return key
    return orjson.dumps(key, default=_plain).decode().strip('"')


_SPELLED = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return orjson.Fragment(format(value, "f"))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
