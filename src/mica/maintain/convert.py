"""Converts tables and folders of Parquet files from one shredding layout to the other.

The rule: a conversion reads what a scan of the table, or `read_parquet`, reads, and writes the same values. A target
table gets one commit or none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from mica import engines
from mica.arguments import NAMES, OPTIONS, PATH, SESSION, TABLE_OR_FILES, Mode, one_of, takes
from mica.errors import UserError
from mica.log.folders import refuse_delta
from mica.log.opened import Opened, snapshot_of
from mica.log.snapshot import exists
from mica.records import dataclass
from mica.scan.files import FilesSource, early_option
from mica.scan.find import Paths, find
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.char import declared, is_padded
from mica.schema.edit import map_fields
from mica.schema.types import StructField, StructType, variant_columns
from mica.storage import Storage
from mica.tasks.move import MoveSpec, move_files
from mica.tasks.parts import FilePart, in_tasks, parts_of
from mica.tasks.write import WriteSpec
from mica.variant.kernel import Layout
from mica.wording import counted, sized
from mica.write import bare, flow
from mica.write.bare import LAYOUTS, bare_spec, open_place
from mica.write.target import open_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Keys of a field's metadata (PROTOCOL.md, "Column Mapping").
_MAPPING = "delta.columnMapping."


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion. `copied` rows were in the wanted layout already, `rebuilt` rows were rebuilt as whole
    Variants, all others were converted column by column; `version` is None if the target is a folder of Parquet files.
    """

    target: str
    layout: str
    version: int | None
    files: int
    rows: int
    bytes: int
    copied: int
    rebuilt: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def __str__(self) -> str:
        at = "" if self.version is None else f", version {self.version}"
        return (
            f"{self.target}{at}: {counted(self.rows, 'row')} in {counted(self.files, 'file')}, "
            f"{sized(self.bytes)}, in the {self.layout} layout\n"
            f"  {counted(self.copied, 'row')} copied, {self.rebuilt:,} rebuilt,"
            f" {self.rows - self.copied - self.rebuilt:,} converted column by column"
            f" ({self.seconds:.1f} s)"
        )


@takes(source=TABLE_OR_FILES, target=PATH, spark=SESSION, storage_options=OPTIONS, partition_by=NAMES)
def convert_files(
    source: Paths | Opened,
    target: str | os.PathLike[str],
    *,
    layout: Layout = "standard",
    to: Literal["delta", "parquet"] | None = None,
    early: bool | Sequence[str] | None = None,
    spark: SparkSession | None = None,
    storage_options: Mapping[str, str] | None = None,
    mode: Mode = "error",
    partition_by: Sequence[str] = (),
) -> Conversion:
    """Rewrites a Delta table (one version), or Parquet files of either layout (paths as in `read_parquet`), in one
    layout. The target is a new Delta table (`to="delta"`, the default for the standard layout) or a folder of Parquet
    files (`to="parquet"`, the only one for the early layout). The output is partitioned by `partition_by` alone:
    other partition columns of the source become ordinary columns.

    `mode` says what to do if the target exists: `error` refuses, `ignore` writes nothing; a folder also accepts
    `append` and `overwrite`, as in `write_parquet`. With `spark` the files are converted by a Spark job, without it by
    threads. `early` is as in `read_parquet`.

    Errors: those of `read_parquet` and `Table.open`, TABLE_EXISTS, FILE_EXISTS for a folder with files, DELTA_TABLE. A
    failed conversion commits nothing and deletes its files as far as possible. If the store's answer to the commit was
    lost, all files stay, since the table may exist. A folder has no log: if the process is killed while one is
    overwritten with its own files, old and new ones may stand side by side, and a second run would take both. Convert
    into another folder where that matters.
    """
    began, engine = time.monotonic(), engines.of(spark)
    one_of("layout", layout, LAYOUTS)
    kind = to or ("delta" if layout == "standard" else "parquet")
    if kind not in ("delta", "parquet") or (kind == "delta" and layout != "standard"):
        raise UserError.bad_value("to", to, "'parquet', or 'delta' in the standard layout")
    one_of("mode", mode, ("error", "ignore") if kind == "delta" else ("append", "error", "ignore", "overwrite"))
    text = os.fspath(target)
    place = None
    if kind == "parquet":
        refuse_delta(text, storage_options)
        place = open_place(text, mode, storage_options)
    found = Storage.open(text, storage_options)
    is_there = exists(found) if kind == "delta" else place is None
    if is_there and mode == "ignore":
        return Conversion(str(found), layout, None, 0, 0, 0, 0, 0, time.monotonic() - began)
    if is_there:
        hint = "Name another place; mode='ignore' does nothing where a table is."
        raise UserError("TABLE_EXISTS", f"a table already exists at {found}", hint=hint)
    given = _given(source, early, storage_options, bool(partition_by), is_bare=place is not None)
    tasks = in_tasks(given.files, engine.parallelism)
    rows = flow.FromTasks(lambda spec: partial(move_files, given.move(spec)), tasks)
    version = None
    if place is None:
        table = open_target(found, None, given.schema, partition_by, mode="error", properties={})
        commit, facts = flow.commit(engine, table, table.write_spec(), rows)
        version, storage = commit.version, table.storage
    else:
        storage = place.storage
        spec = bare_spec(storage, given.schema, {}, partition_by=partition_by)
        facts = bare.write(engine, replace(spec, shredding=replace(spec.shredding, layout=layout)), rows)
        place.settle()
    return Conversion(
        target=str(storage),
        layout=layout,
        version=version,
        files=facts.files.num_rows,
        rows=facts.rows,
        bytes=facts.bytes,
        copied=facts.counted("copied"),
        rebuilt=facts.counted("rebuilt"),
        seconds=time.monotonic() - began,
    )


