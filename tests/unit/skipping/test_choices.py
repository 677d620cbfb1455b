"""A predicate whose choices are taken apart is true for the same rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.expressions.bind import bind
from mica.expressions.evaluate import filter_rows
from mica.expressions.rewrite import push_not
from mica.expressions.tree import to_sql
from mica.schema.ddl import parse_ddl
from mica.skipping.choices import spread

SCHEMA = parse_ddl("a int, c int, b boolean, s string")
#: All rows of these values.
ROWS = list(product([None, 1, 5], [None, 2, 5], [None, True, False]))
ARRAYS = {
    name: pa.array([row[i] for row in ROWS], type_)
    for i, (name, type_) in enumerate([("a", pa.int32()), ("c", pa.int32()), ("b", pa.bool_())])
}


@pytest.mark.parametrize(("text", "shown"), [
    ("a > 3 AND b", "a > 3 AND b = TRUE"),
    ("coalesce(a, c) IS NULL", "a IS NULL AND c IS NULL"),
    ("coalesce(a, c) IS NOT NULL", "a IS NOT NULL OR c IS NOT NULL"),
    ("coalesce(a, 7) > 3", "a IS NOT NULL AND a > 3 OR a IS NULL AND 7 > 3"),
    ("(a > 3) = true", "a > 3"),
    ("(a > 3) <> true", "a <= 3"),
    ("(a > 3) <=> false", "a <= 3"),
    ("(a > 3) IS DISTINCT FROM true", "a <= 3 OR (a > 3) IS NULL"),
    ("IF(a > 3, c, 1) = 2", "a > 3 AND c = 2 OR (a <= 3 OR (a > 3) IS NULL) AND 1 = 2"),
    ("-nullif(a, 1) < 0", "a = 1 AND - NULL < 0 OR (a <> 1 OR (a = 1) IS NULL) AND - a < 0"),
    ("coalesce(a > 3, false)", "(a > 3) IS NOT NULL AND a > 3 OR (a > 3) IS NULL AND FALSE = TRUE"),
    ("nullif(a, 1) + coalesce(c, 2) IN (3, 4) AND s COLLATE UTF8_LCASE = 'X'", None),
])  # fmt: skip
def test_what_is_asked_of_bounds(text: str, shown: str | None) -> None:
    found = to_sql(spread(push_not(bind(text, SCHEMA).expr)))
    assert found == shown if shown is not None else "COALESCE" not in found.upper()


def test_too_many_alternatives_stay_as_they_are() -> None:
    ways = " ".join(f"WHEN a = {n} THEN {n}" for n in range(40))
    expr = push_not(bind(f"CASE {ways} END = 3 AND coalesce(a, 1) = 2", SCHEMA).expr)
    found = to_sql(spread(expr))
    assert "THEN 39" in found
    assert "a IS NULL AND 1 = 2" in found


VALUES = st.recursive(
    st.sampled_from(["a", "c", "1", "5", "CAST(NULL AS INT)"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda t: f"coalesce({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"nullif({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"({t[0]} + {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"CASE WHEN a > c THEN {t[0]} WHEN b THEN {t[1]} END"),
    ),
    max_leaves=4,
)
PREDICATES = st.recursive(
    st.one_of(
        st.tuples(VALUES, st.sampled_from(["=", "<>", "<", ">=", "<=>", "IS DISTINCT FROM"]), VALUES).map(" ".join),
        st.tuples(VALUES, st.sampled_from(["IS NULL", "IS NOT NULL", "IN (1, 6, NULL)", "NOT IN (2, 5)"])).map(
            " ".join
        ),
        st.sampled_from(["b", "NOT b", "true", "CAST(NULL AS BOOLEAN)"]),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR", "=", "<=>"]), inner).map(
            lambda t: f"(({t[0]}) {t[1]} ({t[2]}))"
        ),
        st.tuples(inner, st.sampled_from(["= true", "<> false", "<=> false", "IS DISTINCT FROM true", "IS NULL"])).map(
            lambda t: f"({t[0]}) {t[1]}"
        ),
        inner.map(lambda t: f"NOT ({t})"),
        st.tuples(inner, inner, inner).map(lambda t: f"IF({t[0]}, {t[1]}, {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"coalesce(({t[0]}), ({t[1]}))"),
    ),
    max_leaves=5,
)


@given(PREDICATES)
def test_the_same_rows_are_true(text: str) -> None:
    bound = bind(text, SCHEMA)
    leaves = [ARRAYS[leaf.column[0]] for leaf in bound.leaves]
    wanted = filter_rows(bound, leaves, num_rows=len(ROWS))
    apart = replace(bound, expr=spread(push_not(bound.expr)))
    assert filter_rows(apart, leaves, num_rows=len(ROWS)).equals(wanted)
