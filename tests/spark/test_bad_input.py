"""Bad input and bad luck: a clear error or the right empty answer, and the table as it was (issue 3, section 6)."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pytest

import mica
from mica.engines.spark import jobs
from mica.errors import CorruptDataError, MicaError
from tests.support import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = pytest.mark.parametrize("engine", ["local", "spark"])


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    return _table(tmp_path / "t")


def _table(path: Path) -> mica.Table:
    table = mica.Table.create(path, "v VARIANT")
    table.append(pa.table({"v": mica.variant.from_json(['{"kept": true}'])}, schema=_schema()))
    return table


def _schema() -> pa.Schema:
    from mica.schema.arrow import variant_field

    return pa.schema([variant_field("v")])


def _as_it_was(table: mica.Table) -> None:
    now = mica.Table.open(table.path)
    assert now.version == 1
    assert now.scan().to_pandas().to_dict("records") == [{"v": {"kept": True}}]


def _ingest(path: Path | str, table: mica.Table, spark: SparkSession | None, **options: object) -> MicaError:
    with pytest.raises(MicaError) as raised:
        mica.ingest_json(path, table.path, spark=spark, **options)  # type: ignore[arg-type]
    _as_it_was(table)
    return raised.value


@ENGINES
def test_a_truncated_gzip(spark: SparkSession, tmp_path: Path, table: mica.Table, engine: str) -> None:
    whole = gzip.compress(b"".join(b'{"n": %d}\n' % n for n in range(50_000)))
    (tmp_path / "a.ndjson.gz").write_bytes(whole[: len(whole) // 2])
    error = _ingest(tmp_path / "a.ndjson.gz", table, spark if engine == "spark" else None)
    assert "a.ndjson.gz" in str(error)


@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
@pytest.mark.parametrize("cut", [5, 1000, -1])
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_compressed_file_that_was_cut_short_is_no_bad_line(
    tmp_path: Path, table: mica.Table, codec: str, cut: int, on_error: str
) -> None:
    """Lines can be set aside; half a file cannot."""
    packed = pa.compress(b"".join(b'{"n": %d}\n' % n for n in range(50_000)), codec=codec, asbytes=True)
    (tmp_path / "a.json").write_bytes(packed[:cut])
    error = _ingest(tmp_path / "a.json", table, None, on_error=on_error)
    assert error.code == "CORRUPT_FILE"
    assert "a.json" in str(error)
    assert not list((tmp_path / "t").rglob("bad-*"))


@ENGINES
def test_a_directory_for_a_file_and_a_file_that_is_not_there(
    spark: SparkSession, tmp_path: Path, table: mica.Table, engine: str
) -> None:
    session = spark if engine == "spark" else None
    (tmp_path / "d").mkdir()
    assert _ingest(tmp_path / "d", table, session).code == "IS_A_DIRECTORY"
    assert _ingest(tmp_path / "nothing", table, session).code == "NOT_FOUND"
    assert _ingest(str(tmp_path / "*.nothing"), table, session).code == "NOT_FOUND"


@ENGINES
def test_a_file_that_is_no_json_at_all(spark: SparkSession, tmp_path: Path, table: mica.Table, engine: str) -> None:
    (tmp_path / "a.json").write_bytes(os.urandom(5000))
    error = _ingest(tmp_path / "a.json", table, spark if engine == "spark" else None)
    assert "a.json" in str(error)


@ENGINES
def test_a_column_that_exists_with_another_type(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    (tmp_path / "a.json").write_text("{}")
    table = mica.Table.create(tmp_path / "t", "v STRING")
    with pytest.raises(MicaError) as raised:
        mica.ingest_json(tmp_path / "a.json", table.path, spark=spark if engine == "spark" else None)
    assert raised.value.code == "INCOMPATIBLE_TYPE"
    assert mica.Table.open(table.path).version == 0


def test_a_failed_attempt_leaves_files_that_are_never_read(tmp_path: Path, table: mica.Table) -> None:
    stray = next((tmp_path / "t").glob("*.parquet"))
    shutil.copy(stray, tmp_path / "t" / "part-stray.zstd.parquet")
    (tmp_path / "t" / "part-half.zstd.parquet").write_bytes(b"PAR1half")
    _as_it_was(table)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for about 2 MB."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=False, capture_output=True
    ).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@ENGINES
def test_a_full_disk(spark: SparkSession, tmp_path: Path, small_disk: Path, engine: str) -> None:
    rows = [{"n": n, "text": os.urandom(40).hex()} for n in range(60_000)]
    (tmp_path / "a.ndjson").write_bytes(b"".join(orjson.dumps(r, option=orjson.OPT_APPEND_NEWLINE) for r in rows))
    (tmp_path / "b.ndjson").write_text('{"fits": 1}')
    mica.ingest_json(tmp_path / "b.ndjson", small_disk / "t")
    with pytest.raises(MicaError) as raised:
        mica.ingest_json(tmp_path / "a.ndjson", small_disk / "t", spark=spark if engine == "spark" else None)
    assert raised.value.code == "DISK_FULL"
    table = mica.Table.open(small_disk / "t")
    assert (table.version, table.scan().count()) == (0, 1)
    assert len(list((small_disk / "t").glob("*.parquet"))) == 1, "what the failed attempt wrote was deleted"
    mica.ingest_json(tmp_path / "b.ndjson", small_disk / "t")


def test_a_disk_without_a_byte_to_spare(tmp_path: Path, small_disk: Path) -> None:
    """Every file that a write makes may be the one that does not fit: data, commit, quarantine, a new table's first."""
    table = mica.Table.create(small_disk / "t", "v VARIANT")
    one = pa.table({"v": mica.variant.from_json(["1"])}, schema=_schema())
    table.append(one)
    (tmp_path / "bad.ndjson").write_text('{"a":1}\n{"a":\n')
    with (small_disk / "fill").open("wb", buffering=0) as fill, contextlib.suppress(OSError):
        while fill.write(b"x" * 4096):
            pass
    for write in (
        lambda: table.append(one),
        lambda: table.set_properties({"a": "b"}),
        lambda: mica.Table.create(small_disk / "u", "v VARIANT"),
        lambda: mica.ingest_json(
            tmp_path / "bad.ndjson", tmp_path / "v", on_error="quarantine", quarantine=small_disk / "q"
        ),
    ):
        with pytest.raises(MicaError) as raised:
            write()
        assert raised.value.code == "DISK_FULL"
        assert str(small_disk) in raised.value.message, "it says which file did not fit"
    assert not list((tmp_path / "v").rglob("*.json"))
    now = mica.Table.open(small_disk / "t")
    assert (now.version, now.scan().count(), len(list((small_disk / "t").glob("*.parquet")))) == (1, 1, 1)
    (small_disk / "fill").unlink()
    assert table.append(one).version == 2


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A directory that other users reach: pytest closes its own, again and again where several runs share it."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="mica-open-") as place:
        Path(place).chmod(0o755)
        yield Path(place)


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_without_permission(open_home: Path) -> None:
    table = _table(open_home / "t")
    (open_home / "secret.json").write_text("{}")
    (open_home / "secret.json").chmod(0o600)
    (open_home / "open.json").write_text("{}")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", sys.executable, "-m", "mica.cli"]
        return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)

    if subprocess.run(
        ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", sys.executable, "-c", "import mica.table"],
        check=False, capture_output=True, cwd=ROOT,
    ).returncode:  # fmt: skip
        pytest.skip("another user cannot run this interpreter")
    for arguments in (
        ("ingest", open_home / "secret.json", table.path),
        ("ingest", open_home / "open.json", table.path),
    ):
        done = run(*arguments)
        assert done.returncode == 1, done.stderr
        assert "PERMISSION_DENIED" in done.stderr
        assert len(done.stderr.splitlines()) <= 3
    _as_it_was(table)
    done = run("scan", table.path, "--count")
    assert done.stdout.strip() == "1", done.stderr
    (data,) = (open_home / "t").glob("*.parquet")
    for hidden in (data, open_home / "t" / "_delta_log"):
        hidden.chmod(0o600)
        done = run("scan", table.path, "--where", "v:kept::boolean")
        assert (done.returncode, done.stdout) == (1, "")
        assert "PERMISSION_DENIED" in done.stderr
        assert str(hidden) in done.stderr
        hidden.chmod(0o755)


