"""Parses a constant: its spelling gives its value and type.

The rule: the spelling decides the type, as in Spark: `1` is INT, or the next wider type that holds it; `1.0` is a
decimal of its own digits; `1e0` is a double; a suffix letter overrides this. A value that does not fit is rejected.

Source: Spark's AstBuilder: visitIntegerLiteral, visitDecimalLiteral, visitNumericLiteral, visitHexLiteral.
"""

from __future__ import annotations

import sys
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from mica.arrays import scalar
from mica.expressions.tree import Literal
from mica.schema.types import BYTE, DOUBLE, FLOAT, INTEGER, LONG, SHORT, decimal

#: As Java prints them, by which Spark measures.
_MOST_FLOAT, _MOST_DOUBLE = (Decimal(repr(most)) for most in ((2 - 2.0**-23) * 2.0**127, sys.float_info.max))
_INTEGER_SUFFIX = {"L": (LONG, 63), "S": (SHORT, 15), "Y": (BYTE, 7)}


def number(text: str, at: int) -> Literal:
    """Reads a number token with its sign. Raises ValueError with the reason if it is not a number."""
    text = text.upper()
    if text.endswith("BD"):
        return _decimal(text[:-2], at)
    last, digits = text[-1], text.lstrip("-")
    if last in _INTEGER_SUFFIX and digits[:-1].isdecimal():
        type_, bits = _INTEGER_SUFFIX[last]
        value = int(text[:-1])
        if not -(1 << bits) <= value < 1 << bits:
            raise ValueError(f"{text} does not fit its type")
        return Literal(value, type_, at=at)
    if last in "LSY":
        raise ValueError(f"{text} is not an integer")
    if last in "FD" or "E" in text:
        type_, most = (FLOAT, _MOST_FLOAT) if last == "F" else (DOUBLE, _MOST_DOUBLE)
        text = text.rstrip("FD")
        if abs(_exact(text)) > most:
            raise ValueError(f"{text} does not fit a {type_.name}")
        # By way of a double, a float would be rounded twice.
        return Literal(scalar(text).cast(pa.float32()).as_py() if last == "F" else float(text), type_, at=at)
    if digits.isdecimal():
        value = int(text)
        for type_, bits in ((INTEGER, 31), (LONG, 63)):
            if -(1 << bits) <= value < 1 << bits:
                return Literal(value, type_, at=at)
    return _decimal(text, at)


def binary(text: str) -> bytes:
    """Reads the digits in X'…'. Raises ValueError with the reason if they are invalid."""
    if any(c.isspace() for c in text):
        raise ValueError(f"X'{text}' is not a binary literal: hexadecimal digits are expected")
    try:
        return bytes.fromhex("0" * (len(text) % 2) + text)
    except ValueError as e:
        raise ValueError(f"X'{text}' is not a binary literal: hexadecimal digits are expected") from e


def _exact(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # its exponent has too many digits
        raise ValueError(f"{text} is not a number") from None


def _decimal(text: str, at: int) -> Literal:
    value = _exact(text)
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{text} is not a number")
    if exponent > 0:
        value = Decimal((sign, (*digits, *([0] * min(exponent, 50))), 0))
        digits, exponent = value.as_tuple().digits, 0
    scale = -exponent
    precision = max(len(digits) if digits != (0,) else 1, scale)
    if precision > 38:
        raise ValueError(f"{text} has more than 38 digits")
    return Literal(value, decimal(precision, scale), at=at)
