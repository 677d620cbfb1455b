"""xxhash64, as in Spark.

The rule: values are hashed one column after the other, the hash so far is the seed of the next; null leaves it as it
is. Whole columns are hashed at once: eight bytes of all rows, then the next eight.

Source: Spark's XxHash64, XXH64; the xxHash specification, "XXH64 Algorithm Description".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.expressions.coerce import digits, is_exact
from mica.expressions.compare import Datum, hashable
from mica.expressions.pairs import as_array
from mica.expressions.signatures import Asked, Resolve, Signature
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRALS,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    DataType,
    Primitive,
)

_SEED = 42
_WIDE = Context(prec=60)
_U64 = np.uint64
_P1, _P2, _P3, _P4, _P5 = (
    _U64(p)
    for p in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
    )
)  # fmt: skip
#: Decimals of so many digits are hashed as a long.
_LONG_DIGITS = 18


def of_plain(result: DataType) -> Resolve:
    """Values of any plain types but VARIANT give a number."""

    def found(asked: Asked) -> Signature | None:
        plain = all(isinstance(t, Primitive) and t.known and t != VARIANT for t in asked.types)
        return (asked.types, result) if plain else None

    return found


class Hash(NamedTuple):
    """How a hash is made: its words, and what it makes of 32 and of 64 bits, and of bytes, from a seed in each row."""

    word: Any
    of_int: Callable[[Any, Any], Any]
    of_long: Callable[[Any, Any], Any]
    of_bytes: Callable[[pa.Array, Any], Any]


def xxhash64(*values: Datum, types: Sequence[DataType]) -> pa.Array:
    """The hash of the values of each row."""
    return arrow_array(hashed(values, types, Hash(_U64, _of_int, _of_long, _of_bytes)).view(np.int64))


def hashed(values: Sequence[Datum], types: Sequence[DataType], by: Hash) -> Any:
    """The words of each row."""
    count = max(len(v) for v in values if isinstance(v, pa.Array))
    found = np.full(count, _SEED, by.word)
    with np.errstate(over="ignore"):
        for value, type_ in zip(values, types, strict=True):
            if type_ == VOID:
                continue
            column = as_array(value, count)
            made = _hashed(column, type_, found, by)
            found = np.where(to_numpy(pc.is_valid(column)), made, found)
    return found


def _hashed(column: pa.Array, type_: DataType, seed: Any, by: Hash) -> Any:
    if type_ in (BOOLEAN, DATE, *INTEGRALS[:3]):
        numbers = column.cast(pa.int32()) if type_ == DATE else column.cast(pa.int8()) if type_ == BOOLEAN else column
        return by.of_int(to_numpy(pc.fill_null(numbers, 0)).astype(np.int32), seed)
    if type_ in (LONG, TIMESTAMP, TIMESTAMP_NTZ):
        return by.of_long(to_numpy(pc.fill_null(column.cast(pa.int64()), 0)), seed)
    if type_ in (FLOAT, DOUBLE):
        reals = to_numpy(pc.fill_null(hashable(column), 0.0))
        if type_ == FLOAT:
            return by.of_int(reals.astype(np.float32).view(np.int32), seed)
        return by.of_long(reals.view(np.int64), seed)
    if is_exact(type_):
        precision, scale = digits(type_)
        if precision <= _LONG_DIGITS:
            low = np.frombuffer(column.buffers()[1], np.int64)[0::2][column.offset : column.offset + len(column)]
            return by.of_long(np.where(to_numpy(pc.is_valid(column)), low, 0), seed)
        encoded = column.dictionary_encode()
        texts = [None if v is None else _unscaled(v, scale) for v in encoded.dictionary.to_pylist()]
        column = arrow_array(texts, pa.binary()).take(encoded.indices)
    assert is_exact(type_) or type_ in (STRING, BINARY)
    return by.of_bytes(column, seed)


def _unscaled(value: Decimal, scale: int) -> bytes:
    """The unscaled number as Java's BigInteger: big-endian, no byte too many."""
    number = int(value.scaleb(scale, _WIDE))
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


def _rotated(values: Any, bits: int) -> Any:
    return (values << _U64(bits)) | (values >> _U64(64 - bits))


def _mixed(found: Any) -> Any:
    found = (found ^ (found >> _U64(33))) * _P2
    found = (found ^ (found >> _U64(29))) * _P3
    return found ^ (found >> _U64(32))


def _round(lane: Any, words: Any) -> Any:
    return _rotated(lane + words * _P2, 31) * _P1


def _with_word(found: Any, words: Any) -> Any:
    return _rotated(found ^ _round(_U64(0), words), 27) * _P1 + _P4


def _with_half(found: Any, halves: Any) -> Any:
    return _rotated(found ^ (halves * _P1), 23) * _P2 + _P3


def _of_int(numbers: Any, seed: Any) -> Any:
    return _mixed(_with_half(seed + _P5 + _U64(4), numbers.view(np.uint32).astype(_U64)))


def _of_long(numbers: Any, seed: Any) -> Any:
    return _mixed(_with_word(seed + _P5 + _U64(8), np.ascontiguousarray(numbers).view(_U64)))


def bytes_of(column: pa.Array) -> tuple[Any, Any, Any]:
    """The bytes of all values and eight more; where each value begins, and its size."""
    column = column.cast(pa.large_binary())
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    return np.concatenate([data, np.zeros(8, np.uint8)]), offsets[:-1].copy(), np.diff(offsets)


def _of_bytes(column: pa.Array, seed: Any) -> Any:
    """Rows take part as long as they have bytes left."""
    data, start, size = bytes_of(column)
    found = seed + _P5
    rows = np.flatnonzero(size >= 32)
    if len(rows):
        found[rows] = _stripes(data, start, size, rows, seed)
        start = start + size // 32 * 32
    found = found + size.astype(_U64)
    left = size % 32
    for n in range(4):
        rows = np.flatnonzero(left >= 8 * (n + 1))
        found[rows] = _with_word(found[rows], _words(data, start[rows] + 8 * n))
    start, left = start + left // 8 * 8, left % 8
    rows = np.flatnonzero(left >= 4)
    found[rows] = _with_half(found[rows], _words(data, start[rows]) & _U64(0xFFFFFFFF))
    start, left = start + left // 4 * 4, left % 4
    for n in range(3):
        rows = np.flatnonzero(left > n)
        byte = data[start[rows] + n].astype(_U64)
        found[rows] = _rotated(found[rows] ^ (byte * _P5), 11) * _P1
    return _mixed(found)


def _stripes(data: Any, start: Any, size: Any, rows: Any, seed: Any) -> Any:
    """The hash of the whole stripes of 32 bytes, in four lanes."""
    own = seed[rows]
    lanes = [own + _P1 + _P2, own + _P2, own.copy(), own - _P1]
    stripes = size[rows] // 32
    for n in range(int(stripes.max())):
        here = np.flatnonzero(stripes > n)
        at = start[rows[here]] + 32 * n
        for lane in range(4):
            lanes[lane][here] = _round(lanes[lane][here], _words(data, at + 8 * lane))
    found = _rotated(lanes[0], 1) + _rotated(lanes[1], 7) + _rotated(lanes[2], 12) + _rotated(lanes[3], 18)
    for lane in lanes:
        found = (found ^ _round(_U64(0), lane)) * _P1 + _P4
    return found


def _words(data: Any, at: Any) -> Any:
    """Eight bytes from each place, little-endian."""
    found = np.zeros(len(at), _U64)
    for n in range(8):
        found |= data[at + n].astype(_U64) << _U64(8 * n)
    return found
