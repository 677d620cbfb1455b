"""A purge finds the files that hold dropped columns, at any depth, and no others."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import mica


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_purge_takes_dropped_columns_out_of_files(tmp_path: Path, mode: str) -> None:
    """Their values stayed in the files, whatever was told to purge them."""
    ddl = "id BIGINT, gone STRING, s STRUCT<a: INT, gone: STRING>, l ARRAY<STRUCT<a: INT, gone: STRING>>, v VARIANT"
    properties = {"delta.columnMapping.mode": mode, "delta.enableRowTracking": "true"}
    table = mica.Table.create(tmp_path / "t", ddl, properties=properties)
    nested = {"a": 1, "gone": "secret"}
    for i in range(2):
        table.append([{"id": i, "gone": "secret", "s": nested, "l": [nested], "v": {"n": i}}])
    table.optimize()
    (file,) = table.file_uris()
    leaves = len(pq.ParquetFile(file).schema)
    assert table.optimize(purge=True).version == table.version, "nothing was dropped"
    for column in ("gone", "s.gone", "l.element.gone"):
        before = table.drop_columns([column]).to_arrow().to_pylist()
        assert table.optimize().version == table.version
        done = table.optimize(purge=True)
        assert (done.files, done.metrics["numRemovedFiles"]) == (1, 1), column
        assert table.to_arrow().to_pylist() == before
        assert table.optimize(purge=True).version == table.version, "a purged file is not written again"
    (file,) = table.file_uris()
    assert len(pq.ParquetFile(file).schema) == leaves - 3
    (last,) = table.history(limit=1).to_pylist()
    assert (last["operation"], dict(last["operation_parameters"])["applyPurge"]) == ("REORG", "true")
    assert mica.check(table).ok


def test_a_clustered_table_is_purged_in_its_order(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path / "t", "id BIGINT, gone STRING", cluster_by=["id"], properties=properties)
    table.append([{"id": i, "gone": "x"} for i in (2, 1)])
    table.optimize()
    table.drop_columns(["gone"])
    assert table.optimize().version == table.version
    assert table.optimize(purge=True).files == 1
    assert table.to_arrow().to_pylist() == [{"id": 1}, {"id": 2}]
    assert table.optimize(purge=True).version == table.version
