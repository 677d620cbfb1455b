"""The statistics of a file for people: one row per column and per path of a Variant.

The rule: the output is what the log holds, decoded and unchanged; an unreadable bound is shown as absent. Decimals keep
their digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import orjson

from mica.errors import CorruptDataError
from mica.schema import literals
from mica.schema.spelling import spelled
from mica.schema.types import LONG, VARIANT, DataType, Primitive, StructType, walk
from mica.stats import documents
from mica.stats.collated import KEY
from mica.stats.columns import physical_names
from mica.stats.paths import Value, read_all
from mica.variant.path import VariantPath


def decoded(text: str | None, schema: StructType) -> dict[str, Any]:
    """Returns `{rows, columns: [{column, min, max, nulls}]}` with values that JSON can hold. Collated bounds are
    separate rows with `collation`: the identifier with its version.
    """
    document = documents.values(text)
    sides = [document.get(name) for name in ("minValues", "maxValues", "nullCount")]
    columns = []
    for names, field in walk(schema):
        if isinstance(field.type, StructType):
            continue
        low, high, nulls = (documents.at(side, physical_names(schema, names)) for side in sides)
        nulls = _number(nulls, LONG)
        shown = spelled(names)
        if field.type == VARIANT:
            columns.append({"column": shown, "min": None, "max": None, "nulls": nulls})
            columns += _paths(shown, low, high)
        else:
            low, high = _number(low, field.type), _number(high, field.type)
            columns.append({"column": shown, "min": low, "max": high, "nulls": nulls})
            columns += _collated(shown, physical_names(schema, names), document.get(KEY))
    return {"rows": _number(document.get("numRecords"), LONG), "columns": columns}


def _collated(column: str, names: tuple[str, ...], collated: Any) -> Iterator[dict[str, Any]]:
    for key, sides in collated.items() if isinstance(collated, dict) else ():
        low, high = (documents.at(sides, (side, *names)) for side in ("minValues", "maxValues"))
        if isinstance(low, str) or isinstance(high, str):
            yield {"column": column, "collation": key, "min": low, "max": high, "nulls": None}


def _number(value: Any, type_: DataType) -> Any:
    """A number of the log as one of JSON's, with every digit of a DECIMAL; what is no number stays."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return value
    if isinstance(type_, Primitive) and type_.decimal is not None:
        return orjson.Fragment(format(Decimal(value), "f"))
    return value if isinstance(value, int) and value.bit_length() < 64 else float(Decimal(value))


def _paths(column: str, low: Any, high: Any) -> Iterator[dict[str, Any]]:
    sides = [_bounds(low), _bounds(high)]
    for key in sorted(sides[0].keys() | sides[1].keys()):
        values = [_plain(side.get(key)) for side in sides]
        yield {"column": _spelled(column, key), "min": values[0], "max": values[1], "nulls": None}


def _spelled(column: str, key: str) -> str:
    try:
        path = VariantPath.parse_normalized(key)
    except CorruptDataError:
        return f"{column}:{key}"
    return f"{column}:{path}" if path.steps else column


def _bounds(text: Any) -> Mapping[str, Value | None]:
    return read_all(text) if isinstance(text, str) else {}


def _plain(bound: Value | None) -> Any:
    if bound is None:
        return None
    match bound.kind:
        case "date":
            return literals.show_date(bound.value)
        case "timestamp" | "timestamp_ntz":
            text = literals.show_timestamp(bound.value).replace(" ", "T")
            return text + ("Z" if bound.kind == "timestamp" else "")
    return format(bound.value, "f") if isinstance(bound.value, Decimal) else bound.value
