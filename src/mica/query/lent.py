"""Lends tables of mica's to Spark, for statements that only Spark runs.

The rule: a table is a temporary view under its registered name, and a stored view over tables one under its own, for as
long as Spark takes to run a text; a view of the session's own by that name is back after it. Spark is asked first
without: only a name that it does not find is lent, or a view in which it does not find one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

from mica.engines.spark import catalog
from mica.engines.spark.errors import is_condition
from mica.engines.spark.session import is_connect, without_sql_log
from mica.engines.spark.stored_views import stored_names
from mica.engines.spark.types import to_spark, unread
from mica.errors import MicaError, UserError
from mica.query import registry
from mica.query.located import known_as
from mica.schema.lexical import GAP, QUOTED_STRING, SPACE
from mica.schema.spelling import quoted, spelled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mica.log.snapshot import Snapshot
    from mica.schema.types import StructType
    from mica.table import Table

_UNKNOWN = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view `(\w+)` cannot be found")
#: The same of a name with its database, which no temporary view has.
_UNKNOWN_THERE = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view ((?:`\w+`\.)+`\w+`) cannot be found")
#: What changes a view, or takes it away: a lent one is none of the session's, and a renamed one would stay.
_OF_VIEWS = re.compile(rf"(?is){GAP}(?:ALTER{SPACE}VIEW|DROP)\b")
#: A name that may be no constant. No comments are read here: of thousands that never end each would be read to the end.
_COMPUTED = re.compile(rf"(?i)\bIDENTIFIER\b(?!\s*+\(\s*+{QUOTED_STRING}\s*+\))")
#: What Spark says of a statement that wants more than a temporary view.
_NO_VIEW = (
    "EXPECT_TABLE_NOT_VIEW", "EXPECT_PERMANENT_TABLE_NOT_TEMP", "EXPECT_PERMANENT_VIEW_NOT_TEMP",
    "INVALID_TEMP_OBJ_REFERENCE", "UNSUPPORTED_FEATURE.ANALYZE_UNCACHED_TEMP_VIEW", "UNSUPPORTED_FEATURE.ANALYZE_VIEW",
    "UNSUPPORTED_FEATURE.TABLE_OPERATION", "UNSUPPORTED_INSERT",
)  # fmt: skip
#: Where an error begins: before it may be Py4J's words.
_FIRST = re.compile(r"\[[A-Z_.]+\] .*")
#: What Spark says of a change of such a view, as of a failure of its own.
_NO_TABLE = "[INTERNAL_ERROR] Unexpected table relation"


#: What was lent before, to be lent again while it is the newest version.
Views = dict[str, "tuple[Snapshot, DataFrame]"]
#: Gives the rows of a stored view over tables of mica's; None for any other name.
Stored = Callable[[str], "DataFrame | None"]


class _Held:
    """A name that is lent to a session: by how many threads or calls, and the session's own view of that name."""

    def __init__(self, own: Any) -> None:
        self.times, self.own = 0, own


_HELD: dict[tuple[str, str], _Held] = {}
_LOCK = RLock()


