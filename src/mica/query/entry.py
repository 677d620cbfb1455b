"""`mica.sql`: one text to Spark, with mica's scans in the places of its Delta tables.

The rule: a text that names none of mica's tables goes to Spark unchanged, and so does one that is not a query or a
statement of `statements`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mica import late
from mica.arguments import SESSION, STATEMENT, takes
from mica.engines.spark.doors import own_sql
from mica.engines.spark.errors import is_condition, is_of_connect
from mica.engines.spark.session import current, has_delta, is_connect, without_sql_log
from mica.errors import UserError
from mica.query import (
    around,
    changes,
    connect,
    fed,
    kept_names,
    lent,
    listed,
    live_views,
    names,
    registry,
    scripts,
    select,
    settings,
    variables,
    views,
)
from mica.query.create_text import literal
from mica.query.located import located
from mica.query.parameters import bound, has_places
from mica.query.statement_parts import name_parts
from mica.query.statements import begins, makes_ours, parse_statement
from mica.query.table_statements import Unread
from mica.query.tables import relations, tables_of, target
from mica.query.using import using_mica
from mica.schema.lexical import GAP, SPACE
from mica.table import marked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A path that Spark looked for as a name.
_UNKNOWN_PATH = re.compile(r"`(?:delta|mica)`\.`[^`]+` cannot be found", re.IGNORECASE)
#: Statements of delta-spark's that mica does not have, or not so, and what to do instead.
_OF_DELTA = re.compile(
    rf"(?is){GAP}(?:(?P<clone>CREATE{SPACE}(?:OR{SPACE}REPLACE{SPACE})?TABLE\b.{{0,400}}?\bCLONE\b)"
    rf"|(?P<generate>GENERATE{SPACE}\w))"
)
_INSTEAD = {
    "clone": "mica takes CREATE TABLE … SHALLOW CLONE of a Delta table [VERSION AS OF n] [TBLPROPERTIES (…)] "
    "[LOCATION '…']; CREATE TABLE … USING mica AS SELECT … makes a table of the rows, CREATE TABLE … LIKE one without.",
    "generate": "Only delta-spark has this statement. Table.file_uris() lists a table's files, and mica.dataset reads "
    "them with other engines.",
}
#: What Spark says of a change of rows through a temporary view of a table of mica's.
_OF_VIEW = re.compile(
    r"Unexpected table relation|`(?:unknown|mica)` does not support (?:UPDATE|DELETE|MERGE)"
    r"|does not support deletes: mica|UNSUPPORTED_INSERT\.RDD"
)


@takes(text=STATEMENT, spark=SESSION)
def sql(
    text: str, spark: SparkSession | None = None, args: Mapping[str, Any] | Sequence[Any] | None = None
) -> DataFrame:
    """Runs a Spark SQL text; its Delta tables are read by mica, which skips files, row groups and pages.

    A table is named by its path (`` delta.`/data/events` ``), by a name of `mica.register`, or as in the session's
    catalog. Spark analyses and evaluates the text; what it filters and extracts right at a table is read from its
    optimised plan and done by the scan. `args` are values for parameters of the text, as for `spark.sql`. The tables'
    versions and the time are those of the call; `mica.explain` shows what the scans do.

    DELETE, UPDATE, INSERT, MERGE, OPTIMIZE, VACUUM, DESCRIBE HISTORY of such a table, CREATE TABLE … USING mica and
    CREATE TABLE … SHALLOW CLONE run as calls of `Table` on this session; their expressions are those that these calls
    take. So do ALTER TABLE, RESTORE, TRUNCATE TABLE, CONVERT TO DELTA, DESCRIBE and SHOW of paths and registered names
    (`query/table_statements.py` lists their forms). The result has delta-spark's columns (`num_affected_rows`, …).

    EXPLAIN, DESCRIBE QUERY, CACHE TABLE … AS, SET VAR and EXECUTE IMMEDIATE know such tables in their queries
    (`query/around.py`), and so do scripts (BEGIN … END), whose statements run as here (`query/scripts.py`).

    CREATE TEMPORARY VIEW … AS, CREATE TABLE … AS and INSERT of Spark's take their rows from a query of such tables; the
    view shows their newest versions and asks for the time whenever a text names it, and keeps the versions if it is
    GLOBAL, or on Spark Connect. CREATE VIEW is stored by the session's catalog as its text: mica reads that, or
    delta-spark, for which it has the tables' paths. `_metadata` is as in `Table.scan`, but for Spark Connect.

    On Spark Connect, which shows no plan, the text is read with sqlglot (the extra `connect`): what it says with
    certainty of a table is done by its scan, and a text that sqlglot cannot read runs over whole tables.

    Errors: Spark's own for the text (a wrong syntax, an unknown column); TABLE_NOT_FOUND for a path without a table;
    INVALID_ARGUMENT for a view that cannot be stored; UNSUPPORTED_EXPRESSION for a star beside `_metadata` over other
    rows than a table's; those of reading.
    """
    session: Any = current(spark)
    return run(text, session, args, lambda: session.sql(text, args))


@kept_names.once_a_text
def run(text: str, spark: SparkSession, args: Any, otherwise: Callable[[], DataFrame]) -> DataFrame:
    """The rows of a text, or what `otherwise` makes of it if it names no table of mica's."""
    text = variables.substituted(text, spark)
    renewed(text, spark)
    if not has_delta(spark) and (ours := using_mica(text, partial(settings.is_delta_default, spark))) != text:
        text, otherwise = ours, partial(own_sql, spark, ours, args)
    if scripts.begins(text):
        before = partial(renewed, text, spark)
        return scripts.run(spark, text, args, lambda text, own: run(text, spark, None, own), otherwise, before)
    if listed.lists(text):
        return listed.listed(spark, text, args, otherwise)
    if fed.calls(text):
        with fed.fed(spark, text, args) as (given, values):
            if given != text:
                return by_text(given, spark, values)
    if args and not isinstance(args, Mapping) and "identifier" in text.lower():
        with suppress(UserError):  # a name takes values of their places, which later ones are counted by
            text, args = bound(text, args), None
    given = text = identified(text, spark, args)
    # An EXPLAIN that fails is a text, too.
    explains = around.explains(text)

    def hinted(work: Callable[[], DataFrame]) -> DataFrame:
        stored = partial(views.rows_of, spark, query=partial(sql, spark=spark))
        lending = partial(lent.run, spark, work, text, stored, explains=explains)
        return _hinted(text, work if lent.alters(text) else lending)

    if around.begins(text):
        done = _around(text, spark, args, otherwise)
        if done is not None:
            return done
    try:
        if args and begins(text):
            given = bound(text, args)
        statement = parse_statement(given)
    except UserError:
        if not makes_ours(given) and _is_sparks(text, spark):
            return hinted(otherwise)
        raise
    if isinstance(statement, Unread):
        return _tried(spark, statement, partial(hinted, otherwise))
    if statement is not None:
        done = changes.run(spark, statement, lambda query: sql(query, spark), given)
        return hinted(otherwise) if done is None else done
    if args and has_delta(spark):
        # The parser of delta-spark 4.4.0 loses parameters.
        with suppress(UserError):  # a value without a literal is Spark's to bind
            text, args = bound(text, args), None
    found = tables_of(text, spark)
    if found is None or not found.views:
        return hinted(otherwise)
    if is_connect(spark):
        return hinted(lambda: connect.run(spark, found, args))
    return hinted(lambda: select.run(spark, found, args, newest=_newest(found)))


