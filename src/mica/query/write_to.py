"""What `df.writeTo(name)` does in an enabled session, when it is run.

The rule: a name that is mica's, and a new one with the format, are written as by the statement that says the same
(CREATE TABLE … AS, REPLACE TABLE … AS) or by `df.write`; any other writer is Spark's own. Until it runs a writer is
Spark's: which table and format it means is not known before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mica.arguments import Mode
from mica.engines.spark.session import has_delta
from mica.engines.spark.types import to_spark
from mica.engines.spark.written_to import WrittenTo, resolved, written_to
from mica.errors import UserError
from mica.log.snapshot import exists
from mica.properties import COMMENT
from mica.query import names, registry
from mica.query.by_format import is_new, is_ours
from mica.query.by_name import FORMATS, moved, refuse_other_place, stored
from mica.query.insert import as_stored
from mica.query.located import named_place
from mica.query.made import ROWS, make_of_rows
from mica.query.replace_matching import refuse_matching
from mica.query.statements import Create
from mica.schema.spelling import spelled
from mica.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Own = Callable[..., None]


def _known(session: SparkSession, table: tuple[str, ...]) -> tuple[str, Storage] | None:
    """The registered name, or the path, and the place of a table that is mica's."""
    if names.is_path(table):
        return None if has_delta(session) else (spelled(table), Storage.open(table[1]))
    return named_place(session, table)


def _makes(own: Own, writer: Any, *, mode: Mode, replaces: bool = False) -> None:
    """`create`, `createOrReplace` and `replace`."""
    session, told = writer._spark, written_to(writer)  # noqa: SLF001
    if not _is_ours(session, told):
        own(writer)
        return
    if told.partition_by is None:
        raise UserError.bad_value("partitionedBy", told.partition_text, "columns: Delta has no other partitions")
    refuse_matching(told.options, "a writer that makes a table")
    options = {name.lower(): value for name, value in told.options.items()}
    # As delta-spark, which takes such options for properties, too.
    given = {name: value for name, value in told.options.items() if name.lower().startswith("delta.")}
    properties = {**given, **told.properties}
    location = properties.pop("location", None) or options.get("path")
    if "comment" in properties:
        properties[COMMENT] = properties.pop("comment")
    statement = Create(
        told.table, "", mode, told.partition_by, location, properties, ROWS, replaces=replaces,
        cluster_by=told.cluster_by,
    )  # fmt: skip
    if mode == "error":
        _refuse_there(session, statement)
    make_of_rows(session, statement, writer._df, options)  # noqa: SLF001


def _refuse_there(session: SparkSession, statement: Create) -> None:
    """Refuses the name of a table that is there. Errors: TABLE_EXISTS."""
    known = _known(session, statement.table)
    if known is not None and exists(known[1]):
        raise UserError(
            "TABLE_EXISTS",
            f"{known[0]} is the table {known[1]}",
            hint="Append to it, or replace it: createOrReplace().",
        )


def _is_ours(session: SparkSession, told: WrittenTo) -> bool:
    """Whether a table is made by mica. Errors: INVALID_ARGUMENT for a table of mica's and another format; TABLE_EXISTS
    for the name of a temporary view."""
    known = _known(session, told.table)
    if known is not None:
        if told.provider is not None and told.provider.lower() not in FORMATS:
            what = f"mica or delta, since {known[0]} is the table {known[1]}"
            raise UserError.bad_value("using", told.provider, what)
        return True
    provider = told.provider or session.conf.get("spark.sql.sources.default")
    return is_ours(session, provider) and is_new(session, spelled(told.table))


def _writes(own: Own, writer: Any, *condition: Any, mode: str) -> None:
    """`append`, `overwritePartitions` and `overwrite` of a table that is there."""
    session, told = writer._spark, written_to(writer)  # noqa: SLF001
    known = _known(session, told.table)
    if known is None:
        own(writer, *condition)
        return
    name, place = known
    options, schema = {**stored(name), **told.options}, registry.opened(place).schema
    for path in [option for option in options if option.lower() == "path"]:
        refuse_other_place(name, str(place), options.pop(path))
    if condition:
        options["replaceWhere"] = resolved(to_spark(schema), condition[0], session)
    elif mode == "overwrite":
        options["partitionOverwriteMode"] = "dynamic"
    as_stored(writer._df, schema, by_name=True).write.format("mica").options(**options).mode(mode).save(str(place))  # noqa: SLF001
    moved(name)


#: Who answers which method, in classic sessions.
WRITE_TO: Mapping[str, Callable[..., Any]] = {
    "DataFrameWriterV2.create": partial(_makes, mode="error"),
    "DataFrameWriterV2.createOrReplace": partial(_makes, mode="overwrite"),
    "DataFrameWriterV2.replace": partial(_makes, mode="overwrite", replaces=True),
    "DataFrameWriterV2.append": partial(_writes, mode="append"),
    "DataFrameWriterV2.overwritePartitions": partial(_writes, mode="overwrite"),
    "DataFrameWriterV2.overwrite": partial(_writes, mode="overwrite"),
}
