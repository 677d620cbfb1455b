"""`mica.enable`: `spark.sql`, `spark.table` and DataFrames of one session go through `mica.sql`, and know our names.

The rule: what names no table of mica's reaches Spark as it was written, and `disable` leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any

from mica.arguments import SESSION, takes
from mica.engines.spark.doors import as_before, close_doors, open_doors, with_names
from mica.engines.spark.errors import reason_first
from mica.engines.spark.session import current, has_delta, is_connect
from mica.engines.spark.types import is_column
from mica.format.source import register
from mica.query import live_views, names, views
from mica.query.by_format import BY_FORMAT
from mica.query.by_name import answers, listed, schema_dropped
from mica.query.entry import by_text, renewed, run, table
from mica.query.frames import ACTIONS, TEXTS
from mica.query.located import named_place
from mica.query.merge_into import merge_into
from mica.query.statement_parts import name_parts
from mica.query.write_to import WRITE_TO

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@takes(spark=SESSION)
def enable(spark: SparkSession | None = None) -> SparkSession:
    """Lets `spark.sql` and `spark.table` of this session (None: the active one) go through `mica.sql`, makes
    `format("mica")` known to it, and returns it; `disable` undoes the former. Off by default.

    Actions of DataFrames that were made of `spark.sql`, `spark.table`, `spark.read.table` or `Table.to_df` read of a
    table what they need, as a text does, and skip files (not on Spark Connect), and so do mica's writes of them; what
    Spark runs otherwise, as `cache`, it reads by its own reader, which prunes columns and paths, or as the text says
    that it was made of.
    `df.write.saveAsTable` and `insertInto`, `df.writeTo`, `spark.readStream.table`, `toTable` and `spark.catalog` take
    registered names too, as `format("mica")` takes their paths, with the options of the reader or writer; on Spark
    Connect those that write or stream refuse the name. A temporary view that is made after a name was registered comes
    before it.

    Readers and writers of the format tell it their mode, partition columns and what it needs of the session, and give
    a new name of `saveAsTable`, `writeTo` or `toTable` to a table in the warehouse. In a session without delta-spark
    `format("delta")`, `USING delta` and a path for a name mean mica (on Spark Connect `USING delta` alone).

    Sessions that Spark clones of this one, as for `foreachBatch`, are enabled with it; one of `newSession` is not. On
    Spark Connect texts with `{names}` of Python objects (keyword arguments of `spark.sql`) go to Spark unchanged.
    """
    session = current(spark)
    register(session)
    ours = {**ACTIONS, **_ANEW, **BY_FORMAT, **WRITE_TO}
    methods = {**dict.fromkeys(_RUN, _as_given), **METHODS} if is_connect(session) else {**METHODS, **ours}
    answering = answers(session) if is_connect(session) else {**answers(session), "DataFrame.mergeInto": merge_into}
    open_doors(session, _known_as, answering, {door: _with_reason(method) for door, method in methods.items()})
    return session


@takes(spark=SESSION)
def disable(spark: SparkSession | None = None) -> SparkSession:
    """Undoes `enable`: `spark.sql` and `spark.table` of the session are Spark's own again. Returns the session."""
    session = current(spark)
    close_doors(session)
    return session


