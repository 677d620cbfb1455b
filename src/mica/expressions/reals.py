"""Functions of doubles, as in Spark, bit by bit.

The rule: a function is here if its result does not depend on the machine. Roots and roundings are IEEE's; logarithms
and powers of e are those of fdlibm, which Java's StrictMath prescribes, step by step over whole arrays. Sines and their
kin Java leaves to the processor: mica has none of them.

Source: Spark's mathExpressions.scala, NaNvl; fdlibm 5.3: e_log.c, e_log10.c, e_exp.c, e_pow.c (special cases).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.expressions.coerce import is_number
from mica.expressions.compare import Datum
from mica.expressions.pairs import as_arrays
from mica.expressions.signatures import Asked, Function, Signature
from mica.expressions.tokens import OnlySparkError
from mica.schema.types import DOUBLE, FLOAT, INTEGER, LONG, STRING, VOID, DataType

_LN2_HIGH, _LN2_LOW, _PER_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10, 1.44269504088896338700e00
_LG = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip
_P = (
    1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05, -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)  # fmt: skip
_PER_LN10, _LOG2_HIGH, _LOG2_LOW = 4.34294481903251816668e-01, 3.01029995663611771306e-01, 3.69423907715893078616e-13
_MOST_EXPONENT, _LEAST_EXPONENT = 7.09782712893383973096e02, -7.45133219101941108420e02
#: Exponents of which a power is one step of arithmetic.
_EXACT_POWERS: Mapping[float, Callable[[Any], Any]] = {
    0.0: np.ones_like, 1.0: lambda x: x, 2.0: lambda x: x * x, -1.0: lambda x: 1.0 / x,
}  # fmt: skip
#: The last factorial in 64 bits.
_FACTORIALS = np.array([math.factorial(n) for n in range(21)], np.int64)


def _parts(x: Any) -> tuple[Any, Any]:
    """The mantissas of positive finite numbers with the exponent of 1, and their exponents."""
    small = x < 2.0**-1022
    scaled = np.where(small, x * 2.0**54, x)
    bits = scaled.view(np.int64)
    exponent = (bits >> 52) - 1023 - 54 * small
    return (bits & ((1 << 52) - 1)) | (1023 << 52), exponent


def _log(x: Any) -> Any:
    """fdlibm's logarithm of positive finite numbers."""
    bits, k = _parts(x)
    high = (bits >> 32) & 0xFFFFF
    up = ((high + 0x95F64) & 0x100000) >> 20
    f = (bits - (up << 52)).view(np.float64) - 1.0
    dk = (k + up).astype(np.float64)
    near = (0xFFFFF & (2 + high)) < 3
    tail = f * f * (0.5 - 0.33333333333333333 * f)
    by_tail = np.where(dk == 0, f - tail, dk * _LN2_HIGH - ((tail - dk * _LN2_LOW) - f))
    by_tail = np.where((f == 0) & (dk != 0), dk * _LN2_HIGH + dk * _LN2_LOW, by_tail)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    r = z * (_LG[0] + w * (_LG[2] + w * (_LG[4] + w * _LG[6]))) + w * (_LG[1] + w * (_LG[3] + w * _LG[5]))
    half = 0.5 * f * f
    part = s * (half + r)
    one = np.where(dk == 0, f - (half - part), dk * _LN2_HIGH - ((half - (part + dk * _LN2_LOW)) - f))
    other = np.where(dk == 0, f - s * (f - r), dk * _LN2_HIGH - ((s * (f - r) - dk * _LN2_LOW) - f))
    return np.where(near, by_tail, np.where(((high - 0x6147A) | (0x6B851 - high)) > 0, one, other))


def _log10(x: Any) -> Any:
    bits, k = _parts(x)
    negative = (k < 0).astype(np.int64)
    y = (k + negative).astype(np.float64)
    return y * _LOG2_LOW + _PER_LN10 * _log((bits - (negative << 52)).view(np.float64)) + y * _LOG2_HIGH


def _exp(x: Any) -> Any:
    """fdlibm's power of e, of finite numbers between its thresholds."""
    size = x.view(np.int64) >> 32 & 0x7FFFFFFF
    sign = np.where(x < 0, -1.0, 1.0)
    k = np.where(size < 0x3FF0A2B2, sign, np.trunc(_PER_LN2 * x + 0.5 * sign))
    k = np.where(size > 0x3FD62E42, k, 0.0)
    high, low = x - k * _LN2_HIGH, k * _LN2_LOW
    rest = high - low
    t = rest * rest
    c = rest - t * (_P[0] + t * (_P[1] + t * (_P[2] + t * (_P[3] + t * _P[4]))))
    y = 1.0 - ((low - (rest * c) / (2.0 - c)) - high)
    steps = k.astype(np.int64)
    tiny = steps < -1021
    scaled = (y.view(np.int64) + ((steps + 1000 * tiny) << 52)).view(np.float64)
    scaled = np.where(tiny, scaled * 2.0**-1000, scaled)
    found = np.where(steps == 0, 1.0 - ((rest * c) / (c - 2.0) - rest), scaled)
    return np.where(size < 0x3E300000, 1.0 + x, found)


