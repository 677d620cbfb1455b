"""Fixtures of every test: one Spark session with delta-spark on its class path, the shared folder, DuckDB, one seed.

A test that lacks something skips with the reason. Where `MICA_REQUIRE` names that thing (`.ci/run` sets
`MICA_REQUIRE="shared spark delta"`), the same skip is a failure.
"""

from __future__ import annotations

import importlib
import os
import random
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

import mica
from mica.errors import MicaError
from mica.errors.codes import CODES
from mica.query import registry
from mica.scan import little, scan
from tests.oracle import conf
from tests.support import CAMPAIGN, ROOT, SHARED, delta_jars

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

REQUIRED = frozenset(os.environ.get("MICA_REQUIRE", "").split())
if REQUIRED:  # what the tests' lock pins is there
    pytest.importorskip = lambda name, *_, **__: importlib.import_module(name)
# A fixture of this name stands for the marker of the same name.
FIXTURES = {"shared": "shared", "spark": "spark", "delta_session": "delta"}

settings.register_profile(
    "default", deadline=None, max_examples=50, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("campaign", settings.get_profile("default"), max_examples=5000)
#: What a test may take in a campaign: a test that is killed there looks like a flaky one.
CAMPAIGN_SECONDS = 6 * 3600
settings.load_profile(os.environ.get("MICA_PROFILE", "default"))

# Spark's workers and the command line run in processes of their own and find the same mica as we do.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = os.pathsep.join(
    dict.fromkeys([str(ROOT / "src"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
)

# The tests' JVMs live for minutes: most of what their second compiler makes is never run again, and took a quarter of
# their time.
# The code cache that goes with the first compiler alone is too small for Spark: a sixth of the time was sweeping it.
# Spark's classes are good: an eighth of its start is not spent on verifying them.
_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
for _name in ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
    os.environ.setdefault(_name, _OPTIONS)

#: Spark makes Java of each query's expressions, also of those that delta-spark reads its log with, for a few rows: a
#: quarter of the JVM's time. A campaign runs it as users do, and so do tests that take `compiled`.
INTERPRETED = (
    {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"} if not CAMPAIGN else {}
)

#: delta-spark's store for local files where one process at a time writes its commits. The usual one holds others off
#: by Hadoop's FileContext, which starts some 20 processes a commit (readlink, chmod). A campaign has the usual one.
LOCAL = {"spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore"} if INTERPRETED else {}


def _looked_up(error: MicaError, code: str, *args: Any, **kwargs: Any) -> None:
    row = CODES.get(code)
    assert row is not None, f"{code} is not in mica.errors.codes"
    assert isinstance(error, row.kinds), f"{type(error).__name__} carries {code}: {row}"
    _INIT(error, code, *args, **kwargs)


# Each error that a test meets is one of the table: what tests/unit/errors/test_codes.py reads, seen at run time.
_INIT = MicaError.__init__
MicaError.__init__ = _looked_up  # type: ignore[method-assign, assignment]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """One seed for hypothesis and for `rng`: chosen anew, printed, and taken again from `MICA_SEED`."""
    seed = int(os.environ.get("MICA_SEED") or secrets.randbelow(2**32))
    config.stash[SEED] = seed
    os.environ["MICA_SEED"] = str(seed)  # for the workers of pytest-xdist
    if config.getoption("--hypothesis-seed", default=None) is None:
        config.option.hypothesis_seed = str(seed)
    if config.args_source is not pytest.Config.ArgsSource.ARGS and not CAMPAIGN:
        os.environ.setdefault("MICA_PART", str(seed))


#: Of the tests that are marked slow a run of all tests has one in so many: those of its part, which is `MICA_PART`, or
#: the seed's. `MICA_PART=all`, a campaign, and a run that names its tests have all of them.
SHARES = 6

SEED = pytest.StashKey[int]()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what a rerun needs."""
    shared = SHARED if SHARED.is_dir() else f"missing ({SHARED})"
    needs = " ".join(sorted(REQUIRED)) or "nothing"
    return [
        f"seed: MICA_SEED={config.stash[SEED]} · profile: {os.environ.get('MICA_PROFILE', 'default')}",
        f"shared: {shared} · delta-spark jars: {len(delta_jars())} · required: {needs}",
    ]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Repeat the seed at the end, where people look."""
    terminalreporter.write_line(f"seed: MICA_SEED={config.stash[SEED]}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark a test by the fixtures that it takes; a campaign's thousands of examples take longer than a test may.

    A run of all tests has its part of the slow ones.

    Files that start a JVM come first: workers take a file at a time, and short ones at the end make them end together.
    """
    for item in items:
        if CAMPAIGN and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(CAMPAIGN_SECONDS))
        for name in getattr(item, "fixturenames", ()):
            if name in FIXTURES:
                item.add_marker(FIXTURES[name])
    if (part := os.environ.get("MICA_PART", "all")) != "all":
        slow = [item for item in items if item.get_closest_marker("slow")]
        others = {item for number, item in enumerate(slow) if (number + int(part)) % SHARES}
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]
    long = {item.path for item in items if any(mark.name in ("spark", "delta") for mark in item.iter_markers())}
    items.sort(key=lambda item: item.path not in long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Turn the skip of a test that needs a required thing into a failure."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.skipped and not hasattr(report, "wasxfail"):
        needs = {mark.name for mark in item.iter_markers()} & REQUIRED
        if needs:
            report.outcome = "failed"
            report.longrepr = f"skipped, but MICA_REQUIRE asks for {', '.join(sorted(needs))}: {report.longrepr}"
    return report  # type: ignore[return-value]


@pytest.fixture(scope="module", autouse=True)
def names_of_their_own() -> Iterator[None]:
    """The names that a file's tests register end with it: which files come after it in a process is chance."""
    registry._NAMES.clear()
    yield
    registry._NAMES.clear()


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """The seed of this run."""
    return pytestconfig.stash[SEED]


@pytest.fixture
def rng(seed: int, request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that are the same for one test and one seed, whatever else runs."""
    return random.Random(f"{seed}:{request.node.nodeid}")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of conformance and real data."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is missing: set MICA_SHARED")
    return SHARED


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local session on two cores in UTC; with delta-spark where its jars are (see `delta_session`)."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java on this machine")
    scratch = tmp_path_factory.mktemp("spark")
    # First on the class path: YARN's defaults are half of the settings that Spark writes into each job, and no test
    # has a YARN.
    (scratch / "yarn-default.xml").write_text("<configuration/>")
    conf = {
        "spark.driver.memory": "2g",
        "spark.driver.extraClassPath": str(scratch),
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
    } | INTERPRETED
    jars = delta_jars()
    if jars:
        conf |= {
            "spark.jars": ",".join(map(str, jars)),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # The default of 50 costs seconds a query on two cores: each one has code made for the log's actions anew.
            "spark.databricks.delta.snapshotPartitions": "1",
        } | LOCAL
    session = mica.session("local[2]", **conf)
    _keep_names(session.sparkContext._jvm)
    sockets = session.conf.get("spark.python.unix.domain.socket.dir", "")
    yield session
    session.stop()
    if sockets:
        shutil.rmtree(sockets, ignore_errors=True)  # a worker of xdist ends without what runs at the exit


def _keep_names(jvm: Any) -> None:
    """PySpark asks for some names again and again, ten times for each error of Spark's. py4j keeps none, and Java looks
    for each part in every jar: 5 to 10 % of the JVM's time."""
    for name in ("PythonUtils", "PythonSQLUtils", "PythonRDD", "SimplePythonFunction", "SerDeUtil"):
        setattr(jvm, name, getattr(jvm, name))
    jvm.py4j = jvm.py4j
    jvm.py4j.reflection = jvm.py4j.reflection
    jvm.py4j.reflection.TypeUtil = jvm.py4j.reflection.TypeUtil


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Spark makes Java of expressions: its reader of shredded Variants and its catalog's list of tables cannot do
    without."""
    with conf(spark, {"spark.sql.codegen.factoryMode": "FALLBACK"}):
        yield


@pytest.fixture
def by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan of few rows is read by Spark's tasks, as one of many is, and not by this process."""
    monkeypatch.setattr(little, "FEW_FILE_BYTES", -1)
    monkeypatch.setattr(scan, "FEW", 0)


@pytest.fixture
def fusions(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the rows of each write on Spark were written where they were read."""
    from mica.engines.spark import engine
    from mica.engines.spark.fused import fused as own

    seen: list[bool] = []

    def spy(*given: Any) -> Any:
        made = own(*given)
        seen.append(made is not None)
        return made

    monkeypatch.setattr(engine, "fused", spy)
    return seen


@pytest.fixture(scope="session")
def delta_session(spark: SparkSession) -> SparkSession:
    """The same session, for tests that ask delta-spark, the oracle."""
    if not delta_jars():
        pytest.skip("delta-spark's jars are missing: run scripts/jars.sh")
    return spark


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB connection in memory, two threads, UTC."""
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
