"""Where the tables of the session's databases are: those of its catalog, and registered names of several parts.

The rule: a name is mica's only if this process reaches the table's files. A Spark Connect server may have tables where
its client has neither files nor credentials, and a path of its disk may be another one's here: those are Spark's.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mica.engines.spark import catalog
from mica.engines.spark.session import is_connect
from mica.errors import MicaError
from mica.log.snapshot import exists
from mica.query import registry
from mica.query.statement_parts import name_parts
from mica.schema.ddl import spelled
from mica.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def located(spark: SparkSession, name: str) -> Storage | str | None:
    """The place of a registered name with its database, or the path of a Delta table of the session's catalog; None for
    anything else."""
    parts = name_parts(name)
    known = None if parts is None else in_database(spark, parts)
    return _in_catalog(spark, name) if known is None else known


def in_database(spark: SparkSession, parts: Sequence[str]) -> Storage | None:
    """The place of a name that is registered with its database, which a name of one part leaves out where it is the
    current one. A name that is registered without is in the current database, if the catalog has no such table there.
    """
    found = registry.qualified(parts)
    if found is not None or not (len(parts) > 1 or registry.has_qualified()):
        return found
    current = str(spark.catalog.currentDatabase())
    if len(parts) == 1:
        return None if catalog.is_temporary(spark, parts[0]) else registry.qualified([current, *parts])
    own = parts[1:] if parts[0].lower() == catalog.CATALOG else parts
    if len(own) != 2 or own[0].lower() != current.lower() or registry.is_table(own[1]):
        return None
    return None if spark.catalog.tableExists(spelled(tuple(parts))) else registry.storage_of(own[1])


def _in_catalog(spark: SparkSession, name: str) -> str | None:
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