@dataclass(frozen=True)
class _Given:
    """The source of a conversion: its columns, its files, and how they are converted."""

    schema: StructType
    files: list[FilePart]
    move: Callable[[WriteSpec], MoveSpec]


def _given(
    source: Paths | Opened,
    early: bool | Sequence[str] | None,
    options: Mapping[str, str] | None,
    partitions: bool,
    *,
    is_bare: bool,
) -> _Given:
    """The source: a table, by its log, or Parquet files; `partitions` says that the target has partition columns, and
    `is_bare` that it has no log."""
    given = [source] if isinstance(source, Opened | str | os.PathLike) else list(source)
    tables = [table for place in given if (table := snapshot_of(place, options)) is not None]
    if tables and len(given) > 1:
        raise UserError("INVALID_ARGUMENT", f"{tables[0].storage} is a table", hint="Convert a table by itself.")
    if tables:
        scan = Scan(TableSource(tables[0]))
        reading, origin = scan.spec(), scan.source
        variants = variant_columns(origin.schema)
        # Only a log says which texts are read with blanks after them.
        blanks = is_bare and any(is_padded(declared(f)) for f in origin.schema.fields)
        every_row = partitions or origin.column_mapping or bool(origin.partition_by) or blanks
        move = partial(MoveSpec, origin.storage, early=False, variants=variants, reading=reading, every_row=every_row)
        # The new files have logical column names.
        schema = map_fields(reading.schema, _unmapped)
        return _Given(schema, scan.whole_files(), move)
    found = find([os.fspath(place) for place in given if not isinstance(place, Opened)], options)
    files = FilesSource(found, options, early_option(early), exact=True)
    every_row = partitions or bool(files.partition_by)
    move = partial(
        MoveSpec, files.storage, early=files.early, variants=variant_columns(files.schema),
        reading=Scan(files).spec(), every_row=every_row,
    )  # fmt: skip
    return _Given(files.schema, parts_of(files.all_files()), move)


def _unmapped(f: StructField) -> StructField:
    return f.with_metadata(dict.fromkeys(key for key in f.metadata if key.startswith(_MAPPING)))
