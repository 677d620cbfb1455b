"""`mica vacuum`, `mica fsck`, `mica restore` and `mica changes`: what is printed, what is done, exit statuses."""

from __future__ import annotations

import shlex
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

import mica
from mica.cli.app import app
from mica.cli.hints import spoken

runner = CliRunner()


@pytest.fixture
def table(tmp_path: Path) -> str:
    found = mica.Table.create(tmp_path / "t", "id INT")
    found.append([{"id": 1}])
    found.overwrite([{"id": 2}])
    return found.path


def test_vacuum_lists_and_then_deletes(table: str) -> None:
    half = ["vacuum", table, "--retention", "0.5", "--no-enforce-retention", "--json"]
    assert orjson.loads(runner.invoke(app, half).stdout)["retention_hours"] == 0.5
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


def test_fsck_lists_and_then_leaves_out(table: str) -> None:
    assert runner.invoke(app, ["fsck", table]).stdout == f"{table}, version 2: every file is there\n"
    (newest,) = mica.Table.open(table).files().column("path").to_pylist()
    Path(table, newest).unlink()
    mica.Table.open(table).append([{"id": 3}])
    failed = runner.invoke(app, ["scan", table]).exception
    assert isinstance(failed, mica.StorageError)
    assert "`mica fsck` leaves files out that are lost" in spoken(failed.hint)
    listed = runner.invoke(app, ["fsck", table])
    assert (listed.exit_code, newest in listed.output, "add --remove" in listed.output) == (0, True, True)
    assert "1 file would leave the table" in listed.output
    assert mica.Table.open(table).version == 3
    done = orjson.loads(runner.invoke(app, ["fsck", table, "--remove", "--json"]).stdout)
    assert (done["version"], done["files"], done["rows"], done["dry_run"]) == (4, 1, 1, False)
    assert [file["data_file_missing"] for file in done["missing"]] == [True]
    assert mica.Table.open(table).to_arrow().to_pylist() == [{"id": 3}]


def test_files_of_a_mapped_table_name_its_columns(tmp_path: Path) -> None:
    mapped = mica.Table.create(tmp_path / "m", "n INT, p STRING", ["p"], {"delta.columnMapping.mode": "name"})
    mapped.append([{"n": 1, "p": "a"}])
    (file,) = orjson.loads(runner.invoke(app, ["files", mapped.path, "--json"]).stdout)
    assert file["partition"] == {"p": "a"}


def test_optimize(table: str) -> None:
    mica.Table.open(table).append([{"id": 3}])
    done = orjson.loads(runner.invoke(app, ["optimize", table, "--json"]).stdout)
    assert (done["files"], done["rows"], done["numRemovedFiles"]) == (1, 2, 2)
    assert runner.invoke(app, ["optimize", table]).stdout == "nothing to do\n"


def test_erase(tmp_path: Path) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT, v VARIANT")
    made.append([{"id": n, "v": {"user": {"email": f"e{n}", "n": n}}} for n in range(4)])
    arguments = ["erase", made.path, "v:user.email", "--json", "--txn", "gdpr:7"]
    done = orjson.loads(runner.invoke(app, [*arguments, "--where", "id < 2"]).stdout)
    assert (done["version"], done["numUpdatedRows"], done["repeated"]) == (2, 2, False)
    assert orjson.loads(runner.invoke(app, arguments).stdout)["repeated"] is True
    said = runner.invoke(app, ["erase", made.path, "v:user.email"])
    assert "version 3: erased from 2 rows of 1 file" in said.output
    assert runner.invoke(app, ["erase", made.path, "v:user.email"]).stdout == "no row has the path\n"
    assert runner.invoke(app, ["erase", made.path, "v:user", "--txn", "7"]).exit_code == 2
    assert not mica.check_erased(made.path, "v:user.email").current


def test_alter(table: str) -> None:
    changes = ["--set", "delta.columnMapping.mode=name", "--add-columns", "s STRUCT<x: INT>, name STRING"]
    changes += ["--rename", "s.x=y", "--collation", "name=UNICODE_CI", "--comment", "id=a number", "--drop-column", "s"]
    done = runner.invoke(app, ["alter", table, *changes, "--add-constraint", "small=id <= 9 AND id >= 0", "--json"])
    found = orjson.loads(done.stdout)
    assert found["schema"] == "id INT COMMENT 'a number',name STRING COLLATE UNICODE_CI"
    assert found["properties"]["delta.constraints.small"] == "id <= 9 AND id >= 0"
    assert {"columnMapping", "collations"} <= set(found["features"])
    said = runner.invoke(app, ["alter", table, "--drop-constraint", "small", "--drop-feature", "collations"])
    assert isinstance(said.exception, mica.errors.UserError)  # the constraint went, the feature cannot
    assert "delta.constraints.small" not in mica.Table.open(table).properties
    assert runner.invoke(app, ["alter", table, "--unset", "owner"]).exit_code == 0
    for nothing in ([], ["--nullable", "id", "--not-null", "id"]):
        assert isinstance(runner.invoke(app, ["alter", table, *nothing]).exception, mica.errors.UserError)


def test_an_application_optimizes_once(table: str) -> None:
    for option in ("optimize", "reshred"):
        opened = mica.Table.open(table)
        if option == "reshred":
            opened.add_columns("v VARIANT")
        opened.append([{"id": 3}])
        first = orjson.loads(runner.invoke(app, [option, table, "--txn", f"{option}:1", "--json"]).stdout)
        again = orjson.loads(runner.invoke(app, [option, table, "--txn", f"{option}:1", "--json"]).stdout)
        assert (first["repeated"], again["repeated"], again["version"]) == (False, True, first["version"])
        assert first["version"] == opened.version + 1  # with nothing to do the version of the application is committed


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


def test_stream_takes_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    for number in range(3):
        (tmp_path / "landing" / f"{number}.json").write_text(f'{{"id": {number}}}\n')
    arguments = ["stream", str(tmp_path / "landing"), str(tmp_path / "t"), "--max-files", "2"]
    lines = runner.invoke(app, [*arguments, "--json"]).stdout.splitlines()
    assert [orjson.loads(line)["rows"] for line in lines] == [2, 1]
    assert runner.invoke(app, arguments).stdout == ""
    assert "nothing new" in runner.invoke(app, arguments, env={"FORCE_COLOR": "1"}).stdout, "in a terminal"
    assert mica.Table.open(tmp_path / "t").count() == 3


def test_suggest_prints_what_can_be_run(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append([{"v": {"k": i, "s": {"t": "x"}}} for i in range(10)])
    (found,) = orjson.loads(runner.invoke(app, ["suggest", table.path, "--json"]).stdout)
    shown = runner.invoke(app, ["suggest", table.path]).stdout
    assert found["value"] in shown
    assert shown.splitlines()[-1] == found["command"]
    _, *arguments = shlex.split(found["command"])
    assert runner.invoke(app, arguments).exit_code == 0
    assert table.refresh().properties["mica.paths"] == "k BIGINT, t STRING AS v:s.t"
    assert runner.invoke(app, ["suggest", table.path]).stdout == "nothing to suggest\n"
