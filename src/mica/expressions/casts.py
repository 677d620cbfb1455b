"""Casts of plain values and of whole arrays, as in Spark.

The rule: a cast returns what Spark returns, or reports that it failed; it never approximates. Arrow's cast is used
where it equals Spark's exactly. The kernel does the others by the rules of ANSI, except the pairs in `_OWN`: those that
only columns have, and Spark's rules without ANSI.

| | ANSI, TRY_CAST | also without ANSI |
|---|---|---|
| boolean, numbers | each other, string; numbers: timestamp | boolean: timestamp; integers: binary |
| string | anything | |
| binary | string | |
| date | string, timestamp, timestamp_ntz | boolean and numbers (always null) |
| timestamp | string, date, timestamp_ntz, numbers | boolean |
| timestamp_ntz | string, date, timestamp | |
| any of these, arrays of them | variant | |
| an interval | see `interval_casts` | |
| array, map, struct | one of its kind, part by part: see `nested_casts` | |
| variant | any of these but intervals, arrays, structs, maps with keys of type string; to any depth | |

Source: Spark's Cast (canAnsiCast, canCast, castInternal), UTF8String.toLong; IntegralType and FractionalType casts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy
from mica.expressions import interval_casts, nested_casts
from mica.expressions.coerce import is_exact, is_real
from mica.expressions.plain_values import TRIMMED, Made, each, from_values, to_values
from mica.schema.arrow import to_arrow_type, variant_field
from mica.schema.interval_types import is_interval
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRALS,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    Primitive,
    StructType,
    loosened,
)
from mica.variant import kernel
from mica.variant.plain import of_values

_INTEGER_LOOSE = re.compile(r"([+-]?[0-9]*)(?:\.[0-9]*)?")
_MICROS = 1_000_000
_LAST_DAY = (2**63 - 1) // (86_400 * _MICROS)
#: Those of the largest integer.
_DIGITS = 19
#: Scala's decimals.
_DECIMAL128 = Context(prec=34, rounding=ROUND_HALF_EVEN)
_LEAST, _MOST = -(2**63), 2**63 - 1


class _Ask(NamedTuple):
    source: DataType
    target: DataType
    zone: str

    @property
    def arrow(self) -> pa.DataType:
        return to_arrow_type(self.target)

    @property
    def bits(self) -> int:
        return bits_of(self.target)


def bits_of(type_: DataType) -> int:
    """Returns the number of value bits of an integer type, without the sign."""
    return (7, 15, 31, 63)[INTEGRALS.index(type_)]


class CastFailedError(Exception):
    """The value does not exist in the target type."""


def can_cast(source: DataType, target: DataType, *, ansi: bool, by_name: bool = False) -> bool:
    """Whether Spark has the cast; TRY_CAST has those of ANSI. `by_name`: see `nested_casts`."""
    one, other = _kind(source), _kind(target)
    if source in (target, VOID) or loosened(source) == loosened(target):
        return True
    if is_interval(source) or is_interval(target):
        return interval_casts.can_cast(source, target)
    if target == VARIANT:
        return one is not None or (isinstance(source, ArrayType) and can_cast(source.element, VARIANT, ansi=ansi))
    if source == VARIANT:
        return variant_holds(target)
    if other is None or one is None:
        return nested_casts.can_cast(source, target, partial(can_cast, ansi=ansi, by_name=by_name), by_name=by_name)
    return other in _CASTS[one] or (not ansi and other in _LOOSE.get(one, ()))


def variant_holds(target: DataType) -> bool:
    """Whether Spark casts a VARIANT to the type."""
    match target:
        case ArrayType(element, contains_null):
            return contains_null and variant_holds(element)
        case MapType(key, value, contains_null):
            return key == STRING and contains_null and variant_holds(value)
        case StructType(fields):
            return len(fields) > 0 and all(f.nullable and variant_holds(f.type) for f in fields)
    return target == VARIANT or _kind(target) is not None


def condition_of(source: DataType, target: DataType) -> str:
    """Spark's name for the error of a cast that fails."""
    match source, target:
        case ArrayType(element), ArrayType(wanted):
            return condition_of(element, wanted)
        case Primitive("variant"), _:
            return "INVALID_VARIANT_CAST"
    if _kind(target) == "decimal" and source != STRING:
        return "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"
    return "CAST_INVALID_INPUT" if source in (STRING, BINARY) else "CAST_OVERFLOW"


