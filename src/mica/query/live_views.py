"""Temporary views of SQL, which show the newest versions of their tables, as those that Spark keeps as texts do.

The rule: before a text that names such a view runs, the view is made again of its query if one of its tables, a view
that it reads, or a variable of the session has changed since. One that somebody else made or dropped since is theirs;
one whose query fails now, or names other tables, keeps the versions that it has.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import field, replace
from threading import RLock
from typing import TYPE_CHECKING, Any

from mica.engines.spark import catalog
from mica.engines.spark.making import Maker
from mica.engines.spark.marks import framed
from mica.engines.spark.nodes import names_of
from mica.engines.spark.session import is_connect
from mica.engines.spark.stored_views import Definition
from mica.engines.spark.types import unread
from mica.query import lent, names
from mica.query.insert import Query
from mica.query.select import whole_tables
from mica.query.tables import relations, tables_of
from mica.query.view_statements import View
from mica.records import dataclass
from mica.schema.spelling import quote_if_needed
from mica.table import Table, marked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger("mica")
#: What may give a text another meaning, beside the current catalog and database: all settings of Spark's SQL but those
#: of how it runs, which it does not keep with a view either, and of how files and streams are read.
_SETTINGS = re.compile(
    r"spark\.sql\.(?!adaptive|catalog|cbo|codegen|execution|files|hive|inMemoryColumnarStorage|maxPlanStringLength"
    r"|optimizer|orc|parquet|python|redaction|shuffle|sources|stateful|statistics|streaming|ui|warehouse)"
)


@dataclass
class _Settings:
    """What a text means in a session: its current catalog and database, and its settings that were set."""

    catalog: str
    database: str
    values: dict[str, str]


@dataclass
class _Live:
    """A view as it was made last: its query, what that names, and what it rests on."""

    view: View
    found: names.Named
    #: The tables by their names in `found`: those that are read at no version, and the others.
    tables: dict[str, Table]
    pinned: dict[str, Table]
    #: What the query names, and the views among it, and the session's variables: the identities of what the session
    #: had by their names; None for those of an earlier making.
    named: frozenset[str]
    others: dict[str, int] | None
    settings: _Settings
    #: The columns of the query, the identity of the view, and the name of the table all of which it shows, if it does.
    given: list[str] = field(default_factory=list)
    own: int | None = None
    whole: tuple[str, ...] | None = None
    #: The last identities that it had before: a clone of the session may have one of them.
    past: tuple[int, ...] = ()


#: How many earlier makings of a view are known.
_PAST = 1000
#: The views by session and name, in lower case; of one that Spark makes what its query names.
_Known = dict[str, "_Live | frozenset[str]"]
_KNOWN: dict[str, _Known] = {}
_LOCK = RLock()
#: Whether views are made again in this context.
_RUNS: ContextVar[bool] = ContextVar("mica_renews", default=False)


def make(spark: SparkSession, view: View, query: Query) -> None:
    """Makes the temporary view of a query over tables of mica's, and remembers how, if it can be made again."""
    known, live = _views(spark), _new(spark, view)
    rows = unread(query(view.query))
    if live is not None:
        live.given = _columns(rows)
    _made(rows, view)
    with _LOCK:
        known.pop(view.name.lower(), None)
        if live is not None:
            live.own = _identity(spark, view.name)
            live.whole = catalog.name_of_view(spark, view.name, marked.NEWEST)
            known[view.name.lower()] = live


def by_spark(spark: SparkSession, view: View) -> None:
    """Remembers what the query of a view that Spark makes names: that may be other views."""
    known = _views(spark)
    with _LOCK:
        known.pop(view.name.lower(), None)
        if not is_connect(spark):
            known[view.name.lower()] = _named(spark, view)


def shows(spark: SparkSession, name: str) -> tuple[str, ...] | None:
    """The name of the table all of which a view showed when it was made: columns that were added since it does not."""
    live = _views(spark).get(name.lower())
    return live.whole if isinstance(live, _Live) and live.own == _identity(spark, name) else None


def reads(spark: SparkSession, name: str) -> list[str]:
    """The paths of the tables that a view reads; none for a view that is not one of these."""
    live = _views(spark).get(name.lower())
    if not isinstance(live, _Live) or live.own != _identity(spark, name):
        return []
    return sorted({table.path for table in (*live.tables.values(), *live.pinned.values())})


def replaced(spark: SparkSession, name: str, by: Callable[[], None]) -> None:
    """Lets another view of the same rows take the place of one, which is made again as before."""
    with _LOCK:
        live = _views(spark).get(name.lower())
        before = _identity(spark, name)
        by()
        if isinstance(live, _Live) and live.own == before:
            _goes_on(live, _identity(spark, name))


