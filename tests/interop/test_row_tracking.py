"""Row ids beside delta-spark, where `test_all_kinds.py` does not go: tables that get them late, and collations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_what_metadata_says_of_files_is_what_delta_spark_says(delta_session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a b%\u00e9"
    table = mica.Table.create(path, "id INT, p STRING, s STRING COLLATE UNICODE_CI", ["p"])
    table.append([{"id": i, "p": f"x {i}%\u00e9/:", "s": "A"} for i in range(3)])
    names = ["file_path", "file_name", "file_size", "file_modification_time", "file_block_start", "file_block_length"]
    asked = [f"_metadata.{name}" for name in names]
    theirs = delta_session.read.format("delta").load(str(path)).where("id > 0").select("id", *asked).toArrow()
    one = theirs["file_name"].to_pylist()[0]
    mine = [
        table.scan("id > 0", ["id", *asked]).to_arrow(),
        table.scan("id > 0", ["id", *asked]).to_df(delta_session).toArrow(),
        table.scan("id > 0 AND s = 'a'", ["id", *asked]).to_df(delta_session).toArrow(),
    ]
    for found in mine:
        assert found.sort_by("id").to_pylist() == theirs.sort_by("id").to_pylist()
    assert table.scan(f"_metadata.file_name = '{one}'").count() == 1
    done = table.update({"s": "_metadata.file_name"}, f"_metadata.file_path LIKE '%{one}'")
    assert done.metrics["numUpdatedRows"] == 1