def cast_value(value: Any, source: DataType, target: DataType, zone: str, *, ansi: bool) -> Any:
    """Casts one value (dates and timestamps as ints, see `to_values`). Raises CastFailedError."""
    found, failed = cast_array(from_values([value], source), source, target, zone, ansi=ansi)
    if failed is not None and failed[0].as_py():
        raise CastFailedError
    return to_values(found, target)[0]


def cast_array(
    array: pa.Array, source: DataType, target: DataType, zone: str, *, ansi: bool, by_name: bool = False
) -> Made:
    """Returns the cast array, null where the cast failed, and the mask of failures (None when there is none)."""
    if source in (target, VOID):
        wanted = to_arrow_type(target)
        return array if array.type == wanted else pc.cast(array, wanted), None
    if is_interval(source) or is_interval(target):
        return interval_casts.cast_array(array, source, target)
    if target == VARIANT:
        return of_values(array), None
    if source == VARIANT:
        return _of_variants(array, to_arrow_type(target), zone)
    if not isinstance(source, Primitive):
        part = partial(cast_array, zone=zone, ansi=ansi, by_name=by_name)
        return nested_casts.cast_array(array, source, target, part, by_name=by_name)
    if source == DATE and target in (TIMESTAMP, TIMESTAMP_NTZ):
        return _date_to_timestamp(array, _Ask(source, target, zone))
    if _arrow_is_exact(source, target, zone):
        return array.cast(to_arrow_type(target), safe=False), None
    one, other = _kind(source), _kind(target)
    assert one is not None
    assert other is not None
    own = _OWN.get((one, other)) or (None if ansi else _OWN_LOOSE.get((one, other)))
    ask = _Ask(source, target, zone)
    if own is not None:
        return own(array, ask)
    return _by_kernel(array, ask)


def _of_variants(array: pa.Array, wanted: pa.DataType, zone: str) -> Made:
    batch = pa.record_batch([array], schema=pa.schema([variant_field("v")]))
    values, failed = kernel.extract(batch, [kernel.Request(("v",), path=(), type=wanted)], timezone=zone).columns
    return values, failed if failed.true_count else None


def _by_kernel(array: pa.Array, to: _Ask) -> Made:
    batch = pa.record_batch([array.cast(to_arrow_type(to.source))], names=["values"])
    values, failed = kernel.cast(batch, to.arrow, timezone=to.zone).columns
    return values, failed if failed.true_count else None


def _arrow_is_exact(source: DataType, target: DataType, zone: str) -> bool:
    if source in INTEGRALS:
        # Casts to float are exact from 16 bits and fewer; int to double rounds alike in Arrow and Java.
        wider = target in INTEGRALS and INTEGRALS.index(target) >= INTEGRALS.index(source)
        return wider or target == DOUBLE or (target == FLOAT and source in (BYTE, SHORT))
    if source == FLOAT:
        return target == DOUBLE
    return {source, target} == {TIMESTAMP, TIMESTAMP_NTZ} and kernel.fixed_offset(zone) == 0


# --- the pairs with rules of their own -------------------------------------------------------------------------------


