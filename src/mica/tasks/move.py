"""Files of one shredding layout to files of the other.

The rule: the cheapest way that loses nothing. A file of mica's whose residuals are empty moves page by page, no value
decoded, and one that is in the layout already is copied so; otherwise columns move as they are shredded, and only rows
that the other layout cannot hold in their place are built anew. What was copied and what was built anew is counted. A
file that is read becomes at least one that is written: trees differ from file to file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mica.errors import CorruptDataError, UserError
from mica.log.paths import is_absolute
from mica.schema.arrow import to_arrow_type
from mica.schema.types import VARIANT, contains
from mica.storage import Storage
from mica.tasks.mapping import align, find
from mica.tasks.write import DataFile, TableWriter, WriteSpec, facts
from mica.variant import kernel

#: Rows and bytes of one batch.
BATCH_ROWS = 32_768
BATCH_BYTES = 32 << 20


@dataclass(frozen=True)
class MoveSpec:
    """What is the same for every file of a conversion."""

    source: Storage
    write: WriteSpec
    #: Which columns of the source may be of the early layout.
    early: bool | list[list[str]] = True


def move_files(spec: MoveSpec, files: Iterable[tuple[str, int]]) -> Iterator[pa.RecordBatch]:
    """Writes the files (path and size) anew; facts of what was written, and of kinds `copied` and `rebuilt` how many
    rows were.
    """
    for path, size in files:
        place, rel = spec.source.at(path) if is_absolute(path) else (spec.source, path)
        reader = kernel.open_file(place, rel, size, early=spec.early)
        yield facts(_transcribed(spec.write, reader) or _moved(spec.write, reader))


def _transcribed(spec: WriteSpec, reader: kernel.FileReader) -> list[dict[str, Any]] | None:
    """Page by page; None where that cannot be."""
    if spec.trees is None:
        return None  # a table that allows no shredding
    file = DataFile(spec, ())
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
    items: list[dict[str, Any]] = []
    for f in spec.schema.fields:
        if found[f.name] is not None:
            # A table that allows no shredding gets whole Variants.
            moves = spec.trees is not None and contains(f.type, VARIANT)
            items.append({"column": [f.name], "name": f.name, **({"layout": spec.layout} if moves else {})})
    rebuilt = rows = 0
    with TableWriter(replace(spec, trees=None)) as writer:
        for batch in reader.scan(items, max_rows=BATCH_ROWS, max_bytes=BATCH_BYTES):
            rows += batch.num_rows
            fields, columns = [], []
            for f in spec.schema.fields:
                was = found[f.name]
                at = batch.schema.get_field_index(f.name)
                mask = batch.schema.get_field_index(f"{f.name}!")
                if was is None:
                    column = pa.nulls(batch.num_rows, to_arrow_type(f.type))
                    field = pa.field(f.name, column.type)
                elif mask >= 0 and contains(f.type, VARIANT):
                    column, field = batch.column(at), batch.schema.field(at)
                    rebuilt += pc.sum(batch.column(mask)).as_py() or 0
                else:
                    column = align(batch.column(at), was, f)
                    field = pa.field(f.name, column.type, metadata=batch.schema.field(at).metadata)
                fields.append(field.with_nullable(f.nullable))
                columns.append(column)
            writer.write(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)), {})
        adds = writer.close()
    return [*adds, {"kind": "rebuilt", "rows": rebuilt}]
