"""What mica finds on this machine, and what is wrong with it.

The rule: every finding is looked at, not assumed: Java is run, a Spark worker answers, an object store takes a file
once and refuses it the second time. A finding that is wrong names the way out; one that is only missing is none, if
mica works without it.
"""

from __future__ import annotations

import platform
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica import __version__, engines
from mica.arrays import arrow_array
from mica.engines.spark import session
from mica.errors import MicaError
from mica.errors.codes import way_out
from mica.log.snapshot import exists, load
from mica.records import dataclass
from mica.storage import AlreadyExistsError, Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Packages that mica needs, and those that it meets.
NEEDED = ("pyarrow", "numpy", "pandas", "obstore")
MET = ("polars", "duckdb", "deltalake", "delta-spark")

#: Versions of PySpark that mica runs on.
SPARKS = ("4.1", "4.2", "4.3")


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and the way out if that is wrong (None: it is right)."""

    what: str
    found: str
    way_out: str | None = None


def doctor(
    table: str | None = None,
    spark: Callable[[], SparkSession] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """Yields what is found: Python, packages, Java and Spark; with `spark`, which starts a session, its workers; with
    `table`, the place where it is or will be: whether files can be listed, written and read there, and put only once
    (the rule by which commits are atomic). One small file is written there and deleted.
    """
    python = platform.python_version()
    yield Finding("Python", f"{python}, {sys.executable}")
    yield Finding("mica", __version__)
    yield Finding("packages", ", ".join(f"{name} {_version(name) or 'missing'}" for name in NEEDED))
    yield Finding("other readers", ", ".join(f"{name} {found}" for name in MET if (found := _version(name))) or "none")
    yield _java()
    yield _pyspark()
    if spark is not None:
        yield _workers(spark)
    if table is not None:
        yield from _place(table, storage_options)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _java() -> Finding:
    try:
        path, found = session.java()
    except MicaError as e:
        return Finding("Java", e.message, e.hint)
    return Finding("Java", f"{found or 'of an unknown version'}, {path}")


def _pyspark() -> Finding:
    found = _version("pyspark") or _version("pyspark-client")
    if found is None:
        return Finding("PySpark", "not installed", "pip install pyspark==4.2.1, or work in process.")
    known = found.rpartition(".")[0] in SPARKS
    return Finding("PySpark", found, None if known else f"mica runs on {', '.join(SPARKS)}.")


def _workers(start: Callable[[], SparkSession]) -> Finding:
    """A job of one task: its worker imports mica, in the driver's version, or the job says what is missing."""
    try:
        spark = start()
        (batch,) = engines.of(spark).run(_answer, [0], _ANSWER)
    except MicaError as e:
        return Finding("Spark's workers", e.message, way_out(e))
    return Finding("Spark's workers", f"Spark {spark.version}: {batch.column(0)[0].as_py()}")


_ANSWER = pa.schema([("found", pa.string())])


def _answer(_: Any) -> Iterator[pa.RecordBatch]:
    text = f"Python {platform.python_version()}, mica {__version__}, pyarrow {pa.__version__}"
    yield pa.record_batch([arrow_array([text])], schema=_ANSWER)


def _place(table: str, options: Mapping[str, str] | None) -> Iterator[Finding]:
    try:
        storage = Storage.open(table, options)
        there = exists(storage)
        yield Finding("table", f"{storage}: version {load(storage).version}" if there else f"none yet at {storage}")
    except MicaError as e:
        yield Finding("table", e.message, e.hint or "Look at the path and at --storage-option.")
        return
    name = f"_mica_doctor_{uuid.uuid4().hex}"
    try:
        yield _put_once(storage, name)
    except MicaError as e:
        yield Finding("writing", e.message, e.hint or "Allow writing there, or name another place.")
    finally:
        storage.discard([name])


def _put_once(storage: Storage, name: str) -> Finding:
    storage.put_if_absent(name, b"mica")
    try:
        storage.put_if_absent(name, b"mica again")
    except AlreadyExistsError:
        same = storage.read(name) == b"mica"
        found = "a file is put once, and comes back as it was" if same else "a file changed after it was written"
        return Finding("writing", found, None if same else "Do not write tables here.")
    return Finding(
        "writing", "a file was put twice", "Commits are not atomic here: use a store with conditional writes."
    )
