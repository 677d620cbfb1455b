"""Roaring bitmaps in the portable 64-bit form that deletion vectors use.

The rule: sorted row numbers to bytes and back. The encoder writes each container in the smallest of its three forms;
the decoder checks every length against the remaining bytes before it uses it, and raises on invalid input. (A library
would add a compiled dependency for two hundred lines that are as fast in numpy.)

Formats: PROTOCOL.md "Deletion Vector Format"; the Roaring format specification's 64-bit and 32-bit layouts:

    64 bit: count u64 │ count × (high word u32 │ 32-bit bitmap)
    32 bit: cookie │ [run flags] │ n × (key u16, cardinality - 1 u16) │ [n × offset u32] │ containers
            container: array (≤ 4096 values u16) │ bitmap (8192 bytes) │ runs (count u16, count × (start u16, length -
            1 u16))
"""

from __future__ import annotations

import itertools

import numpy as np

from mica.errors import CorruptDataError

_NO_RUNS, _RUNS = 12346, 12347
_ARRAY_LIMIT = 4096
_NO_OFFSETS_BELOW = 4


def encode(rows: np.ndarray) -> bytes:
    """Encodes the sorted distinct row numbers as a 64-bit bitmap."""
    values = np.asarray(rows, np.uint64)
    parts = [values[begin:end] for begin, end in _runs_of(values >> np.uint64(32))]
    head = [len(parts).to_bytes(8, "little")]
    for part in parts:
        head += [int(part[0] >> np.uint64(32)).to_bytes(4, "little"), _encode_32(part & np.uint64(0xFFFFFFFF))]
    return b"".join(head)


def _runs_of(keys: np.ndarray) -> list[tuple[int, int]]:
    """Returns the ranges of equal keys."""
    edges = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
    return list(itertools.pairwise(edges)) if len(keys) else []


def _encode_32(values: np.ndarray) -> bytes:
    spans = _runs_of(values >> np.uint64(16))
    containers = [_encode_container((values[begin:end] & np.uint64(0xFFFF)).astype("<u2")) for begin, end in spans]
    flags = np.array([run for run, _ in containers])
    header = np.empty(2 * len(spans), "<u2")
    header[0::2] = [int(values[begin] >> np.uint64(16)) for begin, _ in spans]
    header[1::2] = [end - begin - 1 for begin, end in spans]
    if flags.any():
        head = (_RUNS | (len(spans) - 1) << 16).to_bytes(4, "little") + np.packbits(flags, bitorder="little").tobytes()
    else:
        head = _NO_RUNS.to_bytes(4, "little") + len(spans).to_bytes(4, "little")
    head += header.tobytes()
    bodies = [body for _, body in containers]
    if not flags.any() or len(spans) >= _NO_OFFSETS_BELOW:
        start = len(head) + 4 * len(spans)
        head += np.cumsum([start, *map(len, bodies[:-1])]).astype("<u4").tobytes()
    return head + b"".join(bodies)


def _encode_container(values: np.ndarray) -> tuple[bool, bytes]:
    """Returns (whether the container has runs, its bytes)."""
    breaks = np.flatnonzero(np.diff(values.astype(np.int64)) != 1)
    runs = len(breaks) + 1
    if 2 + 4 * runs < min(2 * len(values), 8192):
        starts = values[np.concatenate([[0], breaks + 1])]
        ends = values[np.concatenate([breaks, [len(values) - 1]])]
        pairs = np.stack([starts, ends - starts], 1).astype("<u2")
        return True, runs.to_bytes(2, "little") + pairs.tobytes()
    if len(values) <= _ARRAY_LIMIT:
        return False, values.tobytes()
    bits = np.zeros(1 << 16, np.uint8)
    bits[values] = 1
    return False, np.packbits(bits, bitorder="little").tobytes()


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise _corrupt(f"it ends at byte {len(self.data)}, {self.at + length} were expected")
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")

    def words(self, count: int) -> np.ndarray:
        return np.frombuffer(self.take(2 * count), "<u2").astype(np.uint64)


def decode(data: bytes, limit: int) -> np.ndarray:
    """Decodes a 64-bit bitmap to sorted uint64. More than `limit` values raise before they are allocated: runs can
    encode far more values than their bytes. Raises `CorruptDataError` (`CORRUPT_DELETION_VECTOR`)."""
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
    # Each part has bytes: a count beyond the data must not size an allocation.
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
        raise _corrupt(f"it begins with {cookie}, which is not a Roaring bitmap")
    header = cursor.words(2 * count)
    keys, sizes = header[0::2], header[1::2] + np.uint64(1)
    if int(sizes.sum()) > limit:
        raise _corrupt("it holds more rows than the log says")
    if not bool(np.all(keys[1:] > keys[:-1])):
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
            raise _corrupt("a container does not match its header")
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
        raise _corrupt("a container does not match its header")
    return values


def _corrupt(why: str) -> CorruptDataError:
    return CorruptDataError(
        "CORRUPT_DELETION_VECTOR", f"a deletion vector cannot be read: {why}", hint="Restore the file."
    )
