"""`mica sql` and `mica explain --sql`, on the session of the tests."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest
from typer.testing import CliRunner

import mica
from mica.cli import explain as explain_command
from mica.cli import sql as sql_command
from mica.cli.app import app
from mica.cli.json_keys import KEYS
from mica.cli.kept_back import kept_back, reason
from mica.engines.spark import session
from tests.cli.test_json_keys import fits, keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

runner = CliRunner()


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """`events=PATH`, of two rows."""
    made = mica.Table.create(tmp_path / "events", "id BIGINT, v VARIANT")
    made.append([{"id": 1, "v": {"k": "a"}}, {"id": 2, "v": None}])
    for command in (sql_command, explain_command):
        monkeypatch.setattr(command, "spark_session", lambda: spark)
    return f"events={made.path}"


@pytest.mark.slow
def test_rows_as_a_table_and_as_json(table: str) -> None:
    shown = runner.invoke(app, ["sql", "SELECT id, v FROM events ORDER BY id", "--table", table])
    assert [line.split() for line in shown.stdout.splitlines()] == [["id", "v"], ["1", '{"k":"a"}'], ["2"]]
    lines = runner.invoke(app, ["sql", "SELECT id, v:k::string AS k FROM events ORDER BY id", "-t", table, "--json"])
    assert [orjson.loads(line) for line in lines.stdout.splitlines()] == [{"id": 1, "k": "a"}, {"id": 2, "k": None}]


@pytest.mark.usefixtures("table")
def test_values_that_python_lacks_and_names_that_come_twice() -> None:
    query = "SELECT DATE'12345-01-01' AS a, INTERVAL 1 MONTH AS A, named_struct('v', parse_json('[1]'), 'd', 1.50) AS a"
    shown = runner.invoke(app, ["sql", query])
    assert [line.split("  ") for line in shown.stdout.splitlines()][1] == [
        "+12345-01-01", "INTERVAL '1' MONTH", '{"v":[1],"d":1.50}',
    ]  # fmt: skip
    assert runner.invoke(app, ["sql", "SELECT 1 a, 2 a, 3 A", "--json"]).stdout == '{"a":1,"a":2,"A":3}\n'
    made = runner.invoke(app, ["sql", "CREATE OR REPLACE TEMPORARY VIEW nothing_to_show AS SELECT 1"])
    assert (made.exit_code, made.stdout.strip()) == (0, "")


def test_a_statement_prints_its_counts(table: str) -> None:
    done = runner.invoke(app, ["sql", "DELETE FROM events WHERE v:k::string = 'a'", "-t", table, "--json"])
    assert orjson.loads(done.stdout) == {"num_affected_rows": 1}


def test_explain(table: str) -> None:
    text = "SELECT id FROM events WHERE v:k::string = 'a'"
    found = orjson.loads(runner.invoke(app, ["explain", "--sql", text, "-t", table, "--json"]).stdout)
    assert all(any(fits(key, one) for one in KEYS["explain"]) for key in keys(found)), "name it in mica.cli.json_keys"
    assert found["tables"][0]["evaluated"][-1] == "(variant_get(v, '$.k', 'STRING') = 'a')"
    assert "evaluated by the scan" in runner.invoke(app, ["explain", "--sql", text, "-t", table]).stdout


def test_the_command_says_where_the_session_runs_and_its_settings(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(session, "session", lambda *master, **conf: (asked.append((master, conf)), spark)[1])
    line = ["sql", "SELECT 1 AS one", "--master", "local[2]", "--conf", "spark.a=b=c", "--conf", "spark.d=e", "--json"]
    assert orjson.loads(runner.invoke(app, line).stdout) == {"one": 1}
    assert asked == [(("local[2]",), {"spark.a": "b=c", "spark.d": "e"})]


def test_what_a_jvm_writes_while_it_starts_is_kept_back_and_what_it_writes_later_passes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with kept_back() as lines:
        jvm = subprocess.Popen(
            ["sh", "-c", "echo '1 2 WARN X: early' >&2; read go; echo late >&2"], stdin=subprocess.PIPE
        )
        while not lines():
            time.sleep(0.01)
    assert reason(lines()) == "early"
    jvm.communicate(b"\n")
    said = ""
    while "late" not in said:
        said += capfd.readouterr().err
    assert said == "late\n"


def test_a_worker_whose_rows_nobody_reads_further_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    """Under a limit Spark closes the worker's socket, and its daemon showed a stack."""
    stack = 'Traceback (most recent call last):\n  File "pyspark/daemon.py", line 262, in manager\n'
    other = f"{stack}ValueError: x\n"
    with kept_back() as lines:
        jvm = subprocess.Popen(["sh", "-c", "echo early >&2; read go; cat >&2"], stdin=subprocess.PIPE)
        while not lines():
            time.sleep(0.01)
    jvm.communicate(f"\n{stack}BrokenPipeError: [Errno 32] Broken pipe\n{other}late\n".encode())
    said = ""
    while "late" not in said:
        said += capfd.readouterr().err
    assert said == f"{other}late\n"


