"""Casts of plain values and of whole arrays, as Spark casts.

The rule: a cast gives what Spark gives, or says that it failed; it never approximates. Casts of Variants are the
kernel's, not ours. Where Arrow's own cast is exactly Spark's it is used, otherwise each distinct value is cast once.

Source: Spark's Cast and UTF8String.toLong, toLongExact; SparkDateTimeUtils.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mica.schema import literals
from mica.schema.arrow import to_arrow_type
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRALS,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    Primitive,
)
from mica.skipping.coerce import is_exact, is_real

BITS = {BYTE: 7, SHORT: 15, INTEGER: 31, LONG: 63}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INTEGER_LOOSE = re.compile(r"([+-]?[0-9]*)(?:\.[0-9]*)?")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")  # Java's BigDecimal reads digits of all scripts
_SPECIAL = {"inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf, "nan": math.nan}
_SPECIAL |= {"-inf": -math.inf, "-infinity": -math.inf}
_TRUE, _FALSE = frozenset(("t", "true", "y", "yes", "1")), frozenset(("f", "false", "n", "no", "0"))
_TRIM = "".join(map(chr, range(33))) + "\x7f"
_WIDE = Context(prec=100)
_DAY = 86_400_000_000


class CastFailedError(Exception):
    """The value has no counterpart in the type."""


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether `cast_value` knows the pair."""
    if source in (target, VOID):
        return True
    if source == STRING:
        return target in (BOOLEAN, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ) or is_exact(target) or is_real(target)
    if is_exact(source):
        return is_exact(target) or is_real(target) or target == STRING
    if is_real(source):
        return is_real(target)
    if source == BOOLEAN:
        return is_exact(target) or is_real(target) or target == STRING
    if target == STRING:
        return source == DATE
    times = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return source in times and target in times


def cast_value(value: Any, source: DataType, target: DataType, zone: str, *, ansi: bool) -> Any:
    """One value (dates and timestamps as ints, see `literals`). Raises CastFailedError."""
    if value is None or source == target:
        return value
    if source == STRING:
        return _from_string(value, target, zone, ansi=ansi)
    if is_exact(source):
        return _from_exact(value, target, ansi=ansi)
    if is_real(source):
        return _to_float32(value) if target == FLOAT else value
    if target == STRING:
        return str(value).lower() if source == BOOLEAN else literals.show_date(value)
    if source == BOOLEAN:
        return _from_exact(int(value), target, ansi=ansi)
    if source == DATE:
        return literals.local_to_utc(value * _DAY, zone) if target == TIMESTAMP else value * _DAY
    if source == TIMESTAMP:
        local = literals.utc_to_local(value, zone)
        return local // _DAY if target == DATE else local
    return value // _DAY if target == DATE else literals.local_to_utc(value, zone)


def _from_string(text: str, target: DataType, zone: str, *, ansi: bool) -> Any:
    found: Any = None
    if target == BINARY:
        return text.encode()
    trimmed = text.strip(_TRIM)
    if target in INTEGRALS:
        found = _parse_integer(trimmed, BITS[target], ansi=ansi)
    elif is_real(target):
        found = _SPECIAL.get(trimmed.lower())
        if found is None and _REAL.fullmatch(trimmed):
            found = float(trimmed.rstrip("dDfF"))
        if found is not None and target == FLOAT:
            found = _to_float32(found)
    elif is_exact(target):
        try:
            found = _to_decimal(Decimal(trimmed), target) if _DECIMAL.fullmatch(trimmed) else None
        except InvalidOperation:
            found = None
    elif target == BOOLEAN:
        found = True if trimmed.lower() in _TRUE else False if trimmed.lower() in _FALSE else None
    elif target == DATE:
        found = literals.parse_date(text)
    elif target == TIMESTAMP:
        found = literals.parse_timestamp(text, zone)
    elif target == TIMESTAMP_NTZ:
        found = literals.parse_timestamp_ntz(text)
    if found is None:
        raise CastFailedError
    return found


def _parse_integer(text: str, bits: int, *, ansi: bool) -> int | None:
    if ansi:
        value = int(text) if _INTEGER.fullmatch(text) else None
    else:
        match = _INTEGER_LOOSE.fullmatch(text)
        # A sign or a point alone: "-" is no number, "-." is 0.
        digits = match[1].strip("+-") if match else ""
        value = int(match[1] if digits else 0) if match and text.strip("+-") else None
    return value if value is not None and -(1 << bits) <= value < 1 << bits else None


