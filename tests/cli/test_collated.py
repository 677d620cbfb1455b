"""`mica restats`, `mica stats` and `mica check` of collated columns, on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import mica
from mica.cli.app import app

runner = CliRunner()


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A file that was written before its column `s` had a collation; `l` is compared in process."""
    made = mica.Table.create(tmp_path / "t", "s STRING, l STRING COLLATE UTF8_LCASE, n INT")
    made.append(pa.table({"s": ["b", "A"], "l": ["y", "X"], "n": pa.array([1, 2], pa.int32())}))
    made.set_collation("s", "UNICODE_CI")
    return str(tmp_path / "t")


def mica_says(*arguments: str) -> str:
    """The command in a process of its own: it begins a session there."""
    run = subprocess.run(
        [sys.executable, "-m", "mica.cli", *arguments], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    return run.stdout


def test_bounds_are_made_and_shown(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_session(**_: object) -> None:
        raise AssertionError("UTF8_LCASE needs no session")

    monkeypatch.setattr("mica.cli.restats.spark_session", no_session)
    done = runner.invoke(app, ["restats", table, "--column", "l", "--json"])
    assert (done.exit_code, orjson.loads(done.stdout)) == (0, {"version": 2, "files": 0, "repeated": False})
    done = runner.invoke(app, ["stats", table, "--json"])
    (file,) = orjson.loads(done.stdout)
    assert [c for c in file["columns"] if "collation" in c] == [
        {"column": "l", "collation": "spark.UTF8_LCASE.78.3", "min": "X", "max": "y", "nulls": None}
    ]
    done = runner.invoke(app, ["stats", table])
    assert "l by spark.UTF8_LCASE.78.3" in done.output


@pytest.mark.slow
@pytest.mark.spark
def test_restats_begins_a_session_where_it_needs_one(table: str) -> None:
    assert orjson.loads(mica_says("restats", table, "--json")) == {"version": 3, "files": 1, "repeated": False}
    (text,) = mica.Table.open(table).files().column("stats").to_pylist()
    assert orjson.loads(text)["statsWithCollation"] == {
        "spark.UTF8_LCASE.78.3": {"minValues": {"l": "X"}, "maxValues": {"l": "y"}},
        "icu.UNICODE_CI.78.3": {"minValues": {"s": "A"}, "maxValues": {"s": "b"}},
    }
    done = runner.invoke(app, ["check", table, "--json"])
    (note,) = orjson.loads(done.stdout)["notes"]
    assert done.exit_code == 0
    assert "icu.UNICODE_CI.78.3, which need a Spark session" in note
