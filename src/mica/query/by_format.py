"""What readers and writers of `format("mica")` in an enabled session tell the source, which sees neither them nor the
session.

The rule: a mode, partition columns and settings of the session, which Spark does not tell a Python source, become
options of the same call. Where the session lacks delta-spark, `format("delta")` is mica's: nobody else would take it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mica.engines.spark import catalog
from mica.engines.spark.doors import Told, as_before, forget_clusters
from mica.engines.spark.java import java_class
from mica.engines.spark.session import active, has_delta
from mica.engines.spark.types import from_spark
from mica.errors import UserError
from mica.format.options import STORAGE, local_path
from mica.log import clustering
from mica.log.snapshot import exists
from mica.maintain.create import base_of
from mica.query import kept_names, names, registry, settings
from mica.query.create_text import literal
from mica.query.entry import by_text, table, version_clause
from mica.query.located import new_name
from mica.query.made import ROWS, make_of_rows, new_place, refuse_odd, refuse_other_table
from mica.query.replace_matching import MATCHING, replaced
from mica.query.statement_parts import name_parts
from mica.query.statements import Create
from mica.query.tables import unknown
from mica.schema.ddl import to_ddl
from mica.schema.new_columns import nullable
from mica.schema.spelling import quote_if_needed, quoted
from mica.storage import Storage, split_scheme

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The attribute of a reader or writer that keeps the format that it was told: asking Spark takes ten calls of the JVM.
_FORMAT = "_mica_format"
_ERROR = ("error", "errorifexists", "default")
#: Options in lower case: which rows are replaced, and those with a time that may have no zone.
_REPLACED = {"partitionoverwritemode", "replacewhere"}
_TIMES = {"timestampasof", "startingtimestamp", "endingtimestamp"}
_ZONE = "timeZone"


def _formatted(own: Callable[..., Any], on: Any, source: str) -> Any:
    found = own(on, source)
    vars(on)[_FORMAT] = source
    return found


def _format_of(on: Any, given: str | None) -> str | None:
    """The format of a call, if it is mica's; one that nobody named is the session's default. What Spark keeps as a
    format counts then, and of streams, where `foreachBatch` comes after `format` and replaces it."""
    session, named = on._spark, given or vars(on).get(_FORMAT)  # noqa: SLF001
    found = str(named or session.conf.get("spark.sql.sources.default")).lower()
    if not is_ours(session, found):
        return None
    if not named or (not given and type(on).__name__ == "DataStreamWriter"):
        with as_before(on) as told:
            return found if told.format is None or told.format.lower() == found else None
    return found


def is_ours(session: SparkSession, source: str | None) -> bool:
    """Whether a format is mica's in this session."""
    found = str(source).lower()
    return found == "mica" or (found == "delta" and not has_delta(session))


def _loaded(
    own: Callable[..., Any], reader: Any, path: Any = None, format: str | None = None, schema: Any = None,  # noqa: A002
    **options: Any,
) -> Any:  # fmt: skip
    found = _format_of(reader, format)
    if found is None:
        return own(reader, path, format, schema, **options)
    session = reader._spark  # noqa: SLF001
    with as_before(reader) as told, active(session):  # it may not be the one of this thread, where Spark looks
        given = _given(told, options)
        # A table of the session, as one of delta-spark's is there: Spark's own reader, and actions that skip.
        as_of = None if told.schema or schema or not isinstance(path, str) else version_clause(given)
        if as_of is not None and own.__qualname__ == "DataFrameReader.load":
            return table(f"delta.{quoted(local_path(path))}", session, lambda: own(reader, path, "mica"), as_of)
        if _TIMES & given.keys() and _ZONE.lower() not in given:
            reader.option(_ZONE, _zone(session))
        return own(reader, path, "mica", schema, **options)


