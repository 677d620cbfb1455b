"""A source of the command line is a table or Parquet files, whatever its name is; a table's log is read once."""

from __future__ import annotations

from pathlib import Path

import pytest

import mica
from mica.cli.source import scan_of
from mica.log import snapshot


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables whose log was listed."""
    found: list[str] = []
    given = snapshot.list_log

    def listed(storage: object, *more: object) -> object:
        found.append(Path(str(storage)).name)
        return given(storage, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(snapshot, "list_log", listed)
    return found


@pytest.mark.parametrize("name", ["t", "t.parquet"])
def test_a_table_is_loaded_once(tmp_path: Path, loads: list[str], name: str) -> None:
    table = mica.Table.create(tmp_path / name, "id INT")
    for number in range(3):
        table.append([{"id": number}])
    loads.clear()
    scan = scan_of([table.path], "id > 0", ["id", "double=id * 2"], limit=1)
    assert scan.to_arrow().to_pylist() == [{"id": 1, "double": 2}] or scan.to_arrow().to_pylist() == [
        {"id": 2, "double": 4}
    ]
    assert loads == [name]
    loads.clear()
    assert scan_of([table.path], None, None, version=1).to_arrow().num_rows == 1
    assert loads == [name]
    with pytest.raises(mica.UserError, match="VERSION_NOT_FOUND"):
        scan_of([table.path], None, None, version=9)


def test_files_and_folders_of_files_are_read_by_any_name(tmp_path: Path) -> None:
    mica.write_parquet([{"id": 1}], tmp_path / "one.parquet")
    mica.write_parquet([{"id": 2}], tmp_path / "many.parquet" / "a.parquet")
    (tmp_path / "plain").write_bytes((tmp_path / "one.parquet").read_bytes())
    mica.Table.create(tmp_path / "t.parquet", "id INT")
    for names, ids in (
        (["one.parquet"], [1]),
        (["many.parquet"], [2]),
        (["plain"], [1]),
        (["one.parquet", "plain"], [1, 1]),
    ):
        found = scan_of([str(tmp_path / name) for name in names], None, None).to_arrow()
        assert found["id"].to_pylist() == ids
    for names, why in (
        (["one.parquet"], "a Parquet file has no versions"), (["many.parquet"], "a Parquet file has no versions"),
        (["t.parquet", "one.parquet"], "2 tables were named"),
    ):  # fmt: skip
        with pytest.raises(mica.UserError, match=why):
            scan_of([str(tmp_path / name) for name in names], None, None, version=0)
    with pytest.raises(mica.MicaError) as caught:
        scan_of([str(tmp_path / "none.parquet")], None, None)
    assert caught.value.code == "NOT_FOUND"
