"""hash, as in Spark: Murmur3 of 32 bits.

The rule: values are hashed one column after the other, as in `xxhash`. The bytes behind the last four are hashed one by
one, each as a word with its sign: Spark's own way, which other engines do not have.

Source: Spark's Murmur3Hash, Murmur3_x86_32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mica.arrays import arrow_array
from mica.expressions.compare import Datum
from mica.expressions.xxhash import Hash, bytes_of, hashed
from mica.schema.types import DataType

_U32 = np.uint32


def murmur(*values: Datum, types: Sequence[DataType]) -> pa.Array:
    """The hash of the values of each row."""
    return arrow_array(hashed(values, types, Hash(_U32, _of_int, _of_long, _of_bytes)).view(np.int32))


def _rotated(values: Any, bits: int) -> Any:
    return (values << _U32(bits)) | (values >> _U32(32 - bits))


def _with_word(found: Any, words: Any) -> Any:
    mixed = _rotated(words * _U32(0xCC9E2D51), 15) * _U32(0x1B873593)
    return _rotated(found ^ mixed, 13) * _U32(5) + _U32(0xE6546B64)


def _finished(found: Any, size: Any) -> Any:
    found = found ^ size
    found = (found ^ (found >> _U32(16))) * _U32(0x85EBCA6B)
    found = (found ^ (found >> _U32(13))) * _U32(0xC2B2AE35)
    return found ^ (found >> _U32(16))


def _of_int(numbers: Any, seed: Any) -> Any:
    return _finished(_with_word(seed, numbers.view(_U32)), _U32(4))


def _of_long(numbers: Any, seed: Any) -> Any:
    words = np.ascontiguousarray(numbers).view(_U32).reshape(-1, 2)
    return _finished(_with_word(_with_word(seed, words[:, 0]), words[:, 1]), _U32(8))


def _of_bytes(column: pa.Array, seed: Any) -> Any:
    """Rows take part as long as they have bytes left."""
    data, start, size = bytes_of(column)
    found = seed.copy()
    for n in range(int(size.max(initial=0)) // 4):
        rows = np.flatnonzero(size >= 4 * (n + 1))
        at = start[rows] + 4 * n
        words = np.zeros(len(rows), _U32)
        for k in range(4):
            words |= data[at + k].astype(_U32) << _U32(8 * k)
        found[rows] = _with_word(found[rows], words)
    whole = size // 4 * 4
    for n in range(3):
        rows = np.flatnonzero(size - whole > n)
        signed = data[start[rows] + whole[rows] + n].view(np.int8).astype(np.int32).view(_U32)
        found[rows] = _with_word(found[rows], signed)
    return _finished(found, size.astype(_U32))