def _with_reason(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, whose errors begin with the reason: readers and writers of the format run in Python's processes."""

    @wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        with reason_first():
            return method(*args, **kwargs)

    return called


def _sql(
    own: Callable[..., DataFrame],
    spark: SparkSession,
    sqlQuery: str,  # noqa: N803 - Spark's name
    args: Any = None,
    **kwargs: Any,
) -> DataFrame:
    def by_spark() -> DataFrame:
        return own(spark, sqlQuery, args, **kwargs)

    if (kwargs and is_connect(spark)) or not isinstance(sqlQuery, str):
        return by_spark()
    with with_names(spark, sqlQuery, kwargs) as text:
        return run(text, spark, args, by_spark)


def _table(own: Callable[..., DataFrame], spark: SparkSession, tableName: str) -> DataFrame:  # noqa: N803
    return table(tableName, spark, lambda: own(spark, tableName))


def _read(own: Callable[..., DataFrame], reader: Any, tableName: str) -> DataFrame:  # noqa: N803
    """What is no registered name may be a temporary view, or a stored one."""
    spark = reader._spark  # noqa: SLF001 - it has no public name
    with as_before(reader) as told:
        is_plain = not told.options and not told.schema
    if is_plain and _is_stored(spark, tableName):
        return table(tableName, spark, lambda: own(reader, tableName))
    renewed(tableName, spark)
    return own(reader, tableName)


def _is_stored(spark: SparkSession, name: str) -> bool:
    parts = name_parts(name)
    return parts is not None and views.is_stored(spark, parts)


def _stated(before: str | None) -> Callable[..., Any]:
    """A method of a stored view over tables as the statement, or one that knows no such view."""

    def answered(own: Callable[..., Any], catalog: Any, tableName: str, *more: Any, **named: Any) -> Any:  # noqa: N803
        session = catalog._sparkSession  # noqa: SLF001
        if not _is_stored(session, tableName):
            return own(catalog, tableName, *more, **named)
        if before is None:
            return False
        by_text(f"{before} {tableName}", session)
        return None

    return answered


def _known_as(spark: SparkSession, name: str) -> tuple[str, str] | None:
    """A registered name and its place; a path, unless delta-spark has these."""
    path = names.path_of(name)
    if path is not None:
        return None if is_connect(spark) or has_delta(spark) else (name, path)
    known = named_place(spark, name.replace("`", "").split("."))
    return None if known is None else (known[0], str(known[1]))


def _exists(own: Callable[..., bool], catalog: Any, tableName: str, dbName: str | None = None) -> bool:  # noqa: N803
    """A database that is given beside the name is a part of it, as a registered name has it."""
    known = dbName is not None and catalog.tableExists(f"{dbName}.{tableName}")
    return known or own(catalog, tableName, dbName)


def _anew(answer: Callable[..., Any]) -> Callable[..., Any]:
    """The answer of a method that takes texts, which may name temporary views."""

    def answered(own: Callable[..., Any], frame: DataFrame, *args: Any, **kwargs: Any) -> Any:
        if live_views.are_known():
            renewed(_texts([*args, *kwargs.values()]), frame.sparkSession)
        return answer(own, frame, *args, **kwargs)

    return answered


def _texts(given: Iterable[Any]) -> str:
    """The texts that a method is given, and those of its columns."""
    found = (one for some in given for one in (some if isinstance(some, list | tuple) else [some]))
    texts = (str(one) for one in found if isinstance(one, str) or is_column(one))
    return " ".join(text.removeprefix("Column<'").removesuffix("'>") for text in texts)


def _columns(own: Callable[..., list[Any]], catalog: Any, tableName: str, dbName: str | None = None) -> list[Any]:  # noqa: N803
    """The same for the columns of a table."""
    if dbName is not None and catalog.tableExists(f"{dbName}.{tableName}"):
        return list(catalog.listColumns(f"{dbName}.{tableName}"))
    return own(catalog, tableName, dbName)


def _as_given(own: Callable[..., Any], of: Any, *args: Any, **kwargs: Any) -> Any:
    """What PySpark's method gives."""
    return own(of, *args, **kwargs)


#: Methods that run a plan on Spark Connect, where mica answers none of them: only their errors are told as here.
_ACTIONS = "collect count first foreach head isEmpty show tail take toArrow toPandas"
_RUN = (
    *(f"DataFrame.{name}" for name in _ACTIONS.split()),
    *(door for door in (*BY_FORMAT, *WRITE_TO) if not door.endswith((".format", ".createTable"))),
)
#: Methods that may name a temporary view.
_ANEW = {
    "DataFrameReader.table": _read,
    **{door: _anew(ACTIONS[door]) for door in (f"DataFrame.{name}" for name in TEXTS.split())},
}
#: Who answers which method whatever it is given.
METHODS: dict[str, Callable[..., Any]] = {
    "SparkSession.sql": _sql,
    "SparkSession.table": _table,
    "Catalog.listTables": listed,
    "Catalog.tableExists": _exists,
    "Catalog.listColumns": _columns,
    "Catalog.dropDatabase": schema_dropped,  # new in Spark 4.2
    "Catalog.cacheTable": _stated("CACHE TABLE"),
    "Catalog.uncacheTable": _stated("UNCACHE TABLE"),
    "Catalog.refreshTable": _stated("REFRESH TABLE"),
    "Catalog.isCached": _stated(None),
}
