"""Facts: what write tasks report about the files that they wrote, and their counts.

The rule: facts stay Arrow columns from the task to the commit; log lines are never parsed to learn what was written.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, arrow_array, no_rows, to_numpy
from mica.cached import cached_property
from mica.log.paths import decode_path
from mica.records import dataclass
from mica.tasks.facts import FACTS

#: Arrow's offsets end at 2 GiB.
_MOST_JOINED = 1 << 30


@dataclass(frozen=True)
class Facts:
    """The facts of a write, see `tasks.facts.FACTS`: the written files, and the facts of other kinds."""

    files: pa.Table
    others: pa.Table

    @classmethod
    def of(cls, found: pa.Table) -> Facts:
        """Splits the facts that an engine returned by kind."""
        if found.nbytes <= _MOST_JOINED:
            found = found.combine_chunks()  # a batch for each file: to filter so many takes longer than to copy them
        is_file = [kind == "add" for kind in found.column("kind").to_pylist()]
        files = sum(is_file)
        if all(is_file[:files]):  # of one task the files come first: nothing is copied
            return cls(found.slice(0, files), found.slice(files))
        return cls(pc.filter(found, arrow_array(is_file)), pc.filter(found, arrow_array([not one for one in is_file])))

    @property
    def names(self) -> list[str]:
        """The paths of all written files, relative to the target."""
        written = (self.files, self.changes)
        return [decode_path(path) for files in written for path in files.column("path").to_pylist()]

    @property
    def changes(self) -> pa.Table:
        """The written change files."""
        return self._of("cdc")

    @property
    def rows(self) -> int:
        """The rows of the files."""
        return _sum(self.files, "rows")

    @property
    def bytes(self) -> int:
        """The bytes of the files."""
        return _sum(self.files, "size")

    @property
    def removed(self) -> NDArray[np.int64]:
        """The positions in the snapshot of files that were rewritten or have no rows any more."""
        found: NDArray[np.int64] = to_numpy(self._of("remove").column("file")).astype(np.int64)
        return found

    @property
    def vectors(self) -> pa.Table:
        """Files of the snapshot that get a deletion vector: `file`, `vector`, `cardinality`."""
        return self._of("vector").select(["file", "vector", "cardinality"])

    @property
    def numbers(self) -> int:
        """The number after the last one that an identity column got; 0 if none got one."""
        return pc.max(self._of("numbers").column("cardinality")).as_py() or 0

    @property
    def left(self) -> list[dict[str, Any]]:
        """The paths that did not become typed columns, those of rules first: `path`, `why`, how many `paths` of a file
        a rule left out, and in how many `files`."""
        found = pc.grouped(self._of("left"), ["path", "stats"], [("rows", "max"), ("rows", "count")])
        rows = [
            {"path": row["path"], "why": row["stats"], "paths": row["rows_max"], "files": row["rows_count"]}
            for row in found.to_pylist()
        ]
        return sorted(rows, key=lambda row: (not row["why"].startswith("rule"), -row["files"], row["path"]))

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return frozenset(self.others.column("kind").to_pylist())

    def counted(self, kind: str) -> int:
        """The number of rows that tasks counted under this name."""
        return _sum(self._of(kind), "rows")

    def with_columns(self, **columns: pa.Array) -> Facts:
        """A copy with other values in these columns of the files."""
        files = self.files
        for name, values in columns.items():
            at = files.schema.get_field_index(name)
            files = files.set_column(at, files.schema.field(at), values)
        return replace(self, files=files)

    def _of(self, kind: str) -> pa.Table:
        if kind not in self._kinds:
            return self.others.slice(0, 0)
        return pc.filter(self.others, pc.equal(self.others.column("kind"), kind))


@cache
def no_facts() -> Facts:
    """A write without files."""
    return Facts.of(no_rows(FACTS))


def bytes_of(files: pa.Table, places: NDArray[np.int64]) -> int:
    """The bytes of some files of a snapshot, by their positions."""
    return pc.sum(pc.take(files.column("size"), arrow_array(places))).as_py() or 0


def _sum(files: pa.Table, name: str) -> int:
    return pc.sum(files.column(name)).as_py() or 0
