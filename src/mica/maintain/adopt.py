"""Convert a folder of Parquet files to a Delta table in place.

The rule: one commit names the files where they are; no data is read, moved or written. Columns come from the footers,
partition columns and values from the directories (`scan.hive`), statistics from the footers (`tasks/footer_stats.py`).
Names that begin with `_` or `.` are no data, but for the directories of partitions. As with Spark, all columns become
nullable.

Source: delta-spark's CONVERT TO DELTA, whose operation and metrics the commit has.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from mica import engines
from mica.arrays import arrow_array
from mica.errors import CorruptDataError, StorageError, UserError
from mica.log import creation, features
from mica.log.actions import Metadata, Protocol
from mica.log.configuration import checked
from mica.log.paths import encode_path
from mica.log.snapshot import Snapshot, exists
from mica.log.transaction import Transaction
from mica.properties import COLUMN_MAPPING_MODE
from mica.scan import hive
from mica.scan.files import FilesSource
from mica.scan.find import find
from mica.scan.scan import Scan
from mica.schema.collations import COLLATIONS
from mica.schema.ddl import parse_ddl
from mica.schema.special import CHAR_VARCHAR
from mica.schema.types import StructField, StructType, loosened
from mica.stats.partition import parse_values
from mica.storage import Storage, split_scheme
from mica.storage.patterns import Found
from mica.tasks.footer_stats import STATS, FooterSpec, footer_stats
from mica.tasks.parts import in_tasks, parts_of
from mica.variant import kernel

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
    _refuse_odd_places(storage, found, path)
    places = {place.path(entry.path): (place, entry) for place, entry in found}
    source = FilesSource(found, storage_options, early=False, check=partial(_refuse_types, places), exact=True)
    values = hive.values_of_all(names)
    partitions = _partitions(source, values, names, partition_by)
    source.schema = StructType(
        tuple(partitions.get(f.name, StructField(f.name, loosened(f.type))) for f in source.schema.fields)
    )
    protocol, metadata = _table_of(source.schema, list(partitions), properties or {})
    spec = FooterSpec(
        Scan(source).spec(), dict(metadata.configuration), features.supports(protocol, "variantShredding")
    )
    engine = engines.of(spark)
    inputs = in_tasks(parts_of(source.all_files()), engine.parallelism)
    stats = pa.Table.from_batches(engine.run(partial(footer_stats, spec), inputs, STATS), STATS).sort_by("file")
    added = [
        {
            "path": encode_path(entry.path),
            "partition_values": {name: own[name] for name in partitions},
            "size": entry.size,
            "modification_time": entry.modified,
            "stats": text,
        }
        for (_, entry), own, text in zip(found, values, stats.column("stats").to_pylist(), strict=True)
    ]
    transaction = Transaction(
        storage, "CONVERT", {"numFiles": len(found), "partitionedBy": list(partitions), "collectStats": True},
        metrics={"numConvertedFiles": len(found)},
    )  # fmt: skip
    transaction.update_protocol(protocol)
    transaction.update_metadata(metadata)
    transaction.add_files(added)
    return transaction.commit().snapshot


def _refuse_odd_places(storage: Storage, found: Sequence[Found], path: str) -> None:
    """Refuses files that the log of this folder cannot name as its own."""
    if any(place.path(entry.path) != storage.path(entry.path) for place, entry in found):
        raise UserError.bad_value("path", path, "a folder of Parquet files")
    for _, entry in found:
        if split_scheme(entry.path)[0] is not None:
            raise StorageError(
                "INVALID_NAME",
                f"{entry.path!r} begins with a directory that ends in a colon",
                hint="Rename the directory: a log's path that begins so is a URL.",
                path=entry.path,
            )


def _table_of(
    schema: StructType, partition_by: Sequence[str], properties: Mapping[str, str]
) -> tuple[Protocol, Metadata]:
    """The new table; the files have the columns' own names, as those of a table do that is mapped later."""
    given = {name: text for name, text in checked(properties).items() if text is not None}
    mapping = given.pop(COLUMN_MAPPING_MODE.name, None)
    made = creation.new_table(schema, partition_by, given, created_time=int(time.time() * 1000))
    return made if mapping is None else creation.altered(*made, changes={COLUMN_MAPPING_MODE.name: mapping})


