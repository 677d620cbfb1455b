"""What a registered name means to the methods of an enabled session's DataFrames, readers, writers and catalog.

The rule: a call by name is the same call of `format("mica")` by path, with all that the reader or writer was told and
the options of the table's store.
`insertInto` is an INSERT of `spark.sql`. Spark would make a table of its own of that name, beside the one that
`spark.sql` and `spark.table` read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mica.engines.spark import metastore
from mica.engines.spark.catalog import table_in, temporary_table
from mica.engines.spark.doors import Answer, NamedCall
from mica.engines.spark.errors import is_condition
from mica.engines.spark.session import is_connect
from mica.engines.spark.types import unread
from mica.errors import MicaError, UserError
from mica.format.options import STORAGE, local_path
from mica.log.snapshot import exists
from mica.query import kept_names, registry
from mica.query.entry import by_text, version_clause
from mica.query.entry import table as of_name
from mica.query.insert import as_stored
from mica.query.lent import Lent, is_hidden
from mica.query.parameters import bound
from mica.query.replace_matching import refuse_matching
from mica.schema.spelling import quoted, spelled
from mica.storage import Storage
from mica.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("mica", "delta")
#: Options in lower case: which version is read.
_VERSIONS = {"versionasof", "timestampasof"}


def _read(call: NamedCall) -> Any:
    """As `spark.table` where nothing but a version was told: no columns, no filter."""
    table = registry.registered(call.name) if registry.is_table(call.name) else None  # which is read at its own version
    if table is not None and call.told.options.keys() & _VERSIONS:
        raise UserError(
            "INVALID_ARGUMENT",
            f"{call.name} is a table at version {table.version}, and another version is asked for",
            hint=f"Give the name to the path instead, {call.place}: it is read at any version.",
        )
    if call.told.schema:
        return call.by(call.name)  # which refuses it
    as_of = version_clause(call.told.options)
    if as_of is not None:
        return of_name(call.name, call.session, lambda: call.by(call.name), as_of)
    if table is not None:
        call.on.option("versionAsOf", table.version)
    return _loaded(call)


def _loaded(call: NamedCall) -> Any:
    found = _with_store(call).format("mica").load(call.place)
    return found if call.is_path else found.alias(call.name)


def _with_store(call: NamedCall) -> Any:
    """The reader or writer, told the options of the store if there are some."""
    options = stored(call.name)
    return call.on.options(**options) if options else call.on


def stored(name: str) -> dict[str, str]:
    """The options of the store: Spark asks a source in a process that knows neither the name nor the session."""
    storage = registry.storage_of(name)
    return {} if storage is None else {f"{STORAGE}{option}": value for option, value in storage.options.items()}


def moved(name: str) -> None:
    """A Table that has the name goes on with what was written, as after an INSERT."""
    table = registry.registered(name) if registry.is_table(name) else None
    if table is not None:
        table.refresh()


def _saved(call: NamedCall) -> None:
    _refuse_format(call)
    given, options = call.given, call.given.get("options", {})
    mode = str(given.get("mode") or call.told.mode).lower()
    stays = mode == "append" or (mode == "overwrite" and str(_told(call).get("overwriteschema")).lower() != "true")
    call = _of_stored(call) if stays else call
    call.on.mode(given.get("mode")).options(**options)
    if given.get("partitionBy") is not None:
        call.on.partitionBy(given["partitionBy"])
    if stays:
        _check_partitions(call)
    _with_store(call).format("mica").save(_untold_place(call))
    moved(call.name)


def _of_stored(call: NamedCall) -> NamedCall:
    """The call of a writer of rows as the table stores them, with casts as in INSERT, where they are not so."""
    known = registry.storage_of(call.name)
    place = Storage.open(call.place, None if known is None else known.options)
    if not exists(place):
        return call
    rows = as_stored(call.rows, registry.opened(place).schema, by_name=True)
    if rows is call.rows:
        return call
    writer, told = rows.write.options(**call.told.options).mode(call.told.mode), call.told
    if told.partition_by:
        writer.partitionBy(*told.partition_by)
    if told.cluster_by:
        writer.clusterBy(*told.cluster_by)
    return replace(call, on=writer)


def _told(call: NamedCall) -> dict[str, Any]:
    """The options that a writer was told, before the call and in it, by their names in lower case."""
    return {**call.told.options, **{name.lower(): value for name, value in call.given.get("options", {}).items()}}


def _untold_place(call: NamedCall) -> str | None:
    """The place that a writer is still to be told: Spark refuses one beside the option path."""
    path = _told(call).get("path")
    if path is None:
        return call.place
    refuse_other_place(call.name, call.place, str(path))
    return None


def refuse_other_place(name: str, place: str, path: str) -> None:
    """Refuses the option path of a writer to a name of a table, unless the table is there: a job that made the table
    with it is run again. Errors: INVALID_ARGUMENT."""
    if Storage.open(local_path(path)).uri != Storage.open(place).uri:
        raise UserError(
            "INVALID_ARGUMENT",
            f"the option path is {path}, and {name} is the table {place}",
            hint="Leave the option out, or write to another name.",
        )


def _check_partitions(call: NamedCall) -> None:
    """Partitions that a writer is told must be the table's. Spark takes a Python source to have none."""
    asked, table = call.given.get("partitionBy") or call.told.partition_by, registry.registered(call.name)
    if not asked or table is None:
        return
    asked = (asked,) if isinstance(asked, str) else tuple(asked)
    if asked != tuple(table.partition_by):
        raise UserError(
            "INVALID_ARGUMENT",
            f"{call.name} is partitioned by {', '.join(table.partition_by) or 'no column'}, not by {', '.join(asked)}",
            hint="Leave partitionBy out: the table has its partitions.",
        )
    call.on.partitionBy([])


