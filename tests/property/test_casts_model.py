"""Casts of numbers against a model of whole numbers: Python's integers, and its shortest texts of doubles.

The rule: decimals are exact and round half away from zero, whole numbers are cut towards zero, texts of doubles are the
shortest that read back as the same number, of two that are as near the one with the even digit (Java since 19).
"""

from __future__ import annotations

import math
import random
import struct
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mica.variant import kernel
from tests.support import CAMPAIGN

COUNT = 200_000 if CAMPAIGN else 4_000
INT128 = 2**127


def cast(values: list[Any], source: pa.DataType, target: pa.DataType) -> list[Any]:
    batch = pa.record_batch([pa.array(values, source)], names=["x"])
    found, failed = (column.to_pylist() for column in kernel.cast(batch, target).columns)
    assert failed == [got is None and value is not None for got, value in zip(found, values, strict=True)]
    return found


# --- texts of doubles


def spelled(digits: str, exponent: int, sign: str) -> str:
    """Java's spelling of `0.digits * 10^(exponent + 1)`."""
    if -3 <= exponent < 7:
        whole = digits[: exponent + 1].ljust(exponent + 1, "0") if exponent >= 0 else "0"
        rest = digits[exponent + 1 :] if exponent >= 0 else "0" * (-exponent - 1) + digits
        return f"{sign}{whole}.{rest or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def java(value: float, shortest: str, two: str, read: Any) -> str:
    """From the shortest text; where it has one digit, the nearest of two digits counts, as in Java."""
    text = Decimal(
        two if len(Decimal(shortest).normalize().as_tuple().digits) == 1 and read(two) == value else shortest
    )
    sign, digits, _ = text.normalize().as_tuple()
    return spelled("".join(map(str, digits)), text.adjusted(), "-" * sign)


def halfway(rng: random.Random) -> float:
    """A double with few digits, one of which is a 5 at the end: between two shorter texts."""
    return rng.choice((-1, 1)) * math.ldexp(rng.getrandbits(rng.randint(1, 53)) | 1, rng.randint(-30, 70))


def any_double(rng: random.Random) -> float:
    found = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0]
    return found if math.isfinite(found) and found else 0.5


def test_texts_of_doubles_are_the_shortest_and_the_even_ones(rng: random.Random) -> None:
    values = [2251799813685247.25, 2251799813685247.75, 2.0**-25, 9007199254740993e3, 5e-324, 2e23, 1e23, 2.0**60]
    values += [find(rng) for find in (halfway, any_double) for _ in range(COUNT)]
    found = cast(values, pa.float64(), pa.string())
    wanted = [java(v, repr(v), f"{v:.1e}", float) for v in values]
    assert [(v, got, want) for v, got, want in zip(values, found, wanted, strict=True) if got != want] == []
    assert found[:3] == ["2.2517998136852472E15", "2.2517998136852478E15", "2.9802322387695312E-8"]


def test_texts_of_floats_are_the_shortest_and_the_even_ones(rng: random.Random) -> None:
    values = [
        np.float32(math.ldexp(rng.getrandbits(rng.randint(1, 24)) | 1, rng.randint(-20, 40))) for _ in range(COUNT)
    ]
    bits = (rng.getrandbits(32) for _ in range(COUNT))
    values += [v for b in bits if np.isfinite(v := np.array(b, np.uint32).view(np.float32)[()]) and v]
    found = cast(values, pa.float32(), pa.string())
    for value, got in zip(values, found, strict=True):
        text = np.format_float_scientific(value, unique=True, trim="-")
        assert got == java(value, text, f"{float(value):.1e}", np.float32), (value, text)


# --- decimals


def rounded(value: Fraction, precision: int, scale: int) -> Decimal | None:
    """Half away from zero; None beyond the digits."""
    unscaled = abs(value) * 10**scale
    whole = int(unscaled) + (unscaled - int(unscaled) >= Fraction(1, 2))
    if whole >= 10**precision:
        return None
    return Decimal((int(value < 0), tuple(map(int, str(whole))), -scale))


