"""Decides when Spark's own Parquet reader is used instead of the kernel.

The rule is `REASONS`: each line is a case in which Spark's reader would be wrong or slower. If none applies, Spark's
reader is used, because Catalyst can then prune the paths of `t.to_df(spark).selectExpr("variant_get(v, …)")`. A caller
who names a Variant column (`columns=["v"]`) wants it whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from mica.arrays import arrow_array
from mica.cached import cached_property
from mica.engines.spark import directories, hadoop, marks
from mica.engines.spark.session import is_connect, with_setting
from mica.engines.spark.types import to_spark
from mica.records import dataclass
from mica.schema.char import declared, is_padded
from mica.schema.collations import renamed_field
from mica.schema.edit import fields_of
from mica.schema.spelling import quoted
from mica.schema.types import DOUBLE, FLOAT, VARIANT, Primitive, StructField, StructType, contains
from mica.stats.columns import physical_name
from mica.stats.partition import format_values, parse_values
from mica.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Beyond it, defining the DataFrame costs more than it saves (docs/decisions.md, "Spark").
MAX_FILES = 2_000

#: Smaller files of a store, in the mean, are there sooner whole than Spark has asked for what it needs of them.
REMOTE_BYTES = 16 << 20

#: Where parquet-java looks for 0.0, -0.0 is another value: it drops row groups whose dictionaries and bloom filters
#: have only that one.
WITH_ZEROS = {"parquet.filter.dictionary.enabled": "false", "parquet.filter.bloom.enabled": "false"}

#: By this name it is the first of Spark's two readers, whatever `spark.sql.sources.useV1SourceList` says: the second
#: reads shredded Variants as null.
FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"

#: Files without Spark's version, such as ours, have today's calendar, whatever the session says of them
#: (`spark.sql.parquet.datetimeRebaseModeInRead`): the kernel reads them so, too.
CALENDAR = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}

#: Files that Spark leaves out without a word, though they are asked for (`HadoopFSUtils.shouldFilterOutPathName`): by
#: their own names, not by those of folders. `_x=1` and `_metadata`, which it keeps, are read by the kernel too.
HIDDEN = re.compile(r"/[._][^/]*$|\._COPYING_$")

#: Of so many columns that a query leaves out Spark is told: a thousand take 40 ms each time.
_OTHERS = 100

#: Beyond so many files Spark looks for them by a job; one thread changes it at a time, and gives it back.
_LISTED, _LISTS = "spark.sql.sources.parallelPartitionDiscovery.threshold", Lock()

#: Each combination of partition values becomes literals in one branch of a union, where directories do not tell them.
MAX_PARTITIONS = 16


@dataclass(frozen=True)
class Reading:
    """The request: whole columns of whole files."""

    schema: StructType
    columns: StructType
    partition_by: tuple[str, ...]
    #: How many files there are, and what `files` gives: they are listed only where they are not too many.
    count: int
    listed: Callable[[], Mapping[tuple[str | None, ...], Sequence[str]]]
    #: Bytes of all files.
    size: int
    storage: Storage
    is_table: bool
    plain_files: bool
    plain_columns: bool
    names_columns: bool
    predicate: bool
    limit: bool
    deletion_vectors: bool
    column_mapping: bool
    by_id: bool
    #: Whether Variants may hold types that Spark's lack; checked last, since it may open footers.
    late_types: Callable[[], bool]

    @cached_property
    def files(self) -> Mapping[tuple[str | None, ...], Sequence[str]]:
        """Partition values → paths of the files, relative to the storage or absolute."""
        return self.listed()

    @cached_property
    def uris(self) -> Sequence[str]:
        """The files as Hadoop names them."""
        return [hadoop.uri(*self.storage.locate(path)) for paths in self.files.values() for path in paths]

    @property
    def is_remote(self) -> bool:
        """Whether the location is an object store's."""
        return self.storage.local_path is None

    @cached_property
    def by_directories(self) -> bool:
        """Whether Spark's reader gets the partition values from the names of directories."""
        return directories.told(self.columns, self.partition_by, self.files)

    @cached_property
    def by_own_names(self) -> bool:
        """Whether new names of top-level columns are all that the files lack: a cast of a struct to one with other
        names would read all of its fields, partitions of a mapped table have directories of any name, and columns that
        are mapped by their ids may have any name in a file."""
        fields = [self.columns.field(name) for name in self.schema.names]
        stored = {physical_name(f).lower() for f in fields}
        inside = (i for f in fields for i in fields_of(f.type))
        if self.by_id or self.partition_by:
            return False
        return len(stored) == len(fields) and all(physical_name(i) == i.name for i in inside)


