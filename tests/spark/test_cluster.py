"""A real cluster: master and workers as processes of their own, from the pip package of PySpark."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.spark]

JOB = """
import sys
from pathlib import Path
import mica
from mica.cli.events import lines
from pyspark.sql import SparkSession

home = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
(home / "a.ndjson").write_bytes(lines(0, 20_000, seed=1))
try:
    report = mica.ingest_json(
        home / "a.ndjson", home / "t", spark=spark, sort_by=["v:time_us::bigint"], target_file_size="500KB"
    )
except mica.MicaError as e:
    print("refused", e.code)
    raise SystemExit(0)
assert report.rows == 20_000 and report.files > 1, report
table = mica.Table.open(home / "t")
table.append(spark.createDataFrame([('{"time_us": 1}',)], "j STRING").selectExpr("parse_json(j) AS v"))
scan = table.scan("v:time_us::bigint = 1")
assert scan.explain().to_dict()["files"]["kept"] == 1
assert [str(row.v) for row in scan.to_df(spark).collect()] == ['{"time_us":1}']
assert table.to_df(spark).count() == 20_001
print("done on", len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1, "executors")
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and two workers of one core; its address."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java on this machine")
    address = f"spark://127.0.0.1:{_free_port()}"
    worker = ["org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g", "--host", "127.0.0.1"]
    places = [str(tmp_path_factory.mktemp("worker")) for _ in range(2)]
    commands = [
        ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", address.rpartition(":")[2]],
        *([*worker, "--work-dir", place, address] for place in places),
    ]
    # Workers are to find mica where it is installed, not where this test was started.
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(_spark())}
    running = []
    try:
        for command in commands:
            run = [str(_spark() / "bin" / "spark-class"), *command, "--webui-port", str(_free_port())]
            process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
            running.append(process)
            assert process.stdout is not None
            log = []
            for line in process.stdout:
                log.append(line)
                if b"I have been elected leader" in line or b"Successfully registered with" in line:
                    break
            else:
                pytest.fail(f"the cluster did not come up: {b''.join(log).decode()}")
            threading.Thread(target=process.stdout.read, daemon=True).start()
        yield address
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)


def _spark() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _run(cluster: str, home: Path, python: str, **more: str) -> str:
    (home / "job.py").write_text(JOB)
    conf = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.executor.memory": "600m", "spark.pyspark.python": python,
        "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
        "spark.pyspark.driver.python": sys.executable, **more,
    }  # fmt: skip
    command = [str(_spark() / "bin" / "spark-submit"), "--master", cluster]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    environment = {n: t for n, t in os.environ.items() if n not in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    done = subprocess.run(
        [*command, str(home / "job.py"), str(home)],
        capture_output=True, text=True, timeout=400, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _imports_mica(python: str) -> bool:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, "-c", "import mica.tasks.read"], check=False, capture_output=True, env=environment)
    return done.returncode == 0


@pytest.mark.slow
def test_a_cluster_does_the_whole_job(cluster: str, tmp_path: Path) -> None:
    # Where mica is installed in this environment the path is of no use, and does no harm.
    there = {"spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]}
    assert "done on 2 executors" in _run(cluster, tmp_path, sys.executable, **there)


@pytest.mark.slow
def test_workers_without_mica_say_so(cluster: str, tmp_path: Path) -> None:
    """Their Python has all that this one has except for what is installed as editable."""
    venv.create(tmp_path / "env", with_pip=False)
    (packages,) = (tmp_path / "env").glob("lib/python3*/site-packages")
    (packages / "others.pth").write_text(str(Path(pa.__file__).parent.parent))
    python = str(tmp_path / "env" / "bin" / "python")
    if _imports_mica(python):
        pytest.skip("mica is installed beside pyarrow here")
    assert "refused WORKER_WITHOUT_MICA" in _run(cluster, tmp_path, python)
    assert not list((tmp_path / "t").rglob("*.parquet"))