def _saved(
    own: Callable[..., Any], writer: Any, path: str | None = None, format: str | None = None,  # noqa: A002
    mode: str | None = None, partitionBy: Any = None, **options: Any,  # noqa: N803 - Spark's name
) -> None:  # fmt: skip
    if _format_of(writer, format) is None:
        own(writer, path, format, mode, partitionBy, **options)
        return
    with as_before(writer) as told, active(writer._spark):  # noqa: SLF001
        writer.format("mica").mode(mode).options(**options)
        given = _given(told, options)
        place = path or given.get("path")
        if place is None:
            raise UserError(
                "INVALID_ARGUMENT",
                "save is given no path",
                hint="Give one, save('/data/events'), or a name: saveAsTable('events').",
            )
        if MATCHING & given.keys() and exists(storage := _storage(writer._spark, str(place), given)):  # noqa: SLF001
            replaced(writer, storage, given, (mode or told.mode).lower(), _partitions(told, partitionBy))
            settings.reset_txn(writer._spark)  # noqa: SLF001
        elif _tells(writer, told, given, str(place), mode, partitionBy):
            if not (told.cluster_by and _clusters(writer, told, given, str(place), mode)):
                own(writer, path)
            settings.reset_txn(writer._spark)  # noqa: SLF001


def _tells(
    writer: Any, told: Told, given: Mapping[str, Any], place: str, mode: str | None, partition_by: Any
) -> bool:  # fmt: skip
    """Tells a writer what the source does not see; whether it has something to write. Errors: TABLE_EXISTS."""
    session, asked = writer._spark, (mode or told.mode).lower()  # noqa: SLF001
    if asked in ("ignore", *_ERROR):
        if exists(_storage(session, place, given)):
            if asked == "ignore":
                return False
            raise UserError(
                "TABLE_EXISTS",
                f"there is a table at {place}, and the mode is ErrorIfExists",
                hint="Use the mode append, overwrite or ignore.",
                path=place,
            )
        writer.mode("append")
    _tell_partitions(writer, told, partition_by)
    writer.options(**settings.as_options(session, given))
    if "mergeschema" in given:  # Spark itself looks for this option, and fails on it in another spelling
        writer.option("mergeSchema", given["mergeschema"])
    # As in delta-spark, the session's mode is none of a writer that replaces the columns of all rows.
    keeps = asked == "overwrite" and given.get("overwriteschema", "").lower() != "true"
    if keeps and not _REPLACED & given.keys() and settings.is_dynamic(session):
        writer.option("partitionOverwriteMode", "dynamic")
    if "replacewhere" in given and _ZONE.lower() not in given:
        writer.option(_ZONE, _zone(session))
    return True


def _clusters(writer: Any, told: Told, given: Mapping[str, str], place: str, mode: str | None) -> bool:
    """Whether a table was made of rows that are to be clustered, as CREATE TABLE … CLUSTER BY does; for a stream one
    without rows. One that is there keeps its clustering. Errors: INVALID_ARGUMENT if that is another one."""
    streams = type(writer).__name__ == "DataStreamWriter"
    session, storage = writer._spark, _storage(writer._spark, place, given)  # noqa: SLF001
    base, asked = base_of(storage), list(told.cluster_by)
    overwrites = (mode or told.mode).lower() == "overwrite"
    remakes = overwrites and given.get("overwriteschema", "").lower() == "true"
    if isinstance(base, Storage) or remakes:
        properties = {name: text for name, text in given.items() if name.startswith("delta.")}
        schema: Any = nullable(from_spark(writer._df.schema))  # noqa: SLF001
        ddl, query = (to_ddl(schema), None) if streams else ("", ROWS)
        statement = Create(
            ("mica", str(storage)), ddl, "overwrite" if remakes else "error", properties=properties, query=query,
            cluster_by=told.cluster_by,
        )  # fmt: skip
        make_of_rows(session, statement, writer._df, given)  # noqa: SLF001
        return True
    found = clustering.cluster_by(base)
    if [one.lower() for one in found] != [one.lower() for one in asked]:
        raise UserError(
            "INVALID_ARGUMENT",
            f"{storage} is clustered by {', '.join(found) or 'no column'}, not by {', '.join(asked)}",
            hint="Leave clusterBy out, or change it: ALTER TABLE … CLUSTER BY (…).",
        )
    if not streams:  # whose sinks Spark tells no columns
        forget_clusters(writer)
    return False


