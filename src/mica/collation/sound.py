"""Where bounds of a collation may be trusted.

The rule: from `min <= row <= max` and `row = constant` it must follow that `min <= constant <= max`; so bounds are
kept, and used, only where the comparator puts all strings into one order. Spark's does, as far as was tried (all
triples of random strings, 28 collations), with two exceptions, which have no bounds:

- `ß` and `ẞ`: ICU4J 78.3 has a short way for Latin strings, which ranks `ß` otherwise than the long way, that other
  strings take: `Aß <= aẞ` and `aẞ <= \\u00adÄss`, but not `Aß <= \\u00adÄss`. A column that holds one in a file has
  no bounds there, and a constant that holds one drops no file.
- `fr_CAN` compares accents from the end, and characters that are ignored break its order.

UTF8_LCASE and those that only trim compare bytes of changed strings, which no exception touches.

Source: measured on Spark 4.2.1; `tests/property/test_collations_spark.py` holds it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

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
    """As `in_order`, for all of many."""
    if by_bytes(name):
        return True
    return not any(pc.any(pc.match_substring(strings, c)).as_py() for c in _OUT_OF_ORDER)
