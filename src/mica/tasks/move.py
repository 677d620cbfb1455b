"""Converts files from one shredding layout to the other.

The rule: the cheapest way without loss. A file of mica with empty residuals is converted page by page, without decoding
values, and a file in the wanted layout is copied in the same way. Otherwise the shredded columns are converted, and
only rows that do not fit the other layout are rebuilt. Copied and rebuilt rows are counted. Each source file becomes at
least one new file, since shredding trees differ by file. If the log says more than the files (deleted rows, partition
values, other names), or a name differs from the file's in case, the rows are read by a scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.errors import CorruptDataError, UserError
from mica.records import dataclass
from mica.schema.arrow import to_arrow_field, to_arrow_type
from mica.schema.types import VARIANT, StructField, StructType, contains, nests_variants
from mica.storage import Storage
from mica.tasks.ahead import Lending, in_order, readers_of
from mica.tasks.facts import facts
from mica.tasks.file import ReadSpec
from mica.tasks.file_columns import Level, aligned, find
from mica.tasks.file_errors import beyond, of_gone
from mica.tasks.parts import FilePart
from mica.tasks.read import read_file
from mica.tasks.write import DataFileWriter, TableWriter, WriteSpec, write_files
from mica.variant import kernel

#: Rows and bytes of one batch.
BATCH_ROWS = 32_768
BATCH_BYTES = 32 << 20


@dataclass(frozen=True)
class MoveSpec:
    """The spec that is common to all files of a conversion."""

    source: Storage
    write: WriteSpec
    #: Which columns of the source may be of the early layout, and which are Variants whatever the files say.
    early: bool | list[list[str]] = True
    variants: tuple[tuple[str, ...], ...] = ()
    #: How the rows of a table are read where its files alone do not say them, and whether that is so in every file.
    reading: ReadSpec | None = None
    every_row: bool = False


def move_files(spec: MoveSpec, files: Iterable[FilePart]) -> Iterator[pa.RecordBatch]:
    """Rewrites the files; yields facts of the new files, and row counts of kinds `copied` and `rebuilt`."""
    lending = Lending(spec.source) if spec.reading is None else Lending(spec.source, spec.reading.tails)

    def move(part: FilePart) -> Iterator[pa.RecordBatch]:
        if spec.reading is not None and (spec.every_row or part.deletion_vector is not None):
            yield from _read(spec.reading, spec.write, part)
            return
        place, rel = spec.source.locate(part.path)
        name = place.path(rel)
        with of_gone(name, None if spec.reading is None else spec.reading.version):
            reader = kernel.open_file(
                place, rel, part.size, variants=spec.variants, early=spec.early, tails=lending.tails
            )
        if spec.reading is not None and not _is_named_as(reader.schema, spec.write.schema):
            yield from _read(spec.reading, spec.write, part)
            return
        yield facts(_transcribed(spec.write, reader) or _moved(spec.write, reader, name), spec.write.collated)

    readers = max(map(readers_of, (spec.source, spec.write.storage)))
    yield from in_order(move, files, readers, once=True, lending=lending)


def _read(reading: ReadSpec, write: WriteSpec, part: FilePart) -> Iterator[pa.RecordBatch]:
    """Writes the rows that a scan reads: whole Variants, all of them rebuilt."""
    for batch in write_files(write, read_file(reading, part)):
        kinds = pc.replace_substring(batch.column("kind"), "read", "rebuilt")
        yield batch.set_column(0, batch.schema.field(0), kinds)


def _is_named_as(file: pa.Schema, wanted: StructType) -> bool:
    """Whether the file has the columns under their own names, as far as it has them, and inside of structs with
    Variants, which are moved as they are, all fields."""
    level = Level(file)
    for f in wanted.fields:
        found = find(file, (f.name,))
        if found is None:
            if level.named(f.name):
                return False
        elif isinstance(f.type, StructType) and contains(f.type, VARIANT) and found.type != to_arrow_type(f.type):
            return False
    return True


def _transcribed(spec: WriteSpec, reader: kernel.FileReader) -> list[dict[str, Any]] | None:
    """Converts page by page; None if that is not possible."""
    if spec.shredding.trees is None or reader.num_rows == 0:
        return None  # a table that allows no shredding; a file of no rows becomes none
    file = DataFileWriter(spec, ())
    try:
        made = file.transcribe(reader)
        if made is None:
            return None
        rows = 0 if made.moves else reader.num_rows
        return [file.close(), {"kind": "copied", "rows": rows}]
    except (CorruptDataError, UserError):
        # The pages differ from the footer: decoding them will report what is wrong, if anything is.
        file.abort()
        return None
    except BaseException:
        file.abort()
        raise


def _moved(spec: WriteSpec, reader: kernel.FileReader, name: str) -> list[dict[str, Any]]:
    """Converts column by column; `name` is the file's in errors."""
    schema = reader.schema
    found = {f.name: find(schema, (f.name,)) for f in spec.schema.fields}
    items: list[kernel.Request] = []
    #: Where a column is in a batch: behind one that moves is its mask, whose name (`v!`) may be a column's.
    places: dict[str, int] = {}
    moving: set[str] = set()
    for f in spec.schema.fields:
        if found[f.name] is not None:
            # A table without shredding gets whole Variants, and so do lists and maps, which are never shredded.
            moves = spec.shredding.trees is not None and contains(f.type, VARIANT) and not nests_variants(f.type)
            places[f.name] = len(items) + len(moving)
            moving |= {f.name} if moves else set()
            items.append(kernel.Request((f.name,), name=f.name, layout=spec.shredding.layout if moves else None))
    rebuilt = 0
    with TableWriter(replace(spec, shredding=replace(spec.shredding, trees=None))) as writer:
        for batch in reader.scan(items, max_rows=BATCH_ROWS, max_bytes=BATCH_BYTES):
            rebuilt += sum(pc.sum(batch.column(places[name] + 1)).as_py() or 0 for name in moving)
            made = [
                _column(batch, places.get(f.name), f, found[f.name], name, moves=f.name in moving)
                for f in spec.schema.fields
            ]
            whole = pa.RecordBatch.from_arrays([c for c, _ in made], schema=pa.schema([f for _, f in made]))
            writer.write(kernel.taken(whole), {})
        adds = writer.close()
    return [*adds, {"kind": "rebuilt", "rows": rebuilt}]


def _column(
    batch: pa.RecordBatch, place: int | None, column: StructField, was: pa.Field | None, name: str, *, moves: bool
) -> tuple[pa.Array, pa.Field]:
    """A column as the new file gets it; `was` is what the old file has, and null stands for what it has not."""
    if was is None or place is None:
        field = to_arrow_field(replace(column, nullable=True))
        values = pa.nulls(batch.num_rows, field.type)
    elif moves:
        values, field = batch.column(place), batch.schema.field(place)
    else:
        try:
            values = aligned(was, column, column.name)(batch.column(place))
        except pa.ArrowInvalid as e:
            raise beyond(name, column.name, column, e) from None
        field = pa.field(column.name, values.type, metadata=batch.schema.field(place).metadata)
    return values, field.with_nullable(column.nullable)
