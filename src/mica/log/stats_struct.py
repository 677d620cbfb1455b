"""`stats_parsed`: the statistics of a checkpoint as columns, made from their JSON form and back.

The rule: the struct mirrors the JSON and never says more. A bound whose text does not fit its column's type is left
out, for a missing bound is always sound and a wrong one never is (PROTOCOL.md "Per-file Statistics", "Checkpoint
Schema").

    stats_parsed
    ├── numRecords: long
    ├── tightBounds: boolean
    ├── minValues: struct, mirrors the schema; leaves of ordered types, variants as Variant columns
    ├── maxValues: the same
    └── nullCount: struct, mirrors the schema; a long per leaf, array, map and variant

Names are physical ones where columns are mapped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from mica.errors import MicaError
from mica.log import properties
from mica.schema.arrow import to_arrow_type
from mica.schema.types import VARIANT, DataType, Primitive, StructField, StructType

PHYSICAL_NAME = "delta.columnMapping.physicalName"
UNSHREDDED = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)
_UNORDERED = frozenset({"boolean", "binary", "void"})


class BoundsCodec(Protocol):
    """Variant bounds between their two forms: z85 text in JSON, Variant bytes in columns. Rows that are null stay
    null."""

    def decode(self, texts: pa.Array) -> pa.StructArray:
        """z85 texts → Variants, unshredded."""

    def encode(self, variants: pa.StructArray) -> pa.Array:
        """Variants, shredded or not → z85 texts."""


def stats_type(
    schema: StructType, partition_columns: tuple[str, ...], configuration: Mapping[str, str], *, variants: bool
) -> pa.StructType:
    """The type of `stats_parsed`: the columns that statistics are collected for, variant bounds only when asked for."""
    limit = properties.SKIPPING_COLUMNS.of(configuration)
    if properties.SKIPPING_NAMES.of(configuration) is not None:
        limit = -1  # which columns the property names is seen from the statistics themselves: the others stay null
    left = [limit if limit >= 0 else 1 << 30]
    columns = [column for column in schema if column.name not in partition_columns]
    bounds, nulls = _mirror(columns, left, variants)
    fields = [pa.field("numRecords", pa.int64()), pa.field("tightBounds", pa.bool_())]
    if bounds:
        fields += [pa.field("minValues", pa.struct(bounds)), pa.field("maxValues", pa.struct(bounds))]
    if nulls:
        fields.append(pa.field("nullCount", pa.struct(nulls)))
    return pa.struct(fields)


def _mirror(columns: list[StructField], left: list[int], variants: bool) -> tuple[list[pa.Field], list[pa.Field]]:
    bounds: list[pa.Field] = []
    nulls: list[pa.Field] = []
    for column in columns:
        if left[0] <= 0:
            break
        name = str(column.metadata.get(PHYSICAL_NAME, column.name))
        if isinstance(column.type, StructType):
            inner_bounds, inner_nulls = _mirror(list(column.type), left, variants)
            if inner_bounds:
                bounds.append(pa.field(name, pa.struct(inner_bounds)))
            if inner_nulls:
                nulls.append(pa.field(name, pa.struct(inner_nulls)))
            continue
        left[0] -= 1
        nulls.append(pa.field(name, pa.int64()))
        if column.type == VARIANT:
            if variants:
                bounds.append(pa.field(name, UNSHREDDED))
        elif isinstance(column.type, Primitive) and column.type.name not in _UNORDERED:
            bounds.append(pa.field(name, _arrow(column.type)))
    return bounds, nulls


def _arrow(kind: DataType) -> pa.DataType:
    return to_arrow_type(kind)


def parse_stats(texts: pa.Array, kind: pa.StructType, codec: BoundsCodec | None) -> pa.StructArray:
    """JSON statistics → `stats_parsed` of type `kind`; null where there is no text."""
    present = np.asarray(pc.is_valid(texts))
    rows = np.flatnonzero(present)
    flat = _parse_texts(texts.take(pa.array(rows)), _as_read(kind))
    typed = _convert(flat, kind, codec)
    place = np.full(len(texts), -1, np.int64)
    place[rows] = np.arange(len(rows))
    return typed.take(pa.array(place, mask=~present))


def _as_read(kind: pa.DataType) -> pa.DataType:
    """What the JSON reader is asked for: texts where only a cast tells whether they fit."""
    if kind.equals(UNSHREDDED):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _as_read(child.type)) for child in kind])
    return pa.string() if pa.types.is_temporal(kind) else kind


def _parse_texts(texts: pa.Array, kind: pa.StructType) -> pa.StructArray:
    if not len(texts):
        return pa.array([], kind)
    lines = [text.replace("\n", " ") for text in texts.to_pylist()]
    data = "\n".join(lines).encode()
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(block_size=len(data) + 1),
            parse_options=pj.ParseOptions(explicit_schema=pa.schema(list(kind)), unexpected_field_behavior="ignore"),
        )
        if table.num_rows == len(texts):
            return table.to_struct_array().combine_chunks() if table.num_rows else pa.array([], kind)
    except pa.ArrowInvalid:
        pass
    # Some file has a text where a number belongs (`"NaN"`), or the like: value by value, dropping what does not fit.
    return pa.array([_fit(_loads(line), kind) for line in lines], kind)


def _loads(line: str) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _fit(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        return {child.name: _fit(value.get(child.name), child.type) for child in kind}
    try:
        if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(str(value)), kind).as_py()
        if pa.types.is_string(kind) != isinstance(value, str):
            return None
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowException, ArithmeticError, ValueError, TypeError, OverflowError):
        return None


def _convert(array: pa.Array, kind: pa.DataType, codec: BoundsCodec | None) -> pa.Array:
    if kind.equals(UNSHREDDED):
        return _decode(array, codec)
    if pa.types.is_struct(kind):
        children = [_convert(pc.struct_field(array, [i]), child.type, codec) for i, child in enumerate(kind)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=pc.is_null(array))
    if array.type == kind:
        return array
    try:
        return pc.cast(array, kind)
    except pa.ArrowInvalid:
        return pa.array([_cast_one(text, kind) for text in array], kind)


def _cast_one(text: pa.Scalar, kind: pa.DataType) -> Any:
    try:
        return pc.cast(text, kind).as_py()
    except pa.ArrowInvalid:
        return None


def _decode(texts: pa.Array, codec: BoundsCodec | None) -> pa.Array:
    if codec is None:
        return pa.nulls(len(texts), UNSHREDDED)
    try:
        return codec.decode(texts)
    except MicaError:
        # One file's bounds are damaged: the others keep theirs.
        return pa.concat_arrays([_decode_one(texts.slice(i, 1), codec) for i in range(len(texts))])


def _decode_one(text: pa.Array, codec: BoundsCodec) -> pa.Array:
    try:
        return codec.decode(text)
    except MicaError:
        return pa.nulls(1, UNSHREDDED)


def format_stats(parsed: pa.StructArray, codec: BoundsCodec | None) -> pa.Array:
    """`stats_parsed` → the JSON form, as the protocol spells it; null where the struct is null."""
    texts = _spell(parsed, codec)
    rows = texts.to_pylist()
    return pa.array(
        [None if row is None else orjson.dumps(_clean(row), default=_default).decode() for row in rows], pa.string()
    )


def _spell(array: pa.Array, codec: BoundsCodec | None) -> pa.Array:
    """Variants become their z85 texts; the rest stays as it is."""
    kind = array.type
    if not pa.types.is_struct(kind):
        return array
    names = {child.name for child in kind}
    if {"metadata", "value"} <= names <= {"metadata", "value", "typed_value"} and _is_binary(
        kind.field("metadata").type
    ):
        return pa.nulls(len(array), pa.string()) if codec is None else codec.encode(array)
    children = [_spell(pc.struct_field(array, [i]), codec) for i in range(kind.num_fields)]
    fields = [pa.field(child.name, values.type) for child, values in zip(kind, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=pc.is_null(array))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            inner = _clean(value)
            if inner:
                out[name] = inner
        elif isinstance(value, float) and math.isnan(value):
            continue  # NaN is no bound, and JSON has no word for it
        elif isinstance(value, datetime):
            out[name] = _timestamp(value)
        elif isinstance(value, date):
            out[name] = value.isoformat()
        elif value is not None:
            out[name] = value
    return out


def _timestamp(value: datetime) -> str:
    # Milliseconds, cut as the protocol says; readers add 1 ms to a max for it.
    if value.tzinfo is None:
        return value.isoformat(timespec="milliseconds")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _default(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f").encode())
    raise TypeError(type(value).__name__)
