"""Runs a query on Spark Connect, with narrowed frames in the places of its tables.

The rule: the text is Spark's; only names of tables, and paths of Variants that a scan reads as columns, are others. If
sqlglot cannot read it, or Spark not what became of it, it runs over whole tables.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mica.engines.spark import reader
from mica.engines.spark.catalog import Parsed, is_temporary
from mica.engines.spark.doors import own_sql
from mica.engines.spark.errors import is_sparks
from mica.engines.spark.needs import Extraction
from mica.engines.spark.session import without_sql_log
from mica.query import file_names
from mica.query.conditions import Conditions
from mica.query.names import Named
from mica.query.narrowed import Narrowed
from mica.schema.spelling import quote_if_needed
from mica.schema.types import VARIANT, StructType, contains

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mica.query.texts import TextAsks, TextPlace
    from mica.scan.scan import Scan
    from mica.table import Table

_LOG = logging.getLogger("mica")

#: Why a whole table is read.
_UNREAD = (
    "the text cannot be read here: Spark Connect shows no plan, and sqlglot does not know it, or is not installed, "
    "or the session reads texts in a way of its own"
)

#: Settings by which Spark reads a text as sqlglot does: what TIMESTAMP is, "x" and backslashes, `a.*` as one name, and
#: `date = 'text'` as a comparison of dates.
_AS_USUAL = {
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
}

#: Conditions that may be true of a row without a value of each path in them: `i IN (3, v:n::int)`, where i is 3.
_LEAVES_OUT = re.compile(r" OR |\(NOT | IN \(.*variant_get|\btry_variant_get")


def narrowed(spark: SparkSession, named: Named) -> list[Narrowed]:
    """The scans of a query over these tables, as `run` makes them if Spark takes the text."""
    found = _read(spark, named)
    if found is None:
        return [_whole_of(spark, view, table) for view, table in named.views.items()]
    return [_place(spark, place, named.views[place.view], "mica_")[0] for place in found.places]


def run(spark: SparkSession, named: Named, args: Any) -> DataFrame:
    """The rows of a query over these tables. Errors: Spark's own for the text."""
    found = _read(spark, named)
    if found is not None and not found.places:
        return _sparks(spark, named.text, args)
    if found is not None:
        try:
            with without_sql_log():
                return _narrowed(spark, named, found, args)
        except Exception as e:
            if not is_sparks(e):
                raise
            _LOG.debug("Spark does not take the narrowed text: whole tables are read", exc_info=True)
    return _whole(spark, named, args)


def relations(spark: SparkSession, text: str) -> Parsed | None:
    """The tables that a text names, but not the CTEs; None if it cannot be read here."""
    reader_of_texts = _reader_of_texts(spark)
    return None if reader_of_texts is None else reader_of_texts[0].relations(text)


def _read(spark: SparkSession, named: Named) -> TextAsks | None:
    reader_of_texts = None if file_names.asked(named.text) else _reader_of_texts(spark)
    if reader_of_texts is None:
        return None
    texts, cases = reader_of_texts
    found: TextAsks | None = texts.read(
        named.text, {view: table.schema for view, table in named.views.items()}, cases=cases
    )
    return found


def _reader_of_texts(spark: SparkSession) -> tuple[ModuleType, bool] | None:
    """What reads texts with sqlglot, and whether the session tells cases apart; None if it is not installed, or the
    session reads texts in a way of its own."""
    try:
        from mica.query import texts
    except ImportError:  # sqlglot comes with the extra `connect`
        return None
    found = spark.conf.getAll  # one question to the server
    is_usual = all(str(found.get(name, usual)).lower() == usual.lower() for name, usual in _AS_USUAL.items())
    cases = str(found.get("spark.sql.caseSensitive", "false")).lower() == "true"
    return (texts, cases) if is_usual else None


def _narrowed(spark: SparkSession, named: Named, found: TextAsks, args: Any) -> DataFrame:
    frames: list[DataFrame] = []
    replaced: list[tuple[int, int, str]] = []
    for number, place in enumerate(found.places):
        read, columns = _place(spark, place, named.views[place.view], f"mica_{number}_")
        frames.append(read.read.to_df(spark))
        replaced += columns
    frame = _over(spark, named, found, frames, replaced, args)
    names = frame.columns  # analysed now
    if found.unnamed and replaced:
        whole = [named.views[place.view].to_df(spark) for place in found.places]
        asked = _over(spark, named, found, whole, [], args).columns
        return frame if asked == names else frame.toDF(*asked)
    return frame


def _over(
    spark: SparkSession,
    named: Named,
    found: TextAsks,
    frames: Sequence[DataFrame],
    replaced: Sequence[tuple[int, int, str]],
    args: Any,
) -> DataFrame:
    """The text over these frames, with other parts of it replaced too: (first, last, new)."""
    changes = list(replaced)
    for number, place in enumerate(found.places):
        called = "" if place.aliased else f" AS `{place.view}`"
        changes.append((place.start, place.end, f"{{frame_{number}}}{called}"))
    text, at = "", 0
    for start, end, new in sorted(changes):
        text += _escaped(named.text[at:start]) + new
        at = end + 1
    text += _escaped(named.text[at:])
    return _sparks(spark, text, args, frames)


