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

#: The database that Spark begins in.
_DEFAULT = "default"


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
    known = known_as(spark, parts)
    if len(parts) < 2 or known is not None:
        return None if known is None or len(known) == 1 else registry.qualified(known)
    own = registry.without_catalog(parts)
    if len(own) != 2 or own[0].lower() != str(spark.catalog.currentDatabase()).lower() or registry.is_table(own[1]):
        return None
    return None if spark.catalog.tableExists(spelled(tuple(parts))) else registry.storage_of(own[1])


def known_as(spark: SparkSession, parts: Sequence[str]) -> tuple[str, ...] | None:
    """The registered name that is meant. One of the current database comes before one of one part, which is a table of
    the database default or a name of `mica.register`; not in the database default itself."""
    given = tuple(parts)
    if len(given) != 1:
        return None if registry.qualified(given) is None else given
    alone = given if registry.is_registered(given[0]) else None
    if not registry.has_qualified():
        return alone
    current = str(spark.catalog.currentDatabase())
    own = (current, *given)
    if registry.qualified(own) is None or (alone is not None and current.lower() == _DEFAULT):
        return alone
    return alone if catalog.is_temporary(spark, given[0]) else own


def new_name(spark: SparkSession, parts: Sequence[str]) -> tuple[str, ...]:
    """The name that a table gets: the one that is known, or else with the current database, so that tables of two
    databases are two."""
    known = known_as(spark, parts)
    if known is not None or len(parts) > 1:
        return tuple(parts) if known is None else known
    current = str(spark.catalog.currentDatabase())
    return tuple(parts) if current.lower() == _DEFAULT else (current, *parts)


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