def are_known() -> bool:
    """Whether a text may name a view that is made again."""
    return bool(_KNOWN)


def renew(spark: SparkSession, text: str, query: Query) -> None:
    """Makes the views again that a text names and whose tables have changed."""
    if not _KNOWN or is_connect(spark) or _RUNS.get():  # the views of a view's query are those of its text, too
        return
    before = _RUNS.set(True)
    try:
        with _LOCK:
            known = _views(spark)
            if known:
                _renew(spark, known, _mentioned(spark, text, known), query, set())
    finally:
        _RUNS.reset(before)


def _mentioned(spark: SparkSession, text: str, known: _Known) -> frozenset[str]:
    """The views that a text may name, as words of it or of a function of the session that it calls; all of them, if it
    may compute a name."""
    if "identifier" in text.lower():
        return frozenset(known)
    return frozenset(names.words(text)) | _in_functions(spark, text, known)


def _in_functions(spark: SparkSession, text: str, known: _Known) -> frozenset[str]:
    """The views that the functions of a text may name."""
    said = lent.of_functions(spark, text)
    return frozenset(name for name in known if said and lent.is_word(name, said))


def _renew(spark: SparkSession, known: _Known, named: frozenset[str], query: Query, seen: set[str]) -> None:
    """Makes the views of these names again, those that they name first, and each once."""
    for name in known.keys() & named:
        live = known.get(name)
        if live is None or name in seen:
            continue
        seen.add(name)
        _renew(spark, known, live.named if isinstance(live, _Live) else live, query, seen)
        if not isinstance(live, _Live):
            continue
        if _identity(spark, live.view.name) != live.own:
            del known[name]
            continue
        try:
            _remade(spark, live, query)
        except Exception:  # noqa: BLE001 - it shows what it showed
            _LOG.debug("a view keeps the versions of its tables", exc_info=True)


def _remade(spark: SparkSession, live: _Live, query: Query) -> None:
    newest = {name: Table(table.snapshot.refresh()) for name, table in live.tables.items()}
    others, stored = _others(spark, live.named), live.found.stored
    # A later view of the name of a stored one hides it from later texts alone.
    behind = frozenset(name.lower() for name in stored if catalog.is_temporary(spark, name))
    found = tables_of(live.view.query, spark, behind=behind) if stored else None
    changed = found is not None and not _are_same(found.stored, stored)
    same = others == live.others and all(_version(newest[name]) == _version(one) for name, one in live.tables.items())
    if same and not changed:
        return
    if live.settings == _settings(spark):
        found = found or tables_of(live.view.query, spark)
        if found is None:
            return
        if changed:
            newest, live.found, live.pinned = _unpinned(found), found, _pinned(found)
        now, then = _paths(_unpinned(found)), _paths(newest)
        if now != then and not _are_hidden(spark, now, then):
            return
        rows = query(live.view.query) if now == then and not behind else _as_then(spark, live, newest)
    elif changed:
        return
    else:
        rows = _as_then(spark, live, newest)
    rows = unread(rows)
    if _columns(rows) != live.given:
        rows = rows.select([rows[quote_if_needed(name)] for name in live.given])  # as of a text that Spark keeps
    _made(rows, live.view, again=True)
    live.tables, live.others = newest, others
    _goes_on(live, _identity(spark, live.view.name))


def _are_hidden(spark: SparkSession, now: dict[str, str], then: dict[str, str]) -> bool:
    """Whether names of a query lead to the tables of its making, but for those that are later views', which hide no
    table from an earlier one."""
    lost = [name for name, path in then.items() if now.get(name) != path]
    others = {*now.values()} - {*then.values()}
    return not others and all(name not in now and catalog.is_temporary(spark, name) for name in lost)


def _as_then(spark: SparkSession, live: _Live, tables: dict[str, Table]) -> DataFrame:
    """The rows of the query under the settings of its making, as Spark keeps them with a view."""

    def set_back(clone: Any) -> None:
        then, now = live.settings, _given(spark)
        clone.catalog().setCurrentCatalog(then.catalog)
        clone.catalog().setCurrentDatabase(then.database)
        for name in then.values.keys() | now.keys():
            value = then.values.get(name)
            if value is None:
                clone.conf().unset(name)
            elif value != now.get(name):  # others may be fixed
                clone.conf().set(name, value)

    return framed(spark, whole_tables(spark, live.found, {**live.pinned, **tables}, None, set_back))


