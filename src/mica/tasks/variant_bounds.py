"""Computes bounds of Variant paths for existing files.

The rule: a file gets the bounds that a writer would give it today. Its rows are shredded as in a write; the bounds are
kept and the bytes are discarded. The file's own shredding does not matter, since bounds describe values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from mica.arrays import arrow_array, scalar
from mica.records import dataclass
from mica.storage import Storage
from mica.tasks.ahead import Lending, in_order, readers_of
from mica.tasks.file_columns import Level, called
from mica.tasks.file_errors import of_gone
from mica.tasks.parts import FilePart
from mica.variant import kernel
from mica.variant.shredding import Limits

#: One row per path of a column of a file; `min` and `max` are encoded primitives of one type.
PATHS = pa.schema(
    [
        pa.field("file", pa.int32(), False),
        pa.field("column", pa.list_(pa.string()), False),
        pa.field("path", pa.string(), False),
        pa.field("rows", pa.int64(), False),
        pa.field("min", pa.binary(), False),
        pa.field("max", pa.binary(), False),
    ]
)

#: Rows of a batch; the first one is the sample of the shredding schema.
BATCH_ROWS = 4096
BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class VariantBoundsSpec:
    """The spec that is common to all files: storage, Variant columns by their names in the file, and the version of
    the table that names the files."""

    storage: Storage
    columns: tuple[tuple[str, ...], ...]
    version: int | None = None


def bounds_of_files(spec: VariantBoundsSpec, files: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """The path bounds of each file, over all of its rows, including deleted ones."""
    lending = Lending(spec.storage)

    def bounds(file: FilePart) -> Iterator[pa.RecordBatch]:
        place, rel = spec.storage.locate(file.path)
        with of_gone(place.path(rel), spec.version):
            reader = kernel.open_file(place, rel, file.size, variants=spec.columns, tails=lending.tails)
        level = Level(reader.schema)
        places = {str(i): called(level, names) for i, names in enumerate(spec.columns)}
        there = {name: spec.columns[int(name)] for name, names in places.items() if names is not None}
        if not there:
            return
        items = [kernel.Request(names, name=name) for name, names in places.items() if names is not None]
        trees: dict[tuple[str, ...], pa.DataType] = {}
        sink: kernel.FileWriter | None = None
        for batch in reader.scan(items, max_rows=BATCH_ROWS, max_bytes=BATCH_BYTES, timezone="UTC"):
            if sink is None:
                trees = {(name,): kernel.infer(batch, [name], Limits()).tree for name in there}
            shredded = kernel.shred(batch, trees)
            if sink is None:
                sink = kernel.FileWriter(shredded.schema, compression="none")
            sink.write(shredded)
            sink.take_bytes()
        if sink is not None:
            found = sink.close()["paths"]
            columns = [list(there[name]) for (name,) in found.column("column").to_pylist()]
            numbers = pa.repeat(scalar(file.number, pa.int32()), found.num_rows)
            rest = [found.column(name).cast(PATHS.field(name).type) for name in ("path", "rows", "min", "max")]
            yield pa.RecordBatch.from_arrays(
                [numbers, arrow_array(columns, PATHS.field("column").type), *rest], schema=PATHS
            )

    yield from in_order(bounds, files, readers_of(spec.storage), lending=lending)