def _inserted(call: NamedCall) -> None:
    if call.told.partition_by:
        raise UserError(
            "INVALID_ARGUMENT",
            f"insertInto takes no partitionBy, and {call.name} has its partitions",
            hint="Leave partitionBy out.",
        )
    overwrite = call.given.get("overwrite")
    replaces = call.told.mode == "Overwrite" if overwrite is None else overwrite
    if replaces:
        refuse_matching(call.told.options, "insertInto")
    view, session = f"mica_{uuid.uuid4().hex}", call.session
    call.rows.createTempView(view)
    try:
        text = f"INSERT {'OVERWRITE' if replaces else 'INTO'} {call.spelled} TABLE {view}"
        by_text(text, session)
    finally:
        session.catalog.dropTempView(view)
    moved(call.name)


def _streamed(call: NamedCall) -> Any:
    _refuse_format(call)
    call.on.options(**call.given.get("options", {}))
    for name in ("outputMode", "partitionBy", "queryName"):
        if call.given.get(name) is not None:
            getattr(call.on, name)(call.given[name])
    return _with_store(call).format("mica").start(_untold_place(call))


def _exists(call: NamedCall) -> Any:
    if call.given.get("dbName") is not None:
        return call.by(call.asked)
    return not call.is_path or Table.exists(call.place)


def _shown(call: NamedCall) -> Any:
    """The table of a database, or what Spark says of the name while it is a temporary view."""
    *before, name = registry.without_catalog(call.name.split("."))
    database = ".".join(before).lower() or registry.DEFAULT
    if not call.is_path and registry.name_in(database, name) is not None:
        return _table_in(database, name)
    with Lent(call.session) as lent:
        lent.lend(call.name)
        return call.by(call.name)


def _table_in(database: str, name: str) -> Any:
    known = registry.name_in(database, name)
    place = None if known is None else registry.storage_of(known)
    try:
        text = None if place is None else registry.opened(place).metadata.description
    except MicaError:  # gone, or damaged, which is said where its rows are asked for
        text = None
    return table_in(database, name, text, managed=known is not None and registry.is_managed(known))


