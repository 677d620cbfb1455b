"""Row ids beside delta-spark, where `test_all_kinds.py` does not go: tables that get them late, and collations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import mica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def row_ids(spark: SparkSession, path: Path) -> dict[int, tuple[Any, ...]]:
    frame = spark.read.format("delta").load(str(path))
    found = frame.select("id", "_metadata.row_id", "_metadata.row_commit_version").collect()
    ids = {row["id"]: (row["row_id"], row["row_commit_version"]) for row in found}
    assert len({row_id for row_id, _ in ids.values()}) == len(found)
    assert all(row_id is not None and version is not None for row_id, version in ids.values())
    return ids


def test_a_table_is_tracked_later(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t"
    table = mica.Table.create(path, "id INT")
    for n in range(3):
        table.append([{"id": n}])
    table.set_properties({"delta.enableRowTracking": "true"})
    before = row_ids(spark, path)
    spark.sql(f"UPDATE delta.`{path}` SET id = 9 WHERE id = 1")
    table.refresh().append([{"id": 5}])
    after = row_ids(spark, path)
    assert after[9][0] == before[1][0]
    assert after[0] == before[0]


def test_spark_compares_by_collation_and_reads_ids(delta_session: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(
        tmp_path, "id INT, s STRING COLLATE de_CI", properties={"delta.enableRowTracking": "true"}
    )
    table.append([{"id": n, "s": s} for n, s in enumerate(("a", "A", "b"))])
    table.update({"id": "id + 10"}, "id = 1")
    expected = row_ids(delta_session, tmp_path)
    names = ["id", "_metadata.row_id", "_metadata.row_commit_version"]
    for scan in (
        table.scan("s = 'a' AND _metadata.row_id < 9", names),
        table.scan("s = 'a'", {"id": "id", "row_id": "_metadata.row_id", "row_commit_version": names[2]}),
    ):
        frame = scan.to_df(delta_session)
        assert frame.columns == ["id", "row_id", "row_commit_version"]
        found = {row["id"]: (row["row_id"], row["row_commit_version"]) for row in frame.collect()}
        assert found == {n: expected[n] for n in (0, 11)}
    assert table.scan(columns=["s", "_metadata.row_id"]).to_df(delta_session).columns == ["s", "row_id"]
