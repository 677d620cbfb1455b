"""What a person gets for a mistake: the exit status, a code, what is wrong, the way out, in few lines of 80 columns.

Each command once at least, in this process: no command starts a JVM for a mistake that it can see before.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import orjson
import pytest
import typer.main

import mica
from mica.cli.app import app, main
from mica.errors.codes import CODES

#: The arguments, the code (None: wrong usage), and what the text says. TABLE, FILE, JSON and OUT are paths.
MISTAKES: list[tuple[str, str | None, str]] = [
    ("scan NOWHERE", "TABLE_NOT_FOUND", "is not a Delta table"),
    ("scan JSON", "NOT_A_DIRECTORY", "mica ingest"),
    ("scan TABLE --where nope=1", "UNKNOWN_COLUMN", "There are: v."),
    ("scan TABLE --where v:n::bigin=1", "INVALID_EXPRESSION", "Is BIGINT meant?"),
    ("scan TABLE --where v:n", "NOT_A_PREDICATE", "Cast the path to a type"),
    ("scan TABLE --where v:n=1", "TYPE_MISMATCH", "Cast the path to a type"),
    ("scan TABLE --column a=b=", "INVALID_EXPRESSION", "b="),
    ("scan TABLE --version 99", "VERSION_NOT_FOUND", "99"),
    ("scan TABLE --timestamp yesterday", "INVALID_ARGUMENT", "yesterday"),
    ("scan TABLE --limit -3", None, "--limit"),
    ("scan TABLE --wher x", None, "--where"),
    ("scan", None, "Missing argument"),
    ("skan TABLE", None, "scan"),
    ("ingest NOWHERE OUT", "NOT_FOUND", "Check the path."),
    ("ingest FILE OUT", "UNSUPPORTED_INPUT", "is a Parquet file"),
    ("ingest BAD OUT", "INVALID_JSON", "--on-error quarantine"),
    ("ingest JSON TABLE --mode error", "TABLE_EXISTS", "--mode append"),
    ("ingest JSON OUT --mode wild", None, "--mode"),
    ("ingest JSON OUT --add x", None, "NAME=VALUE"),
    ("ingest JSON OUT --add x=v:n::intt", "INVALID_EXPRESSION", "Is INT meant?"),
    ("ingest JSON OUT --partition-by day", "UNKNOWN_COLUMN", "There are: v."),
    ("ingest JSON OUT --sort-by v:n", "TYPE_MISMATCH", "Cast the path"),
    ("ingest JSON OUT --shredding a:skipp", "INVALID_SHREDDING_SCHEMA", "Is skip meant?"),
    ("ingest JSON OUT --shredding map<int,int>", "INVALID_SHREDDING_SCHEMA", "VARIANT"),
    ("ingest JSON OUT --target-file-size big", "INVALID_ARGUMENT", "128MB"),
    ("ingest JSON OUT --max-size 1GB", "INVALID_ARGUMENT", "--max-size"),
    ("ingest JSON OUT --property delta.appendOnly=maybe", "INVALID_PROPERTY", "true or false"),
    ("ingest JSON OUT --property mica.shreding=a", "UNKNOWN_TABLE_PROPERTY", "Is mica.shredding meant?"),
    ("ingest JSON OUT --storage-option key", None, "NAME=VALUE"),
    ("stream JSON OUT --interval 0", "INVALID_ARGUMENT", "--interval"),
    ("explain TABLE --where v:n::int=", "INVALID_EXPRESSION", "v:n::int="),
    ("explain NOWHERE", "TABLE_NOT_FOUND", "Check the path."),
    ("files FILE", "NOT_A_DIRECTORY", "Name the folder of its table"),
    ("stats NOWHERE", "TABLE_NOT_FOUND", "is not a Delta table"),
    ("drift TABLE --since 7", "INVALID_ARGUMENT", "Name another version with --since."),
    ("drift TABLE --fail-on wind", None, "'wind' is none of"),
    ("suggest NOWHERE", "TABLE_NOT_FOUND", "is not a Delta table"),
    ("restats NOWHERE", "TABLE_NOT_FOUND", "is not a Delta table"),
    ("inspect JSON", "CORRUPT_FILE", "is not a Parquet file"),
    ("inspect TABLE", "IS_A_DIRECTORY", "Name one of them"),
    ("log NOWHERE", "TABLE_NOT_FOUND", "is not a Delta table"),
    ("check NOWHERE", "NOT_FOUND", "NOWHERE"),
    ("repair NOWHERE", "INVALID_ARGUMENT", "Name the file to write."),
    ("convert NOWHERE OUT --layout early --to delta", "INVALID_ARGUMENT", "--to must be"),
    ("convert-to-delta TABLE", "TABLE_EXISTS", "TABLE"),
    ("alter TABLE --type v=intt", "INVALID_DDL", "Is INT meant?"),
    ("alter TABLE --rename v", None, "NAME=VALUE"),
    ("alter TABLE --drop-constraint c", "UNKNOWN_CONSTRAINT", "Its constraints: none."),
    ("alter TABLE --add-feature deletionVector", "UNKNOWN_TABLE_PROPERTY", "deletionVectors"),
    ("alter TABLE --drop-column w", "UNKNOWN_COLUMN", "There are: v."),
    ("erase TABLE n", "INVALID_PATH", "v:user.email"),
    ("optimize TABLE --where v:n::int=1", "NOT_A_PARTITION_PREDICATE", "Partition columns are: none."),
    ("optimize TABLE --zorder v:n", None, "--zorder-by"),
    ("optimize TABLE --conf x", None, "NAME=VALUE"),
    ("reshred TABLE --schema w=int", "UNKNOWN_COLUMN", "There are: v."),
    ("reshred TABLE --schema a:banana", "INVALID_SHREDDING_SCHEMA", "Write infer, skip, later, max N or a type."),
    ("reshred TABLE --schema int --unshred", "INVALID_ARGUMENT", "Give one of them."),
    ("vacuum TABLE --retention 3", "RETENTION_TOO_SHORT", "--no-enforce-retention"),
    ("vacuum TABLE --retention soon", "INVALID_ARGUMENT", "--retention must be a number of hours, or a text"),
    ("restore TABLE --version 99", "VERSION_NOT_FOUND", "99"),
    ("changes TABLE --from-version x", None, "--from-version"),
    ("changes TABLE --from-version 0", "CHANGES_NOT_RECORDED", "delta.enableChangeDataFeed"),
    ("sql SELECT --table t", None, "NAME=VALUE"),
    ("demo OUT --events 0", None, "--events"),
    ("doctor NOWHERE --json=x", None, "--json"),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "events.json").write_bytes(b"".join(orjson.dumps({"n": i}) + b"\n" for i in range(5)))
    (folder / "bad.json").write_text('{"n": 1}\n{"n": \n')
    mica.ingest_json(folder / "events.json", folder / "table")
    file = next((folder / "table").glob("*.parquet"))
    return {
        "TABLE": str(folder / "table"), "FILE": str(file), "JSON": str(folder / "events.json"),
        "BAD": str(folder / "bad.json"), "OUT": str(folder / "out"), "NOWHERE": str(folder / "NOWHERE"),
    }  # fmt: skip


@pytest.mark.parametrize(("line", "code", "says"), MISTAKES, ids=[line for line, _, _ in MISTAKES])
def test_a_mistake_has_its_status_its_code_and_a_way_out(
    places: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    line: str, code: str | None, says: str,
) -> None:  # fmt: skip
    arguments = [re.sub(r"\b[A-Z]{3,}\b", lambda found: places.get(found[0], found[0]), one) for one in line.split()]
    monkeypatch.setattr(sys, "argv", ["mica", *arguments])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capfd.readouterr()
    text = shown.err
    assert ended.value.code == (2 if code is None else CODES[code].kinds[0].exit_status), text
    assert shown.out == ""
    assert says.replace("TABLE", places["TABLE"]) in " ".join(text.split())
    assert "Traceback" not in text
    assert "\x1b" not in text
    if code is None:
        assert max(map(len, text.splitlines())) <= 80 + max(map(len, arguments))
    else:
        assert text.startswith(f"error [{code}]: ")
        assert len(text.splitlines()) <= 3
        assert "…" not in text.replace("mica ingest …", "")
    assert not Path(places["OUT"], "_delta_log").exists()


def test_every_command_has_a_mistake_and_a_help_of_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(commands) == {line.split()[0] for line, _, _ in MISTAKES} - {"skan"}
    monkeypatch.setenv("COLUMNS", "80")
    for name, command in commands.items():
        assert all(getattr(one, "help", None) for one in command.params if one.name != "help"), name
        monkeypatch.setattr(sys, "argv", ["mica", name, "--help"])
        with pytest.raises(SystemExit):
            main()
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80, name
