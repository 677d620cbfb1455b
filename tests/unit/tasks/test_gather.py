"""The groups of all rows come once each, with final values; of those that are cut none of the first is missing."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.schema.arrow import to_arrow
from mica.schema.ddl import parse_ddl
from mica.tasks import gather
from mica.tasks.fold import Fold, Measure
from mica.tasks.gather import First, Gather

FOLD = Fold(("k", "d", "e"), (Measure("n", "rows"), Measure("a", "min", "x"), Measure("z", "max", "x")))
COUNTED = Gather(FOLD, ("k",), {"both": ("d", "e")})
ROWS = st.lists(
    st.tuples(*[st.sampled_from(["a", "b", None])] * 3, st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=12
)


def _batches(rows: list[list[tuple[str | None, str | None, str | None, int | None]]]) -> list[pa.RecordBatch]:
    schema = to_arrow(parse_ddl("k STRING, d STRING, e STRING, x BIGINT"))
    return [pa.RecordBatch.from_pylist([dict(zip("kdex", r, strict=True)) for r in b], schema) for b in rows]


def _groups(batches: list[pa.RecordBatch], wanted: Gather) -> pa.Table | None:
    return wanted.of(batch for one in batches for batch in wanted.fold.of([one]))


@given(st.lists(ROWS, max_size=4), st.sampled_from([0, 1 << 19]))
def test_each_group_comes_once(
    rows: list[list[tuple[str | None, str | None, str | None, int | None]]], waiting: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gather, "WAITING_ROWS", waiting)
        found = _groups(_batches(rows), COUNTED)
    every = [row for batch in rows for row in batch]
    if found is None:
        assert not every
        return
    assert found.schema.names == COUNTED.schema(parse_ddl("k STRING, d STRING, e STRING, x BIGINT")).names
    wanted = {}
    for key in {k for k, *_ in every}:
        own = [row for row in every if row[0] == key]
        values = [x for *_, x in own if x is not None]
        pairs = {(d, e) for _, d, e, _ in own if d is not None and e is not None}
        wanted[key] = (len(own), min(values, default=None), max(values, default=None), len(pairs))
    assert {k: tuple(rest) for k, *rest in (row.values() for row in found.to_pylist())} == wanted
    assert found.num_rows == len(wanted)


@given(
    st.lists(st.tuples(st.none() | st.integers(-3, 3), st.none() | st.integers(-3, 3)), min_size=1),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_what_is_left_out_is_not_among_the_first(
    rows: list[tuple[int | None, int | None]], count: int, differs: bool, descending: bool, nulls_first: bool
) -> None:
    table = pa.table({"z": pa.array([z for z, _ in rows], pa.int64()), "a": pa.array([a for _, a in rows], pa.int64())})
    kept = First(count, "z", "a" if differs else None, descending, nulls_first).of(table).to_pylist()

    def ranked(many: list[dict[str, int | None]]) -> list[tuple[bool, int]]:
        values = [
            None if row["z"] is None or (differs and row["a"] is None) else row["z"] - (row["a"] or 0) * differs
            for row in many
        ]
        keyed = [((v is None) != nulls_first, 0 if v is None else -v if descending else v) for v in values]
        return sorted(keyed)[:count]

    assert ranked(kept) == ranked(table.to_pylist())


def test_groups_of_too_many_bytes_are_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = _batches([[("a", "b", None, 1)]])
    assert _groups(batches, COUNTED) is not None
    monkeypatch.setattr(gather, "GIVEN_BYTES", 8)
    assert _groups(batches, COUNTED) is None


def test_an_overflow_is_the_engines() -> None:
    table = pa.table({"z": [2**63 - 1, 1, 2], "a": [-1, 0, 0]})
    assert First(1, "z", "a", descending=True, nulls_first=False).of(table).num_rows == 3
