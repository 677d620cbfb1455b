"""What a source's keys say about the target: the predicate is true for every row that can match."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from mica.expressions.joined import Sides
from mica.expressions.tree import to_sql
from mica.schema.ddl import parse_ddl
from mica.skipping import keys
from mica.skipping.keys import KeyValues, possible

SIDES = Sides(
    parse_ddl("id INT, d DOUBLE, b BINARY, ts TIMESTAMP"),
    parse_ddl("id INT, d DOUBLE, b BINARY, ts TIMESTAMP"),
    "t",
    "s",
)


def told(on: str, *values: pa.Array) -> str | None:
    condition = SIDES.condition(on)
    known = [KeyValues.of(key, array) for key, array in zip(condition.keys, values, strict=True)]
    found = possible(condition, known)
    return None if found is None else to_sql(found.expr)


@pytest.mark.parametrize("most", [10, 1])
def test_few_values_are_listed_and_many_have_ends(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(keys, "MOST_VALUES", most)
    many = most == 1
    ids = pa.array([5, None, 2, 5], pa.int32())
    assert told("t.id = s.id", ids) == ("t.id >= 2 AND t.id <= 5" if many else "t.id IN (5, 2)")
    either = "t.id >= 2 AND t.id <= 5 OR t.id IS NULL" if many else "t.id IN (5, 2) OR t.id IS NULL"
    assert told("t.id <=> s.id AND t.id > 0", ids) == f"t.id > 0 AND ({either})"
    reals = pa.array([1.0, math.nan, 0.5])
    assert told("t.d = s.d", reals) == ("t.d >= 0.5" if many else "t.d IN (1.0, nan, 0.5)")
    assert told("t.b = s.b", pa.array([b"a", b"b"])) == (None if many else "t.b IN (X'61', X'62')")
    far = pa.array([-(1 << 60), 1 << 60], pa.timestamp("us", "UTC"))
    assert (told("t.ts = s.ts", far) or "").startswith("t.ts")


def test_fewer_are_listed_where_each_file_compares_them() -> None:
    condition = SIDES.condition("t.id = s.id")
    known = [KeyValues.of(condition.keys[0], pa.array([5, 9, 2], pa.int32()))]
    told = [possible(condition, known, most) for most in (3, 2)]
    assert [None if one is None else to_sql(one.expr) for one in told] == [
        "t.id IN (5, 9, 2)",
        "t.id >= 2 AND t.id <= 9",
    ]


def test_without_a_value_nothing_can_match() -> None:
    nothing = pa.nulls(2, pa.int32())
    assert told("t.id = s.id", nothing) == "FALSE"
    assert told("t.id <=> s.id", nothing) == "FALSE OR t.id IS NULL"
    assert told("t.id < s.id") is None


def test_summaries_of_parts_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    (key,) = SIDES.condition("t.d = s.d").keys
    parts = [KeyValues.of(key, pa.array(values, pa.float64())) for values in ([1.0, 2.0], [], [2.0, None, 9.0])]
    assert KeyValues.joined(key, parts) == KeyValues((1.0, 2.0, 9.0), 1.0, 9.0, True)
    monkeypatch.setattr(keys, "MOST_VALUES", 2)
    parts.append(KeyValues.of(key, pa.array([0.5, math.nan, 3.0])))
    assert KeyValues.joined(key, parts) == KeyValues(None, 0.5, None, True)


def test_collated_values_have_ends_in_their_own_order(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = parse_ddl("s STRING COLLATE UTF8_LCASE")
    condition = Sides(schema, schema, "t", "s").condition("t.s = s.s")
    values = pa.array(["a", "B", "C"])
    for most, wanted in ((3, "t.s IN ('a', 'B', 'C')"), (2, "t.s >= 'a' AND t.s <= 'C'")):
        monkeypatch.setattr(keys, "MOST_COLLATED", most)
        found = possible(condition, [KeyValues.of(condition.keys[0], values)])
        assert found is not None
        assert to_sql(found.expr).replace(" COLLATE UTF8_LCASE", "") == wanted