def test_a_spark_that_does_not_start_says_why_in_two_lines() -> None:
    line = [sys.executable, "-m", "mica.cli", "sql", "SELECT 1", "--conf", "spark.driver.memory=much"]
    failed = subprocess.run(line, capture_output=True, text=True, check=False)
    assert failed.stderr.splitlines() == [
        "error [SPARK_NOT_STARTED]: Spark could not be started: Invalid maximum heap size: -Xmxmuch",
        "Look at --master and --conf; --debug shows Spark's log.",
    ]
    assert (failed.returncode, failed.stdout) == (1, "")


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_a_value_that_a_worker_refuses_is_named_as_in_process(table: str, how: list[str]) -> None:
    failed = runner.invoke(app, ["sql", "SELECT v:k::int FROM events", "-t", table, *how])
    assert isinstance(failed.exception, mica.UserError)
    assert (failed.exception.code, failed.exception.hint) == (
        "INVALID_CAST",
        "Use try_variant_get or try_cast to get NULL where a value has another type.",
    )
    assert failed.exception.message.endswith('v:k cannot be cast to INT: the value is "a"')


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("cast(concat(id, 'x') AS INT)", "INVALID_CAST"), ("cast(id + 300 AS TINYINT)", "INVALID_CAST"),
        ("cast(parse_json('{}') AS INT)", "INVALID_CAST"), ("to_date(concat(id, 'x'), 'yyyy')", "INVALID_CAST"),
        ("id + 9223372036854775807", "ARITHMETIC_OVERFLOW"), ("id % 0", "DIVIDE_BY_ZERO"),
        ("array(id)[id]", "INVALID_ARRAY_INDEX"), ("element_at(array(id), 5)", "INVALID_ARRAY_INDEX"),
        ("abs(id) = array(1)", "TYPE_MISMATCH"), ("nope", "UNKNOWN_COLUMN"), ("nope(id)", "INVALID_EXPRESSION"),
    ],
)  # fmt: skip
def test_what_spark_refuses_has_the_code_that_a_scan_gives(table: str, text: str, code: str) -> None:
    failed = runner.invoke(app, ["sql", f"SELECT {text} AS x FROM events", "-t", table])
    assert isinstance(failed.exception, mica.UserError)
    assert failed.exception.code == code


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_what_spark_itself_refuses_while_it_runs_is_one_sentence(table: str, how: list[str]) -> None:
    failed = runner.invoke(app, ["sql", "SELECT id / (id - id) AS x FROM events", "-t", table, *how])
    assert isinstance(failed.exception, mica.UserError)
    assert failed.exception.message.startswith("[DIVIDE_BY_ZERO] Division by zero.")
    assert "\n" not in failed.exception.message


def test_a_wrong_text_is_the_users(table: str) -> None:
    failed = runner.invoke(app, ["sql", "SELECT nope FROM events", "-t", table])
    assert isinstance(failed.exception, mica.UserError)
    assert failed.exception.message.startswith("[UNRESOLVED_COLUMN")
    missing = runner.invoke(app, ["sql", "SELECT * FROM nope", "-t", table])
    assert isinstance(missing.exception, mica.UserError)
    assert missing.exception.hint == "Write delta.`PATH`, or give the name a path: --table NAME=PATH."
    assert runner.invoke(app, ["explain"]).exit_code == 2
    assert runner.invoke(app, ["explain", "t", "--sql", "SELECT 1"]).exit_code == 2
