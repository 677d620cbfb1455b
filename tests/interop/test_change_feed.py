"""The change data feed: delta-spark reads that of mica's commits as that of its own, and mica reads both."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from tests.support import CAMPAIGN, dealt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id INT, p INT, n BIGINT, s STRING, v VARIANT"
COLUMNS = ("id", "p", "n", "s", "to_json(v)")
FEED, TIME = ("_change_type", "_commit_version"), "_commit_timestamp"
STEPS = 40 if CAMPAIGN else 3
WHERES = [
    "id % 7 = {k}", "v:a::int BETWEEN {k}0 AND {k}9", "n IS NULL AND id < {k}00", "p = {p}", "p = {p} AND id % 3 = 0",
    "v:s::string LIKE 't{k}%'", "NOT (n > {k}5)", "id < 50", "true",
]  # fmt: skip
VALUES = [{"n": "id + 1"}, {"p": "(p + 1) % 3"}, {"s": "concat(s, '-', CAST(id AS STRING))", "n": "coalesce(n, 7)"}]


def feed(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    frame = reader.load(str(path)).selectExpr(*COLUMNS, *FEED, "unix_millis(_commit_timestamp)")
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def made(path: Path, vectors: bool) -> mica.Table:
    properties = {"delta.enableDeletionVectors": str(vectors).lower(), "delta.enableChangeDataFeed": "true"}
    if vectors:  # and the columns of files have other names
        properties["delta.columnMapping.mode"] = "id"
    table = mica.Table.create(path, SCHEMA, ["p"], properties=properties)
    for part in range(3):
        table.append([
            {"id": i, "p": i % 3, "n": None if i % 4 == 0 else i, "s": "x", "v": {"a": i, "s": f"t{i}"}}
            for i in range(part * 50, part * 50 + 50)
        ])  # fmt: skip
    return table


@pytest.mark.slow
@pytest.mark.parametrize("vectors", dealt([False, True], 0))
def test_spark_reads_the_same_feed_from_our_commits_and_from_its_own(
    delta_session: SparkSession, tmp_path: Path, rng: random.Random, vectors: bool
) -> None:
    spark = delta_session
    mine, theirs = (made(tmp_path / name, vectors) for name in ("mine", "theirs"))
    wheres = [rng.choice(WHERES).format(k=rng.randrange(7), p=rng.randrange(3)) for _ in range(STEPS)]
    for step, where in enumerate(wheres):
        on = spark if step == 0 else None
        if step % 2:
            mine.delete(where, spark=on)
            spark.sql(f"DELETE FROM delta.`{theirs.path}` WHERE {where}")
        else:
            values = rng.choice(VALUES)
            mine.update(values, where, spark=on)
            sets = ", ".join(f"{k} = {v}" for k, v in values.items())
            spark.sql(f"UPDATE delta.`{theirs.path}` SET {sets} WHERE {where}")
    feeds = [feed(spark, Path(table.path)) for table in (mine, theirs)]
    without = [sorted((row[:-2] for row in found), key=repr) for found in feeds]
    assert without[0] == without[1], wheres
    for table, expected in zip((mine, theirs), feeds, strict=True):
        scan = table.refresh().changes(0, columns={name: name for name in (*COLUMNS, *FEED, TIME)})
        rows = [tuple(row.values()) for row in scan.to_arrow().to_pylist()]
        found = [(*row[:-1], round(row[-1].timestamp() * 1000)) for row in rows]
        assert sorted(found, key=repr) == expected
    columns = {name: name for name in (*COLUMNS, *FEED)}
    frame = mine.changes(0, columns=columns).to_df(spark)
    assert sorted(map(tuple, frame.collect()), key=repr) == sorted((row[:-1] for row in feeds[0]), key=repr)


@pytest.mark.slow
def test_ranges_that_spark_refuses_too(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t"
    table = mica.Table.create(path, "id INT")
    table.append([{"id": 1}])
    table.set_properties({"delta.enableChangeDataFeed": "true"})
    table.append([{"id": 2}])
    for first, last in ((0, 3), (1, 1), (2, 3), (3, 3), (3, 2), (9, 9)):
        reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", first)
        try:
            expected = reader.option("endingVersion", last).load(str(path)).count()
        except Exception:  # noqa: BLE001 - Spark raises several types
            with pytest.raises(mica.MicaError):
                table.changes(first, last)
        else:
            assert table.changes(first, last).count() == expected


@pytest.mark.slow
def test_versions_of_applications_hold_for_both(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, str(tmp_path / "t")
    table = mica.Table.create(path, "id INT")
    table.append([{"id": 1}], txn=("job", 5))
    for version, count in ((5, 1), (6, 2)):
        options = {"txnAppId": "job", "txnVersion": version}
        frame = spark.sql("SELECT CAST(2 AS INT) AS id")
        frame.write.format("delta").mode("append").options(**options).save(path)
        assert table.refresh().count() == count
    assert table.append([{"id": 3}], txn=("job", 6)).repeated
    assert not table.append([{"id": 3}], txn=("job", 7)).repeated
