"""Rewrites data files with another shredding schema, and samples the Variants of files to find one.

The rule: a file whose Variant columns have the wanted trees is not touched. Columns without a wanted tree keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from mica.records import dataclass
from mica.stats.columns import physical_names
from mica.tasks.each_file import each_file
from mica.tasks.facts import facts
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.packed import packing
from mica.tasks.parts import FilePart
from mica.tasks.read import read_file, read_ranges
from mica.tasks.rewrite import RewriteSpec, opened, shredded_as
from mica.tasks.spots import spots
from mica.tasks.write import write_files

#: Rows of the sample of all files, and at least of each.
SAMPLE_ROWS, LEAST_ROWS = 1 << 14, 64


@dataclass(frozen=True)
class ReshredSpec(RewriteSpec):
    """The spec that is common to all files; `trees` are the wanted trees, null for unshredded."""

    trees: Mapping[tuple[str, ...], pa.DataType]


@dataclass(frozen=True)
class VariantsSpec:
    """`read` has the Variant columns as outputs; `total` is the size of all files in bytes."""

    read: ReadSpec
    total: int


def reshred_files(spec: ReshredSpec, files: Iterable[FilePart]) -> Iterator[pa.RecordBatch]:
    """Facts of the new files, and of those that they replace."""

    def reshred(part: FilePart) -> Iterator[pa.RecordBatch]:
        reader = opened(spec, part)
        found = {name: reader.tree(physical_names(spec.write.schema, name)) for name in spec.trees}
        # A column that the file lacks has nothing to shred.
        if all(tree is None or tree[0] == spec.trees[name] for name, tree in found.items()):
            return
        write = shredded_as(spec.write, reader)
        given = write.shredding.trees
        if given is not None:
            write = replace(write, shredding=replace(write.shredding, trees={**given, **spec.trees}))
        yield from write_files(write, read_file(spec.read, part))
        yield facts([{"kind": "remove", "file": part.number}], spec.write.collated)

    yield from each_file(reshred, files, spec.read, once=True)


def sample(spec: VariantsSpec, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """Rows of the files, spread evenly over all of them, packed."""

    def some(part: FilePart) -> Iterator[pa.RecordBatch]:
        file = DataFileReader(spec.read, part)
        wanted = max(LEAST_ROWS, SAMPLE_ROWS * (part.size or 0) // max(1, spec.total))
        yield from packing(read_ranges(file, spots(file.ranges, wanted)))

    yield from each_file(some, parts, spec.read)
