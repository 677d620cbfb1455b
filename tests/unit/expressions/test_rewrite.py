"""A predicate without NOT has the same value for every row, and asks each node one question."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pyarrow as pa
import pytest

from mica.expressions.bind import BoundExpr, bind
from mica.expressions.evaluate import evaluate
from mica.expressions.rewrite import conjuncts, leaves_of, push_not
from mica.expressions.tree import And, Compare, Expr, In, IsNull, Literal, Not, Or, to_sql, walk
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl("b boolean, c boolean, i int, x double")
#: Each combination of values, so that every row of a truth table is there.
VALUES: dict[str, list[object]] = {
    "b": [True, False, None],
    "c": [True, False, None],
    "i": [0, 1, None],
    "x": [0.5, float("nan"), None],
}
ROWS = pa.table(dict(zip(VALUES, map(list, zip(*itertools.product(*VALUES.values()), strict=True)), strict=True)))
ROWS = ROWS.set_column(2, "i", ROWS["i"].cast(pa.int32())).combine_chunks()

ATOMS = [
    "b", "c", "i = 0", "i <> 1", "i < 1", "i >= 0", "0 <= i", "x > 0.5", "x <= 0.5", "x = x", "i <=> null", "b <=> c",
    "i is distinct from 1", "i in (0, null)", "i not in (1)", "x in (0.5, 2.0)", "b is null", "x is not null", "true",
    "false", "null", "b = c", "i between 0 and 1", "startswith(i::string, '1')", "cast(i as boolean)",
]  # fmt: skip


def _text(rng: random.Random, depth: int) -> str:
    kind = rng.randrange(4) if depth else 0
    if kind == 0:
        return rng.choice(ATOMS)
    if kind == 1:
        return f"not ({_text(rng, depth - 1)})"
    parts = (f"({_text(rng, depth - 1)})" for _ in range(rng.choice((2, 2, 3))))
    return (" and " if kind == 2 else " or ").join(parts)


def _values(bound: BoundExpr) -> list[bool | None]:
    leaves = [ROWS[leaf.column[0]].chunk(0) for leaf in bound.leaves]
    found: list[bool | None] = evaluate(bound, leaves, num_rows=ROWS.num_rows).to_pylist()
    return found


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def test_every_row_keeps_its_value(rng: random.Random) -> None:
    for text in [*ATOMS, *(f"not {atom}" for atom in ATOMS), *(_text(rng, 4) for _ in range(150))]:
        bound = bind(text, SCHEMA)
        truth = _values(bound)
        pushed = push_not(bound.expr)
        assert _values(replace(bound, expr=pushed)) == truth, text
        assert _values(replace(bound, expr=push_not(bound.expr, True))) == list(map(_negated, truth)), text
        assert not any(isinstance(node, Not) for node in walk(pushed)), text
        assert push_not(pushed) == pushed, text
        parts = conjuncts(bound.expr)
        assert parts == bound.parts
        assert not any(isinstance(part, And) for part in parts), text
        passing = [all(row) for row in zip(*(_values(replace(bound, expr=part)) for part in parts), strict=True)]
        assert passing == [value is True for value in truth], text


@pytest.mark.parametrize(
    ("text", "pushed"),
    [
        ("not (b and i = 1)", "b = FALSE OR i <> 1"),
        ("not (i = 1 or x > 0.5)", "i <> 1 AND x <= 0.5"),
        ("not not b", "b = TRUE"),
        ("not i in (0, 1)", "i NOT IN (0, 1)"),
        ("not i is null", "i IS NOT NULL"),
        ("not b <=> c", "b IS DISTINCT FROM c"),
        ("not null", "NULL"),
        ("not true", "FALSE"),
    ],
)
def test_steps(text: str, pushed: str) -> None:
    assert to_sql(push_not(bind(text, SCHEMA).expr)) == pushed


def test_only_what_skipping_judges_is_left(rng: random.Random) -> None:
    def judged(expr: Expr) -> bool:
        if isinstance(expr, And | Or):
            return all(map(judged, expr.parts))
        return isinstance(expr, Compare | In | IsNull | Literal)

    assert all(judged(push_not(bind(_text(rng, 3), SCHEMA).expr)) for _ in range(100))


def test_the_leaves_that_a_part_needs() -> None:
    bound = bind("b and (i = 1 or x > 0.5) and 1 = 1", SCHEMA)
    assert [leaf.column for leaf in bound.leaves] == [("b",), ("i",), ("x",)]
    assert [sorted(leaves_of(part)) for part in bound.parts] == [[0], [1, 2], []]
    assert leaves_of(bound.expr) == {0, 1, 2}


def test_what_is_not_bound_is_refused() -> None:
    from mica.expressions.parse import parse

    with pytest.raises(TypeError, match="not a bound predicate"):
        push_not(parse("i + 1").args[0])  # type: ignore[attr-defined]
