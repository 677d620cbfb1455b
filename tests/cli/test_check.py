"""`mica check` and `mica repair` on the command line: what is printed, and exit statuses."""

from __future__ import annotations

from pathlib import Path

import orjson
from typer.testing import CliRunner

import mica
from mica.cli.app import app
from tests.variant_files import ONE, TWO, column, container, file

runner = CliRunner()


def test_violations_are_listed_and_repaired(tmp_path: Path) -> None:
    bad, good = str(file(tmp_path / "in.parquet", column([ONE, container([ONE, TWO], [2, 0])]))), str(tmp_path / "out")
    done = runner.invoke(app, ["check", bad])
    assert done.exit_code == 1
    assert "unsorted_ids" in done.output
    assert "1 violation in 1 of 1 file" in done.output
    done = runner.invoke(app, ["check", bad, "--json"])
    assert done.exit_code == 1
    document = orjson.loads(done.stdout)
    assert list(document) == ["files", "violations", "totals", "listed", "notes"]
    (listed,) = document["listed"]
    assert {key: listed[key] for key in ("kind", "rule", "path", "row_group", "row")} == {
        "kind": "unsorted_ids",
        "rule": 10,
        "path": "v.value",
        "row_group": 0,
        "row": 1,
    }
    done = runner.invoke(app, ["repair", bad, f"{good}.parquet", "--json"])
    assert done.exit_code == 0
    assert orjson.loads(done.stdout)["rows"] == 2
    done = runner.invoke(app, ["check", f"{good}.parquet"])
    assert (done.exit_code, done.output) == (0, "1 file, nothing wrong\n")


def test_a_repair_tells_what_of_the_log_it_leaves(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT", data=[{"id": 1}])
    table.checkpoint()
    (checkpoint,) = (tmp_path / "t" / "_delta_log").glob("*.parquet")
    checkpoint.write_bytes(b"x")
    done = runner.invoke(app, ["repair", str(tmp_path / "t")])
    assert (done.exit_code, done.output.split("; ")[0]) == (0, "1 violation")
    assert "1 of the log, which no new data file mends: `mica check` names what to do" in " ".join(done.output.split())
