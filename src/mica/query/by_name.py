"""What a registered name means to the methods of an enabled session's DataFrames, readers, writers and catalog.

The rule: a call by name is the same call of `format("mica")` by path, with all that the reader or writer was told.
Spark would make a table of its own of that name, beside the one that `spark.sql` and `spark.table` read.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from mica.engines.spark.doors import Answer, NamedCall
from mica.errors import UserError
from mica.query import names
from mica.schema.literals import show
from mica.schema.types import STRING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FORMATS = (None, "mica", "delta")


def _read(call: NamedCall) -> Any:
    table = names.registered(call.name) if names.is_table(call.name) else None  # which is read at its own version
    if table is not None:
        call.on.option("versionAsOf", table.version)
    return _loaded(call)


def _loaded(call: NamedCall) -> Any:
    return call.on.format("mica").load(call.place)


def _moved(name: str) -> None:
    """A Table that has the name goes on with what was written, as after an INSERT."""
    table = names.registered(name) if names.is_table(name) else None
    if table is not None:
        table.refresh()


def _saved(call: NamedCall) -> None:
    _refuse_format(call)
    writer, given = call.on, call.given
    writer.mode(given.get("mode")).options(**given.get("options", {}))
    if given.get("partitionBy") is not None:
        writer.partitionBy(given["partitionBy"])
    writer.format("mica").save(call.place)
    _moved(call.name)


def _inserted(call: NamedCall) -> None:
    """Columns go by their places, as Spark puts rows into a view of the format."""
    view, session = f"mica_{uuid.uuid4().hex}", call.session
    session.sql(f"CREATE TEMPORARY VIEW {view} USING mica OPTIONS (path {show(call.place, STRING)})")
    try:
        call.by(view)
    finally:
        session.catalog.dropTempView(view)
    _moved(call.name)


def _streamed(call: NamedCall) -> Any:
    _refuse_format(call)
    call.on.options(**call.given.get("options", {}))
    for name in ("outputMode", "partitionBy", "queryName"):
        if call.given.get(name) is not None:
            getattr(call.on, name)(call.given[name])
    return call.on.format("mica").start(call.place)


def _exists(call: NamedCall) -> Any:
    return True if call.given.get("dbName") is None else call.by(call.name)


def _refuse_format(call: NamedCall) -> None:
    asked = call.given.get("format")
    if asked not in _FORMATS:
        raise UserError.bad_value("format", asked, f"mica or delta, since {call.name} is the table {call.place}")


class WriterToName:
    """`df.writeTo` of a registered name."""

    def __init__(self, rows: DataFrame, name: str, place: str) -> None:
        self._rows, self._name, self._place = rows, name, place
        self._options: dict[str, Any] = {}

    def option(self, key: str, value: Any) -> Self:
        """An option of the write."""
        self._options[key] = value
        return self

    def options(self, **options: Any) -> Self:
        """Options of the write."""
        self._options.update(options)
        return self

    def append(self) -> None:
        """Appends the rows, by the names of their columns."""
        self._save("append")

    def overwritePartitions(self) -> None:  # noqa: N802 - Spark's name
        """Replaces the partitions that get rows; all rows of a table without partitions."""
        self._options["partitionOverwriteMode"] = "dynamic"
        self._save("overwrite")

    def overwrite(self, condition: Any) -> None:
        """Refuses: the condition is a column of Spark's."""
        raise UserError.bad_value("overwrite", condition, "df.write with the option replaceWhere, an SQL text")

    def create(self) -> None:
        """Refuses: there is a table."""
        raise UserError(
            "TABLE_EXISTS",
            f"{self._name} is the table {self._place}",
            hint="Append, or write CREATE OR REPLACE TABLE … USING mica AS SELECT … FROM a view of the rows.",
        )

    replace = createOrReplace = create  # noqa: N815 - Spark's name

    def _save(self, mode: str) -> None:
        self._rows.write.format("mica").options(**self._options).mode(mode).save(self._place)
        _moved(self._name)


#: Who answers which method.
ANSWERS: Mapping[str, Answer] = {
    "DataFrameReader.table": _read,
    "DataStreamReader.table": _loaded,
    "DataFrameWriter.saveAsTable": _saved,
    "DataFrameWriter.insertInto": _inserted,
    "DataFrame.writeTo": lambda call: WriterToName(call.on, call.name, call.place),
    "DataStreamWriter.toTable": _streamed,
    "Catalog.tableExists": _exists,
}
