"""`mica` alone, `mica doctor` and `mica files`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mica
from mica.checking import doctor as rooms
from mica.checking.doctor import doctor
from mica.cli.app import app
from mica.storage.local import LocalStorage

runner = CliRunner()


def test_mica_alone_says_what_to_do_first() -> None:
    text = runner.invoke(app, [], env={"COLUMNS": "80"}).output
    lines = text.partition("Commands:")[2].partition("\n\n")[0].splitlines()
    assert [line for line in lines if line[:3] == "   " and not line[3:].strip()[:1].islower()] == []
    assert "…" not in text
    assert "..." not in text.partition("Commands:")[2]
    assert "First: mica demo" in text


def test_a_sound_machine(tmp_path: Path) -> None:
    mica.Table.create(tmp_path / "t", "id INT")
    done = runner.invoke(app, ["doctor", str(tmp_path / "t"), "--json"])
    found = {row["what"]: row for row in json.loads(done.stdout)}
    assert {"Python", "mica", "Java", "PySpark", "table", "writing"} <= found.keys()
    assert "version 0" in found["table"]["found"]
    assert done.exit_code == int(any(row["way_out"] for row in found.values()))
    assert sorted(p.name for p in (tmp_path / "t").iterdir()) == ["_delta_log"], "nothing stays behind"


def test_what_is_wrong_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStorage, "put_if_absent", LocalStorage.put)
    monkeypatch.setattr(rooms, "version", lambda name: "3.5.1" if name == "pyspark" else "1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    wrong = {finding.what: finding.way_out for finding in doctor(str(tmp_path)) if finding.way_out is not None}
    assert wrong.keys() == {"Java", "PySpark", "writing"}
    assert "4.1, 4.2, 4.3" in str(wrong["PySpark"])
    (tmp_path / "file").write_text("")
    assert {f.what for f in doctor(str(tmp_path / "file")) if f.way_out is not None} >= {"table"}


def test_files_are_listed_that_a_condition_does_not_skip(tmp_path: Path) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT, p STRING", partition_by=["p"])
    made.append([{"id": i, "p": "a"} for i in range(5)])
    made.append([{"id": i, "p": None} for i in range(7)])
    every = json.loads(runner.invoke(app, ["files", str(tmp_path / "t"), "--json"]).stdout)
    assert sorted((row["partition"]["p"] or "", row["rows"]) for row in every) == [("", 7), ("a", 5)]
    shown = runner.invoke(app, ["files", str(tmp_path / "t"), "-w", "p = 'a'"])
    assert "p=a" in shown.stdout
    assert "p=NULL" not in shown.stdout
    assert "1 of 2 files" in shown.stderr
