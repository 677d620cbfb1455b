"""What tasks found while they wrote: the files of a write, and what was counted.

The rule: facts stay columns from the task to the commit; nobody reads a line of the log to know what was written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mica.log.paths import decode_path


@dataclass(frozen=True)
class Facts:
    """The facts of a write, see `tasks.write.FACTS`: the files that were written, and all that is of another kind."""

    files: pa.Table
    others: pa.Table

    @classmethod
    def of(cls, found: pa.Table) -> Facts:
        """Those that an engine gave."""
        is_file = np.array([kind == "add" for kind in found.column("kind").to_pylist()], bool)
        count = int(is_file.sum())
        if is_file[:count].all():
            return cls(found.slice(0, count), found.slice(count))  # one task's: no column is copied
        return cls(found.filter(pa.array(is_file)), found.filter(pa.array(~is_file)))

    @property
    def names(self) -> list[str]:
        """Where the files are, below the location that was written to."""
        return [decode_path(path) for path in self.files.column("path").to_pylist()]

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
        """The files of the snapshot whose rows were written anew, or need not be: their positions in it."""
        found: NDArray[np.int64] = self._of("remove").column("file").to_numpy().astype(np.int64)
        return found

    @property
    def vectors(self) -> pa.Table:
        """Files of the snapshot that get a deletion vector: `file`, `vector`, `cardinality`."""
        return self._of("vector").select(["file", "vector", "cardinality"])

    def counted(self, kind: str) -> int:
        """The rows that tasks counted by that name."""
        return _sum(self._of(kind), "rows")

    def with_columns(self, **columns: pa.Array) -> Facts:
        """The same with other values in these columns of the files."""
        files = self.files
        for name, values in columns.items():
            at = files.schema.get_field_index(name)
            files = files.set_column(at, files.schema.field(at), values)
        return replace(self, files=files)

    def _of(self, kind: str) -> pa.Table:
        return self.others.filter(pc.equal(self.others.column("kind"), kind))


def _sum(files: pa.Table, name: str) -> int:
    return pc.sum(files.column(name)).as_py() or 0