def _new(spark: SparkSession, view: View) -> _Live | None:
    """What is remembered of a view before it is made; None for one that cannot be made again: of all sessions, or over
    its own name, or a change feed."""
    if view.shared or is_connect(spark) or names.FED in view.query:
        return None
    named, found = _named(spark, view), tables_of(view.query, spark)
    if found is None or view.name.lower() in named:
        return None
    return _Live(view, found, _unpinned(found), _pinned(found), named, _others(spark, named), _settings(spark))


def _named(spark: SparkSession, view: View) -> frozenset[str]:
    """The tables and views that a view's query names, in lower case."""
    parsed = relations(spark, view.query)
    own = frozenset() if parsed is None else frozenset(map(str.lower, parsed.names))
    return own | _in_functions(spark, view.query, _views(spark))


def _made(rows: DataFrame, view: View, *, again: bool = False) -> None:
    rows = rows.toDF(*view.columns) if view.columns else rows
    kind = "GlobalTempView" if view.shared else "TempView"
    getattr(rows, f"create{'OrReplace' if view.replace or again else ''}{kind}")(quote_if_needed(view.name))


def _columns(rows: Any) -> list[str]:
    """The names of the columns; Spark shows those whose collation is not certain, too."""
    return names_of(rows._jdf.schema())  # noqa: SLF001


def _unpinned(found: names.Named) -> dict[str, Table]:
    """The tables that a query reads at no version."""
    return {name: table for name, table in found.views.items() if name not in found.pinned}


def _pinned(found: names.Named) -> dict[str, Table]:
    return {name: found.views[name] for name in found.pinned}


def _are_same(now: Mapping[str, Definition], then: Mapping[str, Definition]) -> bool:
    """Whether stored views are those that they were."""
    return now.keys() == then.keys() and all(
        one.entry.equals(then[name].entry) and _are_same(one.views, then[name].views) for name, one in now.items()
    )


def _paths(tables: dict[str, Table]) -> dict[str, str]:
    return {name: table.path for name, table in tables.items()}


def _version(table: Table) -> tuple[str, int]:
    return table.metadata.id, table.version


def _others(spark: SparkSession, named: frozenset[str], found: dict[str, int] | None = None) -> dict[str, int]:
    """The identities of the views of these names, of those in the queries that Spark keeps, and of the variables."""
    if found is None:
        identity = Maker.of(spark).identity
        found = {f"variable {name}": int(identity(value)) for name, value in catalog.variables(spark).items()}
    known = _views(spark)
    for name in named - found.keys():
        own = _identity(spark, name)
        if own is not None:
            found[name] = own
            inner = known.get(name)
            if isinstance(inner, frozenset):
                _others(spark, inner, found)
    return found


def _goes_on(live: _Live, own: int | None) -> None:
    """Another view takes the place of one."""
    live.past = (*live.past, *(() if live.own is None else (live.own,)))[-_PAST:]
    live.own = own


def _identity(spark: SparkSession, name: str) -> int | None:
    """Tells the session's view of a name from all others; None if it has none."""
    own = catalog.temporary(spark, name)
    return None if own is None else int(Maker.of(spark).identity(own))


def _settings(spark: SparkSession) -> _Settings:
    return _Settings(spark.catalog.currentCatalog(), spark.catalog.currentDatabase(), _given(spark))


def _given(spark: SparkSession) -> dict[str, str]:
    given: Any = spark.conf.getAll
    return {name: value for name, value in given.items() if _SETTINGS.match(name)}


def _views(spark: Any) -> _Known:
    """The views of a session by their names. One that is new here may be a clone, as for `foreachBatch`, which has the
    views that the other one had."""
    if is_connect(spark):
        return {}
    session = str(spark._jsparkSession.sessionUUID())  # noqa: SLF001
    with _LOCK:
        if session not in _KNOWN:
            others = [one for views in _KNOWN.values() for one in views.items()]
            here = {name: _identity(spark, name) for name, _ in others}
            _KNOWN[session] = {name: _in_clone(live, here[name]) for name, live in others if _is_in(live, here[name])}
        return _KNOWN[session]


def _is_in(live: _Live | frozenset[str], here: int | None) -> bool:
    """Whether a view is the one that a session has by its name, or one that was made again since."""
    return here is not None and (not isinstance(live, _Live) or here == live.own or here in live.past)


def _in_clone(live: _Live | frozenset[str], here: int | None) -> _Live | frozenset[str]:
    """A view of a session as its clone has it."""
    if not isinstance(live, _Live):
        return live
    return replace(live, own=here, others=live.others if here == live.own else None)
