"""What a table tells of its files without reading them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import mica


@pytest.mark.parametrize("stats", ["{bad", "[]", '{\\"numRecords\\":\\"3\\"}', '{\\"numRecords\\":-1}', ""])
def test_damaged_statistics_cost_time_and_no_rows(tmp_path: Path, stats: str) -> None:
    mica.Table.create(tmp_path, "a INT").append(pa.table({"a": [1, 2, 3]}))
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    text = log.read_text()
    start = text.index('"stats":"') + len('"stats":"')
    end = text.index('}"', start) + 1
    log.write_text(text[:start] + stats + text[end:])
    table = mica.Table.open(tmp_path)
    assert (table.scan().count(), table.scan(where="a > 1").count()) == (3, 2)


@pytest.mark.parametrize("marked", [None, 2, 4])
def test_deleted_rows_are_counted_by_the_log(tmp_path: Path, marked: int | None) -> None:
    """But where the log says of a deletion vector what cannot be; then the vector itself is read."""
    table = mica.Table.create(tmp_path, "a INT, p INT", ["p"], {"delta.enableDeletionVectors": "true"})
    table.append(pa.table({"a": [1, 2, 3, 4], "p": [0, 0, 0, 1]}))
    table.delete("a IN (1, 2)")
    log = tmp_path / "_delta_log" / f"{2:020d}.json"
    log.write_text(log.read_text().replace('"cardinality":2', f'"cardinality":{"null" if marked is None else marked}'))
    table = mica.Table.open(tmp_path)
    if marked != 2:
        with pytest.raises(mica.CorruptDataError, match=r"deletion.vector"):
            table.count()
        assert table.partitions().column("rows").to_pylist() == [None, 1]
        assert "unknown" in table._repr_html_()
        return
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    assert (table.count(), table.scan("p = 0").count()) == (2, 1)
    assert table.partitions().column("rows").to_pylist() == [1, 1]
    assert table._source.rows(pa.array([0, 1])).to_pylist() == [1, 1]
