"""Does something to each file of a table, in their order.

The rule: of a disk one file is read after the other. Of an object store several are under way at once: small ones are
fetched whole, and what is written is sent while others are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from mica.tasks.ahead import Item, Lending, in_order, readers_of
from mica.tasks.file import ReadSpec


def each_file(
    work: Callable[[Item], Iterable[pa.RecordBatch]], files: Iterable[Item], spec: ReadSpec, *, once: bool = False
) -> Iterator[pa.RecordBatch]:
    """What `work` gives for each of the files, which `spec` reads; `once` as in `in_order`."""
    lending = Lending(spec.storage, spec.tails)
    yield from in_order(work, files, readers_of(spec.storage), once=once, lending=lending)
