"""Arithmetic (+ - * / % DIV, pmod and unary minus): result types and values as in Spark.

The rule: integers keep the wider integer type, except that `/` returns a double and DIV a BIGINT; decimals get
Spark's precision and scale (their DIV keeps the low bits of the quotient); if one side is a float or double, so is the
result. A result that does not fit its type and a division by zero are errors with ANSI; without ANSI, integers wrap
around and everything else is null.

| operator | precision | scale |
|---|---|---|
| + - | max(p1 - s1, p2 - s2) + scale + 1 | max(s1, s2) |
| * | p1 + p2 + 1 | s1 + s2 |
| / | p1 - s1 + s2 + scale | max(6, s1 + p2 + 1) |
| %, pmod | min(p1 - s1, p2 - s2) + scale | max(s1, s2) |

Beyond 38 digits the scale is reduced, to no less than 6. A quotient is first truncated to 39 digits after the point
and then rounded half up, as in Spark's Decimal; every other result is exact before it is rounded.

Source: Spark's arithmetic.scala, DecimalPrecisionTypeCoercion, AnsiTypeCoercion, TypeCoercion; Decimal.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy
from mica.expressions.casts import bits_of
from mica.expressions.coerce import common_type, digits, is_exact, is_number, is_real
from mica.expressions.compare import Datum
from mica.expressions.pairs import as_arrays, tried_by_rows
from mica.schema.arrow import to_arrow_type
from mica.schema.types import (
    DOUBLE,
    INTEGRALS,
    LONG,
    MAX_PRECISION,
    STRING,
    VOID,
    DataType,
    Primitive,
    decimal,
)
from mica.variant import kernel

#: Operators that fail if the right side is zero; Spark evaluates that side first.
DIVISIONS = ("/", "%", "div", "pmod")

#: The operators that are null where these have no result.
TRIED: Mapping[str, str] = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%"}

_MIN_SCALE = 6
_WIDE = Context(prec=200)
_NUMPY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": np.divide,
    "%": np.fmod,  # as in Java: the result has the sign of the left side
}


def without_text(type_: DataType, other: DataType, *, ansi: bool) -> DataType:
    """The type that a string operand is cast to first: a double; with ANSI a long beside an integer, and no cast
    beside another string or NULL. Other types are returned unchanged.
    """
    beside = other in (STRING, VOID) and not ansi
    if type_ != STRING or not (beside or is_number(other)):
        return type_
    return LONG if ansi and other in INTEGRALS else DOUBLE


def signature(name: str, left: DataType, right: DataType, *, ansi: bool) -> tuple[DataType, DataType, DataType] | None:
    """The types both sides are cast to, and the type of the result; None if Spark rejects the operation.

    Strings must be cast before (`without_text`); an integer literal beside a decimal is a decimal of its own digits.
    """
    if name == "div" and VOID in (left, right) and all(is_exact(t) or t == VOID for t in (left, right)):
        return LONG, LONG, LONG
    if VOID in (left, right):
        left, right = (right, right) if left == VOID else (left, left)
    if left == VOID:
        left = right = DOUBLE
    if not all(is_number(t) for t in (left, right)):
        return None
    if name == "div":
        if left in INTEGRALS and right in INTEGRALS:
            return LONG, LONG, LONG
        return (left, right, LONG) if is_exact(left) and is_exact(right) else None
    if is_exact(left) and is_exact(right):
        if left not in INTEGRALS or right not in INTEGRALS:
            return left, right, _decimal_result(name, digits(left), digits(right))
        common: DataType | None = DOUBLE if name == "/" else max(left, right, key=INTEGRALS.index)
    else:
        common = DOUBLE if name == "/" else common_type(left, right, ansi=ansi)
    return None if common is None else (common, common, common)


def _decimal_result(name: str, left: tuple[int, int], right: tuple[int, int]) -> DataType:
    (p1, s1), (p2, s2) = left, right
    scale = max(s1, s2)
    match name:
        case "*":
            precision, scale = p1 + p2 + 1, s1 + s2
        case "/":
            scale = max(_MIN_SCALE, s1 + p2 + 1)
            precision = p1 - s1 + s2 + scale
        case "%" | "pmod":
            precision = min(p1 - s1, p2 - s2) + scale
        case _:
            precision = max(p1 - s1, p2 - s2) + scale + 1
    if precision > MAX_PRECISION:
        scale = max(MAX_PRECISION - (precision - scale), min(scale, _MIN_SCALE))
        precision = MAX_PRECISION
    return decimal(precision, scale)


def calculate(
    name: str, left: Datum, right: Datum, types: tuple[DataType, DataType], result: DataType, *, ansi: bool
) -> tuple[pa.Array, pa.Array | None]:
    """Returns the values and the mask of rows that have no result; those rows are null.

    `types` are the types of the two sides after the casts of `signature`. At least one side is an array.
    """
    left, right = as_arrays(left, right)
    exact = _EXACT.get(name)
    if exact is not None and not (all(t in INTEGRALS for t in types) or is_real(result)):
        return _by_pairs(exact, left, right, result)
    if is_real(result) or result in INTEGRALS:
        return _binary(name, left, right, result, ansi=ansi)
    return _decimals(name, left, right, types, result)


def negate(values: pa.Array, type_: DataType, *, ansi: bool) -> tuple[pa.Array, pa.Array | None]:
    """Unary minus; the smallest integer has no result."""
    found = pc.negate(values)
    if not ansi or type_ not in INTEGRALS:
        return found, None
    failed = pc.fill_null(pc.equal(values, scalar(-(1 << bits_of(type_)), values.type)), False)
    if not failed.true_count:
        return found, None
    return pc.if_else(failed, scalar(None, values.type), found), failed


def _binary(name: str, left: pa.Array, right: pa.Array, result: DataType, *, ansi: bool) -> tuple[Any, Any]:
    """Calculates integers and floats with numpy."""
    valid = to_numpy(pc.and_(pc.is_valid(left), pc.is_valid(right)))
    a, b = (to_numpy(pc.fill_null(side, 0) if side.null_count else side) for side in (left, right))
    failed = np.zeros(len(a), np.bool_)
    with np.errstate(all="ignore"):
        if name in DIVISIONS:
            failed = valid & (b == 0)
            b = np.where(b == 0, np.ones_like(b), b)
        if name == "pmod":
            values = _positive(a, b)
        elif is_real(result):
            values = _NUMPY[name](a, b)
        else:
            values, overflow = _integers(name, a, b, bits_of(result))
            if ansi:
                failed |= valid & overflow
    wanted = to_arrow_type(result)
    found = arrow_array(values, mask=~valid | failed)
    if found.type != wanted:
        found = found.cast(wanted, safe=False)
    return found, arrow_array(failed) if failed.any() else None


def _positive(a: Any, b: Any) -> Any:
    """The remainder, with the sign of `b`'s multiples above: Java adds in 32 bits, or in 64 for a BIGINT."""
    if a.dtype.kind == "i":
        wide = np.int64 if max(a.dtype.itemsize, b.dtype.itemsize) == 8 else np.int32
        a, b = a.astype(wide), b.astype(wide)
        b = np.where(b == -1, 1, b)  # remainder 0 either way
    rest = np.fmod(a, b)
    return np.where(rest < 0, np.fmod(rest + b, b), rest)


