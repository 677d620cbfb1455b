"""`stats_parsed`: the statistics of a checkpoint as columns, converted from JSON and back.

The rule: the struct mirrors the JSON and adds nothing. A bound that does not fit its column's type is omitted, because
a missing bound is always sound and a wrong one never is (PROTOCOL.md "Per-file Statistics", "Checkpoint
Schema").

    stats_parsed
    ├── numRecords: long
    ├── tightBounds: boolean
    ├── minValues: struct, mirrors the schema; leaves of ordered types, variants as Variant columns
    ├── maxValues: the same
    ├── nullCount: struct, mirrors the schema; a long per leaf, array, map and variant
    └── statsWithCollation: struct, see `collated_struct`

Names are physical under column mapping.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy
from mica.errors import MicaError
from mica.log.json_lines import BrokenLinesError, read_lines, split_lines
from mica.schema.arrow import to_arrow_type, variant_field
from mica.schema.types import StructType
from mica.stats.columns import indexed_leaves
from mica.stats.times import json_date, json_timestamp
from mica.variant import kernel

UNSHREDDED = variant_field("v").type


def stats_type(
    schema: StructType,
    partition_columns: tuple[str, ...],
    configuration: Mapping[str, str],
    collated: pa.Field | None = None,
) -> pa.StructType:
    """Returns the type of `stats_parsed`: the columns with statistics, with variant bounds as Variants, and
    the field of collated bounds, if any.
    """
    leaves = indexed_leaves(schema, configuration, partition_columns)
    bounded = [leaf for leaf in leaves if leaf.has_bounds]
    bounds = _nested([(leaf.names, to_arrow_type(leaf.type)) for leaf in bounded])
    nulls = _nested([(leaf.names, pa.int64()) for leaf in leaves])
    fields = [pa.field("numRecords", pa.int64()), pa.field("tightBounds", pa.bool_())]
    if bounds:
        fields += [pa.field("minValues", pa.struct(bounds)), pa.field("maxValues", pa.struct(bounds))]
    if nulls:
        fields.append(pa.field("nullCount", pa.struct(nulls)))
    if collated is not None:
        fields.append(collated)
    return pa.struct(fields)


def _nested(leaves: list[tuple[tuple[str, ...], pa.DataType]]) -> list[pa.Field]:
    """Builds the fields of the struct that holds these leaves (path, type), in the order of first appearance."""
    groups: dict[str, list[tuple[tuple[str, ...], pa.DataType]]] = {}
    for names, kind in leaves:
        groups.setdefault(names[0], []).append((names[1:], kind))
    fields = []
    for name, inside in groups.items():
        kind = inside[0][1] if not inside[0][0] else pa.struct(_nested(inside))
        # The Parquet writer recognizes a variant by its field's metadata.
        fields.append(variant_field(name) if kind.equals(UNSHREDDED) else pa.field(name, kind))
    return fields


def parse_stats(texts: pa.Array, kind: pa.StructType) -> pa.StructArray:
    """JSON statistics → `stats_parsed` of type `kind`; null for a missing text."""
    present = to_numpy(pc.is_valid(texts))
    rows = np.flatnonzero(present)
    flat = _parse_texts(texts.take(arrow_array(rows)), _as_read(kind))
    typed = _convert(flat, kind)
    place = np.full(len(texts), -1, np.int64)
    place[rows] = np.arange(len(rows))
    return typed.take(arrow_array(place, mask=~present))


def _as_read(kind: pa.DataType) -> pa.DataType:
    """The type requested from the JSON reader: string if only a cast can decide whether a value fits."""
    if kind.equals(UNSHREDDED):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _as_read(child.type)) for child in kind])
    return pa.string() if pa.types.is_temporal(kind) else kind


def _parse_texts(texts: pa.Array, kind: pa.StructType) -> pa.StructArray:
    if not len(texts):
        return arrow_array([], kind)
    texts = pc.replace_substring(texts, "\n", " ")
    data = "\n".join(texts.to_pylist()).encode()
    lines, longest = split_lines(data)
    try:
        table = read_lines(data, lines, longest, pa.schema(list(kind)))
        if table.num_rows == len(texts):
            return table.to_struct_array().combine_chunks()
    except BrokenLinesError:
        pass
    # Some file has a value of another type (`"NaN"` for a number): convert one by one and drop what does not fit.
    return arrow_array([_fit(_loads(text), kind) for text in texts.to_pylist()], kind)


def _loads(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


def _fit(value: Any, kind: pa.DataType) -> Any:
    """Returns the value if it has the type exactly: nothing is rounded, because a rounded bound may be wrong."""
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        return {child.name: _fit(value.get(child.name), child.type) for child in kind}
    if pa.types.is_boolean(kind) or isinstance(value, bool):
        return value if pa.types.is_boolean(kind) and isinstance(value, bool) else None
    if pa.types.is_floating(kind):
        return float(value) if isinstance(value, int | Decimal) else None
    wanted = Decimal if pa.types.is_decimal(kind) else str if pa.types.is_string(kind) else int
    if wanted is Decimal and isinstance(value, int):
        value = Decimal(value)
    if not isinstance(value, wanted):
        return None
    try:
        return scalar(value, kind).as_py()
    except (pa.ArrowException, ArithmeticError, ValueError, OverflowError):
        return None


def _convert(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind.equals(UNSHREDDED):
        return kernel.bounds_variants(array).cast(UNSHREDDED)
    if pa.types.is_struct(kind):
        children = [_convert(pc.struct_field(array, [i]), child.type) for i, child in enumerate(kind)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=pc.is_null(array))
    if array.type == kind:
        return array
    try:
        return pc.cast(array, kind)
    except pa.ArrowInvalid:
        return arrow_array([_cast_one(text, kind) for text in array], kind)


def _cast_one(text: pa.Scalar, kind: pa.DataType) -> Any:
    try:
        return pc.cast(text, kind).as_py()
    except pa.ArrowInvalid:
        return None


def format_stats(parsed: pa.Array) -> pa.Array:
    """`stats_parsed` → the JSON form, as the protocol spells it; null if the struct is null.

    Values that JSON cannot hold are omitted: years beyond 9999, NaN, bytes, unreadable Variants.
    """
    if not pa.types.is_struct(parsed.type):
        return pa.nulls(len(parsed), pa.string())
    rows = _rows(_spell(parsed))
    return arrow_array(
        [None if row is None else orjson.dumps(_clean(row), default=_default).decode() for row in rows], pa.string()
    )


def _rows(texts: pa.Array) -> list[Any]:
    try:
        found: list[Any] = texts.to_pylist()
    except (ValueError, ArithmeticError):  # one file's text is not UTF-8
        return [_row(text) for text in texts]
    return found


def _row(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, ArithmeticError):
        return None


def _spell(array: pa.Array) -> pa.Array:
    """Replaces Variants by their z85 texts, dates and timestamps by theirs; other values stay."""
    kind = array.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _spell_times(array)
    if not pa.types.is_struct(kind):
        return array
    names = {child.name for child in kind}
    variant = {"metadata"} < names <= {"metadata", "value", "typed_value"}
    if variant and _is_binary(kind.field("metadata").type):
        return _bound_texts(array)
    children = [_spell(pc.struct_field(array, [i])) for i in range(kind.num_fields)]
    fields = [pa.field(child.name, values.type) for child, values in zip(kind, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=pc.is_null(array))


def _spell_times(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_date32(kind):
        texts = [None if days is None else json_date(days) for days in array.cast(pa.int32()).to_pylist()]
    else:
        per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
        ticks = array.cast(pa.int64()).to_pylist()
        unit = per_second["ms" if pa.types.is_date64(kind) else kind.unit]
        # Rounded down: readers add 1 ms to a maximum for the truncation, and nothing to a minimum.
        micros = [None if t is None else t * 1_000_000 // unit for t in ticks]
        if pa.types.is_date64(kind):
            texts = [None if m is None else json_date(m // 86_400_000_000) for m in micros]
        else:
            texts = [None if m is None else json_timestamp(m, utc=kind.tz is not None) for m in micros]
    return arrow_array(texts, pa.string())


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            inner = _clean(value)
            if inner:
                out[name] = inner
        elif isinstance(value, float) and not math.isfinite(value):
            continue  # not a bound, and JSON cannot hold it
        elif isinstance(value, bool | int | float | str | Decimal):
            out[name] = value
    return out


def _default(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f").encode())
    raise TypeError(type(value).__name__)


def _bound_texts(variants: pa.StructArray) -> pa.Array:
    """Bounds, Variants that may be shredded, as z85 texts; null stays null, unreadable values become null."""
    if variants.type.get_field_index("typed_value") >= 0:
        try:
            variants = _unshredded(variants)
        except MicaError:
            if len(variants) < 2:
                return pa.nulls(len(variants), pa.string())
            # One file's bounds are damaged: only that file loses them.
            return pa.concat_arrays([_bound_texts(variants.slice(i, 1)) for i in range(len(variants))])
    metadata, value = (pc.struct_field(variants, [name]).cast(pa.binary()) for name in ("metadata", "value"))
    whole = pc.binary_join_element_wise(metadata, value, b"")
    return kernel.encode_z85(pc.if_else(variants.is_valid(), whole, scalar(None, pa.binary())))


def _unshredded(variants: pa.StructArray) -> pa.StructArray:
    f = pa.field("v", variants.type, metadata=variant_field("v").metadata)
    return kernel.unshred(pa.record_batch([variants], schema=pa.schema([f]))).column(0)
