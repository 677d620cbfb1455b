"""mica and delta-spark merge the same source into tables alike: rows, metrics, history and change feed are the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pytest

import mica
from tests.support import CAMPAIGN, dealt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 150 if CAMPAIGN else 1

SCHEMA = "id INT, p INT, n BIGINT, s STRING, v VARIANT"
COLUMNS = ("id", "p", "n", "s", "to_json(v)")
ONS = [
    "t.id = s.id", "t.v:a::int = s.id", "t.p = s.p AND t.id = s.id", "t.id <=> s.id", "t.id = s.id AND t.n < s.n",
    "t.v:s::string = s.v:s::string AND t.p < 2", "t.id = s.id + 3 AND s.n IS NOT NULL",
]  # fmt: skip
#: Clauses by kind: the texts that all but the last need a condition of, and what they do.
MATCHED = [("UPDATE", {"n": "s.n"}), ("UPDATE", {"n": "coalesce(t.n, 0) + s.n", "p": "s.p", "v": "s.v"}),
           ("UPDATE", None), ("DELETE", None)]  # fmt: skip
INSERTS = [{"id": "s.id", "v": "s.v"}, {"id": "s.id + 1000", "p": "2", "n": "s.n", "s": "s.s"}, None]
ALONE = [("UPDATE", {"n": "-1"}), ("DELETE", None)]
CONDITIONS = ["t.n > 40", "s.n > t.n", "s.p <> 1", "t.v:a::int % 2 = 0"]
OF_SOURCE, OF_TARGET = ["s.n > 30", "s.p IS NULL"], ["t.n > 30", "t.v:a::int < 20"]

#: Metrics that do not depend on how rows lie in files.
COUNTED = [
    "numSourceRows", "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted",
    "numTargetRowsMatchedUpdated", "numTargetRowsMatchedDeleted", "numTargetRowsNotMatchedBySourceUpdated",
    "numTargetRowsNotMatchedBySourceDeleted", "numTargetDeletionVectorsAdded", "numTargetDeletionVectorsUpdated",
    "numTargetDeletionVectorsRemoved",
]  # fmt: skip
#: delta-spark also rewrites files in which rows match, but no clause's condition is true; mica leaves them.
REWRITTEN = ["numTargetRowsCopied", "numOutputRows", "numTargetFilesRemoved", "numTargetBytesRemoved"]


def rows(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    frame = spark.read.format("delta").load(path).selectExpr(*COLUMNS)
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def feed(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    frame = reader.load(path).selectExpr(*COLUMNS, "_change_type", "_commit_version")
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def clauses(rng: random.Random, kinds: list[Any], conditions: list[str]) -> list[tuple[Any, str | None]]:
    count = rng.choice([0, 1, 1, 2])
    return [(rng.choice(kinds), rng.choice(conditions) if n + 1 < count else rng.choice([None, *conditions]))
            for n in range(count)]  # fmt: skip


def as_sql(on: str, found: tuple[list[Any], list[Any], list[Any]], path: str) -> str:
    def when(kind: str, condition: str | None, then: str) -> str:
        return f"WHEN {kind}{'' if condition is None else f' AND {condition}'} THEN {then}"

    def update(values: dict[str, str] | None) -> str:
        return "UPDATE SET " + ("*" if values is None else ", ".join(f"{k} = {v}" for k, v in values.items()))

    text = [f"MERGE INTO delta.`{path}` t USING source s ON {on}"]
    text += [when("MATCHED", c, "DELETE" if what == "DELETE" else update(values)) for (what, values), c in found[0]]
    for values, c in found[1]:
        then = "*" if values is None else f"({', '.join(values)}) VALUES ({', '.join(values.values())})"
        text.append(when("NOT MATCHED", c, f"INSERT {then}"))
    text += [when("NOT MATCHED BY SOURCE", c, "DELETE" if what == "DELETE" else update(values))
             for (what, values), c in found[2]]  # fmt: skip
    return "\n".join(text)


def as_calls(merge: Any, found: tuple[list[Any], list[Any], list[Any]]) -> Any:
    for (what, values), c in found[0]:
        if what == "DELETE":
            merge = merge.when_matched_delete(c)
        else:
            merge = merge.when_matched_update_all(c) if values is None else merge.when_matched_update(values, c)
    for values, c in found[1]:
        merge = merge.when_not_matched_insert_all(c) if values is None else merge.when_not_matched_insert(values, c)
    for (what, values), c in found[2]:
        merge = (merge.when_not_matched_by_source_delete(c) if what == "DELETE"
                 else merge.when_not_matched_by_source_update(values, c))  # fmt: skip
    return merge


def operation(table: mica.Table) -> dict[str, Any] | None:
    found = next((row for row in table.refresh().history().to_pylist() if row["operation"] == "MERGE"), None)
    return found and {"metrics": dict(found["operation_metrics"]), "parameters": dict(found["operation_parameters"])}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("vectors", dealt([False, True], 0))
def test_the_same_merge(delta_session: SparkSession, tmp_path: Path, rng: random.Random, vectors: bool) -> None:
    spark = delta_session
    for number in range(ROUNDS):
        properties = {
            "delta.enableDeletionVectors": str(vectors).lower(),
            "delta.enableChangeDataFeed": str(number % 2 == 0).lower(),
        }  # fmt: skip
        tables = []
        partitions = rng.choice([(), ("p",)])
        for name in ("mine", "theirs"):
            table = mica.Table.create(tmp_path / f"{name}{number}", SCHEMA, partitions, properties=properties)
            for part in range(3):
                table.append([
                    {"id": i, "p": i % 3, "n": None if i % 4 == 0 else i, "s": "x", "v": {"a": i, "s": f"t{i}"}}
                    for i in range(part * 30, part * 30 + 30)
                ])  # fmt: skip
            tables.append(table)
        mine, theirs = tables
        ids = rng.sample(range(110), rng.choice([1, 5, 25]))
        source = pa.table({
            "id": pa.array(ids, pa.int32()), "p": pa.array([i % 3 for i in ids], pa.int32()),
            "n": pa.array([rng.choice([None, *range(90)]) for _ in ids], pa.int64()),
            "s": pa.array([f"s{i}" for i in ids]),
            "v": mica.variant.from_python([{"a": i, "s": f"t{i}", "new": True} for i in ids]),
        })  # fmt: skip
        held = mica.Table.create(tmp_path / f"source{number}", SCHEMA)
        held.append(source)
        held.to_df(spark).createOrReplaceTempView("source")
        on = rng.choice(ONS)
        found = (
            clauses(rng, MATCHED, CONDITIONS), clauses(rng, INSERTS, OF_SOURCE),
            clauses(rng, ALONE, OF_TARGET) if rng.random() < 0.4 else [],
        )  # fmt: skip
        if not any(found):
            found = [(("UPDATE", None), None)], [(None, None)], []
        text = as_sql(on, found, theirs.path)
        data = rng.choice([source, spark.table("source"), held])
        merge = mine.merge(data, on, source_alias="s", target_alias="t", spark=rng.choice([None, spark]))
        done = as_calls(merge, found).execute()
        spark.sql(text)
        assert rows(spark, mine.path) == rows(spark, theirs.path), text
        assert mica.check(mine).ok
        other = operation(theirs)
        if other is None:  # nothing changed
            assert not any(done.metrics[n] for n in COUNTED[1:4]), text
            continue
        told = {k: int(v) for k, v in other["metrics"].items()}
        assert set(done.metrics) <= set(told), sorted(set(done.metrics) - set(told))
        if done.version == mine.version and any(done.metrics[n] for n in COUNTED[1:4]):
            assert {n: done.metrics[n] for n in COUNTED} == {n: told[n] for n in COUNTED}, text
            sure = all(not some or some[-1][1] is None for some in (found[0], found[2]))
            for name in REWRITTEN:
                assert done.metrics[name] == told[name] or (done.metrics[name] < told[name] and not sure), text
            mine_told = (operation(mine) or {})["parameters"]
            assert mine_told.keys() == other["parameters"].keys()
            for name, value in other["parameters"].items():
                if name != "predicate":
                    kinds = [one["actionType"] for one in orjson.loads(value)]
                    assert [one["actionType"] for one in orjson.loads(mine_told[name])] == kinds
            if number % 2 == 0:
                assert feed(spark, mine.path) == feed(spark, theirs.path), text
