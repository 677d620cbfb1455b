"""`mica vacuum`, `mica restore` and `mica changes`: what is printed, what is done, exit statuses."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

import mica
from mica.cli.app import app

runner = CliRunner()


@pytest.fixture
def table(tmp_path: Path) -> str:
    found = mica.Table.create(tmp_path / "t", "id INT")
    found.append([{"id": 1}])
    found.overwrite([{"id": 2}])
    return found.path


def test_vacuum_lists_and_then_deletes(table: str) -> None:
    options = ["vacuum", table, "--retention", "0 hours", "--no-enforce-retention"]
    listed = runner.invoke(app, options)
    assert listed.exit_code == 0
    assert "1 file would be deleted" in listed.output
    assert "Add --delete" in listed.output
    assert len(list(Path(table).glob("*.parquet"))) == 2
    done = orjson.loads(runner.invoke(app, [*options, "--delete", "--json"]).stdout)
    assert (done["files"], done["dry_run"], len(done["deleted"])) == (1, False, 1)
    assert len(list(Path(table).glob("*.parquet"))) == 1
    assert mica.Table.open(table).count() == 1


def test_optimize(table: str) -> None:
    mica.Table.open(table).append([{"id": 3}])
    done = orjson.loads(runner.invoke(app, ["optimize", table, "--json"]).stdout)
    assert (done["files"], done["rows"], done["numRemovedFiles"]) == (1, 2, 2)
    assert runner.invoke(app, ["optimize", table]).stdout == "nothing to do\n"


def test_restore(table: str) -> None:
    done = orjson.loads(runner.invoke(app, ["restore", table, "--version", "1", "--json"]).stdout)
    assert (done["restored_version"], done["version"], done["restored_files"]) == (1, 3, 1)
    assert mica.Table.open(table).to_arrow().column("id").to_pylist() == [1]
    said = runner.invoke(app, ["restore", table, "--version", "2"])
    assert "has the content of version 2" in said.output
    assert runner.invoke(app, ["restore", table]).exit_code == 2


def test_changes(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "f", "id INT", properties={"delta.enableChangeDataFeed": "true"})
    table.append([{"id": i} for i in range(30)])
    table.delete("id = 7")
    asked = ["changes", table.path, "--from-version", "1"]
    assert runner.invoke(app, [*asked, "--count"]).stdout == "31\n"
    rows = [
        orjson.loads(line) for line in runner.invoke(app, [*asked, "--where", "id = 7", "--json"]).stdout.splitlines()
    ]
    assert [(row["_change_type"], row["_commit_version"]) for row in rows] == [("insert", 1), ("delete", 2)]
    shown = runner.invoke(app, [*asked, "--to-version", "1"])
    assert "the first 20 rows" in shown.output
    assert runner.invoke(app, ["changes", table.path, "--from-version", "9"]).exit_code != 0


def test_reshred(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "r", "v VARIANT")
    table.append([{"v": {"a": i}} for i in range(9)])
    for options in (["--unshred"], ["--schema", "STRUCT<a: BIGINT>"], ["--schema", "v=STRUCT<a: STRING>"], []):
        done = orjson.loads(runner.invoke(app, ["reshred", table.path, *options, "--json"]).stdout)
        assert (done["files"], done["rows"]) == (1, 9), options
    assert runner.invoke(app, ["reshred", table.path]).stdout == "nothing to do\n"
    assert runner.invoke(app, ["reshred", table.path, "--unshred", "--schema", "v=INT"]).exit_code != 0