def _place(
    spark: SparkSession, place: TextPlace, table: Table, prefix: str
) -> tuple[Narrowed, list[tuple[int, int, str]]]:
    """How the rows and columns that the text may need are read, and the columns that stand for parts of it."""
    conditions = Conditions(table, spark, place.conditions)
    names = [name for name in table.schema.names if place.columns is None or name in place.columns]
    columns = {name: quote_if_needed(name) for name in names}
    # Spark casts only in rows that are left, and only where a condition asks for it.
    every_row = place.alone and not conditions.left and not conditions.skipping
    sure = [pushed.text for pushed in conditions.evaluated.values() if not _LEAVES_OUT.search(pushed.text)]
    replaced = []
    for path in place.paths:
        read = Extraction(path.column, path.sql, path.type, path.strict, variant=True)
        if (path.conditional or not every_row) and not any(path.sql in text for text in sure):
            read = read.guarded
        replaced.append((path.start, path.end, _column_of(read, columns, prefix)))
    variants = contains(StructType(tuple(map(table.schema.field, names))), VARIANT)
    asked: Mapping[str, str] | Sequence[str] | None = columns or {"one": "true"}
    if not replaced and not variants and not any("variant_get" in p.text for p in conditions.evaluated.values()):
        conditions.give_back()  # Spark's own reader is faster on plain columns
        asked = names or table.schema.names[:1]
    elif not replaced and conditions.where is None:
        asked = None  # Spark's own reader takes only the paths that the text needs
    scan = conditions.scan(asked, conditions.where)
    read_as = asked.values() if isinstance(asked, Mapping) else table.schema.names if asked is None else asked
    return conditions.narrowed(place.view, scan, read_as, _reader(scan)), replaced


def _column_of(read: Extraction, columns: dict[str, str], prefix: str) -> str:
    """What stands for a path in the text, with the columns of `columns` that it needs, which the scan gives."""

    def column(sql: str) -> str:
        known = next((name for name, own in columns.items() if own == sql), f"{prefix}{len(columns)}")
        columns[known] = sql
        return f"`{known}`"

    value = column(read.sql)
    if read.failing is None:
        # Not the column itself: a field of struct(…) has its name, and its collation is as strong as another column's.
        return f"CAST(CAST({value} AS BINARY) AS STRING)" if read.type == "STRING" else f"coalesce({value})"
    failing = column(read.failing.sql)
    # The cast of the text fails as that of the value, with Spark's own error; where it does not, the text is the error.
    cast = f"variant_get(CAST({failing} AS VARIANT), '$', '{read.type}')"
    error = f"raise_error(concat({failing}, ' cannot be cast to {read.type}', CAST({cast} AS STRING)))"
    return f"if({failing} IS NULL, {value}, CAST({error} AS {read.type}))"


def _reader(scan: Scan) -> str:
    return "Spark" if reader.reason_for_kernel(scan.reading()) is None else "mica"


def _whole_of(spark: SparkSession, view: str, table: Table) -> Narrowed:
    scan, unread = table.scan(spark=spark), (("its conditions", _UNREAD),)
    return Narrowed(view, table, scan, None, (), (), unread, tuple(table.schema.names), _reader(scan))


def _sparks(spark: SparkSession, text: str, args: Any, frames: Iterable[DataFrame] = ()) -> DataFrame:
    """Spark's own `sql`, over frames that the text calls {frame_0}, {frame_1}, …: after `mica.enable` that of the
    session would ask here again, without end."""
    return own_sql(spark, text, args, **{f"frame_{number}": frame for number, frame in enumerate(frames)})


def _escaped(text: str) -> str:
    """The text for `spark.sql` with frames, which reads braces."""
    return text.replace("{", "{{").replace("}", "}}")


def _whole(spark: SparkSession, named: Named, args: Any) -> DataFrame:
    """The query over whole tables. Frames keep them as they are now, and nothing stays in the session. Only for a text
    that Spark does not take so, most often a wrong one, they are views that hide the session's own."""
    scans = {view: table.scan(spark=spark) for view, table in named.views.items()}
    if file_names.asked(named.text):
        scans = {view: file_names.left_to_spark(scan) for view, scan in scans.items()}
    frames = {view: scan.to_df(spark) for view, scan in scans.items()}
    frame = None if _outer_first(spark) else _within(spark, named, frames, args)
    if frame is not None:
        return frame
    if frames.keys() <= named.catalogued.keys():
        return _sparks(spark, named.given, args)
    return _over_views(spark, named, frames, args)


def _outer_first(spark: SparkSession) -> bool:
    """Whether the session takes a CTE of a query around another one's own of the same name."""
    return str(spark.conf.get("spark.sql.legacy.ctePrecedencePolicy", "CORRECTED")).upper() == "LEGACY"


def _within(spark: SparkSession, named: Named, frames: Mapping[str, DataFrame], args: Any) -> DataFrame | None:
    """The text as a query within one that has the frames as CTEs; None if Spark does not take it."""
    own = ", ".join(f"`{_escaped(view)}` AS (SELECT * FROM {{frame_{n}}})" for n, view in enumerate(frames))  # noqa: S608
    text = _escaped(named.text.rstrip().removesuffix(";"))
    try:
        with without_sql_log():
            frame = _sparks(spark, f"WITH {own} SELECT * FROM (\n{text}\n)", args, frames.values())  # noqa: S608
            _ = frame.schema  # analysed now
    except Exception as e:
        if not is_sparks(e):
            raise
        return None
    return frame


def _over_views(spark: SparkSession, named: Named, frames: Mapping[str, DataFrame], args: Any) -> DataFrame:
    """The text over temporary views. A wrong text leaves none that was not there before."""
    made = [view for view in frames if named.catalogued.get(view) != view]  # the others Spark finds itself
    new = [view for view in made if not is_temporary(spark, view)]
    for view in made:
        frames[view].createOrReplaceTempView(f"`{view}`")
    try:
        frame = _sparks(spark, named.text, args)
        _ = frame.schema  # analysed now
    except Exception:
        for view in new:
            spark.catalog.dropTempView(view)
        raise
    return frame