def _of_doubles(calculate: Callable[[Any], Any]) -> Callable[[pa.Array], pa.Array]:
    def found(values: pa.Array) -> pa.Array:
        with np.errstate(all="ignore"):
            made = calculate(to_numpy(pc.fill_null(values, 1.0)))
        return arrow_array(made, mask=to_numpy(pc.is_null(values)))

    return found


def _logarithm(calculate: Callable[[Any], Any]) -> Callable[[pa.Array], pa.Array]:
    """The function that is NULL at 0 and below."""

    def found(values: pa.Array) -> pa.Array:
        x = to_numpy(pc.fill_null(values, 1.0))
        with np.errstate(all="ignore"):
            made = np.where(np.isfinite(x), calculate(np.where(np.isfinite(x) & (x > 0), x, 1.0)), x)
        return arrow_array(made, mask=to_numpy(pc.is_null(values)) | (x <= 0))

    return found


def exp(values: pa.Array) -> pa.Array:
    """e to the power of numbers."""

    def whole(x: Any) -> Any:
        inside = (x <= _MOST_EXPONENT) & (x >= _LEAST_EXPONENT)
        beyond = np.where(np.isnan(x), x, np.where(x > 0, np.inf, 0.0))
        return np.where(inside, _exp(np.where(inside, x, 0.0)), beyond)

    return _of_doubles(whole)(values)


def log(base: Datum, values: Datum | None = None) -> pa.Array:
    """The logarithm, by default to the base of e."""
    if values is None:
        return _logarithm(_log)(base)
    ends = list(map(_logarithm(_log), as_arrays(values, base)))
    null = to_numpy(pc.or_(pc.is_null(ends[0]), pc.is_null(ends[1])))
    with np.errstate(all="ignore"):
        return arrow_array(np.divide(*(to_numpy(pc.fill_null(end, 1.0)) for end in ends)), mask=null)


def check_power(_base: float | None, exponent: float | None) -> None:
    """Raises OnlySparkError for an exponent whose powers are no single step of arithmetic."""
    if exponent not in _EXACT_POWERS:
        raise OnlySparkError("power with another exponent than -1, 0, 1 and 2 cannot be used here")


def power(values: pa.Array, exponent: pa.Scalar) -> pa.Array:
    """The power of one of these exponents."""
    return _of_doubles(_EXACT_POWERS[exponent.as_py()])(values)


def _sign(x: Any) -> Any:
    return np.where((x == 0) | np.isnan(x), x, np.sign(x))


def factorial(values: pa.Array) -> pa.Array:
    """The factorial of 0 to 20; NULL for others."""
    numbers = to_numpy(pc.fill_null(values, -1))
    outside = (numbers < 0) | (numbers > 20)
    return arrow_array(_FACTORIALS[np.where(outside, 0, numbers)], mask=outside)


def _of_two_reals(asked: Asked) -> Signature | None:
    fits = all(is_number(t) or t in (STRING, VOID) for t in asked.types)
    own: DataType = FLOAT if all(t == FLOAT for t in asked.types) else DOUBLE
    return ((own, own), own) if fits else None


def nanvl(values: Datum, others: Datum) -> pa.Array:
    """The first number, the second one in place of NaN."""
    one, other = as_arrays(values, others)
    return pc.if_else(pc.is_nan(one), other, one)


def _double(calculate: Callable[[Any], Any]) -> Function:
    return Function((DOUBLE,), DOUBLE, _of_doubles(calculate))


FUNCTIONS: Mapping[str, Function] = {
    "sqrt": _double(np.sqrt),
    "rint": _double(np.rint),
    "sign": _double(_sign),
    "degrees": _double(lambda x: x * 57.29577951308232),
    "radians": _double(lambda x: x * 0.017453292519943295),
    "exp": Function((DOUBLE,), DOUBLE, exp),
    "ln": Function((DOUBLE,), DOUBLE, _logarithm(_log)),
    "log": Function((DOUBLE, DOUBLE), DOUBLE, log, optional=1),
    "log10": Function((DOUBLE,), DOUBLE, _logarithm(_log10)),
    "log2": Function((DOUBLE,), DOUBLE, _logarithm(lambda x: _log(x) / math.log(2))),
    "power": Function((DOUBLE, DOUBLE), DOUBLE, power, constants=(1,), check=check_power),
    "factorial": Function((INTEGER,), LONG, factorial),
    "nanvl": Function((VOID, VOID), DOUBLE, nanvl, of_null=True, resolve=_of_two_reals),
}
