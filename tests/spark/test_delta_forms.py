"""Forms of statements that delta-spark takes: each gives what delta-spark gives."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from mica.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    """A table of four rows in two partitions, also known as `forms`."""
    made = mica.Table.create(tmp_path / "forms", "id INT, p INT", ["p"])
    made.append([{"id": i, "p": i % 2} for i in range(4)])
    mica.register("forms", made.path)
    return made


def _rows(spark: SparkSession, text: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, mica.sql(text, spark).collect()))


def test_a_path_names_a_version_or_a_time(spark: SparkSession, table: mica.Table) -> None:
    path = table.path
    assert _rows(spark, f"SELECT count(*) FROM delta.`{path}@v0` UNION SELECT 9 FROM delta.`{path}@V1`") == [(0,), (9,)]
    at = datetime.fromtimestamp(table.snapshot.timestamp / 1000, UTC).strftime("%Y%m%d%H%M%S%f")[:17]
    assert _rows(spark, f"SELECT count(*) FROM delta.`{path}@{at}`") == [(4,)]
    assert [row[0] for row in _rows(spark, f"DESCRIBE HISTORY delta.`{path}@v0`")] == [0, 1]
    with pytest.raises(UserError, match="changes a table at its newest version"):
        mica.sql(f"DELETE FROM delta.`{path}@v0`", spark)
    assert table.refresh().version == 1
