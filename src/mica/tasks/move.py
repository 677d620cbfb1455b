"""Files of one shredding layout to files of the other.

The rule: the cheapest way that loses nothing. A file of mica's whose residuals are empty moves page by page, no value
decoded, and one that is in the layout already is copied so; otherwise columns move as they are shredded, and only rows
that the other layout cannot hold in their place are built anew. What was copied and what was built anew is counted. A
file that is read becomes at least one that is written: trees differ from file to file. Where a table's log says more
than its files (deleted rows, partition values, other names), the rows are read as a scan reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mica.errors import CorruptDataError, UserError
from mica.schema.arrow import to_arrow_type
from mica.schema.types import VARIANT, ArrayType, DataType, MapType, StructType, contains
from mica.storage import Storage
from mica.tasks.file import ReadSpec
from mica.tasks.file_columns import aligned, find
from mica.tasks.parts import FilePart
from mica.tasks.read import read_file
from mica.tasks.write import DataFileWriter, TableWriter, WriteSpec, facts, write_files
from mica.variant import kernel

#: Rows and bytes of one batch.
BATCH_ROWS = 32_768
BATCH_BYTES = 32 << 20


@dataclass(frozen=True)
class MoveSpec:
    """What is the same for every file of a conversion."""

    source: Storage
    write: WriteSpec
    #: Which columns of the source may be of the early layout, and which are Variants whatever the files say.
    early: bool | list[list[str]] = True
    variants: tuple[tuple[str, ...], ...] = ()
    #: How the rows of a table are read where its files alone do not say them, and whether that is so in every file.
    reading: ReadSpec | None = None
    every_row: bool = False


def move_files(spec: MoveSpec, files: Iterable[FilePart]) -> Iterator[pa.RecordBatch]:
    """Writes the files anew; facts of what was written, and of kinds `copied` and `rebuilt` how many rows were."""
    for part in files:
        if spec.reading is not None and (spec.every_row or part.deletion_vector is not None):
            for batch in write_files(spec.write, read_file(spec.reading, part)):
                kinds = pc.replace_substring(batch.column("kind"), "read", "rebuilt")
                yield batch.set_column(0, batch.schema.field(0), kinds)
            continue
        reader = kernel.open_file(*spec.source.locate(part.path), part.size, variants=spec.variants, early=spec.early)
        yield facts(_transcribed(spec.write, reader) or _moved(spec.write, reader), spec.write.collated)


def _transcribed(spec: WriteSpec, reader: kernel.FileReader) -> list[dict[str, Any]] | None:
    """Page by page; None where that cannot be."""
    if spec.trees is None or reader.num_rows == 0:
        return None  # a table that allows no shredding; a file of no rows becomes none
    file = DataFileWriter(spec, ())
    try:
        made = file.transcribe(reader)
        if made is None:
            return None
        rows = 0 if made.moves else reader.num_rows
        return [file.close(), {"kind": "copied", "rows": rows}]
    except (CorruptDataError, UserError):
        # Pages that are not what the footer promises: whoever decodes them says what is wrong, if anything is.
        file.abort()
        return None
    except BaseException:
        file.abort()
        raise


def _moved(spec: WriteSpec, reader: kernel.FileReader) -> list[dict[str, Any]]:
    schema = reader.schema
    found = {f.name: find(schema, (f.name,)) for f in spec.schema.fields}
    items: list[kernel.Request] = []
    moving = set()
    for f in spec.schema.fields:
        if found[f.name] is not None:
            # A table that allows no shredding gets whole Variants; so do lists and maps, in which nobody shreds.
            moves = spec.trees is not None and contains(f.type, VARIANT) and not _in_lists(f.type)
            moving |= {f.name} if moves else set()
            items.append(kernel.Request((f.name,), name=f.name, layout=spec.layout if moves else None))
    rebuilt = rows = 0
    with TableWriter(replace(spec, trees=None)) as writer:
        for batch in reader.scan(items, max_rows=BATCH_ROWS, max_bytes=BATCH_BYTES):
            rows += batch.num_rows
            fields, columns = [], []
            for f in spec.schema.fields:
                was = found[f.name]
                at = batch.schema.get_field_index(f.name)
                if was is None:
                    column = pa.nulls(batch.num_rows, to_arrow_type(f.type))
                    field = pa.field(f.name, column.type)
                elif f.name in moving:
                    column, field = batch.column(at), batch.schema.field(at)
                    rebuilt += pc.sum(batch.column(at + 1)).as_py() or 0  # the mask `name!`
                else:
                    column = aligned(was, f, f.name)(batch.column(at))
                    field = pa.field(f.name, column.type, metadata=batch.schema.field(at).metadata)
                fields.append(field.with_nullable(f.nullable))
                columns.append(column)
            writer.write(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)), {})
        adds = writer.close()
    return [*adds, {"kind": "rebuilt", "rows": rebuilt}]


def _in_lists(type_: DataType) -> bool:
    """Whether Variants lie in lists or maps."""
    match type_:
        case StructType(fields):
            return any(_in_lists(f.type) for f in fields)
        case ArrayType() | MapType():
            return contains(type_, VARIANT)
    return False
