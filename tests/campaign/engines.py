"""The engines: each writes texts as Variants to a Parquet file where it can, and reads a file's Variants as texts."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import mica
from mica.schema.arrow import variant_field
from tests.support import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Runs in an environment of its own: one request a line in, one answer a line out.
SERVER = """
import json, os, sys
out = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
         .config("spark.sql.session.timeZone", "UTC").config("spark.driver.memory", "1g").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
for line in sys.stdin:
    request = json.loads(line)
    try:
        if "texts" in request:
            frame = spark.createDataFrame([(i, t) for i, t in enumerate(request["texts"])], "i int, t string")
            frame = frame.coalesce(1).sortWithinPartitions("i").selectExpr("parse_json(t) AS v")
            writer = frame.write.option("spark.sql.variant.inferShreddingSchema", request["shred"])
            writer.parquet(request["path"])
            answer = {"found": None}
        else:
            rows = spark.read.parquet(request["path"]).selectExpr(*request["select"]).collect()
            answer = {"found": [list(row) for row in rows]}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    out.write(json.dumps(answer) + "\\n"); out.flush()
"""


def _lookup(key: str) -> str:
    return f"""try_variant_get(v, '$["{key}"]', 'string')"""


class EngineError(Exception):
    """What an engine said when it failed."""


class Mica:
    """Ours."""

    name = "mica"
    layouts = ("unshredded", "shredded")

    def write(self, texts: Sequence[str], path: Path, layout: str) -> str:
        """Writes one file; its path."""
        rows = pa.Table.from_arrays([mica.variant.from_json(texts)], schema=pa.schema([variant_field("v")]))
        mica.write_parquet(rows, path, shredding={"v": None} if layout == "unshredded" else None)
        return str(path)

    def read(self, path: str) -> list[str | None]:
        """The rows as JSON."""
        texts: list[str | None] = mica.variant.to_json(mica.read_parquet(path).to_arrow().column("v")).to_pylist()
        return texts

    def lookups(self, path: str, keys: Sequence[str]) -> list[list[str | None]]:
        """The texts at these keys of the root, row by row."""
        columns = {f"c{i}": _lookup(key) for i, key in enumerate(keys)}
        found = mica.read_parquet(path, columns=columns).to_arrow()
        return [list(row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]


class DuckDB:
    """DuckDB of the test environment."""

    name = "DuckDB 2.0"
    #: By itself it makes columns of all fields that documents share; told a scalar, it leaves objects in `value`.
    layouts = ("as it likes", "objects in value")

    def __init__(self) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 1})

    def write(self, texts: Sequence[str], path: Path, layout: str) -> str:
        """Writes one file; its path."""
        table = pa.table({"t": pa.array(texts)})
        self._connection.register("texts", table)
        shredding = "" if layout == "as it likes" else ", SHREDDING {'v': 'INTEGER'}"
        self._run(f"COPY (SELECT t::JSON::VARIANT AS v FROM texts) TO '{path}' (FORMAT parquet{shredding})")
        return str(path)

    def read(self, path: str) -> list[str | None]:
        """The rows as JSON."""
        return [row[0] for row in self._run(f"SELECT v::JSON::VARCHAR FROM read_parquet('{path}')")]

    def _run(self, sql: str) -> list[Any]:
        try:
            rows: list[Any] = self._connection.execute(sql).fetchall()
        except Exception as e:  # noqa: BLE001 - the engine's own words are the finding
            raise EngineError(str(e).splitlines()[0]) from None
        return rows


class _Program:
    """A program of its own: one request a line in, one answer a line out."""

    def __init__(self, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=environment,
        )  # fmt: skip

    def ask(self, **request: Any) -> Any:
        """What it found."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise EngineError(answer["error"])
        return answer["found"]

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


