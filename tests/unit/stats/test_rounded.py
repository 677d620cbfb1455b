"""Bounds of decimals that were doubles on their way hold for the decimals."""

from __future__ import annotations

import random
from decimal import Decimal

import orjson
import pyarrow as pa
import pytest

from mica.stats.rounded import as_they_hold


def _held(type_: pa.DataType, low: str | None, high: str | None) -> list[Decimal | None]:
    sides = [pa.array([None, None if bound is None else Decimal(bound), None], type_)[1:] for bound in (low, high)]
    return [side[0].as_py() for side in as_they_hold(*sides)]


@pytest.mark.parametrize(("precision", "scale"), [(16, 3), (18, 0), (18, 2), (20, 20), (38, 0), (38, 10), (38, 38)])
def test_a_decimal_is_within_the_doubles_that_it_became(precision: int, scale: int) -> None:
    rng = random.Random(precision * 100 + scale)
    for _ in range(500):
        units = rng.choice((-1, 1)) * (rng.randrange(10 ** rng.randint(1, precision)))
        true = Decimal(units).scaleb(-scale)
        bound = Decimal(orjson.dumps(float(units) / 10.0**scale).decode())  # rounded twice
        if abs(bound) >= Decimal(10) ** (precision - scale) or -bound.normalize().as_tuple().exponent > scale:
            continue  # no number of the type: unknown
        low, high = _held(pa.decimal128(precision, scale), f"{bound:f}", f"{bound:f}")
        assert low is not None
        assert high is not None
        assert low <= true <= high
        assert high - low <= abs(bound) * Decimal(2.0**-48) + Decimal(2).scaleb(-scale)


def test_bounds_that_were_no_doubles_stay() -> None:
    for type_, text in [
        (pa.decimal128(20, 2), "123456789012345678.91"), (pa.decimal128(15, 3), "123456789012.345"),
        (pa.decimal128(38, 10), "-1234567890123456789012345678.1234567891"), (pa.decimal128(18, 0), "0"),
        (pa.decimal128(18, 0), "123456789012345678"), (pa.decimal128(38, 0), "9223372036854775806"),
    ]:  # fmt: skip
        assert _held(type_, text, text) == [Decimal(text)] * 2
        assert _held(type_, None, text) == [None, Decimal(text)]


def test_the_ends_of_64_bits_are_unknown_where_numbers_go_beyond() -> None:
    low, high = str(-(1 << 63)), str((1 << 63) - 1)
    assert _held(pa.decimal128(38, 0), low, high) == [None, None]
    assert _held(pa.decimal128(38, 0), high, low) == [Decimal(high), Decimal(low)]
    assert _held(pa.decimal128(38, 1), low, high) == [Decimal(low), Decimal(high)]


def test_the_widest_bound_is_that_of_the_type() -> None:
    assert _held(pa.decimal128(16, 0), "-9" + "0" * 15, "9999999999999999") == [
        Decimal(-9000000000000008), Decimal(9999999999999999),
    ]  # fmt: skip