def _columns(call: NamedCall) -> Any:
    """What Spark says of them while a temporary view has them."""
    place = None if call.is_path else registry.storage_of(call.name)
    if call.given.get("dbName") is not None or place is None:
        return call.by(call.asked)
    table = registry.registered(call.name) or registry.opened(place)
    view = f"mica_{uuid.uuid4().hex}"
    unread(table.to_df(call.session)).createTempView(view)
    try:
        return [column._replace(isPartition=column.name in table.partition_by) for column in call.by(view)]
    finally:
        call.session.catalog.dropTempView(view)


def _stated(before: str, call: NamedCall) -> DataFrame:
    """The result of a statement of `spark.sql` about the table."""
    text, session = f"{before} {call.spelled}", call.session
    return by_text(text, session)


def _properties(call: NamedCall) -> dict[str, str]:
    return {row["key"]: row["value"] for row in _stated("SHOW TBLPROPERTIES", call).collect()}


def _stated_only(before: str) -> Answer:
    def answer(call: NamedCall) -> None:
        _stated(before, call)

    return answer


def schema_dropped(
    _: Callable[..., None], catalog: Any, dbName: str, ifExists: bool = False, cascade: bool = False,  # noqa: N803
) -> None:  # fmt: skip
    """`dropDatabase` as DROP SCHEMA, which knows the registered names in it."""
    session = catalog._sparkSession  # noqa: SLF001
    before, after = " IF EXISTS" if ifExists else "", " CASCADE" if cascade else ""
    text = f"DROP SCHEMA{before} {dbName}{after}"
    by_text(text, session)


def _not_made(call: NamedCall) -> None:
    raise UserError(
        "TABLE_EXISTS",
        f"{call.name} is the table {call.place}",
        hint=f"Choose another name, or take this one away: DROP TABLE {call.name}.",
    )


def _not_merged(call: NamedCall) -> None:
    raise UserError(
        "INVALID_ARGUMENT",
        f"mergeInto does not know {call.name}, the table {call.place}: its conditions are columns of Spark's",
        hint=f"Write MERGE INTO {call.name} USING a temporary view of the rows.",
    )


def listed(own: Callable[..., list[Any]], catalog: Any, dbName: Any = None, pattern: Any = None) -> list[Any]:  # noqa: N803
    """Spark's list of tables with mica's as SHOW TABLES has them."""
    session, is_whole = catalog._sparkSession, True  # noqa: SLF001
    try:
        found = [_of_metastore(session, table) for table in own(catalog, dbName, pattern)]
    except Exception as e:
        if not metastore.is_ours(session) or not is_condition(e, "DATA_SOURCE_NOT_FOUND"):
            raise
        found, is_whole = [], False  # Spark 4.1 looks for the source of each table, and has none for a Delta table
    if is_whole and not registry.all_registered() and not registry.has_qualified():
        return found
    within = "" if dbName is None else f" IN {'.'.join(map(quoted, dbName.split('.')))}"
    text = bound(f"SHOW TABLES{within} LIKE :pattern", {"pattern": "*" if pattern is None else pattern})
    shown = by_text(text, session).collect()
    known = {(table.name, table.isTemporary) for table in found}
    new = [row for row in shown if (row["tableName"], row["isTemporary"]) not in known]
    tables = [_in_list(catalog, row) for row in new]
    return sorted([*found, *tables], key=lambda table: (table.isTemporary, table.name))


def _of_metastore(session: SparkSession, table: Any) -> Any:
    """A table of Spark's list; what a Delta table is Spark does not say without delta-spark."""
    if table.isTemporary or len(table.namespace) != 1:
        return table
    (database,) = table.namespace
    kept_names.learn(session, (database, table.name))
    known = registry.name_in(database, table.name)
    return table if known is None or registry.kept_at(known) is None else _table_in(database, table.name)


def _in_list(catalog: Any, row: Any) -> Any:
    """A table of SHOW TABLES."""
    database, name = row["namespace"], row["tableName"]
    if row["isTemporary"]:
        return temporary_table(name)
    kept_names.learn(catalog._sparkSession, (database, name))  # noqa: SLF001
    known = registry.name_in(database, name)
    return _table_in(database, name) if known is not None else catalog.getTable(spelled((database, name)))


