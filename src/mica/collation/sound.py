"""Where bounds of a collation may be trusted.

The rule: from `min <= row <= max` and `row = constant` it must follow that `min <= constant <= max`; so bounds are
kept, and used, only where the comparator puts all strings into one order. Spark's does, as far as was tried (all
triples of random strings, 28 collations), with two exceptions, which have no bounds:

- `ß` and `ẞ`: where case is ignored and accents count, ICU4J 78.3 has a short way for Latin strings, which ranks `ß`
  otherwise than the long way, that other strings take: `Aß <= aẞ` and `aẞ <= \\u00adÄss`, but not `Aß <= \\u00adÄss`.
  A column that holds one in a file has no bounds there, and a constant that holds one drops no file.
- `fr_CAN` compares accents from the end, and characters that are ignored break its order: `ê <= ê\\u00ad\\u0301` and
  `ê\\u00ad\\u0301 <= è`, but not `ê <= è`.

UTF8_LCASE and those that only trim compare bytes of changed strings, which no exception touches.

Source: measured on Spark 4.2.1; `tests/spark/test_order.py` shows both, `tests/property/test_collations_spark.py` tries
the rest.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_OUT_OF_ORDER = "ßẞ"
_OUT_OF_ORDER_BASES = ("fr_can",)


def has_bounds(name: str) -> bool:
    """Whether a collation (by its SQL name) can have bounds at all."""
    return not name.lower().startswith(_OUT_OF_ORDER_BASES)


def by_bytes(name: str) -> bool:
    """Whether a collation compares the bytes of changed strings: ICU has no part in it."""
    return name.upper().startswith("UTF8_")


def in_order(text: str, name: str) -> bool:
    """Whether a string has one place among all strings."""
    return by_bytes(name) or not any(c in text for c in _OUT_OF_ORDER)


def all_in_order(strings: pa.Array, name: str) -> bool:
    """As `in_order`, for all of many; null has no place and needs none."""
    if by_bytes(name) or not len(strings):
        return True
    # Their bytes are looked through as one text: no part of UTF-8 looks like another character's.
    _, offsets, data = strings.buffers()
    if data is None:
        return True
    first, last = (np.frombuffer(offsets, np.int32)[strings.offset + i] for i in (0, len(strings)))
    text = data[first:last].to_pybytes()
    return text.isascii() or not any(c.encode() in text for c in _OUT_OF_ORDER)