def renewed(text: str, spark: SparkSession) -> None:
    """Lets the temporary views that a text names show the newest versions of their tables."""
    live_views.renew(spark, text, lambda query: sql(query, spark))


def _newest(found: names.Named) -> tuple[str, ...] | None:
    """The name, or path, of the one table of a text, if that is read at no version."""
    if len(found.views) != 1 or found.pinned or found.stored:
        return None
    ((view, table),) = found.views.items()
    if registry.is_registered(view):
        return (view,)
    return None if table.snapshot.storage.options else ("delta", table.path)


def by_text(text: str, spark: SparkSession, args: Any = None) -> DataFrame:
    """What `spark.sql` gives of a text in an enabled session."""
    return run(text, spark, args, lambda: own_sql(spark, text, args))


@kept_names.once_a_text
def table(name: str, spark: SparkSession, otherwise: Callable[[], DataFrame], as_of: str = "") -> DataFrame:
    """A table for methods of DataFrames, which nobody knows yet: by Spark's own reader, where it may be, which prunes
    what they leave out. What `otherwise` makes of the name if it is none of mica's tables. A name of one part may be
    written before the columns, as of Spark's tables. `as_of`: the clause of `version_clause`."""
    parts = name_parts(name)
    if parts is None:
        return otherwise()
    text = f"SELECT * FROM {name}{as_of}" if as_of else f"TABLE {name}"  # noqa: S608 - a table by its name
    found = None if is_connect(spark) else tables_of(text, spark)
    if found is None or len(found.views) != 1 or found.stored:
        return run(text, spark, None, otherwise)
    (ours,) = found.views.values()
    named = (parts,) if as_of else (marked.NEWEST, parts)
    return _hinted(text, lambda: marked.of_table(spark, ours.scan().to_df(spark), ours.snapshot, *named))


