"""The command line: what it prints, its exit status, and errors of a few lines."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import json
import os
import re
import resource
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from unittest import mock

import orjson
import pyarrow as pa
import pytest
import typer
from rich.console import Console

from mica.cli.app import main
from mica.cli.console import print_rows, write_page
from mica.table import Table

#: Commands that were seen to work in a new process, with what they import themselves.
STARTED: set[str] = set()


def mica(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A command's first run is a process of its own, the others are in this one."""
    command = list(map(str, arguments))
    return here(command) if command[0] in STARTED else started(*command)


def started(*command: str | Path) -> subprocess.CompletedProcess[str]:
    STARTED.add(str(command[0]))
    line = [sys.executable, "-m", "mica.cli", *map(str, command)]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, check=False, env=os.environ)


def here(command: list[str]) -> subprocess.CompletedProcess[str]:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["mica", *command]),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    shown = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(command, int(ended.value.code or 0), *shown)


def piped(text: bytes, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "mica.cli", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, timeout=300, check=False)


@pytest.mark.slow
def test_standard_input_is_ingested(tmp_path: Path) -> None:
    done = piped(b'{"a":1}\n{"a":2}\n', "ingest", "-", tmp_path / "t", "--json")
    assert done.returncode == 0, done.stderr
    assert orjson.loads(done.stdout)["rows"] == 2
    bad = piped(b'{"a":1}\nno\n', "ingest", "-", tmp_path / "t")
    assert bad.returncode == 1
    assert b"standard input, line 2" in bad.stderr
    closed = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m mica.cli ingest - "$1" <&-', sys.executable, str(tmp_path / "t")],
        capture_output=True, check=False,
    )  # fmt: skip
    assert b"NO_INPUT" in closed.stderr
    assert piped(b"{}", "ingest", "-", tmp_path / "t", "--idempotent").returncode == 1
    assert mica("scan", tmp_path / "t", "--count").stdout.strip() == "2"


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "[NOT_A_DIRECTORY]" in mica("demo", tmp_path / "file", "--no-spark").stderr
    Table.create(tmp_path / "t", "id INT")
    assert "two columns are called a" in mica("scan", tmp_path / "t", "-c", "a=id", "-c", "a=id + 1").stderr


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cli")
    rows = [{"n": i, "name": f"name-{i:04d}", "tags": ["x"], "odd": i if i % 3 else str(i)} for i in range(3000)]
    (directory / "a.ndjson").write_bytes(b"".join(orjson.dumps(r, option=orjson.OPT_APPEND_NEWLINE) for r in rows))
    made = mica(
        "ingest", directory / "a.ndjson", directory / "t", "--add", "third=v:n::int", "--sort-by", "v:n::int",
        "--target-file-size", "8KB", "--json",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    report = orjson.loads(made.stdout)
    assert (report["rows"], report["version"]) == (3000, 0)
    assert report["files"] > 1
    return directory / "t"


def test_scan_shows_and_counts(table: Path) -> None:
    shown = mica("scan", table, "--where", "v:n::int = 17", "--column", "name=v:name::string", "--column", "v")
    assert shown.returncode == 0, shown.stderr
    assert "name-0017" in shown.stdout
    assert mica("scan", table, "--count").stdout.strip() == "3000"
    lines = mica("scan", table, "-w", "v:n::int < 3", "--json").stdout.splitlines()
    assert [orjson.loads(line)["v"]["n"] for line in lines] == [0, 1, 2]


def test_scan_shows_nested_values_as_json(tmp_path: Path) -> None:
    nested = Table.create(tmp_path / "t", "f FLOAT, s STRUCT<f: DOUBLE, d: DECIMAL(5,2)>, l ARRAY<VARIANT>")
    nested.append([{"f": 0.1, "s": {"f": float("inf"), "d": Decimal("1.00")}, "l": ["[" * 600 + "]" * 600]}])
    shown = mica("scan", tmp_path / "t", "-c", "f", "-c", "s", "-c", "l")
    assert shown.stdout.splitlines()[1].startswith('0.1  {"f":"Infinity","d":1.00}  [[[['), shown.stderr


def test_explain_says_what_is_dropped_and_why(table: Path) -> None:
    found = orjson.loads(mica("explain", table, "--where", "v:n::bigint = 17", "--json").stdout)
    files = found["files"]
    assert files["kept"] == 1
    assert files["total"] == files["kept"] + len(files["dropped"])
    assert all(d["path"] and d["bounds"] and "v:n" in d["reason"] for d in files["dropped"])
    said = mica("explain", table, "--where", "v:n::bigint = 17").stdout
    assert re.search(rf"^ *files +1 +{files['total']} ", said, re.MULTILINE), said


def test_stats_shows_decoded_bounds(table: Path) -> None:
    found = orjson.loads(mica("stats", table, "--json").stdout)
    assert sum(f["rows"] for f in found) == 3000
    bounds = {c["column"]: c for c in found[0]["columns"]}
    assert bounds["v:n"]["min"] == 0
    assert bounds["v:name"]["min"] == "name-0000"
    assert "v:odd" not in bounds
    assert "name-0000" in mica("stats", table).stdout


def test_paths_are_those_of_the_files_on_disk(tmp_path: Path) -> None:
    made = Table.create(tmp_path / "t", "k STRING, n INT", partition_by=["k"])
    made.append([{"k": "a b", "n": 1}, {"k": "c", "n": 2}])
    where = ("--where", "k = 'c'")
    (skipped,) = orjson.loads(mica("explain", tmp_path / "t", *where, "--json").stdout)["files"]["dropped"]
    shown = [file["path"] for file in orjson.loads(mica("stats", tmp_path / "t", "--json").stdout)]
    assert all((tmp_path / "t" / path).is_file() for path in [*shown, skipped["path"]])
    assert "k=a b/" in mica("stats", tmp_path / "t").stdout
    assert "k=a b/" in str(made.scan(where="k = 'c'").explain())
    assert "k=a b/" in made.scan(where="n = 2").explain().to_html()


def test_of_one_path_stats_has_a_line_for_each_file(table: Path) -> None:
    head, *lines = mica("stats", table, "--path", "v:name").stdout.splitlines()
    assert head.split() == ["file", "column", "min", "max", "nulls"]
    assert len(lines) == len(Table.open(table).files())
    assert all("v:name" in line for line in lines)


@pytest.mark.parametrize("terminal", [True, False])
def test_names_of_files_are_cut_to_a_terminal_s_width(*, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(width=40 if terminal else 200, force_terminal=terminal, color_system=None, file=io.StringIO())
    monkeypatch.setattr("mica.cli.console.out", lambda: console)
    print_rows("", ["file", "bytes"], [[f"part-{'0' * 40}{end}.zstd.parquet", 12345] for end in "ab"], short="file")
    lines = console.file.getvalue().splitlines()[1:]  # type: ignore[attr-defined]
    assert [line.split()[1] for line in lines] == ["12345", "12345"]
    assert [("…" in line, f"{end} " in line) for end, line in zip("ab", lines, strict=True)] == [
        (terminal, terminal)
    ] * 2


def test_stats_shows_every_digit_of_a_decimal(tmp_path: Path) -> None:
    digits = "12345678901234567890123456789012345.670"
    made = Table.create(tmp_path / "t", "a DECIMAL(38,3), b DECIMAL(5,2), i INT, x DOUBLE")
    made.append([{"a": Decimal(digits), "b": Decimal("1.50"), "i": 7, "x": 0.1}])
    (file,) = json.loads(mica("stats", tmp_path / "t", "--json").stdout, parse_float=str)
    assert [(c["min"], c["nulls"]) for c in file["columns"]] == [(digits, 0), ("1.50", 0), (7, 0), ("0.1", 0)]
    assert digits in mica("stats", tmp_path / "t").stdout


def test_inspect_shows_the_tree_of_a_file(table: Path) -> None:
    file = next(table.glob("*.parquet"))
    rows = {tuple(r["path"]): r for r in orjson.loads(mica("inspect", file, "--json").stdout)}
    assert any("n" in path for path in rows)
    assert "name" in mica("inspect", file).stdout


def test_inspect_shows_rare_rows(tmp_path: Path) -> None:
    rows = [{"a": i} for i in range(5000)]
    rows[7] = {"a": 7, "rare": 1}
    rows[9] = {"a": "odd"}  # type: ignore[dict-item]
    (tmp_path / "in.ndjson").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    assert mica("ingest", tmp_path / "in.ndjson", tmp_path / "t").returncode == 0
    lines = mica("inspect", next((tmp_path / "t").glob("*.parquet"))).stdout.splitlines()
    shown = {line.split()[0]: line.split() for line in lines if len(line.split()) == 6}
    assert [shown["v"][at] for at in (2, 4)] == ["100.0%", "1"], "an object, with a rare field in one row"
    assert [shown["a"][at] for at in (2, 4)] == [">99.9%", "1"]


def test_log_shows_the_commits(table: Path) -> None:
    (row,) = orjson.loads(mica("log", table, "--json").stdout)
    assert row["version"] == 0
    assert row["operation"] == "WRITE"
    assert row["operation_parameters"]["mode"] == "Append"
    assert "WRITE" in mica("log", table).stdout
    made = Table.create(table.parent / "changed", "id INT", data=[{"id": 1}, {"id": 2}])
    made.delete("id = 1")
    shown = mica("log", made.path).stdout
    assert ("numDeletedRows=1" in shown, "=0" in shown) == (True, False), "no metrics that are 0"


def test_log_shows_a_time_of_no_year_of_pythons_as_a_number(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", "id INT", properties={"delta.enableInCommitTimestamps": "true"})
    (commit,) = (tmp_path / "t" / "_delta_log").glob("*.json")
    commit.write_text(re.sub(r'"inCommitTimestamp":\d+', f'"inCommitTimestamp":{10**15}', commit.read_text()))
    assert str(10**15) in mica("log", tmp_path / "t").stdout
    (row,) = orjson.loads(mica("log", tmp_path / "t", "--json").stdout)
    assert row["timestamp"] == 10**15


def test_log_cuts_what_is_long_in_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Table.create(tmp_path / "t", "id INT")
    made.add_columns(", ".join(f"column_{i} STRING" for i in range(40)))
    assert "column_20" in mica("log", tmp_path / "t", "--json").stdout
    assert "…" not in mica("log", tmp_path / "t").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
    shown = started("log", tmp_path / "t").stdout
    assert "column_20" not in shown
    assert "…" in shown


@pytest.mark.slow
def test_demo_does_the_main_job_in_process(tmp_path: Path) -> None:
    done = mica("demo", tmp_path / "d", "--events", "2000", "--no-spark", "--json")
    assert done.returncode == 0, done.stderr
    found = orjson.loads(done.stdout)
    assert found["ingest"]["rows"] == 2000
    assert found["explain"]["files"]["dropped"]
    assert mica("demo", tmp_path / "d", "--events", "10", "--no-spark").returncode == 0


def test_an_error_has_its_status_and_a_traceback_for_debugging_alone(table: Path) -> None:
    """What each mistake says is tried in this process: tests/cli/test_errors.py."""
    done = started("scan", table, "--where", "nope = 1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no column 'nope'" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in started("scan", "nowhere", "--debug").stderr
    assert "path" in mica("scan", "").stderr
    assert mica("scan").returncode == 2


def test_a_reader_of_a_pipe_that_goes_away_is_no_error(table: Path) -> None:
    command = f"{sys.executable} -m mica.cli scan {table} --json | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_what_a_terminal_cannot_show_is_spelled(tmp_path: Path) -> None:
    """It was told as a bug of mica."""
    Table.create(tmp_path / "t", "s STRING").append([{"s": "ä€"}])
    command = [sys.executable, "-m", "mica", "scan", str(tmp_path / "t")]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\xe4\\u20ac" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("json", ["", "--json"])
def test_an_output_that_cannot_be_written_is_no_bug(
    table: Path, json: str, unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    command = f"{sys.executable} -m mica.cli scan {table} {json}"
    done = subprocess.run(["bash", "-c", f"{command} > /dev/full"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error [DISK_FULL]: the output could not be written: No space left on device\n")
    done = subprocess.run(["bash", "-c", f"{command} >&-"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "bug" not in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_takes_a_part_is_an_error(
    table: Path, tmp_path: Path, unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    command = [sys.executable, "-m", "mica.cli", "scan", str(table), "--json"]
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (10, 10))
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, preexec_fn=limit, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error [DISK_FULL]: the output could not be written: File too large\n")


def test_importing_mica_loads_neither_pyspark_nor_parquet() -> None:
    code = "import sys, mica; print(sorted(m for m in sys.modules if m.startswith(('pyspark', 'pyarrow'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    code = "import sys, mica.table, mica.cli.app; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_help_imports_no_command() -> None:
    code = "import sys, mica.cli.app as cli; sys.argv[1:] = ['--help']\ntry: cli.main()\n"
    code += "finally: print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "optimize" in done.stdout
    assert done.stdout.strip().endswith("False")


def test_deep_documents_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep.json").write_text("[" * 900 + "1" + "]" * 900)
    assert mica("ingest", "deep.json", "t").returncode == 0
    shown = mica("scan", "t")
    assert (shown.returncode, "[[[[" in shown.stdout) == (0, True)


def test_convert_takes_a_table_there_and_back(table: Path, tmp_path: Path) -> None:
    early = mica("convert", table, tmp_path / "early", "--layout", "early", "--json")
    assert early.returncode == 0, early.stderr
    report = orjson.loads(early.stdout)
    assert (report["layout"], report["rows"], report["copied"], report["version"]) == ("early", 3000, 0, None)
    assert report["rebuilt"] == 0
    [file, *_] = sorted((tmp_path / "early").glob("*.parquet"))
    shown = mica("inspect", file)
    assert shown.returncode == 0, shown.stderr
    assert "tags" in shown.stdout
    assert mica("check", file).returncode == 0
    back = mica("convert", tmp_path / "early", tmp_path / "back")
    assert back.returncode == 0, back.stderr
    assert "3,000 rows" in back.stdout
    rows = [
        mica("scan", place, "-w", "v:n::int < 3", "--json").stdout.splitlines() for place in (table, tmp_path / "back")
    ]
    assert sorted(orjson.loads(line)["v"]["n"] for line in rows[1]) == [0, 1, 2]
    assert len(rows[0]) == len(rows[1])
    again = mica("convert", tmp_path / "early", tmp_path / "back")
    assert again.returncode == 1
    assert "TABLE_EXISTS" in again.stderr


def test_check_erased_lists_what_holds_a_path(tmp_path: Path) -> None:
    import mica as package

    table = package.Table.create(str(tmp_path / "t"), "v VARIANT")
    table.append([{"v": '{"user":{"email":"e@x","k":1}}'}])
    asked = ("check", tmp_path / "t", "--erased")
    found = mica(*asked, "v:user.email", "--json")
    assert (found.returncode, orjson.loads(found.stdout)["erased"]) == (1, False), found.stderr
    table.erase("v:user.email")
    found = mica(*asked, "v:user.email", "--json")
    told = orjson.loads(found.stdout)
    assert (found.returncode, told["erased"], told["gone"]) == (1, True, False)
    assert {trace["goes_with"] for trace in told["traces"]} == {"vacuum", "log cleanup"}
    assert "vacuum" in mica(*asked, "v:user.email").stdout
    found = mica(*asked, "v:other")
    assert (found.returncode, "nothing holds v:other" in found.stdout) == (0, True)


@pytest.mark.parametrize("command", ["explain", "inspect", "drift"])
def test_a_page_beside_json(table: Path, tmp_path: Path, command: str) -> None:
    """A page in a file leaves standard output to JSON; both there are refused, as is a page that a query has not."""
    place = next(table.glob("*.parquet")) if command == "inspect" else table
    both = mica(command, place, "--html", tmp_path / "page.html", "--json")
    assert orjson.loads(both.stdout) == orjson.loads(mica(command, place, "--json").stdout)
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert mica(command, place, "--html", "-").stdout.startswith("<!doctype html>")
    refused = mica(command, place, "--html", "-", "--json")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert mica("explain", "--sql", "SELECT 1", "--html", "-").returncode == 2


def test_no_part_of_a_page_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(page: Path, text: str, **_: object) -> int:
        page.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(typer.BadParameter, match="No space left"):
        write_page(str(tmp_path / "page.html"), "text", json=False)
    (there := tmp_path / "there.html").touch()
    with pytest.raises(typer.BadParameter):
        write_page(str(there), "text", json=False)
    assert [file.name for file in tmp_path.iterdir()] == ["there.html"]


def test_a_warning_is_one_line(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "v VARIANT")
    table.append([{"v": {"usual": 1}}])
    done = mica("optimize", table.path, "-z", "v:usuel")
    path = "the nearest path with bounds is v:usual"
    assert done.stderr == f"warning: zorder_by names v:usuel, a path that no row of {table.path} has; {path}\n"
    assert (done.returncode, "version 2" in done.stdout) == (0, True)


def test_a_reader_that_has_stopped_is_no_error(tmp_path: Path) -> None:
    """Its exit status was 1, which scripts take for a failure (`set -o pipefail`)."""
    table = Table.create(tmp_path, "id BIGINT, s STRING")
    table.append(pa.table({"id": pa.array(range(20_000)), "s": ["x" * 100] * 20_000}))
    command = [sys.executable, "-m", "mica.cli", "scan", str(tmp_path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None  # noqa: PT018 - for the type checker
        assert process.stdout.readline().startswith('{"id":0')
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (0, "")


def test_the_package_is_a_command_too() -> None:
    line = [sys.executable, "-m", "mica", "--version"]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout.startswith("mica ")
