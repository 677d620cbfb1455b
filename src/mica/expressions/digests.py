"""Digests of binary values, as in Spark: hexadecimal texts in lower case.

The rule: each distinct value is hashed once. Source: Spark's Md5 and Sha2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from mica import late
from mica.arrays import arrow_array

_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def md5(values: pa.Array) -> pa.Array:
    """MD5, of 32 digits."""
    return _each(values, lambda value: late.hashlib.md5(value, usedforsecurity=False).hexdigest())


def sha2(values: pa.Array, bits: pa.Scalar) -> pa.Array:
    """SHA-224 to SHA-512, 0 is 256; null for other sizes."""
    name = _SHA2.get(bits.as_py())
    if name is None:
        return pa.nulls(len(values), pa.string())
    made: Any = getattr(late.hashlib, name)
    return _each(values, lambda value: made(value).hexdigest())


def _each(values: pa.Array, one: Callable[[bytes], str]) -> pa.Array:
    encoded = values.dictionary_encode()
    found = [None if value is None else one(value) for value in encoded.dictionary.to_pylist()]
    return arrow_array(found, pa.string()).take(encoded.indices)
