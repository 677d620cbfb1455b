"""What a statement makes of a table, with a query that this test answers; beside delta-spark in `tests/spark`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica.errors import ConflictError
from mica.query.changes import _create
from mica.query.statements import Create, parse_statement

SPARK: Any = SimpleNamespace(conf=SimpleNamespace(getAll={}, get=lambda _, default: default))


@pytest.mark.parametrize("exists", [True, False])
def test_rows_that_come_while_a_query_reads_its_own_table_stay(tmp_path: Path, exists: bool) -> None:
    if exists:
        mica.Table.create(tmp_path, "id INT", data=[{"id": 1}])
    statement = parse_statement(f"CREATE OR REPLACE TABLE delta.`{tmp_path}` (id INT) USING mica AS SELECT 1 AS id")
    assert isinstance(statement, Create)

    def query(_: str) -> Any:
        rows = pa.table({"id": pa.array([1], pa.int32())})
        mica.Table.create(tmp_path, "id INT", mode="ignore").append([{"id": 2}])
        return rows

    with pytest.raises(ConflictError):
        _create(SPARK, statement, query)
    assert 2 in mica.Table.open(tmp_path).to_arrow()["id"].to_pylist()
    statement = parse_statement(f"REPLACE TABLE delta.`{tmp_path}` (id INT) USING mica AS SELECT 1 AS id")
    assert isinstance(statement, Create)
    _create(SPARK, statement, lambda _: [{"id": 3}])
    assert mica.Table.open(tmp_path).to_arrow()["id"].to_pylist() == [3]