def _exact_quotient(a: Decimal, b: Decimal) -> int | None:
    found = int(_WIDE.divide_int(a, b))
    # The quotient is a decimal first, of which Java keeps the low bits.
    return (found + 2**63) % 2**64 - 2**63 if abs(found) < 10**MAX_PRECISION else None


def _exact_positive(a: Decimal, b: Decimal) -> Decimal:
    rest = _WIDE.remainder(a, b)
    return _WIDE.remainder(_WIDE.add(rest, b), b) if rest < 0 else rest


def _by_pairs(
    exact: Callable[[Decimal, Decimal], Any], left: pa.Array, right: pa.Array, result: DataType
) -> tuple[pa.Array, pa.Array | None]:
    """Calculates decimals pair by pair; what has no result, or one beyond the type of results, has failed."""
    size = result.decimal if isinstance(result, Primitive) else None
    limit = None if size is None else 10 ** (size[0] - size[1])

    def one(a: Any, b: Any) -> Any:
        found = None if a is None or not b else exact(Decimal(a), Decimal(b))
        return None if found is not None and limit is not None and abs(found) >= limit else found

    return tried_by_rows(result, one, left, right)


#: Operators of decimals that the kernel lacks.
_EXACT: Mapping[str, Callable[[Decimal, Decimal], Any]] = {"div": _exact_quotient, "pmod": _exact_positive}


def _integers(name: str, a: Any, b: Any, bits: int) -> tuple[Any, Any]:
    """Returns the low bits of the result and the mask of rows that overflow."""
    a, b = a.astype(np.int64), b.astype(np.int64)
    if name == "div":
        # Java truncates; the smallest integer divided by -1 overflows to itself.
        overflow = (a == np.iinfo(np.int64).min) & (b == -1)
        by = np.where(b == -1, 1, b)
        quotient = (a - np.fmod(a, by)) // by
        return np.where(b == -1, -a, quotient), overflow
    if name == "%":
        b = np.where(b == -1, 1, b)  # remainder 0 either way; the smallest integer divided by -1 would overflow
    values = _NUMPY[name](a, b)
    if bits < 63:
        return values, (values < -(1 << bits)) | (values >= 1 << bits)
    if name == "*":
        least = np.iinfo(np.int64).min
        divisor = np.where((a == 0) | (a == -1), 1, a)
        wrong = (divisor != 1) & (values // divisor != b)
        return values, wrong | ((a == -1) & (b == least))
    if name == "%":
        return values, np.zeros(len(a), np.bool_)
    other = b if name == "+" else ~b
    return values, ((a ^ values) & (other ^ values)) < 0


def _decimals(
    name: str, left: pa.Array, right: pa.Array, types: tuple[DataType, DataType], result: DataType
) -> tuple[pa.Array, pa.Array | None]:
    sides = [_as_decimal(side, type_) for side, type_ in zip((left, right), types, strict=True)]
    batch = pa.record_batch(sides, names=["left", "right"])
    values, failed = kernel.calculate(batch, name, *digits(result)).columns
    return values, failed if failed.true_count else None


def _as_decimal(side: pa.Array, type_: DataType) -> pa.Array:
    if not pa.types.is_integer(side.type):
        return side
    # Arrow's cast requires room for every value of the type; the detour provides it.
    precision, _ = digits(type_)
    return side.cast(pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(precision, 0))
