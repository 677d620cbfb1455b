"""Where the tables of the session's catalog are.

The rule: a name is mica's only if this process reaches the table's files. A Spark Connect server may have tables where
its client has neither files nor credentials, and a path of its disk may be another one's here: those are Spark's.
"""

from __future__ import annotations

import socket
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
        storage = Storage.open(place)
        reached = (storage.local_path is None or _is_here(spark)) and exists(storage)
    except MicaError:
        return None
    return place if reached else None


def _is_here(spark: SparkSession) -> bool:
    """Whether a Spark Connect server runs on this machine, as far as its address says so."""
    host = str(getattr(getattr(spark, "client", None), "host", ""))
    return host in ("localhost", "127.0.0.1", "::1", "[::1]", socket.gethostname())
