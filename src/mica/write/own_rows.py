"""Rows of a table that are written back to it.

The rule: what a write takes from the table itself, it reads. If another writer changes these files meanwhile, the write
is refused, as by delta-spark: no order of the two would lead to the same rows. Rows of an older version do not count.
A DataFrame does not tell what it is made of; a statement of SQL does, by the names of tables.
"""

from __future__ import annotations

from typing import Any

from mica.engines.base import Engine
from mica.log.conflicts import FilePredicate
from mica.log.snapshot import Snapshot
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.write.change import read_by_queries, read_files


def own_reads(data: Any, snapshot: Snapshot, engine: Engine) -> tuple[FilePredicate, ...]:
    """The files of the snapshot that the rows come from, if they do; `data` is what a person gives."""
    if found := read_by_queries():
        return found
    if not isinstance(data, Scan) or not isinstance(data.source, TableSource):
        return ()
    of = data.source.snapshot
    if of.metadata.id != snapshot.metadata.id or of.version < snapshot.version:
        return ()
    return (read_files(snapshot, data.predicate, engine, is_all=False),)
