"""What a person gets for a mistake: the exit status, a code, what is wrong, the way out, in few lines of 80 columns.

Each command once at least, in this process: no command starts a JVM for a mistake that it can see before.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.main

import mica
from mica.cli.app import app, main
from mica.errors.codes import CODES

#: The arguments, the code (None: wrong usage), and what the text says. Words in capitals are paths: see `places`.
MISTAKES: list[tuple[str, str | None, str]] = [
    ("scan NOWHERE", "TABLE_NOT_FOUND", "is not a Delta table"),
    ("scan BARE", "TABLE_NOT_FOUND", "mica scan 'FOLDER/**/*.parquet' reads the rows and mica convert-to-delta FOLDER"),
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
    ("ingest PLAIN OUT", "UNSUPPORTED_INPUT", "Make a table of it: mica convert"),
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
    ("alter TABLE --rename v=", None, "'v' gets no name."),
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
    ("fsck NOWHERE", "TABLE_NOT_FOUND", "is not a Delta table"),
    ("restore TABLE --version 99", "VERSION_NOT_FOUND", "99"),
    ("changes TABLE --from-version x", None, "--from-version"),
    ("changes TABLE --from-version 0", "CHANGES_NOT_RECORDED", "delta.enableChangeDataFeed"),
    ("sql SELECT --table t", None, "NAME=VALUE"),
    ("demo OUT --events 0", None, "--events"),
    ("doctor NOWHERE --json=x", None, "--json"),
    # What rows say.
    ("scan TABLE --where 9223372036854775807+v:n::bigint>0", "ARITHMETIC_OVERFLOW", "Cast to a wider type."),
    ("scan TABLE --where 1/v:n::int=1", "DIVIDE_BY_ZERO", "Filter those rows out first."),
    ("scan TABLE --where \"'x'::int=1\"", "INVALID_CAST", "try_cast"),
    ("scan TABLE --where array(v:n::int)[5]=1", "INVALID_ARRAY_INDEX", "Compare with size(…) first"),
    ("scan TABLE --where \"variant_set(v,'$.n.x',1)::int=1\"", "PATH_MISMATCH", "Use try_variant_set"),
    ("scan TABLE --where explode(v)=1", "UNSUPPORTED_EXPRESSION", "let Spark filter the rows"),
    ("scan RICH --where s=t", "COLLATION_MISMATCH", "Choose one, as in s COLLATE UNICODE_CI = t."),
    ("scan RICH --where \"t='b'\"", "NEEDS_SPARK", "s COLLATE UTF8_BINARY = 'x'"),
    ('alter RICH --type "t=ARRAY<STRING COLLATE UNICODE>"', "INVALID_DDL", "--collation sets the collation"),
    ("alter RICH --collation b=nope", "UNKNOWN_COLLATION", "collations() lists all of them"),
    ("alter RICH --add-constraint e=id>1", "CONSTRAINT_VIOLATED", "Correct or delete such rows first"),
    ("ingest UTF OUT", "INVALID_UTF8", "--invalid-utf8 replace"),
    ("ingest DUP OUT", "DUPLICATE_KEY", "--last-key-wins"),
    ("ingest DEEP OUT", "TOO_DEEP", "Store the deeper levels as text."),
    ("ingest JSON OUT --max-size 4", "TOO_LARGE", "Raise --max-size"),
    ("ingest JSON RICH --add id=v:x::bigint", "NULL_IN_NOT_NULL_COLUMN", "NOT NULL"),
    # What tables say.
    ("alter RICH --drop-column id", "COLUMN_IN_USE", "Drop what uses it first."),
    ("alter RICH --add-constraint c=id>1", "CONSTRAINT_EXISTS", "Give another name"),
    ('alter RICH --add-columns "B INT"', "DUPLICATE_COLUMN", "Rename one of them."),
    ('alter RICH --add-columns "z VOID"', "UNSUPPORTED_TYPE", "Give it a type"),
    ("alter RICH --type b=INT", "INCOMPATIBLE_TYPE", "Types only become wider"),
    ("alter RICH --type d=TIMESTAMP_NTZ", "FEATURE_NEEDED", "mica alter TABLE --set delta.enableTypeWidening=true"),
    ("alter RICH --drop-feature warp", "UNKNOWN_FEATURE", "It has: "),
    ("alter RICH --drop-feature checkConstraints", "FEATURE_NOT_REMOVABLE", "--drop-constraint"),
    (
        "alter RICH --drop-feature deletionVectors --truncate-history",
        "FEATURE_IN_HISTORY",
        "without --truncate-history",
    ),
    ("alter TABLE --rename v=w", "NEEDS_COLUMN_MAPPING", "mica alter TABLE --set delta.columnMapping.mode=name"),
    ('alter TABLE --add-columns "n INT NOT NULL"', "MISSING_COLUMN", "--default sets a default"),
    (
        "alter TABLE --set delta.universalFormat.enabledFormats=iceberg",
        "UNSUPPORTED_WRITER_FEATURE",
        "Leave the property out.",
    ),
    ("alter TABLE --set delta.minReaderVersion=9", "INVALID_PROPERTY", "Give 1, 2 or 3."),
    ("erase ONLY v:n", "APPEND_ONLY", "set delta.appendOnly to false first"),
    ("ingest JSON TABLE --add z=v:n::int", "UNKNOWN_COLUMN", "give --schema-evolution"),
    ("ingest JSON RICH --add id=v:n::bigint --add k=v:n::bigint", "IDENTITY_GIVEN", "Leave the column out."),
    ("ingest JSON OUT --add n=v --partition-by n", "INVALID_PARTITION_COLUMN", "Partition by a column of a plain type"),
    ("scan TABLE --timestamp 2099-01-01", "TIMESTAMP_OUT_OF_RANGE", "Give a time within the history."),
    ("convert TABLE TABLE", "TABLE_EXISTS", "Name another place"),
    # Where files are.
    ("ingest FIFO OUT", "NOT_A_FILE", "mica ingest - TABLE"),
    ("ingest CHANGED TAKEN --idempotent", "INPUT_CHANGED", "leave --idempotent out"),
    ("scan FILE PLAIN", "INCOMPATIBLE_FILES", "Read the files separately."),
    ("scan TABLE/*.parquet", "DELTA_TABLE", "Name the table itself"),
    ("repair FILE PLAIN", "FILE_EXISTS", "Name a file that does not."),
    ("scan hdfs://x/t", "UNSUPPORTED_SCHEME", "Supported are plain paths and abfs"),
    ("scan s3://b/t --storage-option regoin=x", "UNKNOWN_STORAGE_OPTION", "Is region meant?"),
    # Logs of others, or damaged ones (`LOGS`).
    ("scan NEWER", "UNSUPPORTED_READER_VERSION", "Use a newer version of mica"),
    ("scan WARP", "UNSUPPORTED_READER_FEATURE", "Use a newer version of mica"),
    ("ingest JSON NEWERWRITER", "UNSUPPORTED_WRITER_VERSION", "Use a newer version of mica"),
    ("scan SCHEMA", "INVALID_SCHEMA_JSON", "Restore the table's metadata"),
    ("scan ELSEWHERE", "EXTERNAL_PATH", "--storage-option allow_external_paths=true"),
    ("scan VECTOR", "CORRUPT_DELETION_VECTOR", "Restore the file."),
    ("ingest JSON DOMAIN", "INVALID_DOMAIN", "Restore the log."),
    ("alter UNCOUNTED --set delta.enableRowTracking=true", "MISSING_STATISTICS", "repair its statistics"),
    ("scan PARTITION", "INVALID_PARTITION_VALUE", "restore the log"),
    ("scan GARBAGE", "CORRUPT_LOG", "Restore the file"),
    ("scan GAP", "LOG_GAP", "Restore the missing file"),
    ("scan EXPIRED --version 0", "VERSION_EXPIRED", "The oldest version that can be read is 2."),
]

#: Codes that no short command reaches, and why.
ELSEWHERE: dict[str, str] = {
    "Spark raises it in a job, a stream or a merge, or it is about the session (tests/spark, test_sql.py).": (
        "AMBIGUOUS_COLUMN AMBIGUOUS_MERGE CHANGES_IN_STREAM NO_JAVA SPARK_JOB_FAILED SPARK_NOT_STARTED STREAM_CHANGED "
        "UNSUPPORTED_BY_SPARK VERSION_MISMATCH WORKER_LOST WORKER_WITHOUT_MICA"
    ),
    "A table must have been changed in a certain way first.": "CHANGES_UNREADABLE",
    "Another writer or process must be at work, or a store fail in the middle.": (
        "COMMIT_NOT_READ COMMIT_UNKNOWN CONCURRENT_APPEND CONCURRENT_DELETE CONCURRENT_DOMAIN CONCURRENT_TRANSACTION "
        "FORKED LISTING_BEHIND METADATA_CHANGED PROTOCOL_CHANGED TABLE_REPLACED TOO_MANY_CONFLICTS"
    ),
    "The machine or the store must be full, without rights or without a library.": (
        "DISK_FULL IO NOT_INSTALLED NOT_SUPPORTED PERMISSION_DENIED TOO_MANY_FILES INVALID_NAME"
    ),
    "Only a call from Python can ask for it.": (
        "DELETED_ROWS DOES_NOT_FIT INVALID_TYPE INVALID_VALUE NOT_IN_FILES NO_COLUMNS NO_INPUT OTHER_NAME "
        "ROWS_OUTSIDE_OVERWRITE UNKNOWN_TIME_ZONE"
    ),
    "Bytes must be damaged in one place, as tests of that place do.": (
        "CORRUPT_CHECKPOINT FILE_TOO_SHORT INVALID_COLLATION MALFORMED_SHREDDING MALFORMED_VARIANT MISSING_FIELD_ID "
        "RECORD_MISSING UNSUPPORTED_TYPE_CHANGE"
    ),
    "It is a bug of mica's.": "INTERNAL REPAIR_FAILED",
}


def _protocol(reader: int, writer: int, *features: str) -> dict[str, Any]:
    found: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if reader == 3:
        found["readerFeatures"] = [one for one in features if one not in ("domainMetadata", "rowTracking")]
    if writer == 7:
        found["writerFeatures"] = list(features)
    return {"protocol": found}


VARIANTS = ("variantType", "variantShredding")
VECTOR = {"storageType": "x", "pathOrInlineDv": "xx", "sizeInBytes": 1, "cardinality": 1}

#: What is changed in the log of a table of one version; a key that is not there is a new line.
LOGS: dict[str, dict[str, Any]] = {
    "NEWER": _protocol(9, 99),
    "NEWERWRITER": _protocol(1, 99),
    "WARP": _protocol(3, 7, "warp"),
    "SCHEMA": {"metaData": {"schemaString": "{"}},
    "ELSEWHERE": {"add": {"path": "s3://bucket/x.parquet"}},
    "VECTOR": {"add": {"deletionVector": VECTOR}},
    "UNCOUNTED": {"add": {"stats": None}},
    "PARTITION": {
        "metaData": {
            "schemaString": '{"type":"struct","fields":[{"name":"p","type":"integer","nullable":true,"metadata":{}}]}',
            "partitionColumns": ["p"],
        },
        "add": {"partitionValues": {"p": "x"}},
    },
    "DOMAIN": _protocol(3, 7, *VARIANTS, "domainMetadata", "rowTracking")
    | {"domainMetadata": {"domain": "delta.rowTracking", "configuration": "nope", "removed": False}},
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "events.json").write_bytes(b"".join(orjson.dumps({"n": i}) + b"\n" for i in range(5)))
    (folder / "bad.json").write_text('{"n": 1}\n{"n": \n')
    (folder / "utf.json").write_bytes(b'{"n": "\xff"}\n')
    (folder / "dup.json").write_text('{"n": 1, "n": 2}\n')
    (folder / "deep.json").write_text("[" * 2000 + "]" * 2000)
    mica.ingest_json(folder / "events.json", folder / "table")
    os.mkfifo(folder / "fifo")
    pq.write_table(pa.table({"v": ["x"]}), folder / "plain.parquet")
    (folder / "changed.json").write_text("1\n")
    mica.ingest_json(folder / "changed.json", folder / "taken", idempotent=True)
    (folder / "changed.json").write_text("1\n2\n")
    mica.Table.create(folder / "only", "v VARIANT", properties={"delta.appendOnly": "true"}).append([{"v": {"n": 1}}])
    columns = (
        "id BIGINT NOT NULL, s STRING COLLATE UTF8_LCASE, t STRING COLLATE UNICODE_CI, b STRING, d DATE, v VARIANT"
    )
    rich = mica.Table.create(
        folder / "rich", f"{columns}, k BIGINT GENERATED ALWAYS AS IDENTITY",
        properties={"delta.enableDeletionVectors": "true"},
    )  # fmt: skip
    rich.append([{"id": 1, "s": "a", "t": "b"}])
    rich.add_constraint("c", "id > 0")
    for name, changes in LOGS.items():
        _edited(shutil.copytree(folder / "table", folder / name), changes)
    shutil.copytree(folder / "table", folder / "GARBAGE")
    _commit(folder / "GARBAGE", 0).write_text("{nope\n")
    for name, interval, lost in (("GAP", "10", 1), ("EXPIRED", "2", 0)):
        made = mica.Table.create(folder / name, "n INT", properties={"delta.checkpointInterval": interval})
        for _ in range(3):
            made.append([{"n": 1}])
        _commit(folder / name, lost).unlink()
    file = next((folder / "table").glob("*.parquet"))
    named = {"BARE": ".", "JSON": "events.json", "PLAIN": "plain.parquet"}
    named |= {name.upper(): f"{name}.json" for name in ("bad", "utf", "dup", "deep", "changed")}
    named |= {name.upper(): name for name in ("table", "fifo", "taken", "only", "rich", "out")}
    named |= {name: name for name in ("NOWHERE", "GARBAGE", "GAP", "EXPIRED", *LOGS)}
    return {"FILE": str(file), **{word: str(folder / name) for word, name in named.items()}}


def _commit(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020}.json"


def _edited(table: Path, changes: dict[str, Any]) -> None:
    path = _commit(table, 0)
    actions = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for kind, change in changes.items():
        found = [action for action in actions if kind in action]
        for action in found:
            action[kind] = change if kind == "protocol" else action[kind] | change
        actions += [] if found else [{kind: change}]
    path.write_bytes(b"".join(orjson.dumps(action) + b"\n" for action in actions))


@pytest.mark.parametrize(("line", "code", "says"), MISTAKES, ids=[line for line, _, _ in MISTAKES])
def test_a_mistake_has_its_status_its_code_and_a_way_out(
    places: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    line: str, code: str | None, says: str,
) -> None:  # fmt: skip
    arguments = [
        re.sub(r"\b[A-Z]{3,}\b", lambda found: places.get(found[0], found[0]), one) for one in shlex.split(line)
    ]
    monkeypatch.setattr(sys, "argv", ["mica", *arguments])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capfd.readouterr()
    text = shown.err
    assert ended.value.code == (2 if code is None else CODES[code].kinds[0].exit_status), text
    assert shown.out == ""
    assert says in " ".join(text.replace(places["TABLE"], "TABLE").split())
    assert "Traceback" not in text
    assert "\x1b" not in text
    if code is None:
        assert max(map(len, text.splitlines())) <= 80 + max(map(len, arguments))
    else:
        assert text.startswith(f"error [{code}]: ")
        assert 2 <= len(text.splitlines()) <= 3, "what is wrong, and the way out"
        assert "…" not in text.replace("(…)", "")
    assert not Path(places["OUT"], "_delta_log").exists()


def test_every_code_is_tried_or_says_why_not() -> None:
    tried = {code for _, code, _ in MISTAKES if code is not None}
    others = [code for codes in ELSEWHERE.values() for code in codes.split()]
    assert len(others) == len(set(others))
    assert sorted(tried | set(others)) == sorted(CODES)
    assert not tried & set(others)


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


@pytest.mark.parametrize("command", ["ingest - OUT", "stream LANDING OUT --interval 0.1"])
def test_ctrl_c_says_that_nothing_is_half_done(tmp_path: Path, command: str) -> None:
    (tmp_path / "landing").mkdir()
    words = command.replace("LANDING", str(tmp_path / "landing")).replace("OUT", str(tmp_path / "out")).split()
    code = f"import mica.cli.app as app, sys; sys.argv = {['mica', *words]!r}; print('begun', flush=True); app.main()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads yet
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(1.5)  # until typer has the command
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told.splitlines()[-1]) == (130, "stopped: nothing unfinished is in a table")
    assert not mica.Table.exists(tmp_path / "out")


@pytest.mark.parametrize("module", ["typer", "mica.cli.console", "mica.errors"])
def test_ctrl_c_while_a_command_is_imported_is_no_traceback(module: str) -> None:
    code = f"""
import builtins, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
real = builtins.__import__
def interrupted(name, *args, **named):
    if name == {module!r}:
        signal.raise_signal(signal.SIGINT)
    return real(name, *args, **named)
builtins.__import__ = interrupted
sys.argv = ["mica", "--version"]
runpy.run_module("mica.cli", run_name="__main__", alter_sys=True)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (130, "\nstopped: nothing unfinished is in a table\n")
