"""Where the tables of the session's catalog are.

The rule: a name is mica's only if this process reaches the table's files. A Spark Connect server may have tables where
its client has neither files nor credentials: those are Spark's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mica.engines.spark import catalog
from mica.engines.spark.session import is_connect
from mica.errors import MicaError
from mica.log.snapshot import exists
from mica.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def located(spark: SparkSession, name: str) -> str | None:
    """The path of a Delta table of the session's catalog; None for anything else."""
    place = catalog.delta_location(spark, name)
    if place is None or not is_connect(spark):
        return place
    try:
        return place if exists(Storage.open(place)) else None
    except MicaError:
        return None
