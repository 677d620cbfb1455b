"""Tables of other writers, converted: what their logs say of the files counts, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mica

#: What the log says that the files do not, by table.
TABLES = {
    "dv-with-columnmapping": "deleted rows, mapped columns",
    "log-replay-dv-key-cases": "deleted rows",
    "table-with-columnmapping-mode-id": "mapped columns",
    "data-reader-partition-values": "partition values",
    "basic-with-inserts-overwrite-restore": "removed files",
    "spark-shredded-variant-preview-delta": "Variants that Spark shredded",
    "data-reader-map": "maps",
}


def rows(scan: mica.Scan) -> list[str]:
    """The rows, in any order."""
    return sorted(str(list(row.values())) for row in scan.to_pandas().to_dict("records"))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("layout", "to"), [("early", "parquet"), ("standard", "parquet"), ("standard", "delta")])
def test_a_table_is_converted_by_its_log(shared: Path, tmp_path: Path, name: str, layout: str, to: Any) -> None:
    [log] = (shared / "conformance" / "delta-tables" / name).rglob("_delta_log")
    table = mica.Table.open(log.parent)
    expected = rows(table.scan())
    done = mica.convert_files(log.parent, tmp_path / "target", layout=layout, to=to)
    assert done.rows == len(expected)
    made = mica.Table.open(tmp_path / "target").scan() if to == "delta" else mica.read_parquet(tmp_path / "target")
    assert rows(made) == expected
    if any(word in TABLES[name] for word in ("deleted", "mapped", "partition")):
        assert done.rebuilt > 0
