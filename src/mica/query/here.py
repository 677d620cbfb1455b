"""Reads what Spark needs of a table in this process, if that is less work than a job.

The rule: Spark gets little of it, the groups of an aggregate or few rows. It is read here if Spark's tasks would run on
this machine anyway, or if all of it would be one task. What fails or is too much is left to Spark's tasks, which report
it in their way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from mica import compute as pc
from mica.arrays import batch_of
from mica.engines import local
from mica.engines.spark.batches import for_spark
from mica.engines.spark.engine import Spark
from mica.scan.scan import Scan
from mica.schema.arrow import to_arrow
from mica.schema.types import StructType
from mica.tasks.fold import ReadFolded
from mica.tasks.gather import Gather
from mica.tasks.parts import TASK_BYTES, FilePart
from mica.tasks.read import read_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOG = logging.getLogger("mica")

#: Rows without an aggregate are few, if they are not more; and so many bytes of files are worth a look.
FEW_ROWS, FEW_BYTES, FEW_FILE_BYTES = 50_000, 8 << 20, 4 << 20


def rows(engine: Spark, scan: Scan) -> DataFrame | None:
    """The rows of a scan as a DataFrame; None if Spark's tasks are to read them."""
    if scan.limit is not None:
        if scan.limit > FEW_ROWS:
            return None
    elif _size(scan) > FEW_FILE_BYTES and not (scan.where is not None and engine.is_local):
        return None

    def few(batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
        found, count, used = [], 0, 0
        for batch in batches:
            found.append(batch)
            count, used = count + batch.num_rows, used + batch.nbytes
            if scan.limit is not None and count >= scan.limit:
                break
            if count > FEW_ROWS or used > FEW_BYTES:
                return None
        return pa.Table.from_batches(found, to_arrow(scan.schema))

    return _given(engine, scan, partial(read_parts, scan.spec()), few, scan.schema)


def groups(engine: Spark, scan: Scan, gather: Gather) -> DataFrame | None:
    """The groups of an aggregate over a scan as a DataFrame; None if Spark's tasks are to make them."""
    if _size(scan) > TASK_BYTES and not engine.is_local:
        return None
    return _given(engine, scan, ReadFolded(scan.spec(), gather.fold), gather.of, gather.schema(scan.schema))


def _size(scan: Scan) -> int:
    return pc.sum(scan.kept.column("size")).as_py() or 0


def _given(
    engine: Spark,
    scan: Scan,
    read: Callable[[Sequence[FilePart]], Iterator[pa.RecordBatch]],
    gathered: Callable[[Iterator[pa.RecordBatch]], pa.Table | None],
    schema: StructType,
) -> DataFrame | None:
    most = min(local.threads(), engine.parallelism)
    try:
        tasks, threads = scan.for_threads(scan.spec(), most)
        with closing(local.shown(read, tasks, parallelism=threads)) as batches:
            found = gathered(batches)
        if found is None:
            return None
        whole = found.combine_chunks().to_batches() or [batch_of([], to_arrow(schema))]
        return engine.given(pa.Table.from_batches([for_spark(batch, schema) for batch in whole]), schema)
    except Exception:  # noqa: BLE001 - a slower way is left
        _LOG.debug("left to Spark's tasks, which report what is wrong", exc_info=True)
        return None
