"""Of a write that runs elsewhere, files count when they are complete, and those of other writes never."""

from __future__ import annotations

from pathlib import Path

import mica
from mica.storage import Storage
from mica.tasks.write import WriteSpec
from mica.write.appearing import Appearing


def test_complete_files_of_this_write_are_counted(tmp_path: Path) -> None:
    for rows in (10, 20):
        (tmp_path / f"{rows}.json").write_text('{"a": 1}\n' * rows)
        mica.ingest_json(tmp_path / f"{rows}.json", tmp_path / "t")
    table = mica.Table.open(tmp_path / "t")
    ours = next(file["path"] for file in table.files().to_pylist() if file["size"])
    mark = ours.removeprefix("part-")[:13]
    half = tmp_path / "t" / f"part-{mark}half.parquet"
    half.write_bytes((tmp_path / "t" / ours).read_bytes()[:100])
    appearing = Appearing(WriteSpec(Storage.open(tmp_path / "t"), table.schema, mark=mark))
    appearing.look()
    assert list(appearing.rows) == [ours]
    assert appearing.rows[ours] in (10, 20)
    half.write_bytes((tmp_path / "t" / ours).read_bytes())
    appearing.look()
    assert set(appearing.rows) == {ours, half.name}