class Lent:
    """The tables that are lent to a session; as a context manager it takes them back."""

    def __init__(self, spark: SparkSession, views: Views | None = None, stored: Stored | None = None) -> None:
        """`stored` gives the rows of stored views, which are not lent without."""
        self._spark, self._stored = spark, stored
        self._views: Views = {} if views is None else views
        self._lent: dict[str, Snapshot | None] = {}
        self._listed: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._listed:
            self._spark.catalog.dropTempView(name)
        for name in self._lent:
            self._take_back(name)

    def _take_back(self, name: str) -> None:
        with _LOCK:
            key = self._key(name)
            held = _HELD[key]
            held.times -= 1
            if held.times:
                return  # another thread's, too, whose view this is now
            del _HELD[key]
            self._spark.catalog.dropTempView(name)
            if held.own is not None:
                catalog.set_temporary(self._spark, name, held.own)

    def _key(self, name: str) -> tuple[str, str]:
        own: Any = self._spark
        session = own.session_id if is_connect(own) else str(own._jsparkSession.sessionUUID())  # noqa: SLF001
        return session, name if own.conf.get("spark.sql.caseSensitive") == "true" else name.lower()

    def lend_names(self, names: Mapping[str, StructType]) -> None:
        """Lends names that the session has no view of, with these columns and without rows: for a list on Spark
        Connect."""
        for name, schema in names.items():
            rows: Any = self._spark.createDataFrame([], to_spark(schema)) if schema.fields else self._spark.range(0)
            rows.createOrReplaceTempView(quoted(name))
            self._listed.append(name)

    def lend(self, name: str) -> bool:
        """Lends a table at its newest version; False if there is nothing new to lend by this name."""
        table = self._table(name)
        if table is None or self._lent.get(name) is table.snapshot:
            return False
        before = self._views.get(name)
        if before is None or before[0] is not table.snapshot:
            before = self._views[name] = table.snapshot, unread(table.to_df(self._spark))
        return self._give(name, *before)

    def lend_stored(self, text: str) -> bool:
        """Lends every stored view of the current database that a text may mean; False if there is none."""
        if self._stored is None:
            return False
        found = [name for name in _words_of(self._spark, text, stored_names(self._spark)) if name not in self._lent]
        given = False
        for name in found:
            with suppress(Exception):  # what is wrong with it is said where it is really asked for
                rows = None if catalog.is_temporary(self._spark, name) else self._stored(name)
                given = (rows is not None and self._give(name, None, unread(rows))) or given
        return given

    def _give(self, name: str, snapshot: Snapshot | None, rows: DataFrame) -> bool:
        with _LOCK:
            key = self._key(name)
            held = _HELD.get(key)
            if held is None:
                if is_connect(self._spark) and catalog.is_temporary(self._spark, name):
                    return False  # there it could not be given back
                held = _Held(catalog.temporary(self._spark, name))
            rows.createOrReplaceTempView(quoted(name))
            held.times += name not in self._lent
            _HELD[key], self._lent[name] = held, snapshot
        return True

    def _table(self, name: str) -> Table | None:
        """The table that a name of one part means: one of the current database, unless the session has a view by the
        name, or a registered one."""
        database = _database(self._spark)
        place = None if database is None else registry.storage_of((database, name))
        if place is not None and (self._key(name) in _HELD or not catalog.is_temporary(self._spark, name)):
            return registry.opened(place)
        return registry.registered(name) if counts(self._spark, name) else None

    def lend_named(self, text: str) -> None:
        """Lends every table whose name is a word of the text, if it is there: the word may be another thing's."""
        for name in mentioned(self._spark, text):
            with suppress(MicaError):  # lost, or damaged, which is said where it is really asked for
                self.lend(name)
        self.lend_stored(text)

    @property
    def names(self) -> tuple[str, ...]:
        """What is lent."""
        return tuple(self._lent)


def registered(spark: SparkSession, name: str) -> Table | None:
    """The table of a registered name, but for one that `is_hidden` or means a table of the current database."""
    return registry.registered(name) if counts(spark, name) and not is_hidden(spark, name) else None


def counts(spark: SparkSession, name: str) -> bool:
    """Whether a name is a registered one in the current database."""
    return known_as(spark, (name,)) == (name,)


def is_hidden(spark: SparkSession, name: str) -> bool:
    """Whether a registered name is that of a temporary view which the session made itself after that (not one that is
    lent): the view comes first, as it does before a table of Spark's. Not on Spark Connect, where asking for it is a
    request for each name."""
    if is_connect(spark):
        return False
    with _LOCK:
        held = _HELD.get(Lent(spark)._key(name))  # noqa: SLF001 - its own
        own = catalog.temporary(spark, name) if held is None else held.own
    before = registry.view_before(name)
    return own is not None and (before is None or not catalog.is_same_view(spark, own, before))


def _database(spark: SparkSession) -> str | None:
    """The current database, in lower case; None if there is no name of several parts, and so none with a database."""
    return str(spark.catalog.currentDatabase()).lower() if registry.has_qualified() else None


def mentioned(spark: SparkSession, text: str) -> list[str]:
    """The names of tables that a text may mean, registered ones and those of the current database, as it spells them:
    words of it, also of a string in it, or of a function of the session that it calls; all of them, if it computes a
    name."""
    database = _database(spark)
    own = [] if database is None else registry.in_database(database)
    return _words_of(spark, text, sorted({*registry.all_registered(), *own}))


