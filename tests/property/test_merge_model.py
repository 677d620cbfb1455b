"""The law of merge: any source, condition and clauses give the rows, the counts and the errors of a model in Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import mica
from mica.engines.spark import engine
from mica.errors import UserError
from tests.support import CAMPAIGN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 400 if CAMPAIGN else 30

Row = dict[str, Any]

#: ON as text, and as Python over a pair; None is NULL.
ONS: list[tuple[str, Callable[[Row, Row], Any]]] = [
    ("t.id = s.id", lambda t, s: eq(t["id"], s["id"])),
    ("t.id <=> s.id", lambda t, s: t["id"] == s["id"]),
    ("t.v:a::int = s.id", lambda t, s: eq(t["a"], s["id"])),
    ("t.v:s::string = s.k AND t.id < 60", lambda t, s: eq(t["s"], s["k"]) and less(t["id"], 60)),
    ("t.p = s.p AND t.id = s.id", lambda t, s: eq(t["p"], s["p"]) and eq(t["id"], s["id"])),
    ("s.id = t.id AND s.p < 2", lambda t, s: eq(t["id"], s["id"]) and less(s["p"], 2)),
    ("t.id = s.id AND t.n < s.m", lambda t, s: eq(t["id"], s["id"]) and less(t["n"], s["m"])),
    ("t.p = s.p AND t.v:a::int > s.id", lambda t, s: eq(t["p"], s["p"]) and less(s["id"], t["a"])),
    ("t.id = s.id + 5 AND s.k IS NOT NULL", lambda t, s: s["k"] is not None and eq(t["id"], plus(s["id"], 5))),
    ("t.id BETWEEN s.id AND s.id + 1", lambda t, s: t["id"] is not None and s["id"] is not None
     and s["id"] <= t["id"] <= s["id"] + 1),
    ("false", lambda t, s: False),
]  # fmt: skip
CONDITIONS: list[tuple[str | None, Callable[[Row, Row], Any]]] = [
    (None, lambda t, s: True),
    ("t.n > 40", lambda t, s: less(40, t["n"])),
    ("s.m > t.n", lambda t, s: less(t["n"], s["m"])),
    ("s.v:b::int IS NOT NULL AND t.p <> 1", lambda t, s: s["b"] is not None and t["p"] in (0, 2)),
    ("t.v:a::int % 2 = 0", lambda t, s: t["a"] % 2 == 0),
]  # fmt: skip
SOURCE_CONDITIONS: list[tuple[str | None, Callable[[Row], Any]]] = [
    (None, lambda s: True), ("s.m > 30", lambda s: less(30, s["m"])), ("k IS NULL", lambda s: s["k"] is None),
]  # fmt: skip
TARGET_CONDITIONS: list[tuple[str | None, Callable[[Row], Any]]] = [
    (None, lambda t: True), ("t.n > 30", lambda t: less(30, t["n"])), ("v:a::int < 20", lambda t: t["a"] < 20),
]  # fmt: skip
UPDATES: list[tuple[Mapping[str, str], Callable[[Row, Row], Row]]] = [
    ({"n": "s.m"}, lambda t, s: {"n": s["m"]}),
    ({"t.n": "coalesce(t.n, 0) + s.m", "p": "s.p"}, lambda t, s: {"n": plus(t["n"] or 0, s["m"]), "p": s["p"]}),
    ({"v": "s.v", "id": "t.id"}, lambda t, s: {"a": s["a"], "s": s["k"]}),
    ({"s": "s.k || '!'"}, lambda t, s: {"x": None if s["k"] is None else s["k"] + "!"}),
]  # fmt: skip
INSERTS: list[tuple[Mapping[str, str], Callable[[Row], Row]]] = [
    ({"id": "s.id", "p": "s.p", "v": "s.v"}, lambda s: {"id": s["id"], "p": s["p"], "a": s["a"], "s": s["k"]}),
    ({"id": "s.id + 1000", "p": "2", "v": "v", "n": "m", "s": "k"},
     lambda s: {"id": plus(s["id"], 1000), "p": 2, "a": s["a"], "s": s["k"], "n": s["m"], "x": s["k"]}),
]  # fmt: skip


def eq(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a == b


def less(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a < b


def plus(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a + b


class AmbiguousError(Exception):
    """Two source rows would change one row."""


def model(
    rows: list[Row], source: list[Row], on: Any, matched: list[Any], inserts: list[Any], alone: list[Any]
) -> tuple[list[Row], dict[str, int]]:
    """The rows after the merge, and how many were inserted, updated and deleted."""
    kept: list[Row] = []
    counts = {"Inserted": 0, "Updated": 0, "Deleted": 0}
    used = set()
    for t in rows:
        pairs = [(i, s) for i, s in enumerate(source) if on(t, s) is True]
        used |= {i for i, _ in pairs}
        acts = []
        for _, s in pairs:
            acts += [(act, s) for condition, act in matched if condition(t, s) is True][:1]
        only = len(matched) == 1 and matched[0][1] is None and matched[0][0] is CONDITIONS[0][1]
        if len(acts) > 1 and not only:
            raise AmbiguousError
        if not pairs:
            acts = [(act, {}) for condition, act in alone if condition(t) is True][:1]
        if not acts:
            kept.append(t)
        elif acts[0][0] is None:
            counts["Deleted"] += 1
        else:
            counts["Updated"] += 1
            kept.append(t | acts[0][0](t, acts[0][1]))
    for i, s in enumerate(source):
        made = [act for condition, act in inserts if i not in used and condition(s) is True][:1]
        if made:
            counts["Inserted"] += 1
            kept.append({"id": None, "p": None, "n": None, "x": None, "a": None, "s": None} | made[0](s))
    return kept, counts


def drawn(rng: random.Random, kinds: list[Any], make: Callable[[Any], tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Up to two clauses of a kind; only the last is without a condition."""
    count = rng.choice([0, 1, 1, 2])
    found = []
    for number in range(count):
        condition = rng.choice(kinds[1:] if number + 1 < count else kinds)
        found.append(make(condition))
    return found