REASONS: Mapping[str, Callable[[Reading], bool]] = {
    "bare files may hold what Spark reads wrongly (docs/compatibility.md)": lambda r: not r.is_table,
    "the rows are changes, not those of the files": lambda r: not r.plain_files,
    "a predicate is given, on which only mica skips": lambda r: r.predicate,
    "the columns are expressions": lambda r: not r.plain_columns,
    "the call names a Variant column: the kernel builds whole Variants faster": lambda r: (
        r.names_columns and contains(r.schema, VARIANT)
    ),
    "the call names columns, which the kernel asks of a store in fewer requests": lambda r: (
        r.names_columns and r.is_remote
    ),
    "a limit is given": lambda r: r.limit,
    # To drop the deleted rows right above Spark's reader is too late for those whose cast it makes (docs/decisions.md).
    "files have deletion vectors": lambda r: r.deletion_vectors,
    "columns are mapped, and partitions or fields of structs too": lambda r: r.column_mapping and not r.by_own_names,
    "Spark's own reader does not pad CHAR columns": lambda r: any(is_padded(declared(f)) for f in r.schema.fields),
    "there are no files": lambda r: not r.count,
    "there are too many files": lambda r: r.count > MAX_FILES,
    "Spark comes without a decoder of Brotli": lambda r: any(uri.endswith(".brotli.parquet") for uri in r.uris),
    "files of a store are small": lambda r: r.is_remote and r.size < REMOTE_BYTES * r.count,
    "there are too many partitions": lambda r: len(r.files) > MAX_PARTITIONS and not r.by_directories,
    "Hadoop takes a colon in a name for the end of a scheme": lambda r: any(uri.count(":") > 1 for uri in r.uris),
    "Spark drops files that are named like hidden or half-copied ones": lambda r: any(
        HIDDEN.search(uri) for uri in r.uris
    ),
    "to know where a struct is null, Spark reads a field of it, which may be inside of a shredded Variant": lambda r: (
        any(f.type != VARIANT and contains(f.type, VARIANT) for f in r.schema.fields)
    ),
    "files are in several stores": lambda r: (
        r.is_remote and not all(uri.startswith(f"{hadoop.uri(r.storage, '')}/") for uri in r.uris)
    ),
    "Spark has not the settings of this store, or does not read it": lambda r: (
        r.is_remote and not hadoop.reads(r.storage, next(iter(r.uris)))
    ),
    "Variants may hold types that Spark's lack (tasks/late_types.py)": lambda r: r.late_types(),
}


def reason_for_kernel(reading: Reading) -> str | None:
    """The reason to use the kernel; None if Spark's own reader is right and not slower."""
    return next((reason for reason, applies in REASONS.items() if applies(reading)), None)


