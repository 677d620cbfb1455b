"""Functions whose types follow from their arguments: of arrays and maps, of numbers, of any comparable values.

The rule: `resolve` gives the types that the arguments are cast to and the type of the result, or None for types that
Spark rejects or that are not supported here. A comparison is Spark's (`compare`): NaN equals NaN and is the greatest.

Source: Spark's Size, ArrayContains, ElementAt, Abs, Greatest, Least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy
from mica.expressions import intervals
from mica.expressions.casts import bits_of
from mica.expressions.coerce import TIMES, common_type, is_exact, is_number, is_plain, is_real
from mica.expressions.compare import Datum, compare
from mica.expressions.pairs import as_array, as_arrays
from mica.expressions.room import repeated
from mica.expressions.signatures import Asked, Resolve, Signature
from mica.expressions.tree import Op
from mica.schema.arrow import to_arrow_type
from mica.schema.ddl import type_to_ddl
from mica.schema.interval_types import is_interval
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTEGRALS,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    Primitive,
)


def of_collection(asked: Asked) -> Signature | None:
    """An array or a map gives an INT."""
    return ((asked.types[0],), INTEGER) if isinstance(asked.types[0], ArrayType | MapType) else None


def of_array(asked: Asked) -> Signature | None:
    """An array gives an INT."""
    return ((asked.types[0],), INTEGER) if isinstance(asked.types[0], ArrayType) else None


def holds_value(asked: Asked) -> Signature | None:
    """An array and a value of its elements' type give a BOOLEAN."""
    array, value = asked.types
    if not isinstance(array, ArrayType) or not isinstance(array.element, Primitive) or array.element == VARIANT:
        return None
    if value == array.element or (is_exact(value) and is_exact(array.element)):
        return (array, value), BOOLEAN
    if not all(is_number(t) for t in (value, array.element)):
        return None
    common = common_type(array.element, value, ansi=asked.ansi)
    return None if common is None else ((ArrayType(common), common), BOOLEAN)


def at_place(asked: Asked) -> Signature | None:
    """An array and a position, or a map and a key, give the value there."""
    match asked.types[0], asked.types[1]:
        case ArrayType(element), position if position in INTEGRALS[:3]:
            return (asked.types[0], INTEGER), element
        case MapType(key, value), given if key == given and not is_real(key):
            return (asked.types[0], key), value
    return None


def of_number(asked: Asked) -> Signature | None:
    """A number or an interval gives one of its type; a text is a DOUBLE."""
    own = DOUBLE if asked.types[0] in (STRING, VOID) else asked.types[0]
    return ((own,), own) if is_number(own) or is_interval(own) else None


def of_real(asked: Asked) -> Signature | None:
    """Any number, as a DOUBLE if it is no FLOAT, is asked for a BOOLEAN."""
    number = of_number(asked)
    own = None if number is None else number[1]
    if own is None or is_interval(own):
        return None
    return (own if is_real(own) else DOUBLE,), BOOLEAN


def of_bytes(asked: Asked) -> Signature | None:
    """A text or bytes, and maybe an integer, give a STRING."""
    if asked.types[0] not in (STRING, BINARY, VOID) or any(
        t not in INTEGRALS[:3] and t != VOID for t in asked.types[1:]
    ):
        return None
    return (BINARY, *[INTEGER] * (len(asked.types) - 1)), STRING


def to_time(wanted: DataType) -> Resolve:
    """A text, a date or a time becomes `wanted`; a number too, if that is a TIMESTAMP. A pattern is for texts."""

    def found(asked: Asked) -> Signature | None:
        if len(asked.types) > 1 and asked.types[0] in (STRING, VOID, *TIMES):
            return (wanted if asked.types[0] in TIMES else STRING, STRING), wanted
        number = wanted == TIMESTAMP and (is_exact(asked.types[0]) or is_real(asked.types[0])) and len(asked.types) == 1
        return ((wanted,), wanted) if number or asked.types[0] in (STRING, VOID, *TIMES) else None

    return found


def of_time(of: DataType, result: DataType) -> Resolve:
    """A text, a date or a time, cast to `of`, and maybe texts."""

    def found(asked: Asked) -> Signature | None:
        own, *rest = asked.types
        texts = all(t in (STRING, VOID) for t in rest)
        return ((of, *[STRING] * len(rest)), result) if texts and own in (STRING, VOID, *TIMES) else None

    return found


def of_unit_and_time(asked: Asked) -> Signature | None:
    """A text and a time give a TIMESTAMP."""
    right = asked.types[0] in (STRING, VOID) and asked.types[1] in (STRING, VOID, *TIMES)
    return ((STRING, TIMESTAMP), TIMESTAMP) if right else None


def to_seconds(asked: Asked) -> Signature | None:
    """A time, or a text and maybe its pattern, give a BIGINT."""
    own, *rest = asked.types
    if own not in (STRING, VOID, *TIMES) or any(t not in (STRING, VOID) for t in rest):
        return None
    # The local time of a TIMESTAMP_NTZ is taken as it is.
    given = own if own == TIMESTAMP_NTZ else TIMESTAMP if own in TIMES else STRING
    return (given, *[STRING] * len(rest)), LONG


def of_seconds(asked: Asked) -> Signature | None:
    """A number of seconds, and maybe a text, give a STRING."""
    own, *rest = asked.types
    number = is_number(own) or own in (STRING, VOID)
    return ((LONG, *[STRING] * len(rest)), STRING) if number and all(t in (STRING, VOID) for t in rest) else None