def one_round(rng: random.Random, path: Path, spark: SparkSession | None) -> None:
    properties: dict[str, str] = {}
    if rng.random() < 0.5:
        properties["delta.enableDeletionVectors"] = "true"
    if rng.random() < 0.3:
        properties["delta.enableChangeDataFeed"] = "true"
    table = mica.Table.create(
        path, "id INT, p INT, n BIGINT, s STRING, v VARIANT", rng.choice([(), ("p",)]), properties=properties
    )
    rows: list[Row] = []
    for file in range(rng.randrange(4)):
        new = [
            {"id": rng.choice([None, *range(file * 20, file * 20 + 20)]), "p": rng.choice([None, 0, 1, 2]),
             "n": rng.choice([None, *range(90)]), "x": None, "a": rng.randrange(80), "s": rng.choice([None, f"k{i}"])}
            for i in range(rng.randrange(1, 20))
        ]  # fmt: skip
        rows += new
        table.append([
            {"id": r["id"], "p": r["p"], "n": r["n"], "s": None, "v": {"a": r["a"], "s": r["s"]}} for r in new
        ])  # fmt: skip
    some = rng.choice([0, 1, 3, 12])
    source = [
        {"id": rng.choice([None, *range(80)]), "p": rng.choice([None, 0, 1, 2]), "m": rng.choice([None, *range(90)]),
         "k": rng.choice([None, f"k{rng.randrange(20)}"]), "a": rng.randrange(80), "b": rng.choice([None, 1])}
        for _ in range(some)
    ]  # fmt: skip
    data = pa.table({
        "id": pa.array([s["id"] for s in source], pa.int64()), "p": pa.array([s["p"] for s in source], pa.int32()),
        "m": pa.array([s["m"] for s in source], pa.int64()), "k": pa.array([s["k"] for s in source], pa.string()),
        "v": mica.variant.from_python([{"a": s["a"], "s": s["k"], "b": s["b"]} for s in source]),
    })  # fmt: skip
    if spark is not None and rng.random() < 0.9:
        held = mica.Table.create(path.parent / f"{path.name} source", "id BIGINT, p INT, m BIGINT, k STRING, v VARIANT")
        held.append(data)
        data = held.to_df(spark)
    on_text, on = rng.choice(ONS)

    def matching(condition: Any) -> Any:
        update = None if rng.random() < 0.4 else rng.choice(UPDATES)
        return (condition[0], update), (condition[1], None if update is None else update[1])

    def inserting(condition: Any) -> Any:
        insert = rng.choice(INSERTS)
        return (condition[0], insert), (condition[1], insert[1])

    def alone(condition: Any) -> Any:
        dead = rng.random() < 0.5
        return (condition[0], dead), (condition[1], None if dead else lambda t, _: {"n": -1})

    found = drawn(rng, CONDITIONS, matching), drawn(rng, SOURCE_CONDITIONS, inserting), []
    if rng.random() < 0.4:
        found = *found[:2], drawn(rng, TARGET_CONDITIONS, alone)
    if not any(found):
        return
    merge = table.merge(data, on_text, source_alias="s", target_alias="t", spark=spark)
    for (condition, update), _ in found[0]:
        merge = merge.when_matched_delete(condition) if update is None else merge.when_matched_update(
            update[0], condition)  # fmt: skip
    for (condition, insert), _ in found[1]:
        merge = merge.when_not_matched_insert(insert[0], condition)
    for (condition, dead), _ in found[2]:
        merge = (merge.when_not_matched_by_source_delete(condition) if dead
                 else merge.when_not_matched_by_source_update({"n": "-1"}, condition))  # fmt: skip
    before = table.version
    shown = on_text, [[text for text, _ in kind] for kind in found], source
    try:
        expected, counts = model(rows, source, on, *([act for _, act in kind] for kind in found))
    except AmbiguousError:
        with pytest.raises(UserError) as raised:
            merge.execute()
        assert raised.value.code == "AMBIGUOUS_MERGE", shown
        assert mica.Table.open(path).version == before
        return
    done = merge.execute()
    for name, count in counts.items():
        assert done.metrics[f"numTargetRows{name}"] == count, (name, shown)
    assert table.version == before + any(counts.values()), shown
    columns = {"id": "id", "p": "p", "n": "n", "x": "s", "a": "v:a::int", "s": "v:s::string"}
    after = table.scan(columns=columns).to_arrow().to_pylist()
    assert sorted(after, key=repr) == sorted(expected, key=repr), shown
    assert mica.check(table).ok


def test_a_merge_gives_the_rows_of_the_model(tmp_path: Path, rng: random.Random) -> None:
    for number in range(ROUNDS):
        one_round(rng, tmp_path / str(number), None)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shuffled", [False, True])
def test_on_spark_too(
    spark: SparkSession, tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, shuffled: bool
) -> None:
    if shuffled:
        monkeypatch.setattr(engine, "FEW_ROWS", -1)
    for number in range(max(3, ROUNDS // 10)):
        one_round(rng, tmp_path / str(number), spark)
