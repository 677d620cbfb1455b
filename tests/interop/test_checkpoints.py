"""V2 checkpoints with sidecars: delta-spark and deltalake open a table from mica's alone, mica from delta-spark's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pytest

import mica
from mica.log import checkpoint_writer
from tests.oracle import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

V2 = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1000"}


def only_the_checkpoint(path: Path) -> None:
    """Removes the commits before the checkpoint, so that nobody can fall back on them; its own, delta-spark wants."""
    log = path / "_delta_log"
    newest = max(int(file.name[:20]) for file in log.glob("[0-9]*.checkpoint.*"))
    for file in [*log.glob("*.json"), *log.glob("*.crc")]:
        if file.name[:20].isdigit() and int(file.name[:20]) < newest and ".checkpoint." not in file.name:
            file.unlink()


def rows(spark: SparkSession, path: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(str(path)).select("id", "p", "s").collect())


def written(path: Path, monkeypatch: pytest.MonkeyPatch, **properties: str) -> mica.Table:
    """Seven files and a removed one in four sidecars; a deletion vector, statistics as columns, an application."""
    monkeypatch.setattr(checkpoint_writer, "SIDECAR_FILES", 3)
    table = mica.Table.create(
        path,
        "id BIGINT, p STRING, s STRING",
        ["p"],
        {**V2, "delta.checkpoint.writeStatsAsStruct": "true", **properties},
    )
    for number in range(4):
        ids = pa.array(range(number * 10, number * 10 + 10), pa.int64())
        parts = ["x/y" if i % 2 else None for i in range(10)]
        table.append(pa.table({"id": ids, "p": parts, "s": [f"é{i}" for i in range(10)]}), txn=("app", number))
    table.delete("id = 3")
    table.delete("id < 10 AND p IS NULL")
    table.checkpoint()
    only_the_checkpoint(path)
    assert len(list((path / "_delta_log" / "_sidecars").iterdir())) >= 4
    return table


@pytest.mark.slow
def test_delta_spark_opens_a_table_from_sidecars_and_goes_on(
    delta_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, path = delta_session, tmp_path / "t"
    table = written(path, monkeypatch, **{"delta.enableDeletionVectors": "true"})
    found = rows(spark, path)
    assert [row[0] for row in found] == sorted(table.to_arrow()["id"].to_pylist())
    assert len(found) == 34
    skipped = spark.read.format("delta").load(str(path)).where("id >= 30 AND p = 'x/y'")
    assert skipped.count() == 5
    assert len(skipped.inputFiles()) == 1
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 39")
    assert mica.Table.open(path).count() == 33
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    spark.sql(f"UPDATE delta.`{path}` SET s = 'new' WHERE id = 38")  # writes delta-spark's own V2 checkpoint
    only_the_checkpoint(path)
    again = mica.Table.open(path)
    assert again.snapshot.segment.checkpoint is not None
    assert again.snapshot.segment.checkpoint.kind == "v2"
    assert sorted((row["id"], row["p"], row["s"]) for row in again.to_arrow().to_pylist()) == rows(spark, path)
    assert again.append([{"id": 99, "p": "z", "s": "z"}], txn=("app", 3)).version == again.version


@pytest.mark.slow
def test_delta_spark_finds_rows_by_bounds_that_its_checkpoint_held_as_int96(
    delta_session: SparkSession, tmp_path: Path
) -> None:
    """mica reads them for a delete and writes them into the log. TIMESTAMP_NTZ stays without a zone."""
    spark, path = delta_session, tmp_path / "t"
    properties = "'delta.enableDeletionVectors'='true', 'delta.checkpointInterval'='1'"
    old, new = "1500-01-01 00:00:00", "2020-01-01 12:00:00"
    zone = {"spark.sql.session.timeZone": "America/Los_Angeles", "spark.sql.parquet.outputTimestampType": "INT96"}
    with conf(spark, zone):
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, t TIMESTAMP, n TIMESTAMP_NTZ) USING delta "
            f"TBLPROPERTIES ({properties}, 'delta.checkpoint.writeStatsAsJson'='false')"
        )
        times = [
            f"if(id < 500, TIMESTAMP{mark}'{old}{z}', TIMESTAMP{mark}'{new}{z}')"
            for mark, z in (("", "Z"), ("_NTZ", ""))
        ]
        frame = spark.range(1000).selectExpr("id", f"{times[0]} t", f"{times[1]} n").coalesce(1)
        frame.write.format("delta").mode("append").save(str(path))
        table = mica.Table.open(path)
        assert table.snapshot.segment.checkpoint is not None
        assert table.delete("id = 999").metrics["numDeletionVectorsAdded"] == 1
        (text,) = mica.Table.open(path).snapshot.stats().to_pylist()
        stats = orjson.loads(text)
        assert stats["minValues"] == {"id": 0, "t": "1500-01-01T00:00:00.000Z", "n": "1500-01-01T00:00:00.000"}
        assert stats["maxValues"] == {"id": 999, "t": "2020-01-01T12:00:00.000Z", "n": "2020-01-01T12:00:00.000"}
        read = spark.read.format("delta").load(str(path))
        assert [read.where(f"t = TIMESTAMP'{time}Z'").count() for time in (old, new)] == [500, 499]


def test_a_classic_checkpoint_follows_a_dropped_feature(delta_session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = mica.Table.create(path, "id BIGINT, p STRING, s STRING", properties=V2)
    table.append([{"id": 1, "p": "a", "s": "b"}])
    table.checkpoint()
    table.drop_feature("v2Checkpoint")
    only_the_checkpoint(path)
    assert rows(delta_session, path) == [(1, "a", "b")]


def test_deltalake_opens_a_table_from_sidecars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = written(tmp_path / "t", monkeypatch, **{"delta.checkpoint.writeStatsAsJson": "true"})
    # Its Arrow data sets refuse the feature; its engine reads the table.
    opened = deltalake.DeltaTable(str(tmp_path / "t"))
    query = deltalake.QueryBuilder().register("t", opened).execute("SELECT id, p, s FROM t ORDER BY id")
    assert pa.table(query).to_pylist() == table.to_arrow().sort_by("id").to_pylist()


def test_a_log_compaction_of_deltalake_brings_no_removed_rows_back(tmp_path: Path) -> None:
    """It leaves out removals that are older than the retention of files, though the files are of a commit before."""
    deltalake = pytest.importorskip("deltalake")
    for number in range(5):
        rows = pa.table({"id": [number]})
        properties = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
        deltalake.write_deltalake(str(tmp_path), rows, mode="append", configuration=None if number else properties)
        if number == 2:
            mica.Table.open(tmp_path).delete("id = 1")
    deltalake.DeltaTable(str(tmp_path)).compact_logs(2, 4)
    assert sorted(mica.Table.open(tmp_path).to_arrow().column("id").to_pylist()) == [0, 2, 3, 4]


def test_deltalake_opens_a_checkpoint_and_a_restore_of_a_table_that_got_other_partitions(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    rows = pa.table({"id": [1, 2], "p": ["x", "y"], "q": ["u", None]})

    def counted() -> int:
        query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(tmp_path)))
        return pa.table(query.execute("SELECT * FROM t")).num_rows

    ddl = "id BIGINT, p STRING, q STRING"
    mica.Table.create(tmp_path, ddl, ["p"], data=rows).append(rows)
    table = mica.Table.create(tmp_path, ddl, ["q"], mode="overwrite", data=rows)
    mica.Table.open(tmp_path).checkpoint()
    assert counted() == 2
    table.restore(1)
    assert counted() == 4
    table.restore(2)
    assert counted() == 2
