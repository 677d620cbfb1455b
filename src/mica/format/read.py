"""Rows of a table for Spark, in a batch.

The rule: the plan is made where Spark plans (a Python process beside the driver), and each partition reads its files
with the kernel. Filters that Spark pushes are taken only where that is asked for; Spark evaluates all of them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType as SparkStructType

from mica.cores import cores
from mica.engines.spark.batches import for_spark
from mica.engines.spark.lasting import set_aside
from mica.engines.spark.types import from_spark, to_spark
from mica.errors import UserError
from mica.expressions import typed_paths
from mica.expressions.collations import FRAME
from mica.format.brief import brief
from mica.format.filters import pushed
from mica.format.options import Options
from mica.log.at_path import at_path
from mica.properties import TYPED_PATHS
from mica.readers.terms import Terms
from mica.records import dataclass
from mica.scan.scan import Scan
from mica.schema.ddl import type_to_ddl
from mica.schema.spelling import quote_if_needed
from mica.schema.types import StructField, StructType, refuse_twice
from mica.table import Table
from mica.tasks.file import ReadSpec
from mica.tasks.parts import FilePart
from mica.tasks.read import read_parts


def opened(options: Options) -> Table:
    """The table at the version of the options or of the path (`path@v3`). Errors: those of `Table.open`."""
    version, timestamp = options.version("versionAsOf"), options.moment("timestampAsOf")
    _, asked = at_path(options.path, options.storage)
    if isinstance(asked, datetime) and version is None and timestamp is None:
        path = options.path.rpartition("@")[0]
        return Table.open(path, timestamp=options.in_zone(asked, "the path"), storage_options=options.storage)
    return Table.open(options.path, version=version, timestamp=timestamp, storage_options=options.storage)


@dataclass(frozen=True)
class Columns:
    """The columns that Spark sees: their types, and how they are spelled over the table."""

    schema: StructType
    spelled: Mapping[str, str]

    @classmethod
    def of(cls, source: StructType, options: Options, declared: str | None) -> Columns:
        """Columns of the table, then typed paths, which stand for the Variant that they come from: Spark pushes filters
        into a Python source, but no columns, so all of them are read. `columns` names others.

        Errors: UNKNOWN_COLUMN, DUPLICATE_COLUMN; those of `typed_paths.parse`.
        """
        asked = options.names("columns")
        text = options.text("typedPaths") or options.text("paths")
        names = [source.field(name).name for name in asked] if asked is not None else None
        refuse_twice(names or ())
        if text is None:
            typed = typed_paths.of_table(declared or "", source, names)
        else:
            typed = typed_paths.parse(text, source, names)
        if names is None:
            replaced = {one.column.lower() for one in typed}
            names = [name for name in source.names if name.lower() not in replaced]
        # Batches of a scan have nullable columns, and Spark wants its schema to be theirs.
        fields = [replace(source.field(name), nullable=True) for name in names] + [
            StructField(one.name, one.type) for one in typed
        ]
        spelled = {name: quote_if_needed(name) for name in names} | {one.name: one.expression for one in typed}
        return cls(StructType(tuple(fields)), spelled)

    def chosen(self, schema: StructType) -> Columns:
        """Those of the schema that Spark wants, which may have fewer. Errors: UNKNOWN_COLUMN, INCOMPATIBLE_TYPE."""
        fields = []
        for wanted in schema.fields:
            found = self.schema.field(wanted.name)
            if type_to_ddl(found.type) != type_to_ddl(wanted.type):
                raise UserError(
                    "INCOMPATIBLE_TYPE",
                    f"{wanted.name} is {type_to_ddl(found.type)}, but the schema that was given has "
                    f"{type_to_ddl(wanted.type)}",
                    hint="Leave .schema(…) out, or declare a typed path.",
                    column=wanted.name,
                )
            fields.append(replace(found, name=wanted.name))
        return Columns(
            StructType(tuple(fields)), {f.name: self.spelled[self.schema.field(f.name).name] for f in fields}
        )


def scan_of(table: Table, options: Options, columns: Columns, predicates: Sequence[str]) -> Scan:
    """The rows that the options and the predicates want. Errors: NEEDS_SPARK, since its workers have no comparator."""
    where = " AND ".join(f"({text})" for text in predicates) or None
    timezone = options.text("timeZone") or "UTC"
    if not options.flag("readChangeFeed"):
        scan = table.scan(where, dict(columns.spelled), timezone=timezone)
    else:
        scan = _changes(table, options, where=where, columns=dict(columns.spelled), timezone=timezone)
    scan.refuse_collated(FRAME)
    return scan


def _changes(table: Table, options: Options, **asked: Any) -> Scan:
    if options.text("startingVersion") is None and options.text("startingTimestamp") is None:
        raise UserError(
            "INVALID_ARGUMENT", "readChangeFeed needs a start", hint="Give startingVersion or startingTimestamp."
        )
    last = options.version("endingVersion")
    return table.changes(
        options.version("startingVersion"), None if last is None else min(last, table.version),
        from_timestamp=options.moment("startingTimestamp"), to_timestamp=options.moment("endingTimestamp"), **asked,
    )  # fmt: skip


def source_schema(table: Table, options: Options) -> StructType:
    """The table's columns, with those of the change feed if it is asked for."""
    if not options.flag("readChangeFeed"):
        return table.schema
    from mica.scan.changes import FEED_COLUMNS

    if options.version("endingVersion") is not None or options.text("endingTimestamp") is not None:
        # The columns are those of the last version of the range, which the table may have changed since.
        return _changes(table, options).source.schema
    return StructType((*table.schema.fields, *FEED_COLUMNS))