def _from_exact(value: int | Decimal, target: DataType, *, ansi: bool) -> Any:
    if target == STRING:
        return f"{value:f}" if isinstance(value, Decimal) and ansi else str(value)
    if is_real(target):
        return _to_float32_exactly(value) if target == FLOAT else float(value)
    if target in INTEGRALS:
        whole = int(value.to_integral_value(ROUND_DOWN)) if isinstance(value, Decimal) else value
        bits = BITS[target]
        if -(1 << bits) <= whole < 1 << bits:
            return whole
        if ansi:
            raise CastFailedError
        return (whole + (1 << bits)) % (1 << bits + 1) - (1 << bits)  # Java keeps the low bits
    return _to_decimal(Decimal(value), target)


def _to_decimal(value: Decimal, target: DataType) -> Decimal:
    ps = target.decimal if isinstance(target, Primitive) else None
    assert ps is not None
    if not value.is_finite() or value.adjusted() > 40:
        raise CastFailedError
    rounded = value.quantize(Decimal(1).scaleb(-ps[1]), ROUND_HALF_UP, _WIDE)
    if rounded and rounded.adjusted() >= ps[0] - ps[1]:
        raise CastFailedError
    return rounded


def _to_float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _to_float32_exactly(value: int | Decimal) -> float:
    # Java rounds an int or decimal to float in one step; by way of double it would be two.
    near = _to_float32(float(value))
    if math.isinf(near):
        return near
    (bits,) = struct.unpack("<i", struct.pack("<f", near))
    around = [struct.unpack("<f", struct.pack("<i", bits + d))[0] for d in (-1, 0, 1) if (bits & 0x7FFFFFFF) + d >= 0]
    exact = Fraction(value)
    ranked = sorted((abs(Fraction(f) - exact), i != 1, f) for i, f in enumerate(around) if math.isfinite(f))
    if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
        # A tie goes to the even mantissa.
        even = [f for _, _, f in ranked[:2] if struct.unpack("<i", struct.pack("<f", f))[0] % 2 == 0]
        return float(even[0])
    return float(ranked[0][2])


# --- arrays ----------------------------------------------------------------------------------------------------------


def cast_array(
    array: pa.Array, source: DataType, target: DataType, zone: str, *, ansi: bool
) -> tuple[pa.Array, pa.Array | None]:
    """The cast array, null where the cast failed, and the mask of failures (None when there is none)."""
    wanted = to_arrow_type(target)
    if source in (target, VOID):
        return array.cast(wanted), None
    if _arrow_is_exact(source, target, zone):
        return array.cast(wanted, safe=False), None
    encoded = array.dictionary_encode()
    results: list[Any] = []
    failed: list[bool] = []
    for value in to_values(encoded.dictionary, source):
        try:
            results.append(cast_value(value, source, target, zone, ansi=ansi))
            failed.append(False)
        except CastFailedError:
            results.append(None)
            failed.append(True)
    out = from_values(results, target).take(encoded.indices)
    if not any(failed):
        return out, None
    return out, pc.fill_null(pa.array(failed, pa.bool_()).take(encoded.indices), False)


def _arrow_is_exact(source: DataType, target: DataType, zone: str) -> bool:
    if source in INTEGRALS:
        # Of the casts to float those from 16 bits and fewer are exact; Arrow's and Java's int to double round alike.
        wider = target in INTEGRALS and INTEGRALS.index(target) >= INTEGRALS.index(source)
        return wider or target == DOUBLE or (target == FLOAT and source in (BYTE, SHORT))
    if source == FLOAT:
        return target == DOUBLE
    utc = literals.zone_offset(zone) == 0
    if source == DATE:
        return target == TIMESTAMP_NTZ or (target == TIMESTAMP and utc)
    return utc and {source, target} == {TIMESTAMP, TIMESTAMP_NTZ}


def to_values(array: pa.Array, type_: DataType) -> list[Any]:
    """An array's values as Python's, dates and timestamps as ints."""
    if type_ == DATE:
        array = array.cast(pa.int32())
    elif type_ in (TIMESTAMP, TIMESTAMP_NTZ):
        array = array.cast(pa.int64())
    values: list[Any] = array.to_pylist()
    return values


def from_values(values: list[Any], type_: DataType) -> pa.Array:
    """The inverse of `to_values`."""
    wanted = to_arrow_type(type_)
    if type_ == DATE:
        return pa.array(values, pa.int32()).cast(wanted)
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ):
        return pa.array(values, pa.int64()).cast(wanted)
    return pa.array(values, wanted)
