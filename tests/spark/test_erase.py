"""An erase as a Spark job is the same as in process: partitions, hidden rows and change files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


@pytest.mark.parametrize("where", [None, "p = 'a/b' AND id < 30"])
def test_both_engines_erase_the_same(spark: SparkSession, tmp_path: Path, where: str | None) -> None:
    found = []
    for engine in (None, spark):
        table = mica.Table.create(tmp_path / str(engine is None), "id INT, p STRING, v VARIANT", ["p"], PROPERTIES)
        for start in range(0, 60, 20):
            ids = range(start, start + 20)
            table.append(
                [{"id": i, "p": ["a/b", None, "c"][i % 3], "v": {"user": {"email": i, "n": i}, "n": i}} for i in ids]
            )
        table.delete("id % 20 = 3")
        done = table.erase("v:user.email", where, spark=engine)
        columns = {"id": "id", "p": "p", "t": "to_json(v)", "e": "v:user.email::int"}
        rows: Any = table.scan(columns=columns).to_arrow().sort_by("id").to_pylist()
        assert len(rows) == 57
        assert all((row["e"] is None) == (where is None or (row["p"] == "a/b" and row["id"] < 30)) for row in rows)
        changes = table.changes(table.version).to_df(spark).selectExpr("id", "p", "to_json(v) t", "_change_type")
        counts = {name: done.metrics[name] for name in ("numUpdatedRows", "numCopiedRows", "numRemovedFiles")}
        erased = mica.check_erased(table.path, "v:user.email")
        found.append((rows, sorted(changes.collect(), key=repr), counts, erased.current))
    assert found[0] == found[1]
    assert found[0][2]["numUpdatedRows"] == (57 if where is None else 9)