def _tell_partitions(writer: Any, told: Told, given: Any) -> None:
    """Partition columns by an option: Spark takes a Python source to have none."""
    columns = _partitions(told, given)
    if columns:
        writer.partitionBy([]).option("partitionBy", ", ".join(map(quote_if_needed, columns)))


def _partitions(told: Told, given: Any) -> list[str]:
    """The partition columns of a call, or those that the writer was told."""
    return list(told.partition_by) if given is None else [given] if isinstance(given, str) else list(given)


def _started(
    own: Callable[..., Any], writer: Any, path: str | None = None, format: str | None = None,  # noqa: A002
    outputMode: str | None = None, partitionBy: Any = None, queryName: str | None = None, **options: Any,  # noqa: N803
) -> Any:  # fmt: skip
    if _format_of(writer, format) is None:
        return own(writer, path, format, outputMode, partitionBy, queryName, **options)
    with as_before(writer) as told, active(writer._spark):  # noqa: SLF001
        if (outputMode or told.mode).lower() == "update":  # Spark fails when the stream runs, which may be unseen
            raise UserError(
                "INVALID_ARGUMENT",
                "a stream into a table has the output mode append or complete, got update",
                hint="To change rows by key, run a MERGE for each batch: foreachBatch(…).",
            )
        _tell_partitions(writer, told, partitionBy)
        given = _given(told, options)
        writer.options(**settings.as_options(writer._spark, given, stream=True))  # noqa: SLF001
        writer.options(**_state_folder(writer._spark, given, queryName))  # noqa: SLF001
        place = path or given.get("path")
        if place is not None and told.cluster_by:
            _clusters(writer, told, given, str(place), "append")
        return own(writer, path, "mica", outputMode, None, queryName, **options)


def _state_folder(session: SparkSession, given: Mapping[str, Any], query: str | None) -> dict[str, str]:
    """The folder in which Spark keeps a stream's state if the session names that of all streams: a source is told only
    of the option, and needs the id in the folder."""
    place = session.conf.get("spark.sql.streaming.checkpointLocation", None)
    if not place or "checkpointlocation" in given:
        return {}
    return {"checkpointLocation": f"{place.rstrip('/')}/{query or given.get('queryname') or uuid.uuid4()}"}


