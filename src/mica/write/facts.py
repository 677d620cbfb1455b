"""What tasks found while they wrote: the files of a write, and what was counted.

The rule: facts stay columns from the task to the commit; nobody reads a line of the log to know what was written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from mica.log.paths import decode_path


@dataclass(frozen=True)
class Facts:
    """The facts of a write: a row for each file (of kind `add`), and rows of other kinds; see `tasks.write.FACTS`."""

    table: pa.Table

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Facts:
        """Those that an engine gives."""
        return cls(pa.Table.from_batches(batches, schema))

    @cached_property
    def files(self) -> pa.Table:
        """The files that were written, with the columns of `log.added.ADDED` and more."""
        return self._of("add")

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

    def counted(self, kind: str) -> int:
        """The rows that tasks counted by that name."""
        return _sum(self._of(kind), "rows")

    def with_columns(self, **columns: pa.Array) -> Facts:
        """The files alone, with other values in these columns."""
        files = self.files
        for name, values in columns.items():
            at = files.schema.get_field_index(name)
            files = files.set_column(at, files.schema.field(at), values)
        return Facts(files)

    def _of(self, kind: str) -> pa.Table:
        return self.table.filter(pc.equal(self.table.column("kind"), kind))


def _sum(files: pa.Table, name: str) -> int:
    return pc.sum(files.column(name)).as_py() or 0
