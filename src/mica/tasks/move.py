"""Files of one shredding layout to files of the other.

The rule: columns move as they are shredded, and only what the other layout cannot hold in its place is built anew, by
the kernel, which counts it. A file that is read becomes at least one that is written: trees differ from file to file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mica.log.paths import is_absolute
from mica.schema.arrow import to_arrow_type
from mica.schema.types import VARIANT, contains
from mica.storage import Storage
from mica.tasks.mapping import align, find
from mica.tasks.write import TableWriter, WriteSpec, facts
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
    """Writes the files (path and size) anew; facts of what was written, and of kind `rebuilt` how many rows were."""
    for path, size in files:
        place, rel = spec.source.at(path) if is_absolute(path) else (spec.source, path)
        reader = kernel.open_file(place, rel, size, early=spec.early)
        yield facts(_moved(spec.write, reader))


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
