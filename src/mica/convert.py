"""Tables for people's tools: Variants become Python values, everything else is what Arrow makes of it.

The rule: a value that the tool cannot hold exactly is handed over as a Python object, never rounded.
"""

from __future__ import annotations

import base64
import contextlib
import decimal
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from mica.schema.types import VARIANT, ArrayType, DataType, MapType, Primitive, StructType, contains
from mica.variant.values import to_json, to_python

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def to_pandas(table: pa.Table, schema: StructType) -> pd.DataFrame:
    """The table as a DataFrame; columns that hold Variants are of dtype object."""
    import pandas as pd

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
            pd.Series(python_values(table.column(f.name), f.type), dtype=object) if f.name in held else frame[f.name]
        )
    return pd.DataFrame(columns)


def to_polars(table: pa.Table, schema: StructType) -> pl.DataFrame:
    """The table as a DataFrame; columns that hold Variants are of type Object."""
    import polars as pl

    columns = []
    for f in schema.fields:
        column = table.column(f.name)
        if contains(f.type, VARIANT):
            columns.append(pl.Series(f.name, python_values(column, f.type), dtype=pl.Object))
        else:
            columns.append(pl.Series(f.name, pl.from_arrow(column)))
    return pl.DataFrame(columns)


def python_values(column: pa.ChunkedArray | pa.Array, type_: DataType) -> list[Any]:
    """The values of a column in Python, Variants at any depth included."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in python_values(chunk, type_)]
    if not contains(type_, VARIANT):
        with contextlib.suppress(OverflowError, ValueError):
            values: list[Any] = column.to_pylist()
            return values
        # Python's dates end with the year 9999: those beyond are handed over as texts.
        if isinstance(type_, Primitive):
            texts: list[Any] = column.cast(pa.string()).to_pylist()
            return texts
    present = column.is_valid().to_pylist()
    match type_:
        case StructType(fields):
            inner = [python_values(column.field(i), f.type) for i, f in enumerate(fields)]
            names = [f.name for f in fields]
            made: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*inner, strict=True)]
        case ArrayType(element):
            made = _sliced(column, python_values(column.values, element))
        case MapType(key, value):
            pairs = list(zip(python_values(column.keys, key), python_values(column.items, value), strict=True))
            made = _sliced(column, pairs)
        case _:
            return to_python(column)
    return [value if there else None for value, there in zip(made, present, strict=True)]


def _sliced(column: pa.Array, values: list[Any]) -> list[Any]:
    offsets = column.offsets.to_pylist()
    return [values[start:end] for start, end in itertools.pairwise(offsets)]


def json_lines(batches: Iterable[pa.RecordBatch], schema: StructType) -> Iterator[bytes]:
    """Rows as NDJSON, a batch at a time. Variants are spelled by the kernel, decimals keep their digits, binary is
    base64.
    """
    for batch in batches:
        columns: list[list[Any]] = []
        for column, f in zip(batch.columns, schema.fields, strict=True):
            if f.type == VARIANT:
                texts = to_json(column).to_pylist()
                columns.append([None if text is None else orjson.Fragment(text) for text in texts])
            else:
                columns.append(python_values(column, f.type))
        names = schema.names
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        yield b"".join(
            orjson.dumps(row, default=_plain, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS)
            for row in rows
        )


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return orjson.Fragment(format(value, "f"))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
