"""Reads a scan of few rows in this process, for Spark, which gets them as one relation.

The rule: a job of Python workers takes longer to begin than a few megabytes of files take to be read. So where the
files are small, they are read here when the rows are first asked for; if that fails or is too much, Spark's tasks do
it, which report what is wrong in their way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import batch_of, from_numpy
from mica.engines import local
from mica.schema.arrow import to_arrow
from mica.schema.types import VARIANT, StructType, contains
from mica.tasks.parts import TASK_BYTES, FilePart
from mica.tasks.read import read_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mica.engines.spark.batches import Late
    from mica.engines.spark.engine import Spark
    from mica.scan.scan import Scan

_LOG = logging.getLogger("mica")

#: Rows are few, if they are not more; and so many bytes of files are worth a look.
FEW_ROWS, FEW_BYTES, FEW_FILE_BYTES = 50_000, 8 << 20, 4 << 20
#: In how many tasks a thread reads much: after each it is known what all of them will find. Each opens its file.
_LOOKS = 4


def size_of(scan: Scan) -> int:
    """The bytes of the files that are read."""
    return pc.sum(scan.kept.column("size")).as_py() or 0


def is_little(scan: Scan) -> bool:
    """Whether the rows of a scan are few by the size of its files, and by their numbers of rows if it has all of them:
    a million that are much alike take few bytes."""
    if size_of(scan) > FEW_FILE_BYTES:
        return False
    if scan.predicate is not None or scan.limit is not None:
        return True
    return (pc.sum(scan.source.rows(from_numpy(scan.plan.kept))).as_py() or 0) <= FEW_ROWS


def frame(spark: SparkSession, scan: Scan, late: Late) -> DataFrame:
    """The rows of a scan as a DataFrame, read when somebody asks for them: a few by this process, or else, and for who
    may ask again and again (`types.unread`), by Spark's tasks."""
    from mica.engines.spark.engine import Spark
    from mica.engines.spark.session import is_connect

    engine = Spark(spark)
    if is_connect(spark):
        return _by_tasks(engine, scan, late)
    from mica.engines.spark import marks
    from mica.engines.spark.deferred import Deferred
    from mica.engines.spark.types import to_spark

    schema = to_spark(scan.of_rows)

    def made(at_once: bool) -> Any:
        found = rows(engine, scan, late) if at_once else None
        return marks.typed(spark, _by_tasks(engine, scan, late) if found is None else found, schema)._jdf  # noqa: SLF001

    return Deferred(spark, schema, made) if is_little(scan) else marks.framed(spark, made(False))


def _by_tasks(engine: Spark, scan: Scan, late: Late) -> DataFrame:
    tasks = scan.sent(engine.parallelism)
    found = engine.frame(partial(read_parts, scan.spec()), tasks, scan.of_rows, _bytes_for_spark(scan), late)
    return found if scan.limit is None else found.limit(scan.limit)


def _bytes_for_spark(scan: Scan) -> int:
    """How large Spark shall take the rows to be. What a path of a Variant has of a file's bytes nobody knows."""
    from mica.engines.spark.sizes import row_bytes

    size, whole = size_of(scan), scan.source.schema
    return 4 * size if contains(whole, VARIANT) else size * row_bytes(scan.schema) // row_bytes(whole)


def rows(engine: Spark, scan: Scan, late: Late) -> DataFrame | None:
    """The rows of a scan as a DataFrame; None if they are too many, or cannot be read here."""
    size, spec = size_of(scan), scan.spec()
    pace = _Pace(size)

    def read(parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
        found, used = 0, 0
        for batch in read_parts(spec, parts):
            found, used = found + batch.num_rows, used + batch.nbytes
            yield batch
        pace.ended(found, used, sum((part.size or 0) // part.parts for part in parts))

    def few(batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
        found, count, used = [], 0, 0
        for batch in batches:
            left = batch.num_rows if scan.limit is None else scan.limit - count
            found.append(batch.slice(0, left))
            count, used = count + found[-1].num_rows, used + found[-1].nbytes
            if count > FEW_ROWS or used > FEW_BYTES or (scan.limit is None and pace.is_much):
                return None
            if count == scan.limit:
                break
        return pa.Table.from_batches(found, to_arrow(scan.schema))

    return given(engine, scan, read, few, scan.schema, late, looks=_LOOKS if size > TASK_BYTES else 1)


class _Pace:
    """What the tasks that have ended found, by which the rest is guessed: half of a large table is not read here to see
    that the other half is too much. The guess may be wrong, where rows that pass are together; then tasks of Spark's
    read what is little."""

    def __init__(self, size: int) -> None:
        self._size, self._lock = size, Lock()
        self._rows = self._bytes = self._read = 0

    def ended(self, rows: int, used: int, read: int) -> None:
        """Notes the rows of a task, their bytes, and those of its files."""
        with self._lock:
            self._rows, self._bytes, self._read = self._rows + rows, self._bytes + used, self._read + read

    @property
    def is_much(self) -> bool:
        """Whether all rows will be far more than a few, by as many as tell it."""
        with self._lock:
            found = max(self._rows / FEW_ROWS, self._bytes / FEW_BYTES)
            return self._read > 0 and found > 1 / 16 and found * self._size > 2 * self._read


def given(
    engine: Spark,
    scan: Scan,
    read: Callable[[Sequence[FilePart]], Iterator[pa.RecordBatch]],
    gathered: Callable[[Iterator[pa.RecordBatch]], pa.Table | None],
    schema: StructType,
    late: Late,
    *,
    looks: int = 1,
) -> DataFrame | None:
    """What is `gathered` of the batches that this process reads, as a DataFrame; None if that is nothing, or fails.
    Each of several threads takes at least `looks` tasks."""
    from mica.engines.spark.batches import for_spark

    most = min(local.threads(), engine.parallelism)
    try:
        tasks, threads = scan.for_threads(scan.spec(), most, each=looks)
        with closing(local.shown(read, tasks, parallelism=threads)) as batches:
            found = gathered(batches)
        if found is None:
            return None
        whole = found.combine_chunks().to_batches() or [batch_of([], to_arrow(schema))]
        return engine.given(pa.Table.from_batches([for_spark(batch, schema, late) for batch in whole]), schema)
    except Exception:  # noqa: BLE001 - a slower way is left
        _LOG.debug("left to Spark's tasks, which report what is wrong", exc_info=True)
        return None
