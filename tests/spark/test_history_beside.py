"""What the history says of an operation beside delta-spark's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from tests.oracle import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = (
    "CREATE TABLE {0} (id INT) USING {1}", "INSERT INTO {0} VALUES (1)", "INSERT INTO {0} VALUES (2)", "OPTIMIZE {0}",
    "ALTER TABLE {0} SET TBLPROPERTIES ('a' = 'b')", "REPLACE TABLE {0} (id INT) USING {1}",
    "REPLACE TABLE {0} USING {1} AS SELECT 3 AS id",
)  # fmt: skip


@pytest.mark.slow
def test_operations_and_their_isolation(delta_session: SparkSession, tmp_path: Path) -> None:
    """REPLACE TABLE was called CREATE OR REPLACE TABLE, and what only moves rows Serializable."""
    found = []
    settings = {"spark.sql.shuffle.partitions": "1"}
    with conf(delta_session, settings):
        for kind, run in (("delta", delta_session.sql), ("mica", lambda text: mica.sql(text, delta_session))):
            path = tmp_path / kind
            for text in TEXTS:
                run(text.format(f"delta.`{path}`", kind))
            rows = mica.Table.open(path).history().select(["version", "operation", "isolation_level"]).to_pylist()
            found.append([tuple(row.values()) for row in rows])
    assert found[0] == found[1]
    assert len(found[1]) == len(TEXTS)
    assert {row[1] for row in found[1] if row[2] == "SnapshotIsolation"} == {"OPTIMIZE"}
    table = mica.Table.open(path)
    table.vacuum()
    assert table.history(2).column("isolation_level").to_pylist() == ["SnapshotIsolation"] * 2