def _words_of(spark: SparkSession, text: str, known: Sequence[str]) -> list[str]:
    """Those of the known names that a text may mean."""
    if not known:
        return []
    if _COMPUTED.search(text):
        return [*known]
    text = f"{text}\n{of_functions(spark, text)}"
    spelled = (re.findall(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", text) for name in known)
    return list(dict.fromkeys(word for found in spelled for word in found))


def of_functions(spark: SparkSession, text: str) -> str:
    """What Spark keeps of the functions of the session that a text calls, and of those that these call."""
    functions, found = catalog.functions(spark), ""
    while called := {name for name in functions if is_word(name, f"{text}\n{found}")}:
        found = "\n".join([found, *map(functions.pop, called)])
    return found


def is_word(name: str, text: str) -> bool:
    """Whether a text has this name as a word, also in a string."""
    return re.search(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", text) is not None


def alters(text: str) -> bool:
    """Whether a text changes a view, or takes something away."""
    return _OF_VIEWS.match(text) is not None


def run(
    spark: SparkSession, work: Callable[[], DataFrame], text: str, stored: Stored, *, explains: bool = False
) -> DataFrame:  # fmt: skip
    """What `work` gives of a text, which may be called again: Spark finds all names of it before it does anything.
    `stored` gives the rows of stored views. `explains`: the rows are a plan, which tells what is missing.

    Errors: those of `work`; INVALID_ARGUMENT for a statement that a view is not enough for.
    """
    # An error that leads to another try is none to be logged.
    quiet = without_sql_log if registry.has_names() else nullcontext
    with Lent(spark, stored=stored) as lent:
        while True:
            try:
                with quiet():
                    found = work()
                missing = _UNKNOWN.search("".join(row[0] for row in found.collect())) if explains else None
            except Exception as e:
                missing = _UNKNOWN.search(str(e))
                if missing is None or not (lent.lend(missing[1]) or lent.lend_stored(text)):
                    refuse(lent.names, e)
                    raise
            else:
                if missing is None or not (lent.lend(missing[1]) or lent.lend_stored(text)):
                    return found


@contextmanager
def refusing(lent: Lent | None = None) -> Iterator[None]:
    """For work of Spark's: an error that `refuse` knows is its own."""
    try:
        yield
    except Exception as e:
        refuse(() if lent is None else lent.names, e)
        raise


def refuse(lent: tuple[str, ...], error: Exception) -> None:
    """Raises INVALID_ARGUMENT, if an error of Spark's is that a view is not enough, and it was lent these; or that it
    does not know the name of a table with its database, or a table that it was lent: a stored view names that."""
    there = None if isinstance(error, MicaError) else _UNKNOWN_THERE.search(str(error))
    *database, name = registry.without_catalog(there[1].replace("`", "").split(".")) if there else [""]
    if there and registry.name_in(".".join(database).lower(), name) is not None:
        raise UserError(
            "INVALID_ARGUMENT",
            f"Spark runs this statement itself, and does not know {spelled((*database, name))}, since only mica knows "
            f"the table: {there[0]}",
            hint=f"Name it {name}, without its database, after USE {spelled(tuple(database))}.",
        ) from error
    inside = None if isinstance(error, MicaError) else _UNKNOWN.search(str(error))
    if inside and inside[1] in lent:
        raise UserError(
            "INVALID_ARGUMENT",
            f"Spark runs this statement itself, and does not know {inside[1]} in a stored view, since only mica knows "
            f"the table: {inside[0]}",
            hint="Name the view without its database, after USE of that.",
        ) from error
    if not lent or not (any(is_condition(error, one) for one in _NO_VIEW) or _NO_TABLE in str(error)):
        return
    first = _FIRST.search(str(error))
    raise UserError(
        "INVALID_ARGUMENT",
        f"Spark runs this statement itself, and {', '.join(lent)} is a temporary view to it, since only mica knows the "
        f"table: {error if first is None else first[0]}",
        hint="Name the table by its path, delta.`PATH`, in a session with delta-spark.",
    ) from error