def test_without_java_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = "import mica, sys\ntry:\n    mica.session()\nexcept mica.MicaError as e:\n    print(e.code, e.hint)"
    environment = {**os.environ, "PATH": "/nowhere"}
    environment.pop("JAVA_HOME", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.startswith("NO_JAVA Install Java 17"), done.stderr


def test_sockets_survive_a_forked_child_and_are_not_too_long() -> None:
    """A child that ends first leaves the directory; a letter of a path may be several bytes."""
    code = """
        import os, sys
        from mica.engines.spark.session import _sockets

        directory = _sockets(os.getpid()).get("spark.python.unix.domain.socket.dir")
        child = os.fork()
        if not child:
            sys.exit()
        os.waitpid(child, 0)
        print(directory and os.path.isdir(directory))
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        for name, found in (("a", "True"), ("\u00e9" * 15, "None")):
            place = Path(short, name)
            place.mkdir()
            environment = {**os.environ, "TMPDIR": str(place)}
            arguments = [sys.executable, "-c", textwrap.dedent(code)]
            assert subprocess.check_output(arguments, text=True, env=environment).strip() == found
            assert not list(place.iterdir())


@pytest.mark.slow
def test_a_worker_that_is_killed_half_way(spark: SparkSession, tmp_path: Path, table: mica.Table) -> None:
    rows = b"".join(b'{"n": %d, "text": "%s"}\n' % (n, b"x" * 200) for n in range(400_000))
    (tmp_path / "a.ndjson").write_bytes(rows)
    stop = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        while not stop.is_set() and not killed:
            if list((tmp_path / "t").glob("part-*.parquet"))[1:]:
                for pid in _workers():
                    os.kill(pid, 9)
                    killed.append(pid)
            time.sleep(0.005)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        error = _ingest(tmp_path / "a.ndjson", table, spark)
    finally:
        stop.set()
        killer.join()
    assert killed
    assert error.code == "WORKER_LOST"
    # The session goes on, and so does the table.
    assert mica.ingest_json(tmp_path / "a.ndjson", table.path, spark=spark).rows == 400_000


def _workers() -> list[int]:
    """Python workers of Spark below this process that are busy: forks of the daemon."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                above = (Path("/proc") / str(parent) / "cmdline").read_bytes()
            except (OSError, ValueError):
                continue
            if b"pyspark.daemon" in command and b"pyspark.daemon" in above and _is_mine(parent):
                found.append(int(entry.name))
    return found


def _is_mine(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    return False


NASTY = "a $1 \\n {x} <y> \"q\" 'p' é \U0001f600 %s\nsecond line"


def test_a_tasks_error_is_told_as_it_was_raised_and_alone(spark: SparkSession) -> None:
    raised = f"raise mica.CorruptDataError('CORRUPT_FILE', {NASTY!r}, hint='mica-error:{{}}', path='p {{}} $')"
    fails = f"import mica; {raised}"
    with pytest.raises(CorruptDataError) as caught:
        jobs.collect(jobs.over_tasks(spark, partial(exec, fails), [{}], "n long"))
    error = caught.value
    assert (error.code, error.message, error.hint, error.context) == (
        "CORRUPT_FILE", NASTY, "mica-error:{}", {"path": "p {} $"},
    )  # fmt: skip
    shown = "".join(traceback.format_exception(error))
    assert 'mica-error:{"' not in shown
    assert "java." not in shown


@pytest.mark.slow
@pytest.mark.parametrize("through", ["collect", "interruptible"])
def test_ctrl_c_is_a_ctrl_c(spark: SparkSession, through: str) -> None:
    def collect() -> pa.Table:
        return jobs.collect(jobs.over_tasks(spark, time.sleep, [120], "n long"))

    began = time.monotonic()
    timer = threading.Timer(5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        collect() if through == "collect" else jobs.interruptible(spark, collect)
    assert time.monotonic() - began < 110  # the task sleeps for 120
    assert spark.range(3).count() == 3


def test_ctrl_c_waits_for_work_that_is_ending(spark: SparkSession) -> None:
    """What a cancelled task still wrote was listed before it had ended, and stayed. Up to Python 3.12 a `join` that
    Ctrl-C ended takes its thread for ended."""
    ended = []

    def work() -> None:
        time.sleep(2)
        ended.append(True)

    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        jobs.interruptible(spark, work)
    assert ended


def test_ctrl_c_while_spark_starts_leaves_no_process() -> None:
    """PySpark left its JVM, which could not tell its port any more and stayed until the machine was shut down."""
    code = """
        import os, signal, threading
        import mica
        from pyspark import java_gateway

        signal.signal(signal.SIGINT, signal.default_int_handler)
        real = java_gateway.Popen

        def begun(*args, **named):
            global process
            process = real(*args, **named)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            return process

        java_gateway.Popen = begun
        try:
            mica.session("local[1]")
        except KeyboardInterrupt:
            print(process.wait(30))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == f"{-signal.SIGKILL}\n", done.stderr
