"""The kernel's arithmetic of decimals is exact arithmetic, rounded as Spark rounds, for all precisions and scales."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mica.variant import kernel

EXACT = Context(prec=200)


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[Decimal | None], pa.DataType]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    most = 10**precision - 1
    near = st.sampled_from([0, 1, -1, most, -most, 5 * 10 ** (precision - 1), most // 3])
    unscaled = st.one_of(st.none(), near, st.integers(-most, most), st.integers(-min(9, most), min(9, most)))
    cells = draw(st.lists(unscaled, min_size=6, max_size=6))
    return [None if c is None else Decimal(c).scaleb(-scale, EXACT) for c in cells], pa.decimal128(precision, scale)


@st.composite
def results(draw: st.DrawFn) -> tuple[int, int]:
    precision = draw(st.integers(1, 38) | st.just(38))
    return precision, draw(st.integers(0, precision))


@given(columns(), columns(), st.sampled_from("+-*/%"), results())
def test_as_exact_arithmetic(left: Any, right: Any, operator: str, result: tuple[int, int]) -> None:
    batch = pa.record_batch([pa.array(*left), pa.array(*right)], names=["left", "right"])
    values, failed = kernel.calculate(batch, operator, *result).columns
    pairs = list(zip(left[0], right[0], strict=True))
    expected = [None if None in (a, b) else calculated(operator, a, b, *result) for a, b in pairs]
    assert values.to_pylist() == expected
    there = [None not in pair for pair in pairs]
    assert failed.to_pylist() == [t and e is None for t, e in zip(there, expected, strict=True)]


def calculated(operator: str, a: Decimal, b: Decimal, precision: int, scale: int) -> Decimal | None:
    if operator in "/%" and not b:
        return None
    match operator:
        case "+":
            exact = EXACT.add(a, b)
        case "-":
            exact = EXACT.subtract(a, b)
        case "*":
            exact = EXACT.multiply(a, b)
        case "%":
            exact = EXACT.remainder(a, b)
        case _:
            exact = quotient(Fraction(a) / Fraction(b))
    rounded = exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
    return None if abs(int(rounded.scaleb(scale, EXACT))) >= 10**precision else rounded


def quotient(value: Fraction) -> Decimal:
    """To 39 digits after the point, half down."""
    whole, rest = divmod(abs(value) * 10**39, 1)
    return Decimal((whole + (rest > Fraction(1, 2))) * (1 if value >= 0 else -1)).scaleb(-39, EXACT)