def _no_changes(call: NamedCall) -> None:
    raise UserError(
        "INVALID_ARGUMENT",
        f"{call.own.__qualname__} does not know {call.name}, the table {call.place}, which no catalog of Spark's has",
        hint=f"Load {call.place!r} by format mica with the option readChangeFeed.",
    )


def _refuse_format(call: NamedCall) -> None:
    asked = call.given.get("format") or call.told.format
    if asked is not None and asked.lower() not in FORMATS:
        raise UserError.bad_value("format", asked, f"mica or delta, since {call.name} is the table {call.place}")


#: Who answers which method.
ANSWERS: Mapping[str, Answer] = {
    "DataFrameReader.table": _read,
    "DataFrameReader.changes": _no_changes,  # new in Spark 4.2
    "DataStreamReader.table": _loaded,
    "DataStreamReader.changes": _no_changes,
    "DataFrameWriter.saveAsTable": _saved,
    "DataFrameWriter.insertInto": _inserted,
    "DataStreamWriter.toTable": _streamed,
    "Catalog.tableExists": _exists,
    "Catalog.getTable": _shown,
    "Catalog.listColumns": _columns,
    "Catalog.getTableProperties": _properties,
    "Catalog.isCached": lambda _: False,  # CACHE TABLE of it is refused
    "Catalog.cacheTable": _stated_only("CACHE TABLE"),
    "Catalog.uncacheTable": _stated_only("UNCACHE TABLE"),
    "Catalog.refreshTable": _stated_only("REFRESH TABLE"),
    "Catalog.truncateTable": _stated_only("TRUNCATE TABLE"),
    "Catalog.dropTable": _stated_only("DROP TABLE"),
    "Catalog.createTable": _not_made,
}
#: What PySpark answers of a temporary view.
_OF_VIEWS = ("DataFrameReader.table", "DataStreamReader.table", "Catalog.getTable", "Catalog.listColumns")


def _unless_hidden(answer: Answer) -> Answer:
    """PySpark's own answer for a name that the session has a view of its own by."""
    return lambda call: call.by(call.name) if is_hidden(call.session, call.asked) else answer(call)


def _by_session(call: NamedCall) -> Any:
    """As `spark.table`: `load` would write the options of the table's store into the plan."""
    if call.on._options or call.on._schema:  # noqa: SLF001 - they have no public name
        raise UserError(
            "INVALID_ARGUMENT",
            f"{call.name} is the table {call.place}, and on Spark Connect a reader of its name takes no options",
            hint=f"Load {call.place!r} by format mica, or name a version in a query: {call.name} VERSION AS OF n.",
        )
    return call.session.table(call.spelled)


def _by_path(way: str) -> Answer:
    def answer(call: NamedCall) -> None:
        raise UserError(
            "INVALID_ARGUMENT",
            f"on Spark Connect {call.own.__qualname__} does not know {call.name}, the table {call.place}",
            hint=f"{way.format(name=call.name, place=repr(call.place))}.",
        )

    return answer


_BY_WRITER = _by_path(
    "Save to {place} by format mica, or write INSERT INTO {name} SELECT … FROM a temporary view of the rows"
)
#: The same on Spark Connect. What nobody answers Spark would do to another table, which it makes by that name.
ANSWERS_BY_CONNECT: Mapping[str, Answer] = {
    **{door: answer for door, answer in ANSWERS.items() if door.startswith("Catalog.") or door.endswith(".changes")},
    "DataFrameReader.table": _by_session,
    "DataStreamReader.table": _by_path("Load {place} as a stream of format mica"),
    "DataFrameWriter.saveAsTable": _BY_WRITER,
    "DataFrameWriter.insertInto": _BY_WRITER,
    "DataFrame.mergeInto": _not_merged,
    "DataFrame.writeTo": _BY_WRITER,
    "DataStreamWriter.toTable": _by_path("Start the stream by format mica to {place}"),
}


def answers(spark: SparkSession) -> Mapping[str, Answer]:
    """Who answers which method of a session."""
    if is_connect(spark):
        return ANSWERS_BY_CONNECT
    return {**ANSWERS, **{door: _unless_hidden(ANSWERS[door]) for door in _OF_VIEWS}}