def _date_to_timestamp(array: pa.Array, to: _Ask) -> Made:
    """A day whose microseconds 64 bits do not hold fails."""
    days = array.cast(pa.int32())
    ends = pc.min_max(days)
    failed = None
    if ends["min"].is_valid and not -_LAST_DAY <= ends["min"].as_py() <= ends["max"].as_py() <= _LAST_DAY:
        near = pc.and_(pc.greater_equal(days, -_LAST_DAY), pc.less_equal(days, _LAST_DAY))
        array = pc.if_else(near, array, scalar(None, array.type))
        failed = pc.fill_null(pc.invert(near), False)
    if to.target == TIMESTAMP_NTZ or kernel.fixed_offset(to.zone) == 0:
        return array.cast(to.arrow, safe=False), failed
    coded = pc.dictionary_encode(array)  # a zone is asked once for each day: many rows have few
    values, wrong = _by_kernel(coded.dictionary, to)
    values = pc.take(values, coded.indices)
    wrong = None if wrong is None else pc.fill_null(pc.take(wrong, coded.indices), False)
    return values, wrong if failed is None else failed if wrong is None else pc.or_(failed, wrong)


def _real_to_decimal(array: pa.Array, to: _Ask) -> Made:
    """NaN and the infinities become null, with ANSI too."""
    values, failed = _by_kernel(array, to)
    return values, None if failed is None else pc.and_(failed, pc.fill_null(pc.is_finite(array), False))


def _integer_to_timestamp(array: pa.Array, _to: _Ask) -> Made:
    """Casts seconds; a value out of range becomes the first or last instant."""
    seconds, valid = _numpy(array.cast(pa.int64()))
    near = np.clip(seconds, -(_MOST // _MICROS), _MOST // _MICROS)
    micros = np.where(near == seconds, near * _MICROS, np.where(seconds > 0, _MOST, _LEAST))
    return _instants(micros, valid), None


def _decimal_to_timestamp(array: pa.Array, to: _Ask) -> Made:
    def one(value: Decimal) -> int:
        return _wrap(int(_DECIMAL128.multiply(value, Decimal(_MICROS))), 63)  # Java keeps the low bits

    return each(array, to.target, one)


def _real_to_timestamp(array: pa.Array, _to: _Ask) -> Made:
    seconds = array.cast(pa.float64())
    finite = pc.is_finite(seconds)
    micros, valid = _saturated(pc.multiply(seconds, float(_MICROS)))
    return _instants(micros, valid & to_numpy(pc.fill_null(finite, False))), None


def _integer_to_integer(array: pa.Array, to: _Ask) -> Made:
    return array.cast(to.arrow, safe=False), None  # Java keeps the low bits


def _real_to_integer(array: pa.Array, to: _Ask) -> Made:
    """Java casts via int or long and saturates at their limits; NaN is 0."""
    whole, valid = _saturated(array.cast(pa.float64()))
    if to.target != LONG:
        whole = np.clip(whole, -(2**31), 2**31 - 1)
    values = arrow_array(whole, pa.int64(), mask=~valid)
    return values.cast(to.arrow, safe=False), None


def _decimal_to_integer(array: pa.Array, to: _Ask) -> Made:
    return each(array, to.target, lambda v: _wrap(int(v), to.bits))


def _decimal_to_string(array: pa.Array, to: _Ask) -> Made:
    return each(array, to.target, str)  # Python and Java print an exponent in the same cases


def _string_to_integer(array: pa.Array, to: _Ask) -> Made:
    """Truncates a fraction. A sign or a point alone: "-" is not a number, "-." is 0."""
    bits = to.bits

    def one(text: str) -> int | None:
        text = text.strip(TRIMMED)
        match = _INTEGER_LOOSE.fullmatch(text)
        if match is None or not text.strip("+-"):
            return None
        digits = match[1].lstrip("+-").lstrip("0") or "0"
        if len(digits) > _DIGITS:  # Python refuses texts of thousands
            return None
        value = -int(digits) if match[1].startswith("-") else int(digits)
        return value if -(1 << bits) <= value < 1 << bits else None

    return each(array, to.target, one)


def _boolean_to_timestamp(array: pa.Array, to: _Ask) -> Made:
    return array.cast(pa.int64()).cast(to.arrow), None  # true is one microsecond


def _timestamp_to_boolean(array: pa.Array, _to: _Ask) -> Made:
    return pc.not_equal(array.cast(pa.int64()), 0), None


def _nothing(array: pa.Array, to: _Ask) -> Made:
    return pa.nulls(len(array), to.arrow), None


def _integer_to_binary(array: pa.Array, _to: _Ask) -> Made:
    values, valid = _numpy(array)
    width = values.dtype.itemsize
    data = pa.py_buffer(values.astype(values.dtype.newbyteorder(">")).tobytes())
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, data])
    return pc.if_else(arrow_array(valid), fixed.cast(pa.binary()), scalar(None, pa.binary())), None


