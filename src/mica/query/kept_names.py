"""Names of tables that the session's metastore keeps, where no delta-spark reads its Delta tables.

The rule: a Delta table of the metastore has a registered name from its first mention until the metastore has it no
more. What is made, renamed, moved or dropped by name is so there, too, and other processes find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from mica.engines.spark import metastore
from mica.errors import UserError
from mica.log.snapshot import exists
from mica.query import registry
from mica.schema.spelling import spelled
from mica.storage import Storage
from mica.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_P = ParamSpec("_P")
_R = TypeVar("_R")
#: The names that were looked up for the text that runs: each once.
_ASKED: ContextVar[set[tuple[str, ...]] | None] = ContextVar("mica_asked", default=None)


def once_a_text(run: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, for which the metastore is asked for each name once."""

    @wraps(run)
    def ran(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if _ASKED.get() is not None:
            return run(*args, **kwargs)
        before = _ASKED.set(set())
        try:
            return run(*args, **kwargs)
        finally:
            _ASKED.reset(before)

    return ran


def learn(spark: SparkSession, parts: Sequence[str]) -> None:
    """Registers the Delta table that the metastore has by a name, or forgets one that it had. A name that the process
    has otherwise is that."""
    own = tuple(map(str.lower, registry.without_catalog(parts)))
    if not metastore.is_ours(spark) or len(own) > 2 or not all(map(registry.IDENTIFIER.fits, own)):
        return
    database, name = own if len(own) > 1 else (str(spark.catalog.currentDatabase()).lower(), own[0])
    asked = _ASKED.get()
    if asked is not None and (database, name) in asked:
        return
    if asked is not None:
        asked.add((database, name))
    known = _known(database, name)
    before = registry.kept_at(known)
    if before is None and registry.is_registered(known):
        return
    found = metastore.entry(spark, database, name)
    if found is None and before is not None:
        registry.forget(known)
    elif found is not None and found.place != before:
        _kept(known, found)


def learn_all(spark: SparkSession, database: str, names: Callable[[], Iterable[str]]) -> None:
    """The same for many tables of a database; their names are asked for if there is a metastore."""
    if metastore.is_ours(spark):
        for name in names():
            learn(spark, (database, name))


def give(spark: SparkSession, name: str, place: Storage, *, managed: bool = False) -> Table:
    """Gives a name to the newest version at a place, as `registry.give`."""
    found = registry.give(name, place, managed=managed)
    _entered(spark, name, place, managed=managed)
    return found


def promise(spark: SparkSession, name: str, place: Storage, *, managed: bool = False) -> None:
    """The same for a table that is about to be made, as `registry.promise`."""
    registry.promise(name, place, managed=managed)
    _entered(spark, name, place, managed=managed)


def forget(spark: SparkSession, name: str) -> None:
    """Takes a registered name away."""
    if registry.kept_at(name) is not None:
        metastore.leave(spark, *_parts(name))
    registry.forget(name)


def rename(spark: SparkSession, name: str, new: str) -> None:
    """Gives a registered table another name. The metastore may move the folder of a managed table with it. Errors:
    those of `registry.rename`; INVALID_ARGUMENT for another database; Spark's for a name that the metastore has."""
    if registry.kept_at(name) is None:
        registry.rename(name, new)
        return
    (database, last), (there, wanted) = _parts(name), _parts(new)
    if there != database:
        raise UserError.bad_value("RENAME TO", spelled((there, wanted)), f"a name in the database {database}")
    if registry.is_registered(new) and registry.kept_at(new) is None:
        raise registry.taken(new)
    before = registry.storage_of(name)
    metastore.renamed(spark, database, last, wanted)
    registry.forget(name)
    found = metastore.entry(spark, database, wanted)
    # Of a managed table the entry has the usual folder of the new name then, whether Hive has moved the files or not.
    if found is not None and before is not None and exists(before) and not exists(Storage.open(found.place)):
        metastore.moved(spark, database, wanted, str(before))
        found = metastore.entry(spark, database, wanted)
    if found is not None:
        _kept(new, found)


def relocate(spark: SparkSession, name: str, path: str) -> None:
    """Gives a registered name to the table at a path, as `registry.relocate`."""
    kept = registry.kept_at(name)
    registry.relocate(name, path)
    place = registry.place_of(name)
    if kept is not None and place is not None:
        metastore.moved(spark, *_parts(name), place)


def _entered(spark: SparkSession, name: str, place: Storage, *, managed: bool) -> None:
    """Enters a new name, if the metastore has its database."""
    if registry.kept_at(name) is not None or not metastore.is_ours(spark):
        return
    database, last = _parts(name)
    if spark.catalog.databaseExists(database):
        metastore.enter(spark, database, last, metastore.TableEntry(str(place), managed))
        found = metastore.entry(spark, database, last)
        if found is not None:
            _kept(name, found, place)


def _kept(name: str, found: metastore.TableEntry, place: Storage | None = None) -> None:
    """Registers what the metastore has; `place` if it is known with its options."""
    registry.keep(name, place or Storage.open(found.place), found.place, managed=found.managed)


def _parts(name: str) -> tuple[str, str]:
    """The database of a registered name, and its last part, in lower case."""
    *before, last = registry.without_catalog(name.replace("`", "").lower().split("."))
    return (".".join(before) or registry.DEFAULT, last)


def _known(database: str, name: str) -> str:
    """How a table of a database is registered: what is in `default` has a name of one part."""
    return name if database == registry.DEFAULT else f"{database}.{name}"
