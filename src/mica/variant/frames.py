"""Converts tables for pandas, polars and JSON: Variants become Python values, other columns follow Arrow.

The rule: a value that the target cannot hold exactly becomes a Python object; it is never rounded.
"""

from __future__ import annotations

import base64
import contextlib
import decimal
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from mica import compute as pc
from mica.arrays import scalar, to_numpy
from mica.errors.installed import extra
from mica.schema import literals
from mica.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    Primitive,
    StructType,
    contains,
)
from mica.variant.values import to_json, to_python

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_FLOATS = (DOUBLE, FLOAT)

#: The first and the last value that Python has, in days and microseconds: its years are 1 to 9999.
_PYTHONS: Mapping[DataType, tuple[int, int]] = {
    DATE: (-719_162, 2_932_896),
    TIMESTAMP: (-62_135_596_800_000_000, 253_402_300_799_999_999),
    TIMESTAMP_NTZ: (-62_135_596_800_000_000, 253_402_300_799_999_999),
}

#: All integers up to this one are doubles.
_EXACT = 2**53


def to_pandas(table: pa.Table, schema: StructType) -> pd.DataFrame:
    """Converts the table to a pandas DataFrame; columns that hold Variants have the dtype object, and so have integers
    beside nulls that are not exact as doubles, which pandas makes of both."""
    library = extra("pandas", "to_pandas")
    held = {f.name for f in schema.fields if contains(f.type, VARIANT) or _rounded(table.column(f.name))}
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


def _rounded(column: pa.ChunkedArray) -> bool:
    """Whether a double cannot hold one of the integers in a column with nulls."""
    kind = column.type
    if pa.types.is_struct(kind):
        return any(map(_rounded, column.flatten()))
    if pa.types.is_map(kind):
        return _rounded(pa.chunked_array([chunk.items for chunk in column.chunks], kind.item_type))
    if pa.types.is_list(kind):
        return _rounded(pc.list_flatten(column))
    if not pa.types.is_int64(kind) or not column.null_count:
        return False
    ends = pc.min_max(column).as_py()
    return ends["min"] is not None and max(-ends["min"], ends["max"]) > _EXACT


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
        if type_ in _PYTHONS:
            return _dates_and_texts(column, type_)
        if isinstance(type_, Primitive):  # an interval
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


def _dates_and_texts(column: pa.Array, type_: DataType) -> list[Any]:
    """Dates or times in Python, and those beyond its years as texts: dates and times as ISO 8601 has them, in UTC."""
    numbers = column.view(pa.int32() if type_ == DATE else pa.int64())
    first, last = _PYTHONS[type_]
    known = pc.fill_null(pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last)), True)
    values: list[Any] = pc.if_else(known, column, scalar(None, column.type)).to_pylist()
    for place in np.flatnonzero(to_numpy(pc.invert(known))).tolist():
        number = numbers[place].as_py()
        if type_ == DATE:
            values[place] = literals.show_date(number)
        else:
            text = literals.show_timestamp(number, all_digits=number % 1_000_000 != 0)
            values[place] = text.replace(" ", "T") + ("+00:00" if type_ == TIMESTAMP else "")
    return values


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


def texts(column: pa.Array, type_: DataType) -> list[str | None]:
    """The values as a person reads them: those that nest as the JSON of `json_lines`, others as Python spells them."""
    if type_ == VARIANT:
        found: list[str | None] = to_json(column).to_pylist()
        return found
    if isinstance(type_, Primitive):
        values = python_values(_doubles(column) if type_ == FLOAT else column, type_)
        return [None if value is None else str(value) for value in values]
    nested = _json_values(column, type_)
    return [None if value is None else orjson.dumps(value, default=_plain).decode() for value in nested]


def _doubles(floats: pa.Array) -> pa.Array:
    """The doubles whose digits are those of the floats."""
    return floats.cast(pa.string()).cast(pa.float64())


def _json_values(column: pa.Array, type_: DataType) -> list[Any]:
    """Converts a column's values to what orjson accepts."""
    if type_ == FLOAT:
        column, type_ = _doubles(column), DOUBLE
    values = python_values(column, type_, _fragments)
    if type_ == DOUBLE and pc.all(pc.is_finite(column)).as_py() is not False:
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
        case _ if type_ in _FLOATS:
            return _SPELLED.get(repr(value), value if type_ == DOUBLE else float(str(np.float32(value))))
        case _:
            return value


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
