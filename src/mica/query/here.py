"""Decides what Spark needs of a table that is read in this process, since that is less work than a job.

The rule: Spark gets little of it, the groups of an aggregate or few rows. It is read here if Spark's tasks would run on
this machine anyway, or if all of it would be one task (`scan/little.py` reads it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mica.engines.spark.batches import REFUSED
from mica.engines.spark.engine import Spark
from mica.scan import little
from mica.scan.scan import Scan
from mica.tasks.fold import ReadFolded
from mica.tasks.gather import Gather
from mica.tasks.parts import TASK_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows(engine: Spark, scan: Scan) -> DataFrame | None:
    """The rows of a scan as a DataFrame; None if Spark's tasks are to read them."""
    if scan.limit is not None:
        if scan.limit > little.FEW_ROWS:
            return None
    elif not little.is_little(scan) and not (scan.where is not None and engine.is_local):
        return None
    return little.rows(engine, scan, REFUSED)


def groups(engine: Spark, scan: Scan, gather: Gather) -> DataFrame | None:
    """The groups of an aggregate over a scan as a DataFrame; None if Spark's tasks are to make them."""
    if little.size_of(scan) > TASK_BYTES and not engine.is_local:
        return None
    schema = gather.schema(scan.schema)
    return little.given(engine, scan, ReadFolded(scan.spec(), gather.fold), gather.of, schema, REFUSED)