_Rule = Callable[[pa.Array, _Ask], Made]

_NUMBERS = ("integer", "decimal", "real")
_CASTS: Mapping[str, tuple[str, ...]] = {
    "boolean": ("string", *_NUMBERS),
    **dict.fromkeys(_NUMBERS, ("boolean", "string", "timestamp", *_NUMBERS)),
    "string": ("boolean", "binary", "date", "timestamp", "timestamp_ntz", *_NUMBERS),
    "binary": ("string",),
    "date": ("string", "timestamp", "timestamp_ntz"),
    "timestamp": ("string", "date", "timestamp_ntz", *_NUMBERS),
    "timestamp_ntz": ("string", "date", "timestamp"),
}
_LOOSE: Mapping[str, tuple[str, ...]] = {
    "boolean": ("timestamp",),
    "integer": ("binary",),
    "date": ("boolean", *_NUMBERS),
    "timestamp": ("boolean",),
}
_OWN: Mapping[tuple[str, str], _Rule] = {
    ("real", "decimal"): _real_to_decimal,
    ("integer", "timestamp"): _integer_to_timestamp,
    ("decimal", "timestamp"): _decimal_to_timestamp,
}
_OWN_LOOSE: Mapping[tuple[str, str], _Rule] = {
    ("integer", "integer"): _integer_to_integer,
    ("real", "integer"): _real_to_integer,
    ("decimal", "integer"): _decimal_to_integer,
    ("string", "integer"): _string_to_integer,
    ("decimal", "string"): _decimal_to_string,
    ("real", "timestamp"): _real_to_timestamp,
    ("boolean", "timestamp"): _boolean_to_timestamp,
    ("timestamp", "boolean"): _timestamp_to_boolean,
    ("integer", "binary"): _integer_to_binary,
    **{("date", kind): _nothing for kind in ("boolean", *_NUMBERS)},
}
_KINDS: Mapping[DataType, str] = {
    BOOLEAN: "boolean",
    STRING: "string",
    BINARY: "binary",
    DATE: "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
    **dict.fromkeys(INTEGRALS, "integer"),
}


def _kind(type_: DataType) -> str | None:
    if is_real(type_):
        return "real"
    return _KINDS.get(type_) or ("decimal" if is_exact(type_) else None)


def _numpy(array: pa.Array) -> tuple[Any, Any]:
    """Returns the values of a numeric array, zero where null, and the mask of those that are not null."""
    valid = to_numpy(pc.is_valid(array))
    return to_numpy(array if not array.null_count else pc.fill_null(array, 0)), valid


def _saturated(array: pa.Array) -> tuple[Any, Any]:
    """Casts doubles to 64-bit integers: truncated, saturated at the limits, NaN as zero."""
    values, valid = _numpy(array)
    with np.errstate(invalid="ignore"):
        inside = np.where((values > -(2.0**63)) & (values < 2.0**63), values, 0.0).astype(np.int64)
    return np.where(values >= 2.0**63, _MOST, np.where(values <= -(2.0**63), _LEAST, inside)), valid


def _instants(micros: Any, valid: Any) -> pa.Array:
    return arrow_array(micros, pa.int64(), mask=~valid).cast(to_arrow_type(TIMESTAMP))


def _wrap(value: int, bits: int) -> int:
    return (value + (1 << bits)) % (1 << bits + 1) - (1 << bits)
