"""Which rows match, and which clause changes them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.joined import Sides
from mica.schema.ddl import parse_ddl
from mica.tasks import matching
from mica.tasks.leaf_values import extract
from mica.tasks.matching import Clause, MatchSpec, SourceRows

DDL = "id INT, d DOUBLE, m DECIMAL(10,2), k STRING, b BOOLEAN"
TYPES = {"id": pa.int32(), "d": pa.float64(), "m": pa.decimal128(10, 2), "k": pa.string(), "b": pa.bool_()}
SIDES = Sides(parse_ddl(DDL), parse_ddl(DDL), "t", "s")


def batch(**columns: list[Any]) -> pa.RecordBatch:
    count = len(next(iter(columns.values())))
    return pa.record_batch({name: pa.array(columns.get(name, [None] * count), type_) for name, type_ in TYPES.items()})


def pairs(on: str, target: pa.RecordBatch, source: pa.RecordBatch, *clauses: Clause) -> list[tuple[int, int]]:
    spec = MatchSpec(SIDES.condition(on), clauses)
    rows = extract(spec.key_leaves, target, "UTC")
    found = SourceRows(spec, source).pairs(rows)
    return [pair for a, b in found for pair in zip(a.tolist(), b.tolist(), strict=True)]


@pytest.mark.parametrize(
    ("on", "target", "source", "expected"),
    [
        ("t.id = s.id", {"id": [1, 2, None, 2]}, {"id": [2, None, 3]}, [(1, 0), (3, 0)]),
        ("t.id <=> s.id", {"id": [1, None]}, {"id": [None, 1, None]}, [(0, 1), (1, 0), (1, 2)]),
        ("t.d = s.d", {"d": [-math.nan, -0.0, 1.5]}, {"d": [0.0, math.nan]}, [(0, 1), (1, 0)]),
        ("t.id = s.m", {"id": [1, 2]}, {"m": [Decimal(2), Decimal("1.5")]}, [(1, 0)]),
        ("t.k = s.k COLLATE UTF8_LCASE", {"k": ["Ab", "c"]}, {"k": ["aB", "ab"]}, [(0, 0), (0, 1)]),
        ("t.b = s.b AND t.k = s.k AND t.id = s.id", {"b": [True, True], "k": ["x", "y"], "id": [1, 1]},
         {"b": [True, False], "k": ["y", "y"], "id": [1, 1]}, [(1, 0)]),
        ("t.id < s.id", {"id": [1, 5]}, {"id": [2, 6]}, [(0, 0), (0, 1), (1, 1)]),
        ("t.id = s.id AND s.k = 'x' AND t.k IS NULL", {"id": [1, 1], "k": [None, "z"]},
         {"id": [1, 1], "k": ["x", "y"]}, [(0, 0)]),
        ("true", {"id": [1, 2]}, {"id": [7]}, [(0, 0), (1, 0)]),
        ("t.id = s.id", {"id": []}, {"id": []}, []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("most", [1 << 20, 1])
def test_pairs(monkeypatch: pytest.MonkeyPatch, most: int, on: str, target: Any, source: Any, expected: Any) -> None:
    monkeypatch.setattr(matching, "MOST_PAIRS", most)
    assert pairs(on, batch(**target), batch(**source)) == expected


@pytest.mark.parametrize(
    ("on", "target", "source", "expected"),
    [
        ("t.id = s.id AND t.k::int = 1", {"id": [1, 2, 3], "k": ["1", "x", "2"]}, {"id": [1, 3]}, [(0, 0)]),
        ("s.k::int = 1 AND t.id = s.id", {"id": [1, 3]}, {"id": [1, 2, 3], "k": ["1", "x", "2"]}, [(0, 0)]),
        ("t.id = s.id AND s.b AND t.k::int = 1", {"id": [1, 2, 4], "k": ["1", "x", "y"]},
         {"id": [1, 2], "b": [True, False]}, [(0, 0)]),
        ("t.id = s.id AND t.d > s.d AND t.k::int = 1 AND s.k::int = 1", {"id": [1, 2], "k": ["1", "x"], "d": [2, 0]},
         {"id": [1, 2], "k": ["1", "x"], "d": [1, 1]}, [(0, 0)]),
        ("t.k::int = 1", {"id": [1], "k": ["x"]}, {"id": []}, []),
    ],
)  # fmt: skip
def test_a_cast_fails_only_in_pairs_whose_keys_are_equal(on: str, target: Any, source: Any, expected: Any) -> None:
    assert pairs(on, batch(**target), batch(**source)) == expected


def test_a_cast_fails_in_a_pair_whose_keys_are_equal() -> None:
    for on in ("t.id = s.id AND t.k::int = 1", "t.k::int = 1"):
        with pytest.raises(UserError) as raised:
            pairs(on, batch(id=[1, 2], k=["1", "x"]), batch(id=[2]))
        assert raised.value.code == "INVALID_CAST"


def test_the_first_clause_whose_condition_is_true_applies() -> None:
    clauses = (
        Clause("matched", "delete", SIDES.predicate("s.d > 1")),
        Clause("matched", "update", SIDES.predicate("t.d > 1")),
        Clause("not matched by source", "delete", SIDES.predicate("t.d IS NULL", ("target",))),
        Clause("not matched by source", "update"),
    )  # fmt: skip
    spec = MatchSpec(SIDES.condition("t.id = s.id"), clauses)
    target = extract(spec.key_leaves, batch(id=[1, 2, 3, 4, 5], d=[9, 9, 0, None, 0]), "UTC")
    matched = np.zeros(4, np.bool_)
    found = SourceRows(spec, batch(id=[3, 2, 1, 9], d=[0, 9, 0, 9])).changes(target, matched)
    assert list(zip(found.rows.tolist(), found.clauses.tolist(), found.sources.tolist(), strict=True)) == [
        (0, 1, 2), (1, 0, 1), (3, 2, -1), (4, 3, -1),
    ]  # fmt: skip
    assert matched.tolist() == [True, True, True, False]


def test_with_more_rows_of_the_source_to_come_only_matches_are_seen() -> None:
    clauses = (Clause("matched", "update"), Clause("not matched by source", "delete"))
    spec = MatchSpec(SIDES.condition("t.id = s.id"), clauses)
    target = extract(spec.key_leaves, batch(id=[1, 2, 3]), "UTC")
    seen = np.array([True, False, False])
    found = SourceRows(spec, batch(id=[2])).changes(target, seen=seen)
    assert (found.rows.tolist(), found.clauses.tolist(), seen.tolist()) == ([1], [0], [True, True, False])


def test_an_ambiguous_match_names_the_keys_and_a_lone_delete_is_none() -> None:
    on = SIDES.condition("t.id = s.id AND t.k = s.k")
    target, source = batch(id=[1, 2], k=["a", "b"]), batch(id=[1, 2, 2], k=["a", "b", "b"], d=[0, 0, 1])
    update = MatchSpec(on, (Clause("matched", "update"),))
    with pytest.raises(UserError) as raised:
        SourceRows(update, source).changes(extract(update.key_leaves, target, "UTC"))
    assert raised.value.code == "AMBIGUOUS_MERGE"
    assert "t.id = 2 and t.k = 'b'" in raised.value.message
    assert "t.id = 1" not in raised.value.message
    one = MatchSpec(on, (Clause("matched", "update", SIDES.predicate("s.d = 1")),))
    assert SourceRows(one, source).changes(extract(one.key_leaves, target, "UTC")).sources.tolist() == [2]
    delete = MatchSpec(on, (Clause("matched", "delete"),))
    assert SourceRows(delete, source).changes(extract(delete.key_leaves, target, "UTC")).rows.tolist() == [0, 1]