class Spark(_Program):
    """A Spark in an environment of its own."""

    layouts = ("unshredded", "shredded")

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME")}
        environment |= {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
        super().__init__([python, "-c", SERVER], environment)

    def write(self, texts: Sequence[str], path: Path, layout: str) -> str:
        """Writes a directory of one file; the file's path."""
        shred = str(layout == "shredded").lower()
        self.ask(texts=list(texts), path=str(path), shred=shred)
        (file,) = path.glob("*.parquet")
        return str(file)

    def read(self, path: str) -> list[str | None]:
        """The rows as JSON."""
        return [row[0] for row in self.ask(path=path, select=["to_json(v)"])]

    def lookups(self, path: str, keys: Sequence[str]) -> list[list[str | None]]:
        """The texts at these keys of the root, row by row."""
        found: list[list[str | None]] = self.ask(path=path, select=[_lookup(key) for key in keys])
        return found


class SessionSpark:
    """The Spark of a test's session, asked the same questions."""

    layouts = ("unshredded", "shredded")
    name = "Spark 4.2.1"

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def write(self, texts: Sequence[str], path: Path, layout: str) -> str:
        """Writes a directory of one file; the file's path."""
        frame = self._session.createDataFrame(list(enumerate(texts)), "i int, t string").coalesce(1)
        frame = frame.sortWithinPartitions("i").selectExpr("parse_json(t) AS v")
        shred = str(layout == "shredded").lower()
        frame.write.option("spark.sql.variant.inferShreddingSchema", shred).parquet(str(path))
        (file,) = path.glob("*.parquet")
        return str(file)

    def read(self, path: str) -> list[str | None]:
        """The rows as JSON."""
        return [row[0] for row in self._session.read.parquet(path).selectExpr("to_json(v)").collect()]

    def lookups(self, path: str, keys: Sequence[str]) -> list[list[str | None]]:
        """The texts at these keys of the root, row by row."""
        asked = [_lookup(key) for key in keys]
        return [list(row) for row in self._session.read.parquet(path).selectExpr(*asked).collect()]


class _LikeMica:
    """An engine that shreds by a schema it is given: that of mica's file of the same texts."""

    layouts = ("unshredded", "shredded")

    def _like(self, texts: Sequence[str], path: Path, layout: str) -> str:
        return Mica().write(texts, path.with_suffix(".like.parquet"), layout)


class _Java(_Program):
    """An engine of `VariantsInJava.java`."""

    def __init__(self, engine: str) -> None:
        import pyspark

        jars = [ROOT / ".bench" / "java", Path(pyspark.__file__).parent / "jars"]
        classpath = os.pathsep.join(f"{folder}/*" for folder in jars)
        source = str(ROOT / "tests" / "campaign" / "VariantsInJava.java")
        super().__init__(["java", "-Xmx1g", "-cp", classpath, source, engine])

    def read(self, path: str) -> list[str | None]:
        """The rows as JSON."""
        found: list[str | None] = self.ask(path=path)
        return found


class ParquetJava(_LikeMica, _Java):
    """parquet-java, of which Hive, Flink and others are made."""

    name = "parquet-java 1.17.1"

    def __init__(self) -> None:
        super().__init__("parquet-java")

    def write(self, texts: Sequence[str], path: Path, layout: str) -> str:
        """Writes one file; its path."""
        self.ask(texts=list(texts), path=str(path), like=self._like(texts, path, layout))
        return str(path)


class Iceberg(_Java):
    """Iceberg's readers and writers of generic records, which infer columns themselves."""

    name = "Iceberg 1.11.0"
    layouts = ("unshredded", "shredded")

    def __init__(self) -> None:
        super().__init__("iceberg")

    def write(self, texts: Sequence[str], path: Path, layout: str) -> str:
        """Writes one file; its path."""
        self.ask(texts=list(texts), path=str(path), shred=layout == "shredded")
        return str(path)


class ArrowRs(_LikeMica):
    """arrow-rs' plain functions, as a program of the kernel's examples."""

    name = "arrow-rs 60.1.0"

    def __init__(self, program: str) -> None:
        self._program = program

    def write(self, texts: Sequence[str], path: Path, layout: str) -> str:
        """Writes one file; its path."""
        self._run(str(path), self._like(texts, path, layout), given="".join(f"{text}\n" for text in texts))
        return str(path)

    def read(self, path: str) -> list[str | None]:
        """The rows as JSON."""
        return [None if line == "NULL" else line for line in self._run(path).split("\n")[:-1]]

    def _run(self, *arguments: str, given: str = "") -> str:
        environment = {**os.environ, "RUST_BACKTRACE": "0"}
        command = [self._program, *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            # What a panic says stands below where it was.
            said = [line for line in done.stderr.splitlines() if line and not line.startswith(("thread", "note"))]
            raise EngineError(said[0] if said else f"exit status {done.returncode}")
        return done.stdout


@contextmanager
def all_engines() -> Iterator[list[Any]]:
    """Every engine of the campaign; those of other environments are made where they are not there yet."""
    import sys

    from benchmarks.environments import python

    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "native" / "target"))
    sparks = [Spark("Spark 4.2.1", sys.executable), Spark("Spark 4.3.0", str(python("spark43")))]
    java = [ParquetJava(), Iceberg()]
    try:
        yield [Mica(), *sparks, DuckDB(), *java, ArrowRs(f"{target}/release/examples/arrow_rs")]
    finally:
        for program in [*sparks, *java]:
            program.close()