def version_clause(options: Mapping[str, str]) -> str | None:
    """The clause of a text for what a reader was told, by names in lower case: of a version or a time; none for
    nothing, None for anything else."""
    (told, value), *others = options.items() if options else [("", "")]
    if others or (told == "versionasof" and not value.isdigit()):
        return None
    clauses = {"": "", "versionasof": f" VERSION AS OF {value}", "timestampasof": f" TIMESTAMP AS OF {literal(value)}"}
    return clauses.get(told)


def identified(text: str, spark: SparkSession, args: Any = None) -> str:
    """The text with names in place of IDENTIFIER clauses."""

    def constant(asked: str) -> object:
        if has_places(asked):
            return None  # its values follow those of the text before: Spark counts them
        with suppress(Exception), without_sql_log():  # Spark says what is wrong, with the place in the whole text
            return own_sql(spark, f"SELECT {bound(asked, args or {})}").collect()[0][0]
        return None

    return names.identified(text, args, constant)


def _around(text: str, spark: SparkSession, args: Any, otherwise: Callable[[], DataFrame]) -> DataFrame | None:
    """What a statement of Spark's makes of queries of mica's tables; None if it has none."""
    with suppress(UserError):  # a value without a literal is Spark's to bind
        text = bound(text, args) if args else text
    return around.run(
        spark,
        text,
        lambda query: sql(query, spark),
        lambda text: run(text, spark, None, otherwise),
    )


def _tried(spark: SparkSession, statement: Unread, otherwise: Callable[[], DataFrame]) -> DataFrame:
    """Spark's result; if Spark fails and the table is a path or a registered name, the error of mica's parser."""
    try:
        return otherwise()
    except Exception:
        if target(spark, statement.table, catalogs=False) is None:
            raise
        raise statement.error from None


def _is_sparks(text: str, spark: SparkSession) -> bool:
    """Whether a statement that mica does not know is one of Spark's, of tables that are not mica's."""
    try:
        found = relations(spark, text)
    except Exception:  # noqa: BLE001 - not Spark's either: the error is mica's
        return False
    parsed = () if found is None else found.names
    # A statement without a relation (INSERT OVERWRITE DIRECTORY, DESC history) may name a table all the same.
    known = (lent.registered(spark, name) is not None or located(spark, name) is not None for name in parsed)
    ours = any(known) if parsed else any(map(registry.is_registered, names.words(text)))
    try:
        return not ours and not names.by_path(text, partial(settings.moment, spark)).views
    except UserError:  # it names a path where no table is, or not yet
        return False


def _hinted(text: str, work: Callable[[], DataFrame]) -> DataFrame:
    """Spark's result; its error gets notes."""
    try:
        return work()
    except Exception as e:
        for note in _notes(text, e):
            e.add_note(note)
        raise


def _notes(text: str, error: Exception) -> Iterator[str]:
    """What Spark's error does not know: of an unknown table the registered names that are like it, of a session without
    delta-spark what makes a Delta table there, of a statement of delta-spark's what mica has."""
    said = str(error)
    if is_condition(error, "TABLE_OR_VIEW_NOT_FOUND"):
        unknown = re.search(r"`(\w+)` cannot be found", said)
        known = registry.all_registered()
        near = [] if unknown is None else late.difflib.get_close_matches(unknown[1].lower(), known, 3)
        if near:
            yield f"mica.register has: {', '.join(near)}."
        if _UNKNOWN_PATH.search(said):
            yield "Spark runs this itself, and reads no Delta table by its path: give it a name with mica.register."
    if (other := _OF_DELTA.match(text)) is not None and is_condition(error, "PARSE_SYNTAX_ERROR"):
        yield _INSTEAD[str(other.lastgroup)]
    if _OF_VIEW.search(said):
        whole = ", but for one that shows all of its columns and rows as they are, as SELECT * FROM the table does"
        yield (
            "mica changes the rows of a table by its registered name or its path, not through a view of it"
            + ("." if is_of_connect(error) else f"{whole}.")  # nobody can ask there what a view shows
        )
    if "is not a temp view of streaming" in said:  # Spark's condition has no name
        yield "STREAM takes a view of a stream: spark.readStream.table('NAME').createOrReplaceTempView('VIEW')."
    if is_condition(error, "UNSUPPORTED_FEATURE.CHANGE_DATA_CAPTURE"):
        yield "mica has the changes of a table by table_changes('NAME', first, last), or Table.changes."
    if is_condition(error, "DATA_SOURCE_NOT_FOUND") and "the data source: delta" in said:
        yield "CREATE TABLE … USING mica makes a Delta table in a session without delta-spark."
