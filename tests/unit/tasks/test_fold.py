"""Rows that are alike become one, and nothing that an aggregate asks of them changes."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mica.schema.arrow import to_arrow
from mica.schema.ddl import parse_ddl
from mica.tasks import fold
from mica.tasks.fold import Fold, Measure

FOLD = Fold(
    ("k",), (Measure("n", "rows"), Measure("c", "count", "x"), Measure("a", "min", "x"), Measure("z", "max", "x"))
)


def _asked(rows: list[tuple[str | None, int, int, int | None, int | None]]) -> dict[str | None, tuple[int, ...]]:
    """What an aggregate finds over folded rows."""
    found: dict[str | None, list[tuple[int, int, int | None, int | None]]] = {}
    for k, *rest in rows:
        found.setdefault(k, []).append((rest[0], rest[1], rest[2], rest[3]))
    return {
        k: (
            sum(n for n, *_ in many),
            sum(c for _, c, *_ in many),
            min((a for *_, a, _ in many if a is not None), default=-1),
            max((z for *_, z in many if z is not None), default=-1),
        )
        for k, many in found.items()
    }


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["a", "b", None]) | st.text(max_size=2), st.none() | st.integers(0, 9)))
    ),
    st.sampled_from([1, 4, 1 << 20]),
)
def test_sums_of_what_comes_are_those_of_the_rows(
    batches: list[list[tuple[str | None, int | None]]], held: int
) -> None:
    given_ = [
        pa.record_batch([pa.array([k for k, _ in b], pa.string()), pa.array([x for _, x in b], pa.int64())], ["k", "x"])
        for b in batches
    ]
    before, fold.HELD_ROWS = fold.HELD_ROWS, held
    try:
        found = list(FOLD.of(given_))
    finally:
        fold.HELD_ROWS = before
    wanted = to_arrow(FOLD.schema(parse_ddl("k STRING, x BIGINT")))
    assert all(batch.schema.types == wanted.types and batch.schema.names == wanted.names for batch in found)
    rows = [tuple(row.values()) for batch in found for row in batch.to_pylist()]
    assert _asked(rows) == _asked([(k, 1, int(x is not None), x, x) for b in batches for k, x in b])


def test_rows_that_repeat_come_once() -> None:
    batch = pa.record_batch({"k": ["a", "b"] * 500, "x": list(range(1000))})
    (found,) = FOLD.of([batch, batch])
    assert found.to_pylist() == [
        {"k": "a", "n": 1000, "c": 1000, "a": 0, "z": 998},
        {"k": "b", "n": 1000, "c": 1000, "a": 1, "z": 999},
    ]


def test_without_keys_all_rows_are_alike() -> None:
    (found,) = Fold((), (Measure("n", "rows"),)).of([pa.record_batch({"one": [True] * 3})] * 2)
    assert found.to_pylist() == [{"n": 6}]
