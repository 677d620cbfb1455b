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