def native(spark: SparkSession, reading: Reading) -> DataFrame:
    """The DataFrame of Spark's own reader."""
    from pyspark.sql import functions as sql

    names = reading.schema.names
    # A scan's columns may have nulls, as expressions: these are the table's own.
    own = (replace(f, nullable=reading.columns.field(f.name).nullable) for f in reading.schema.fields)
    stored = StructType(tuple(f for f in own if f.name not in reading.partition_by))
    if reading.column_mapping:
        inside_files = (physical_name(reading.columns.field(f.name)) for f in stored)
        stored = StructType(tuple(renamed_field(f, name) for f, name in zip(stored, inside_files, strict=True)))
    if reading.by_directories:
        stored = StructType((*stored.fields, *map(reading.columns.field, reading.partition_by)))
        paths = [path for paths in reading.files.values() for path in paths]
        whole = _loaded(spark, reading, stored, paths, basePath=hadoop.uri(reading.storage, ""))
        for f in to_spark(StructType(tuple(map(reading.columns.field, reading.partition_by)))).fields:
            if f.metadata:  # Spark forgets comments of columns that it takes from directories
                found = sql.col(quoted(f.name)).alias(f.name, metadata=f.metadata)
                whole = whole.withColumn(f.name, found)
    else:
        branches = [
            _with_values(spark, reading, values, _loaded(spark, reading, stored, paths))
            for values, paths in reading.files.items()
        ]
        whole = branches[0]
        for branch in branches[1:]:
            whole = whole.union(branch)
    if reading.column_mapping:
        return whole.toDF(*names)
    # Each column by itself is a call of the JVM: a second for a thousand columns. There is a projection always: of a
    # view that is bare files an INSERT would replace these.
    return whole.selectExpr(*(["*"] if stored.names == names else map(quoted, names)))


def _loaded(spark: SparkSession, reading: Reading, stored: StructType, paths: Sequence[str], **own: str) -> DataFrame:
    options = WITH_ZEROS if any(contains(reading.schema, kind) for kind in (FLOAT, DOUBLE)) else {}
    # By the other columns Spark knows how little of the files it reads, and broadcasts that in a join.
    whole = StructType((*stored.fields, *islice(_others(reading, stored), _OTHERS)))
    reader = spark.read.format(FORMAT).schema(to_spark(whole)).options(**CALENDAR, **options, **own)
    uris = [unglobbed(hadoop.uri(*reading.storage.locate(path))) for path in paths]
    with nullcontext() if reading.is_remote or is_connect(spark) else _listed_here(spark):
        found = reader.load(uris)
    if len(whole) > len(stored):
        found = found.selectExpr(*map(quoted, stored.names))
    return found if is_connect(spark) else marks.typed(spark, found, to_spark(stored))


def _others(reading: Reading, stored: StructType) -> Iterator[StructField]:
    """The plain columns that are in the files too."""
    for field in reading.columns.fields:
        if isinstance(field.type, Primitive) and field.type.known and field.type != VARIANT:
            own = renamed_field(field, physical_name(field)) if reading.column_mapping else field
            if own.name not in stored.names and field.name not in reading.partition_by:
                yield own


@contextmanager
def _listed_here(spark: SparkSession) -> Iterator[None]:
    """Lets Spark look for files of a disk without a job, which has a task for each."""
    with _LISTS, with_setting(spark, _LISTED, str(MAX_FILES)):
        yield


def _with_values(spark: SparkSession, reading: Reading, values: tuple[str | None, ...], frame: DataFrame) -> DataFrame:
    """The rows of files with the partition values that they share."""
    from pyspark.sql import functions as sql

    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    for name, text in zip(reading.partition_by, values, strict=True):
        if name in reading.schema.names:
            field = reading.columns.field(name)
            kind, shown = field.type, to_spark(StructType((field,))).fields[0]
            # Parsed as everywhere ('' is null), and written so that every cast of Spark reads the same value.
            value = format_values(parse_values(arrow_array([text], pa.string()), kind, timezone=zone), kind)[0].as_py()
            frame = frame.withColumn(name, sql.lit(value).cast(shown.dataType).alias(name, metadata=shown.metadata))
    return frame


def unglobbed(path: str) -> str:
    """The path with Hadoop's pattern characters escaped (`FileSystem.globStatus`)."""
    return re.sub(r"([\\{}\[\]*?,])", r"\\\1", path)