def of_common(asked: Asked) -> Signature | None:
    """Values of one type, or numbers, or dates and times, give one of their common type."""
    found: DataType | None = asked.types[0]
    for other in asked.types[1:]:
        if found is not None and STRING in (found, other) and VOID not in (found, other) and found != other:
            return None
        found = None if found is None else common_type(found, other, ansi=asked.ansi)
    if len(asked.types) < 2 or found is None or not is_plain(found) or found in (VARIANT, VOID):
        return None
    return tuple([found] * len(asked.types)), found


def of_named(asked: Asked) -> Signature | None:
    """Anything whose type has no names in it gives a STRING."""
    own = asked.types[0]
    while isinstance(own, ArrayType):
        own = own.element
    return (asked.types, STRING) if isinstance(own, Primitive) else None


# --- evaluation ------------------------------------------------------------------------------------------------------


def type_name(values: pa.Array, types: Sequence[DataType]) -> pa.Array:
    """The type, as Spark names it."""
    return repeated(scalar(type_to_ddl(types[0]).lower()), len(values))


def size(values: pa.Array, ansi: bool) -> pa.Array:
    """Counts elements or entries. Without ANSI the size of NULL is -1 (spark.sql.legacy.sizeOfNull)."""
    return _lengths(values) if ansi else pc.fill_null(_lengths(values), -1)


def array_size(values: pa.Array) -> pa.Array:
    """Counts elements; null for NULL."""
    return _lengths(values)


def _lengths(values: pa.Array) -> pa.Array:
    if pa.types.is_map(values.type):
        values = values.cast(pa.list_(pa.struct([values.type.key_field, values.type.item_field])))
    return pc.list_value_length(values).cast(pa.int32())


def array_contains(values: pa.Array, wanted: Datum, types: Sequence[DataType]) -> pa.Array:
    """Whether an element equals the value; null if none does and one is null."""
    count = len(values)
    sought = as_array(wanted, count)
    parents = to_numpy(pc.list_parent_indices(values))
    elements = pc.list_flatten(values)
    assert isinstance(types[0], ArrayType)
    equal = compare(Op.EQ, elements, sought.take(arrow_array(parents)), types[0].element, types[1])
    hits = np.bincount(parents[to_numpy(pc.fill_null(equal, False))], minlength=count) > 0
    unknown = np.bincount(parents[to_numpy(pc.is_null(equal))], minlength=count) > 0
    valid = to_numpy(pc.and_(pc.is_valid(values), pc.is_valid(sought)))
    return arrow_array(hits, mask=~valid | (~hits & unknown))


def element_at(values: pa.Array, place: Datum, ansi: bool) -> tuple[pa.Array, pa.Array | None]:
    """The element at a position from 1, or from the end if negative; the value of a key. Beyond the ends of an array it
    is an error with ANSI; position 0 is one always, and a missing key is null."""
    count = len(values)
    places = as_array(place, count)
    if pa.types.is_map(values.type):
        return value_of(values, places), None
    lengths = to_numpy(pc.fill_null(pc.list_value_length(values), 0)).astype(np.int64)
    starts = to_numpy(values.offsets)[:-1].astype(np.int64)
    asked = to_numpy(pc.fill_null(places, 1)).astype(np.int64)
    there = to_numpy(pc.and_(pc.is_valid(values), pc.is_valid(places)))
    inside = there & (asked != 0) & (np.abs(asked) <= lengths)
    at = starts + np.where(asked > 0, asked - 1, lengths + asked)
    found = values.values.take(arrow_array(np.where(inside, at, 0), mask=~inside))
    failed = there & ~inside & (ansi | (asked == 0))
    return found, arrow_array(failed) if failed.any() else None


def value_of(values: pa.Array, keys: pa.Array) -> pa.Array:
    """The value of a key in each map, null where there is none; the first if a stored map has the key twice."""
    starts = to_numpy(values.offsets)[:-1].astype(np.int64)
    lengths = np.diff(to_numpy(values.offsets)).astype(np.int64)
    parents = np.repeat(np.arange(len(values)), lengths)
    entries = np.repeat(starts, lengths) + np.arange(len(parents)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    equal = pc.equal(values.keys.take(arrow_array(entries)), keys.take(arrow_array(parents)))
    at = np.full(len(values), -1)
    hits = to_numpy(pc.fill_null(equal, False))
    at[parents[hits][::-1]] = entries[hits][::-1]
    missing = (at < 0) | to_numpy(pc.is_null(values))
    return values.items.take(arrow_array(np.where(missing, 0, at), mask=missing))


def absolute(values: pa.Array, types: Sequence[DataType], ansi: bool) -> tuple[pa.Array, pa.Array | None]:
    """The number without its sign; the smallest integer has none."""
    if is_interval(types[0]):
        return intervals.absolute(values, types[0])
    found = pc.abs(values)
    if not ansi or types[0] not in INTEGRALS:
        return found, None
    failed = pc.fill_null(pc.equal(values, scalar(-(1 << bits_of(types[0])), values.type)), False)
    return found, failed if failed.true_count else None


def is_nan(values: pa.Array) -> pa.Array:
    """Whether the number is NaN; false for NULL."""
    return pc.fill_null(pc.is_nan(values), False)


def chosen(op: Op) -> Callable[..., pa.Array]:
    """Returns the function that gives the greatest (GT) or least (LT) value that is not null."""

    def found(*values: Datum, types: Sequence[DataType]) -> pa.Array:
        arrays = as_arrays(*values)
        best: Any = arrays[0]
        for other in arrays[1:]:
            better = pc.fill_null(compare(op, other, best, types[0], types[0]), pc.is_null(best))
            best = pc.if_else(better, other, best)
        return best.cast(to_arrow_type(types[0]))

    return found