def columns_of(table: Table, options: Options) -> Columns:
    """The columns that Spark sees of a table."""
    return Columns.of(source_schema(table, options), options, TYPED_PATHS.of(table.properties))


@dataclass(frozen=True)
class Partition(InputPartition):
    """The files, or shares of files, that one task reads."""

    value: Sequence[FilePart]


class Reader(DataSourceReader):
    """Plans a read; what crosses to the workers is its spec and the files of each partition."""

    def __init__(self, options: Options, schema: SparkStructType) -> None:
        self.schema = schema
        self._options, self._table = options, opened(options)
        self._columns = columns_of(self._table, options).chosen(from_spark(schema))
        where = options.text("where")
        self._predicates = [] if where is None else [where]
        self._planned()  # wrong options are errors here
        self.spec: ReadSpec | None = None

    @brief
    def partitions(self) -> list[Partition]:
        """The files that may have matching rows."""
        scan = self._planned()
        return [Partition(files) for files in scan.sent(cores())] or [Partition(())]

    def _planned(self) -> Scan:
        return scan_of(self._table, self._options, self._columns, self._predicates)

    def __getstate__(self) -> dict[str, Any]:
        # Spark pickles the reader after it pushed filters: workers need neither table nor scan.
        return {"schema": self.schema, "spec": self._planned().spec()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of the files."""
        assert self.spec is not None
        return rows_of(self.spec, partition.value)


class FilteredReader(Reader):
    """Also takes the filters that Spark pushes.

    Spark 4.2 and 4.3 keep the filters of a query in the relation, and use them again for the next query of the same
    DataFrame or view that pushes none, and for all uses of it in one query. So this is only for a relation that each
    query reads once and filters: option pushFilters.
    """

    def pushFilters(self, filters: Iterable[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's names
        """Takes the filters whose meaning is certain, for skipping; Spark evaluates all of them."""
        terms = Terms(self._planned())
        for one in filters:
            self._predicates += pushed(one, terms)
            yield one


def rows_of(spec: ReadSpec, files: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """The rows of files in the form that Spark takes."""
    set_aside()
    schema = spec.schema
    for batch in read_parts(spec, files):
        yield for_spark(batch, schema)


def spark_schema(table: Table, options: Options) -> SparkStructType:
    """The schema that Spark sees. What a scan would refuse of option `where` is an error of `load` already."""
    columns, where = columns_of(table, options), options.text("where")
    if where is not None and not options.flag("readChangeFeed"):
        scan_of(table, options, columns, [where])
    return to_spark(columns.schema)
