"""Decoding Roaring bitmaps, in the portable 64-bit form that deletion vectors use.

The rule: bytes in, sorted row numbers out; every length is checked against what is left before it is used, and bytes
that break the format raise. (A library would be a compiled dependency for a hundred lines that numpy does as fast.)

Formats: PROTOCOL.md "Deletion Vector Format"; the Roaring format specification's 64-bit and 32-bit layouts:

    64 bit: count u64 │ count × (high word u32 │ 32-bit bitmap)
    32 bit: cookie │ [run flags] │ n × (key u16, cardinality - 1 u16) │ [n × offset u32] │ containers
            container: array (≤ 4096 values u16) │ bitmap (8192 bytes) │ runs (count u16, count × (start u16, length -
            1 u16))
"""

from __future__ import annotations

import numpy as np

from mica.errors import CorruptDataError

_NO_RUNS, _RUNS = 12346, 12347
_ARRAY_LIMIT = 4096
_NO_OFFSETS_BELOW = 4


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise _corrupt(f"it ends at byte {len(self.data)}, where {self.at + length} were expected")
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")

    def words(self, count: int) -> np.ndarray:
        return np.frombuffer(self.take(2 * count), "<u2").astype(np.uint64)


def decode(data: bytes, limit: int) -> np.ndarray:
    """The values of a 64-bit bitmap as sorted uint64. More than `limit` of them are an error before they are made: runs
    can stand for far more values than they take bytes. Raises `CorruptDataError` (`CORRUPT_DELETION_VECTOR`)."""
    cursor = _Cursor(data)
    left = limit
    parts = []
    previous = -1
    for _ in range(_count(cursor.number(8), len(data) // 8)):
        high = cursor.number(4)
        if high <= previous:
            raise _corrupt("its parts are not in order")
        previous = high
        parts.append(_decode_32(cursor, left) + np.uint64(high << 32))
        left -= len(parts[-1])
    return np.concatenate(parts) if parts else np.array([], np.uint64)


def _count(found: int, most: int) -> int:
    # Each part takes bytes: a count that cannot be true must not size anything.
    if found > most:
        raise _corrupt(f"it claims {found} parts")
    return found


def _decode_32(cursor: _Cursor, limit: int) -> np.ndarray:
    cookie = cursor.number(4)
    if cookie & 0xFFFF == _RUNS:
        count = (cookie >> 16) + 1
        flags = np.unpackbits(np.frombuffer(cursor.take((count + 7) // 8), np.uint8), bitorder="little")[:count]
    elif cookie == _NO_RUNS:
        count = cursor.number(4)
        if count > 1 << 16:
            raise _corrupt(f"it claims {count} containers")
        flags = np.zeros(count, np.uint8)
    else:
        raise _corrupt(f"it begins with {cookie}, which is no Roaring bitmap")
    header = cursor.words(2 * count)
    keys, sizes = header[0::2], header[1::2] + np.uint64(1)
    if int(sizes.sum()) > limit:
        raise _corrupt("it holds more rows than the log says")
    if count > 1 and not bool(np.all(keys[1:] > keys[:-1])):
        raise _corrupt("its containers are not in order")
    if cookie == _NO_RUNS or count >= _NO_OFFSETS_BELOW:
        cursor.take(4 * count)  # the offsets repeat what the containers' own lengths say
    parts = [
        _container(cursor, int(size), bool(run)) + np.uint64(int(key) << 16)
        for key, size, run in zip(keys, sizes, flags, strict=True)
    ]
    return np.concatenate(parts) if parts else np.array([], np.uint64)


def _container(cursor: _Cursor, size: int, run: bool) -> np.ndarray:
    if run:
        pairs = cursor.words(2 * cursor.number(2))
        starts, lengths = pairs[0::2], pairs[1::2] + np.uint64(1)
        if int(lengths.sum()) != size:
            raise _corrupt("a container does not hold what its header says")
        values = np.concatenate(
            [np.arange(s, s + n, dtype=np.uint64) for s, n in zip(starts, lengths, strict=True)] or [pairs]
        )
    elif size <= _ARRAY_LIMIT:
        values = cursor.words(size)
    else:
        bits = np.unpackbits(np.frombuffer(cursor.take(8192), np.uint8), bitorder="little")
        values = np.flatnonzero(bits).astype(np.uint64)
    ordered = len(values) < 2 or bool(np.all(values[1:] > values[:-1]))
    if len(values) != size or not ordered or (len(values) and int(values[-1]) > 0xFFFF):
        raise _corrupt("a container does not hold what its header says")
    return values


def _corrupt(why: str) -> CorruptDataError:
    return CorruptDataError(
        "CORRUPT_DELETION_VECTOR", f"a deletion vector cannot be read: {why}", hint="Restore the file."
    )
