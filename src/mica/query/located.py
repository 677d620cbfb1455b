"""Where the tables of the session's databases are: those of its catalog, and registered names of several parts.

The rule: a name is mica's only if this process reaches the table's files. A Spark Connect server may have tables where
its client has neither files nor credentials, and a path of its disk may be another one's here: those are Spark's.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mica.engines.spark import catalog, metastore
from mica.engines.spark.session import is_connect
from mica.errors import MicaError, UserError
from mica.log.snapshot import exists
from mica.query import kept_names, registry
from mica.query.statement_parts import name_parts
from mica.schema.spelling import quoted, spelled
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
    current one. A name of `mica.register` is in the current database, if the catalog has no such table there.
    """
    known = known_as(spark, parts)
    if known is not None and len(parts) + len(known) > 2:
        return registry.storage_of(".".join(known))
    short = _in_current(spark, parts)
    return None if short is None else registry.storage_of(short)


def known_as(spark: SparkSession, parts: Sequence[str]) -> tuple[str, ...] | None:
    """The registered name that is meant. One of one part is that of a table in the database default, or one of
    `mica.register`, which each database has that has no other by this name."""
    kept_names.learn(spark, parts)
    given = tuple(parts)
    if len(given) != 1:
        return _of_several(given)
    is_known = registry.is_registered(given[0])
    everywhere = given if is_known and registry.is_everywhere(given[0]) else None
    if not registry.has_qualified() and (everywhere is not None or not is_known):
        return everywhere
    current = str(spark.catalog.currentDatabase())
    if is_known and current.lower() == registry.DEFAULT:
        return given
    own = (current, *given)
    if registry.storage_of(own) is None or catalog.is_temporary(spark, given[0]):
        return everywhere
    return own


def named_place(spark: SparkSession, parts: Sequence[str]) -> tuple[str, Storage] | None:
    """The registered name that a method means, its parts joined, and its place: `known_as`, or one that is written with
    the current database, as in a text."""
    known = known_as(spark, parts)
    if known is None and not is_connect(spark):
        short = _in_current(spark, parts)
        known = None if short is None else (short,)
    storage = None if known is None else registry.storage_of(known)
    return None if known is None or storage is None else (".".join(known), storage)


def full_name(spark: SparkSession, parts: Sequence[str]) -> str | None:
    """A registered name with its catalog and database, as Spark's tables have theirs; one of `mica.register` without a
    database has none. None for what is not registered."""
    known = known_as(spark, parts)
    if known is None:
        return None
    own = tuple(map(str.lower, registry.without_catalog(known)))
    if len(own) == 1 and registry.is_everywhere(own[0]):
        return own[0]
    return ".".join((catalog.CATALOG, *(() if len(own) > 1 else (registry.DEFAULT,)), *own))


def _in_current(spark: SparkSession, parts: Sequence[str]) -> str | None:
    """A name of `mica.register` that is written with the current database, which has no other table by it."""
    own = registry.without_catalog(parts)
    if len(own) != 2 or not registry.is_everywhere(own[1]) or registry.is_table(own[1]):
        return None
    if own[0].lower() != str(spark.catalog.currentDatabase()).lower():
        return None
    # Of an enabled session PySpark's own method asks here.
    asked = spark.catalog if is_connect(spark) else spark._jsparkSession.catalog()  # noqa: SLF001
    return None if asked.tableExists(spelled(tuple(parts))) else own[1]


def _of_several(parts: tuple[str, ...]) -> tuple[str, ...] | None:
    if registry.storage_of(parts) is not None:
        return parts
    name = _of_default(parts)
    return (name,) if name is not None and registry.is_registered(name) else None


def _of_default(parts: Sequence[str]) -> str | None:
    """The last part of a name of the database default, unless a name of `mica.register` is the same."""
    own = registry.without_catalog(parts)
    is_own = len(own) == 2 and own[0].lower() == registry.DEFAULT and not registry.is_everywhere(own[1])
    return own[1] if is_own else None


def new_name(spark: SparkSession, parts: Sequence[str]) -> tuple[str, ...]:
    """The name that a table gets: the one that is known, or else with the current database, so that tables of two
    databases are two. Errors: INVALID_ARGUMENT for a database that a metastore does not have, where the name would be
    this process's alone."""
    known = known_as(spark, parts)
    if known is not None:
        return known
    if metastore.is_ours(spark):
        _refuse_without_database(spark, registry.without_catalog(parts))
    if len(parts) > 1:
        short = _of_default(parts)
        return tuple(parts) if short is None else (short,)
    current = str(spark.catalog.currentDatabase())
    return tuple(parts) if current.lower() == registry.DEFAULT else (current, *parts)


def _refuse_without_database(spark: SparkSession, parts: Sequence[str]) -> None:
    database = parts[0] if len(parts) > 1 else str(spark.catalog.currentDatabase())
    if not spark.catalog.databaseExists(quoted(database)):
        raise UserError(
            "INVALID_ARGUMENT",
            f"the metastore has no database {database} for the name {spelled(tuple(parts))}",
            hint=f"CREATE SCHEMA {database} makes it.",
        )


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