TARGETS = [(38, 0), (38, 38), (38, 10), (10, 2), (1, 0), (1, 1), (3, 0), (18, 18), (19, 0), (37, 36)]


def near_the_ends(rng: random.Random) -> Decimal:
    """Decimal texts around the ends of types, and around what 128 bits hold."""
    end = rng.choice((10 ** rng.randint(0, 39), INT128, 2**63, 2**31, 2**64))
    digits = str(abs(end + rng.randint(-2, 2))) + rng.choice(("", "4", "5", "49", "50", "499999", "5000001", "9"))
    return Decimal(rng.choice("+-") + f"{digits}e{rng.randint(-40, 1)}")


@pytest.mark.parametrize(("precision", "scale"), TARGETS)
def test_texts_become_decimals_exactly(precision: int, scale: int, rng: random.Random) -> None:
    values = [
        Decimal("170141183460469231731687303715884105727.5"),
        Decimal("-170141183460469231731687303715884105727.5"),
    ]
    values += [near_the_ends(rng) for _ in range(COUNT // 10)]
    texts = [rng.choice((f"{v:f}", f"{v:e}", f" {v}\t")) for v in values]
    found = cast(texts, pa.string(), pa.decimal128(precision, scale))
    wanted = [rounded(Fraction(v), precision, scale) for v in values]
    assert [(t, g, w) for t, g, w in zip(texts, found, wanted, strict=True) if g != w] == []


@pytest.mark.parametrize(("precision", "scale"), TARGETS)
def test_numbers_become_decimals_exactly(precision: int, scale: int, rng: random.Random) -> None:
    target = pa.decimal128(precision, scale)
    doubles = [halfway(rng) for _ in range(COUNT // 20)] + [any_double(rng) for _ in range(COUNT // 20)] + [1.7e38, 0.5]
    wanted = [rounded(Fraction(Decimal(repr(v))), precision, scale) for v in doubles]
    assert cast(doubles, pa.float64(), target) == wanted
    longs = [rng.choice((-1, 1)) * rng.getrandbits(rng.randint(0, 63)) for _ in range(COUNT // 20)] + [-(2**63)]
    assert cast(longs, pa.int64(), target) == [rounded(Fraction(v), precision, scale) for v in longs]
    for of in (0, 1, 20, 38):
        unscaled = [rng.choice((-1, 1)) * rng.randrange(10 ** rng.randint(1, 38)) for _ in range(COUNT // 40)]
        decimals = [
            Decimal((int(u < 0), tuple(map(int, str(abs(u)))), -of)) for u in [*unscaled, 10**38 - 1, 1 - 10**38]
        ]
        wanted = [rounded(Fraction(v), precision, scale) for v in decimals]
        assert cast(decimals, pa.decimal128(38, of), target) == wanted


@pytest.mark.parametrize(("type_", "bits"), [(pa.int8(), 7), (pa.int16(), 15), (pa.int32(), 31), (pa.int64(), 63)])
def test_numbers_become_whole_ones_by_cutting(type_: pa.DataType, bits: int, rng: random.Random) -> None:
    def whole(value: Fraction) -> int | None:
        cut = int(value)
        return cut if -(1 << bits) <= cut < 1 << bits else None

    doubles = [rng.choice((halfway, any_double))(rng) for _ in range(COUNT)]
    doubles += [side * (2.0**bits + step) for side in (-1, 1) for step in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    # Java compares with 2^63 as a double, so that 2^63 itself passes and becomes the last long.
    wanted = [2**63 - 1 if bits == 63 and v == 2.0**63 else whole(Fraction(v)) for v in doubles]
    assert cast(doubles, pa.float64(), type_) == wanted
    ends = [rng.choice((-1, 1)) * ((1 << bits) + rng.randint(-3, 3)) for _ in range(500)]
    decimals = [Decimal(end) + Decimal(rng.randint(-9, 9)) / 10 for end in ends]
    assert cast(decimals, pa.decimal128(38, 5), type_) == [whole(Fraction(v)) for v in decimals]
