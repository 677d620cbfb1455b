"""The log against the plainest model of it: a dictionary that is told about adds and removes one after the other."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mica.errors import CorruptDataError
from mica.log.checkpoint_writer import write_checkpoint
from mica.log.replay import State, apply, parse_commits
from mica.log.snapshot import Snapshot, load
from mica.log.stats_struct import format_stats, parse_stats, stats_type
from mica.log.transaction import Transaction
from mica.schema.ddl import parse_ddl
from tests.unit.log.tables import added, create, line

NAMES = st.sampled_from(["a", "b", "c", "d e", "f%g", "é"])
VECTORS = st.none() | st.sampled_from(
    [
        {"storageType": "u", "pathOrInlineDv": "ab", "offset": offset, "sizeInBytes": 3, "cardinality": 1}
        for offset in (1, 2)
    ]
)


def key(action: dict[str, Any]) -> tuple[str, Any]:
    vector = action.get("deletionVector")
    return action["path"], vector and vector["offset"]


@st.composite
def commits(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Commits in which one file has at most one add and one remove (a rule of the protocol)."""
    out = []
    for number in range(draw(st.integers(1, 6))):
        lines: dict[tuple[str, str], dict[str, Any]] = {}
        for _ in range(draw(st.integers(0, 6))):
            path, kind = draw(NAMES).replace("%", "%25").replace(" ", "%20"), draw(st.sampled_from(["add", "remove"]))
            action = {"path": path, "size": number, "dataChange": True, "deletionTimestamp": number}
            vector = draw(VECTORS)
            if vector is not None:
                action["deletionVector"] = vector
            other = lines.get((path, "remove" if kind == "add" else "add"))
            if other is None or key(next(iter(other.values()))) != key(action):
                lines[path, kind] = {kind: action}
        out.append(list(lines.values()))
    return out


@given(commits(), st.lists(st.booleans(), min_size=6, max_size=6))
def test_replay_is_the_model_however_the_commits_are_grouped(
    history: list[list[dict[str, Any]]], cuts: list[bool]
) -> None:
    model: dict[tuple[str, Any], int] = {}
    tombs: set[tuple[str, Any]] = set()
    for commit in history:
        for entry in commit:
            ((kind, action),) = entry.items()
            if kind == "add":
                model[key(action)] = action["size"]
                tombs.discard(key(action))
            else:
                model.pop(key(action), None)
                tombs.add(key(action))
    state, group = State(), []
    for commit, cut in zip(history, cuts, strict=False):
        group.append(b"\n".join(map(orjson.dumps, commit)))
        if cut:
            state, group = apply(state, parse_commits(group, [], "c")), []
    state = apply(state, parse_commits(group, [], "c"))

    def keys(table: pa.Table) -> list[tuple[str, Any]]:
        pairs = zip(table["path"].to_pylist(), table["deletion_vector"].to_pylist(), strict=True)
        return [(path, vector and vector["offset"]) for path, vector in pairs]

    assert dict(zip(keys(state.files), state.files["size"].to_pylist(), strict=True)) == model
    assert len(keys(state.files)) == len(model)
    assert set(keys(state.removes)) == tombs


@settings(max_examples=15)
@given(st.lists(st.tuples(st.sampled_from(["append", "overwrite", "checkpoint", "remove"]), NAMES), max_size=10))
def test_any_course_of_a_table_opens_the_same_with_and_without_checkpoints(course: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        table = create(Path(place), delta__checkpointInterval="1000")
        expected: set[str] = set()
        for number, (what, name) in enumerate(course):
            if what == "checkpoint":
                write_checkpoint(table)
                table = load(table.storage)
                continue
            path = f"{name}-{number}".replace("%", "%25").replace(" ", "%20")
            transaction = Transaction(table, "WRITE")
            if what == "overwrite":
                transaction.remove_files()
                expected.clear()
            elif what == "remove" and expected:
                transaction.remove_files([0])
                expected.discard(table.files["path"][0].as_py())
            transaction.add_files([added(path, low=number, tags={"n": str(number)})])
            expected.add(path)
            table = transaction.commit().snapshot
        fresh = load(table.storage)
        assert contents(fresh) == contents(table)
        assert {row["path"] for row in contents(fresh)} == expected
        for file in Path(place, "_delta_log").glob("*checkpoint*"):
            file.unlink()
        Path(place, "_delta_log", "_last_checkpoint").unlink(missing_ok=True)
        assert contents(load(table.storage)) == contents(table)


def contents(snapshot: Snapshot) -> list[dict[str, Any]]:
    table = snapshot.files.append_column("stats", snapshot.stats()).append_column("tags", snapshot.tags())
    return table.sort_by("path").to_pylist()


SCHEMA = parse_ddl(
    "i INT, l BIGINT, x DECIMAL(12,3), f DOUBLE, s STRING, d DATE, t TIMESTAMP, n STRUCT<a: INT, b: STRING>"
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-(2**31), 2**31 - 1),
    "l": st.integers(-(2**63), 2**63 - 1),
    "x": st.decimals(-(10**9) + 1, 10**9 - 1, places=3).map(float),
    "f": st.floats(allow_nan=False, allow_infinity=False),
    "s": st.text(st.characters(exclude_categories=["Cs"])),
    "d": st.dates().map(str),
    "t": st.datetimes().map(lambda t: t.isoformat(timespec="milliseconds") + "Z"),
    "n": st.fixed_dictionaries({}, optional={"a": st.integers(0, 5), "b": st.text('ab\n"\\\u2028')}),
}
BOUNDS = st.fixed_dictionaries({}, optional=VALUES)
STATS = st.fixed_dictionaries(
    {"numRecords": st.integers(0, 2**40)},
    optional={
        "minValues": BOUNDS,
        "maxValues": BOUNDS,
        "tightBounds": st.booleans(),
        "nullCount": st.just({"i": 3, "n": {"a": 1}}),
    },
)


def without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {k: v for k, v in ((k, without_empty(v)) for k, v in value.items()) if v != {}}


@given(st.lists(st.none() | STATS, max_size=5))
def test_statistics_survive_the_way_through_columns(rows: list[dict[str, Any] | None]) -> None:
    texts = pa.array([None if row is None else orjson.dumps(row).decode() for row in rows], pa.string())
    parsed = parse_stats(texts, stats_type(SCHEMA, (), {}))
    back = [None if text is None else orjson.loads(text) for text in format_stats(parsed).to_pylist()]
    assert back == [without_empty(row) for row in rows]


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode), st.integers(0, 3))
def test_no_bytes_do_more_than_be_refused(data: bytes, place: int) -> None:
    good = line("a").encode()
    parts = [good, good.replace(b'"a"', b'"b"'), b""]
    parts.insert(place, data)
    try:
        state = apply(State(), parse_commits([b"\n".join(parts)], [], "c"))
    except CorruptDataError:
        return
    assert set(state.files["path"].to_pylist()) == {"a", "b"}


@pytest.mark.parametrize("damage", range(300))
def test_no_damage_to_a_line_does_more_than_be_refused(damage: int, rng) -> None:
    data = bytearray(b"\n".join(line(name, partition_values={"p": "x"}).encode() for name in "abc"))
    tokens = [b"null", b"{", b"}", b"[", b'"', b"\n", b"\xff", b"1e999", b"\\ud800", b"{}", b'"add"', b"-", b"\x00"]
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        data[at : at + rng.choice([0, 0, 1, 9])] = rng.choice(tokens)
    try:
        state = apply(State(), parse_commits([bytes(data)], ["p"], "c"))
    except CorruptDataError:
        return
    state.files.to_pylist()