def _refuse_types(places: Mapping[str, Found], path: str, schema: pa.Schema) -> None:
    """Refuses types that PROTOCOL.md does not have, and that Spark cannot read (nor delta-spark convert): mica would
    read them as the nearest one, other readers of the table would fail. Variants of the early layout would be structs
    of its groups."""
    early = _read_as_early(places[path]) if any(_may_be_early(field.type) for field in schema) else {}
    for field in schema:
        odd: object = _odd_type(field.type)
        if early.get(field.name, field.type) != field.type:
            odd = "a Variant of the early layout"
        if odd is not None:
            raise UserError(
                "UNSUPPORTED_TYPE",
                f"{path} holds {odd} in the column {field.name!r}, which files of a Delta table cannot hold",
                hint="mica.convert_files writes the rows to files of a new table; the folder stays as it is.",
                path=path,
                column=field.name,
            )


def _read_as_early(found: Found) -> dict[str, pa.DataType]:
    place, entry = found
    return {f.name: f.type for f in kernel.open_file(place, entry.path, entry.size, early=True).schema}


def _may_be_early(type_: pa.DataType) -> bool:
    """Whether a group in a type has a name of the early layout; most files have none and are not opened again."""
    inner = [type_.field(i) for i in range(type_.num_fields)]
    return any(f.name in ("untyped_value", "object", "array") or _may_be_early(f.type) for f in inner)


def _odd_type(type_: pa.DataType) -> pa.DataType | None:
    """A type of nanoseconds, half floats or nothing but nulls in a type."""
    if pa.types.is_float16(type_) or pa.types.is_null(type_) or (pa.types.is_timestamp(type_) and type_.unit == "ns"):
        return type_
    inner = (_odd_type(type_.field(i).type) for i in range(type_.num_fields))
    return next((odd for odd in inner if odd is not None), None)


def _partitions(
    source: FilesSource, values: Sequence[Mapping[str, str | None]], names: Sequence[str], asked: str | None
) -> dict[str, StructField]:
    """The partition columns with their types and comments, as given, or with the types that their texts suggest."""
    every = list(source.partition_by)
    for own, name in zip(values, names, strict=True):
        if list(own) != every:
            raise UserError(
                "INVALID_PARTITION_COLUMN",
                f"{name} is in the partition {dict(own)}, but other files have the partition columns {every}",
                hint="Move the file to the directory of a partition with all of these columns.",
                path=name,
            )
    found = {name: StructField(name, source.schema.field(name).type) for name in every}
    if asked is not None:
        given = {f.name.lower(): f for f in parse_ddl(asked).fields}
        if given.keys() != {name.lower() for name in every}:
            raise UserError(
                "INVALID_PARTITION_COLUMN",
                f"partition_by is {asked!r}, but the directories have the columns {every}",
                hint="Name exactly the columns of the directories, with their types, or leave partition_by out.",
            )
        found = {name: replace(given[name.lower()], name=name) for name in every}
        _refuse_more(found.values())
    for name, f in found.items():
        for own, file in zip(values, names, strict=True):
            try:
                parse_values(arrow_array([own[name]], pa.string()), f.type)
            except CorruptDataError as e:
                raise UserError("INVALID_PARTITION_VALUE", f"{file}: {e.message}", hint=e.hint, path=file) from None
    return found


def _refuse_more(given: Iterable[StructField]) -> None:
    """Refuses what a partition column of files that exist cannot get: anything but a type and a comment."""
    for f in given:
        named = {COLLATIONS: "a collation", CHAR_VARCHAR: f"the length of {str(f.metadata.get(CHAR_VARCHAR)).upper()}"}
        more = {named.get(key, "a value of its own"): None for key in f.metadata if key != "comment"}
        more |= {} if f.nullable else {"NOT NULL": None}
        if more:
            raise UserError(
                "INVALID_PARTITION_COLUMN",
                f"partition_by gives the column {f.name!r} {' and '.join(more)}, which it cannot have",
                hint="Give its type, and COMMENT; columns of a converted folder allow nulls, as in Spark.",
                column=f.name,
            )
