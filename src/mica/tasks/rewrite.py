"""Rewrites data files of a table, one by one or joined.

The rule: the rows are those that a scan of the table reads, and Variants keep the shredding schemas of the file, if the
table allows shredding, as far as its rules (`mica.shredding`) do not say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from mica.records import dataclass
from mica.stats.columns import physical_names
from mica.tasks.batches import joined
from mica.tasks.each_file import each_file
from mica.tasks.facts import facts
from mica.tasks.file import ReadSpec
from mica.tasks.file_errors import of_gone
from mica.tasks.parts import FilePart
from mica.tasks.read import read_file, read_parts
from mica.tasks.write import WriteSpec, write_files
from mica.variant import kernel


@dataclass(frozen=True)
class RewriteSpec:
    """The spec that is common to all files."""

    read: ReadSpec
    write: WriteSpec


def rewrite_files(spec: RewriteSpec, files: Iterable[FilePart]) -> Iterator[pa.RecordBatch]:
    """Facts of the new files, and of the old ones to remove; a file without rows gets no new file."""

    def rewrite(part: FilePart) -> Iterator[pa.RecordBatch]:
        yield from _rewritten(spec, part, opened(spec, part))

    yield from each_file(rewrite, files, spec.read, once=True)


def _rewritten(spec: RewriteSpec, part: FilePart, reader: kernel.FileReader) -> Iterator[pa.RecordBatch]:
    yield from write_files(shredded_as(spec.write, reader), read_file(spec.read, part))
    yield facts([{"kind": "remove", "file": part.number}], spec.write.collated)


def unshred_files(spec: RewriteSpec, files: Iterable[FilePart]) -> Iterator[pa.RecordBatch]:
    """As `rewrite_files`, of the files whose footers do not say that every Variant is unshredded."""

    def unshred(part: FilePart) -> Iterator[pa.RecordBatch]:
        reader = opened(spec, part)
        trees = [reader.tree(physical_names(spec.read.columns, at)) for at in spec.write.shredding.variants]
        if any(tree is None or tree != (pa.null(), False) for tree in trees):
            yield from _rewritten(spec, part, reader)

    yield from each_file(unshred, files, spec.read, once=True)


def opened(spec: RewriteSpec, part: FilePart) -> kernel.FileReader:
    """The file, with the table's Variant columns. Errors: NOT_FOUND, as of a scan."""
    variants = [physical_names(spec.read.columns, at) for at in spec.write.shredding.variants]
    place, rel = spec.read.storage.locate(part.path)
    with of_gone(place.path(rel), spec.read.version):
        return kernel.open_file(place, rel, part.size, variants=variants, tails=spec.read.tails)


def join_files(spec: RewriteSpec, files: Sequence[FilePart], readers: int = 1) -> Iterator[pa.RecordBatch]:
    """Facts of the files that hold the rows of all of these, in their order; what is shredded is decided anew. Up to
    `readers` files are read at once.
    """
    yield from write_files(spec.write, joined(read_parts(spec.read, files, readers)))
    yield facts([{"kind": "remove", "file": part.number} for part in files], spec.write.collated)


def shredded_as(spec: WriteSpec, reader: kernel.FileReader) -> WriteSpec:
    """The write spec with the shredding schemas of this file."""
    given = spec.shredding
    if given.trees is None:
        return spec
    found = {names: reader.tree(physical_names(spec.schema, names)) for names in given.variants}
    trees = {names: one[0] for names, one in found.items() if one is not None}
    steered = {
        names: kernel.steer(trees[names], given.limits_of(names, "kept")) for names in given.steering.keys() & trees
    }
    return replace(spec, shredding=replace(given, trees={**trees, **steered}))
