"""Row ids in turn with delta-spark: each gives new ones, and both read the same."""

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


def test_in_turn(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t"
    properties = {
        "delta.enableRowTracking": "true",
        "delta.enableDeletionVectors": "true",
        "delta.checkpointInterval": "4",
    }
    table = mica.Table.create(path, "id INT, p INT", ["p"], properties)
    table.append([{"id": n, "p": n % 2} for n in range(6)])
    first = row_ids(spark, path)
    assert {version for _, version in first.values()} == {1}
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (10, 0), (11, 1)")
    table.refresh().append([{"id": 20, "p": 0}])
    spark.sql(f"UPDATE delta.`{path}` SET p = 1 WHERE id = 2")
    table.refresh().delete("id = 3")
    second = row_ids(spark, path)
    assert set(second) == {0, 1, 2, 4, 5, 10, 11, 20}
    assert all(second[n][0] == first[n][0] for n in (0, 1, 2, 4, 5))
    spark.sql(f"OPTIMIZE delta.`{path}`")
    table.refresh().append([{"id": 30, "p": 0}])
    third = row_ids(spark, path)
    assert all(third[n] == found for n, found in second.items())


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
