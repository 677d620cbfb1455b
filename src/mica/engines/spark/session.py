"""Starts an embedded Spark session. The rule: settings of the caller override the defaults."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mica.arguments import TEXT, takes
from mica.cores import cores
from mica.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A socket's path has at most 103 bytes, of which our directory and Spark's UUID take 62.
_LONGEST_DIRECTORY = 41
#: Spark 4 runs on Java 17 and newer.
JAVA = 17
#: The logger to which PySpark writes the errors of SQL texts, with their stacks, beside raising them.
SQL_LOGGER = "SQLQueryContextLogger"


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Makes a session the active one of the thread for a while. On Spark Connect there is none."""
    if is_connect(spark):
        yield
        return
    session: Any = spark
    sessions = session._get_j_spark_session_class(session._jvm)  # noqa: SLF001
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


@takes(master=TEXT)
def session(master: str = "local[*]", **conf: Any) -> SparkSession:
    """Returns a plain `SparkSession` with defaults that suit mica, or the running session with `conf` applied:
    `master` is ignored there, and what else is set is its owner's.

    `conf` holds Spark settings by their full names: `mica.session(**{"spark.driver.memory": "4g"})`. Python workers
    use the current interpreter, because mica is installed there.

    Errors: NOT_INSTALLED, NO_JAVA, SPARK_NOT_STARTED.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as e:
        raise UserError(
            "NOT_INSTALLED",
            "a Spark session needs PySpark, which is not installed",
            hint="pip install pyspark==4.2.1",
        ) from e
    builder, settings, runs = SparkSession.builder, conf, _runs()
    if not runs:
        java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        builder, settings = builder.appName("mica").master(master), {**_defaults(master), **conf}
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except KeyboardInterrupt as e:
        _kill_starting(e)
        raise
    except Exception as e:
        # PySpark's errors, Py4J's, Java's in them, and Python's own for an executable that is not there.
        raise UserError(
            "SPARK_NOT_STARTED",
            f"Spark could not be started: {_reason(str(e))}",
            hint="Look at the master and at the settings, or work in process: leave `spark=` out.",
        ) from e
    if not runs and "spark.log.level" not in conf and not is_connect(spark):
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def _runs() -> bool:
    """Whether there is a session that the builder will give: the active one, or in another thread the default."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        found = SparkSession.active()
    except PySparkRuntimeError:
        return False
    # The builder makes another one if the context was stopped, but not the session.
    return is_connect(found) or found.sparkContext._jsc is not None  # noqa: SLF001 - as the builder does


def _kill_starting(stopped: KeyboardInterrupt) -> None:
    """Kills the JVM that PySpark was waiting for. PySpark deletes the folder where that JVM writes its port: then its
    main thread ends, the others do not, and the process would stay when we are gone."""
    for frame, _ in traceback.walk_tb(stopped.__traceback__):
        if frame.f_code.co_name == "launch_gateway":
            for process in frame.f_locals.values():
                if isinstance(process, subprocess.Popen):
                    process.kill()


@contextmanager
def without_sql_log() -> Iterator[None]:
    """Silences `SQL_LOGGER`, for a text whose error is expected."""
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger(SQL_LOGGER)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


@contextmanager
def with_setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Gives a setting of the session another value meanwhile. Threads of one session take turns by their own means."""
    before = str(spark.conf.get(name))
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def _reason(text: str) -> str:
    """The sentence of an error: Py4J puts Java's class and message on the second line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    java = next((line for line in lines if line.startswith(": ")), None)
    return re.sub(r"^: [\w.$]+: ", "", java) if java else lines[0] if lines else "it gave no reason"


def is_true(spark: SparkSession, setting: str, usual: str | None = None) -> bool:
    """Whether a setting of the session is true; `usual` where it may not be set."""
    return str(spark.conf.get(setting, usual) if usual else spark.conf.get(setting)).lower() == "true"


def current(spark: SparkSession | None) -> SparkSession:
    """The given session, else the active one, else a new one."""
    if spark is not None:
        return spark
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return session()  # which says what to install
    return SparkSession.getActiveSession() or session()


def is_connect(spark: SparkSession) -> bool:
    """Whether it is a Spark Connect session, which has no JVM of its own to ask."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def has_delta(spark: SparkSession) -> bool:
    """Whether the session has delta-spark, which reads Delta tables by their paths."""
    return "DeltaSparkSessionExtension" in str(spark.conf.get("spark.sql.extensions", ""))


def _defaults(master: str) -> dict[str, Any]:
    """The settings that differ from Spark's defaults, with reasons."""
    defaults: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # With more paths than this, Spark lists them in a separate job (docs/decisions.md, "Spark").
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        # What the UI and event logs hide of OPTIONS (…): Spark hides secrets and tokens, but no account_key or sas_key.
        "spark.sql.redaction.options.regex": "(?i)url|key|sas|secret|token|password|credential",
    }
    if master.startswith("local"):
        cores = _cores(master)
        defaults |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # 200 shuffle partitions cost seconds on a laptop.
            "spark.sql.shuffle.partitions": str(max(cores, 2)),
            "spark.driver.memory": f"{_memory_mib()}m",
            **_sockets(os.getpid()),
        }
    return defaults


@cache
def _sockets(process: int) -> dict[str, str]:
    """Python workers of this machine are reached by Unix sockets: over TCP each task waits 40 ms for an acknowledgement
    that its worker delays. Spark leaves the files of sockets behind, so they have a directory that goes with us."""
    try:
        if os.name != "posix" or len(os.fsencode(tempfile.gettempdir())) > _LONGEST_DIRECTORY:
            return {}
        directory = tempfile.mkdtemp(prefix="mica-spark-")
    except OSError:  # no place for temporary files
        return {}
    atexit.register(_remove, directory, process)
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": directory,
    }


def _remove(directory: str, process: int) -> None:
    """A forked child, which may end first, leaves the directory to the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)


def _cores(master: str) -> int:
    found = re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", master)
    if found:
        return int(found[1])
    return 1 if master == "local" else cores()


def _memory_mib() -> int:
    """A quarter of the machine's memory, between 1 and 8 GiB: the data is in the Python workers, not in the JVM."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    except (AttributeError, OSError, ValueError):
        return 1024
    return max(1024, min(total // 4, 8192))


def java() -> tuple[str, int]:
    """The path of Java and its major version (0: it does not say). Errors: NO_JAVA, also if it is too old."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin", "java")) if home else shutil.which("java")
    hint = f"Install Java {JAVA} or newer and set JAVA_HOME, or work in process: leave `spark=` out."
    if path is None or not Path(path).exists():
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "no `java` was found"
        raise UserError("NO_JAVA", f"Spark needs Java {JAVA} or newer, and {where}", hint=hint)
    try:
        text = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError) as e:
        raise UserError("NO_JAVA", f"{path} could not be run: {e}", hint=hint) from e
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    version = int(found[1]) if found else 0
    if found and version < JAVA:
        raise UserError("NO_JAVA", f"Spark needs Java {JAVA} or newer, and {path} is Java {version}", hint=hint)
    return path, version