def _inserted(own: Callable[..., Any], writer: Any, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N803
    """`insertInto` of a name that is not registered: without delta-spark Spark looks for the default format, where it
    is `delta`, before it says that there is no such table."""
    parts = name_parts(tableName)
    if is_ours(writer._spark, _format_of(writer, None)) and parts and not writer._spark.catalog.tableExists(tableName):  # noqa: SLF001
        raise unknown(parts)
    own(writer, tableName, overwrite)


def _made(
    own: Callable[..., Any], writer: Any, name: str, format: str | None = None,  # noqa: A002
    mode: str | None = None, partitionBy: Any = None, **options: Any,  # noqa: N803 - Spark's name
) -> None:  # fmt: skip
    """`saveAsTable` of a name that is not registered."""
    if not _makes(writer, name, format):
        own(writer, name, format, mode, partitionBy, **options)
        return
    with as_before(writer) as told:
        known, place, storage = _place(writer, name, _given(told, options))
        writer.save(place, "mica", mode, partitionBy, **options)
        kept_names.give(writer._spark, known, storage, managed=place is not None)  # noqa: SLF001


def _streamed(
    own: Callable[..., Any], writer: Any, tableName: str, format: str | None = None,  # noqa: A002, N803
    outputMode: str | None = None, partitionBy: Any = None, queryName: str | None = None, **options: Any,  # noqa: N803
) -> Any:  # fmt: skip
    """`toTable` of a name that is not registered; the stream makes the table with its first batch."""
    if not _makes(writer, tableName, format):
        return own(writer, tableName, format, outputMode, partitionBy, queryName, **options)
    with as_before(writer) as told:
        known, place, storage = _place(writer, tableName, _given(told, options))
        started = writer.start(place, "mica", outputMode, partitionBy, queryName, **options)
        kept_names.promise(writer._spark, known, storage, managed=place is not None)  # noqa: SLF001
        return started


def _catalogued(
    own: Callable[..., Any], catalog: Any, tableName: str, path: str | None = None, source: str | None = None,  # noqa: N803
    schema: Any = None, description: str | None = None, **options: Any,
) -> Any:  # fmt: skip
    """`createTable` of the format: `CREATE TABLE … USING mica`, or a name for the table at a path."""
    session = catalog._sparkSession  # noqa: SLF001
    if not is_ours(session, source):
        return own(catalog, tableName, path, source, schema, description, **options)
    place = options.pop("path", path)
    text = f"CREATE TABLE {tableName}{'' if schema is None else f' ({to_ddl(from_spark(schema))})'} USING mica"
    text += "" if place is None else f" LOCATION {literal(str(place))}"
    text += "" if description is None else f" COMMENT {literal(description)}"
    if options:
        text += f" OPTIONS ({', '.join(f'{literal(name)} {literal(str(value))}' for name, value in options.items())})"
    by_text(text, session)
    return session.table(tableName)


def _makes(writer: Any, name: str, given: str | None) -> bool:
    """Whether a writer of the format is given a new name."""
    return _format_of(writer, given) is not None and is_new(writer._spark, name)  # noqa: SLF001


def is_new(session: SparkSession, name: str) -> bool:
    """Whether nobody has a name. Errors: TABLE_EXISTS for that of a temporary view, which the table would hide, and
    of a table that is not a Delta table; INVALID_ARGUMENT for one that no table can have, in Spark's catalog either."""
    parts = registry.without_catalog(name_parts(name) or ())
    if 0 < len(parts) < 3 and not names.is_path(parts):
        refuse_odd(parts)
    unquoted = _unquoted(name)
    if not registry.NAME.fits(unquoted):
        return False
    is_there = catalog.is_temporary(session, unquoted) or session.catalog.tableExists(name)
    if is_there:
        refuse_other_table(session, unquoted)
    return not is_there


def _place(writer: Any, name: str, given: Mapping[str, Any]) -> tuple[str, str | None, Storage]:
    """The name that a new table gets, and where it is, as for CREATE TABLE … USING mica: in the warehouse, or at the
    option path, beside which Spark takes no other."""
    session, path = writer._spark, given.get("path")  # noqa: SLF001
    parts = new_name(session, _unquoted(name).split("."))
    place = new_place(session, parts) if path is None else str(path)
    return ".".join(parts), None if path is not None else place, _storage(session, place, given)


def _unquoted(name: str) -> str:
    return str(name).strip().replace("`", "")


def _given(told: Told, options: Mapping[str, Any]) -> dict[str, Any]:
    """All options, by their names in lower case; those of a call as the texts that Spark makes of them."""
    values = {name.lower(): value for name, value in options.items() if value is not None}
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}
    return {**told.options, **texts}


def _storage(session: SparkSession, place: str, given: Mapping[str, Any]) -> Storage:
    """The place as the source opens it: a relative path is one of the folder that the session began in."""
    path = local_path(place)
    options = {name.removeprefix(STORAGE): str(value) for name, value in given.items() if name.startswith(STORAGE)}
    if split_scheme(path)[0] is None and not os.path.isabs(path):  # noqa: PTH117
        path = os.path.join(str(java_class(session, "java.lang.System").getProperty("user.dir")), path)  # noqa: PTH118
    return Storage.open(path, options or None)


def _zone(session: SparkSession) -> str:
    return str(session.conf.get("spark.sql.session.timeZone"))


#: Who answers which method, in classic sessions: a reader or writer of Spark Connect does not show what it was told.
BY_FORMAT: Mapping[str, Callable[..., Any]] = {
    **{f"{of}.format": _formatted for of in ("DataFrameReader", "DataFrameWriter", "DataStreamReader")},
    "DataStreamWriter.format": _formatted,
    "DataFrameReader.load": _loaded,
    "DataStreamReader.load": _loaded,
    "DataFrameWriter.save": _saved,
    "DataFrameWriter.saveAsTable": _made,
    "DataFrameWriter.insertInto": _inserted,
    "DataStreamWriter.start": _started,
    "DataStreamWriter.toTable": _streamed,
    "Catalog.createTable": _catalogued,
}
