"""Convert a folder of Parquet files to a Delta table in place.

The rule: one commit names the files where they are; no data is read, moved or written. Columns come from the footers,
partition columns and values from the directories (`scan.hive`), statistics from the footers (`tasks/footer_stats.py`).
Names that begin with `_` or `.` are no data, but for the directories of partitions. As with Spark, all columns become
nullable.

Source: delta-spark's CONVERT TO DELTA, whose operation and metrics the commit has.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from mica import engines
from mica.errors import CorruptDataError, UserError
from mica.log import creation, features
from mica.log.added import ADDED
from mica.log.configuration import checked
from mica.log.paths import encode_path
from mica.log.snapshot import Snapshot, exists
from mica.log.transaction import Transaction
from mica.properties import COLUMN_MAPPING_MODE
from mica.scan import hive
from mica.scan.files import FilesSource
from mica.scan.find import find
from mica.scan.scan import Scan
from mica.schema.ddl import parse_ddl
from mica.schema.types import DataType, StructField, StructType, loosened
from mica.stats.partition import parse_values
from mica.storage import Storage
from mica.tasks.footer_stats import STATS, FooterSpec, footer_stats
from mica.tasks.parts import in_tasks, parts_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def convert_to_delta(
    path: str,
    partition_by: str | None,
    properties: Mapping[str, str] | None,
    storage_options: Mapping[str, str] | None,
    spark: SparkSession | None,
) -> Snapshot:
    """Makes the folder a table; see `Table.convert_to_delta`."""
    storage = Storage.open(path, storage_options)
    if exists(storage):
        raise UserError("TABLE_EXISTS", f"{storage} is a Delta table already", hint="Open it.", path=str(storage))
    found = find(path, storage_options)
    names = [entry.path for _, entry in found]
    if any(place.path(entry.path) != storage.path(entry.path) for place, entry in found):
        raise UserError.bad_value("path", path, "a folder of Parquet files")
    source = FilesSource(found, storage_options, early=False, check=_refuse_types, exact=True)
    values = hive.values_of_all(names)
    partitions = _partitions(source, values, names, partition_by)
    source.schema = StructType(
        tuple(StructField(f.name, loosened(partitions.get(f.name, f.type))) for f in source.schema.fields)
    )
    given = {name: text for name, text in checked(properties or {}).items() if text is not None}
    mapping = given.pop(COLUMN_MAPPING_MODE.name, None)
    protocol, metadata = creation.new_table(
        source.schema, list(partitions), given, created_time=int(time.time() * 1000)
    )
    if mapping is not None:
        # The files have the columns' own names, as those of a table do that is mapped later.
        protocol, metadata = creation.altered(protocol, metadata, changes={COLUMN_MAPPING_MODE.name: mapping})
    spec = FooterSpec(
        Scan(source).spec(), dict(metadata.configuration), features.supports(protocol, "variantShredding")
    )
    engine = engines.of(spark)
    inputs = in_tasks(parts_of(source.all_files()), engine.parallelism)
    told = pa.Table.from_batches(engine.run(partial(footer_stats, spec), inputs, STATS), STATS).sort_by("file")
    count, kinds = len(names), {f.name: f.type for f in ADDED}
    columns = {
        "path": [encode_path(name) for name in names],
        "partition_values": [[(name, own[name]) for name in partitions] for own in values],
        "size": [entry.size for _, entry in found],
        "modification_time": [entry.modified for _, entry in found],
        "stats": told.column("stats").to_pylist(),
    }
    nothing = [None] * count
    added = pa.table([pa.array(columns.get(name, nothing), kind) for name, kind in kinds.items()], schema=ADDED)
    transaction = Transaction(
        storage, "CONVERT", {"numFiles": count, "partitionedBy": list(partitions), "collectStats": True},
        metrics={"numConvertedFiles": count},
    )  # fmt: skip
    transaction.update_protocol(protocol)
    transaction.update_metadata(metadata)
    transaction.add_files(added)
    return transaction.commit().snapshot


def _refuse_types(path: str, schema: pa.Schema) -> None:
    """Refuses types that PROTOCOL.md does not have, and that Spark cannot read (nor delta-spark convert): mica would
    read them as the nearest one, other readers of the table would fail."""
    for field in schema:
        odd = _odd_type(field.type)
        if odd is not None:
            raise UserError(
                "UNSUPPORTED_TYPE",
                f"{path} holds {odd} in the column {field.name!r}, which files of a Delta table cannot hold",
                hint="mica.convert_files writes the rows to files of a new table; the folder stays as it is.",
                path=path,
                column=field.name,
            )


def _odd_type(type_: pa.DataType) -> pa.DataType | None:
    """A type of nanoseconds, half floats or nothing but nulls in a type."""
    if pa.types.is_float16(type_) or pa.types.is_null(type_) or (pa.types.is_timestamp(type_) and type_.unit == "ns"):
        return type_
    inner = (_odd_type(type_.field(i).type) for i in range(type_.num_fields))
    return next((odd for odd in inner if odd is not None), None)


def _partitions(
    source: FilesSource, values: Sequence[Mapping[str, str | None]], names: Sequence[str], asked: str | None
) -> dict[str, DataType]:
    """The partition columns with their types, as given or as their texts suggest."""
    every = list(source.partition_by)
    for own, name in zip(values, names, strict=True):
        if list(own) != every:
            raise UserError(
                "INVALID_PARTITION_COLUMN",
                f"{name} is in the partition {dict(own)}, but other files have the partition columns {every}",
                hint="Move the file to the directory of a partition with all of these columns.",
                path=name,
            )
    found = {name: source.schema.field(name).type for name in every}
    if asked is not None:
        given = {f.name.lower(): f.type for f in parse_ddl(asked).fields}
        if given.keys() != {name.lower() for name in every}:
            raise UserError(
                "INVALID_PARTITION_COLUMN",
                f"partition_by is {asked!r}, but the directories have the columns {every}",
                hint="Name exactly the columns of the directories, with their types, or leave partition_by out.",
            )
        found = {name: given[name.lower()] for name in every}
    for name, type_ in found.items():
        for own, file in zip(values, names, strict=True):
            try:
                parse_values(pa.array([own[name]], pa.string()), type_)
            except CorruptDataError as e:
                raise UserError("INVALID_PARTITION_VALUE", f"{file}: {e.message}", hint=e.hint, path=file) from None
    return found
