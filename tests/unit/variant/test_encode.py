"""Python values as Variants: what `to_python` gives back is what was given."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mica
from mica.variant import from_json, from_python, to_json, to_python

BERLIN = dt.timezone(dt.timedelta(hours=1))


class Key(str, Enum):  # noqa: UP042 - str() of a StrEnum is its value
    RED = "red"


class Caseless(str):
    """A string that compares and hashes otherwise."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        0,
        -1,
        127,
        128,
        -32769,
        1 << 31,
        -(1 << 63),
        0.1,
        -0.0,
        math.inf,
        "",
        "ö" * 40,
        "x" * 63,
        "x" * 64,
        b"\x00\xff",
        Decimal("1.50"),
        Decimal("-0.001"),
        Decimal(10**38 - 1),
        Decimal("1E-38"),
        dt.date(1, 1, 1),
        dt.date(9999, 12, 31),
        dt.datetime.fromisoformat("2024-02-29T01:02:03.456789"),
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        dt.time(23, 59, 59, 999999),
        uuid.UUID(int=7),
        {},
        [],
        [None],
        {"a": None},
        {"": {"ä": [1, {"b": "c"}]}, "a": []},
        {str(i): i for i in range(300)},
        list(range(70000)),
        pa.scalar(1, pa.timestamp("ns", "UTC")),
        pa.scalar(1 << 30, pa.int32()).cast(pa.date32()),
        {"b" * 70000: [{"a": 1}, {"a": 2, "c": 3}]},
    ],
)
def test_what_goes_in_comes_out(value: Any) -> None:
    made = from_python([value, None])
    (found, nothing) = to_python(made)
    assert found == value
    assert type(found) is type(value)
    assert nothing is None
    assert made.null_count == 1


def test_they_are_the_variants_of_their_json() -> None:
    text = '{"b":[1,-300,70000,5000000000,"x",true,null,{}],"a":{"z":"ö","y":[[]]}}'
    (value,) = to_python(from_json([text]))
    assert to_json(from_python([value])).equals(to_json(from_json([text])))
    mine, theirs = (made.field("value")[0].as_py() for made in (from_python([value]), from_json([text])))
    assert len(mine) == len(theirs), "each value takes the narrowest type, as in JSON"


def test_others_spellings_of_a_value() -> None:
    given = [
        np.int64(5),
        np.bool_(True),
        np.float64(0.5),
        np.float32(0.5),
        np.float16(0.5),
        np.array([1, 2]),
        np.array(5),
        (1, 2),
        10**20,
        pa.scalar(5),
        pa.scalar([1]),
        pa.scalar({"a": 1}),
        Decimal("1E3"),
        dt.datetime(2020, 1, 1, 1, tzinfo=BERLIN),
        pd.Timestamp("2020-01-01 00:00:00.000001"),
        pd.Timestamp("2020-01-01", tz="UTC"),
        bytearray(b"x"),
        {Key.RED: 1, "a": {np.str_("b"): 2}, "b": [{Caseless("A"): 3}]},
    ]
    assert to_python(from_python(given)) == [
        5,
        True,
        0.5,
        0.5,
        0.5,
        [1, 2],
        5,
        [1, 2],
        Decimal(10**20),
        5,
        [1],
        {"a": 1},
        Decimal(1000),
        dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        dt.datetime.fromisoformat("2020-01-01T00:00:00.000001"),
        dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        b"x",
        {"red": 1, "a": {"b": 2}, "b": [{"A": 3}]},
    ]
    nanos = from_python([pd.Timestamp("1970-01-01 00:00:00.000000001")])
    assert to_python(nanos) == [pa.scalar(1, pa.timestamp("ns"))]
    assert from_python([None, pd.NA, pd.NaT, pa.scalar(None)]).null_count == 4
    assert to_python(from_python([[pd.NaT]])) == [[None]]
    assert len(from_python([])) == 0


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"a": [1, {1}]}, r"row 1, \$\['a'\]\[1\]: there is no Variant type for a builtins.set"),
        ({1: 2}, "the key 1 is not a string"),
        (10**38, "38 digits"),
        (Decimal("NaN"), "NaN"),
        (Decimal("1E-39"), "38 digits"),
        (Decimal("1E999999"), "digits"),
        ("\ud800", "surrogates"),
        ({"\ud800": 1}, "surrogates"),
        (dt.time(1, tzinfo=dt.UTC), "zone"),
        (1j, "complex"),
        (dt.timedelta(1), "timedelta"),
        (np.datetime64("2020-01-01"), "datetime64"),
        (np.timedelta64(5, "ns"), "timedelta64"),
        ([np.timedelta64(5, "D")], r"\[0\]: there is no Variant type for a numpy.timedelta64"),
        ({Caseless("Red"): 1, "Red": 2}, "the key 'Red' is there twice"),
        (np.array(1j), "complex"),
        (pa.scalar(dt.timedelta(1)), "duration"),
        (pa.scalar(1, pa.time64("ns")), "lose data"),
        (pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["", ""])[0], "the key '' is there twice"),
    ],
)
def test_what_no_variant_holds_is_refused_with_its_place(value: Any, why: str) -> None:
    with pytest.raises(mica.UserError, match=why) as caught:
        from_python([1, value])
    assert caught.value.code == "INVALID_VALUE"
    assert caught.value.context["row"] == 1


def test_parts_of_arrow_values_may_be_beyond_the_years_of_python() -> None:
    far = pa.array([5_000_000, None], pa.int32()).cast(pa.date32())
    parts = [pa.StructArray.from_arrays([far], ["d"])[0], pa.ListArray.from_arrays([0, 2], far)[0]]
    assert to_json(from_python(parts)).to_pylist() == ['{"d":"+15659-07-15"}', '["+15659-07-15",null]']
    entries = pa.MapArray.from_arrays([0, 1], pa.array(["k"]), far[:1])
    assert to_json(from_python([entries[0]])).to_pylist() == ['[["k","+15659-07-15"]]']
    assert from_python([pa.scalar(None, far.type), pa.scalar(None, pa.list_(far.type))]).null_count == 2


@pytest.mark.parametrize(
    "wrapped",
    [
        pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([{"a": 1}])),
        pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([{"a": 1}])),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([{"a": 1}])]),
    ],
    ids=lambda array: str(array.type.id),
)
def test_parts_of_arrow_values_may_be_wrapped(wrapped: pa.Array) -> None:
    outer = pa.StructArray.from_arrays([wrapped], ["x"])
    assert to_python(from_python([outer[0]])) == [{"x": {"a": 1}}]
    far = pa.scalar(10**7 * 86_400_000, pa.date64())
    assert to_python(from_python([far])) == [far.cast(pa.date32())]


def test_size_and_depth_have_ends() -> None:
    deep: Any = 1
    for _ in range(999):
        deep = [deep]
    assert to_json(from_python([deep]))[0].as_py() == "[" * 999 + "1" + "]" * 999
    for value, code in (([deep], "TOO_DEEP"), ("x" * 100, "TOO_LARGE")):
        with pytest.raises(mica.UserError) as caught:
            from_python([value], max_size=99 if code == "TOO_LARGE" else 1 << 20)
        assert caught.value.code == code
    round_trip: list[Any] = []
    round_trip.append(round_trip)
    with pytest.raises(mica.UserError, match="deeper"):
        from_python([round_trip])
