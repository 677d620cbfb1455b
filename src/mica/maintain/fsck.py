"""Fsck: leaves files out of the table that are gone.

The rule: a file of the newest version goes if it is not there, or if its deletion vector is not: nobody knows then
which of its rows are deleted. Its rows are lost before; the commit says so, and all others can be read again. A file
that is there but damaged stays (`checking/check`), and no file is deleted.

Source: PROTOCOL.md, "Add File and Remove File"; names and columns as in Databricks' FSCK REPAIR TABLE.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, batch_of, one_array
from mica.log import features
from mica.log.missing_files import missing
from mica.log.snapshot import Snapshot
from mica.log.transaction import Transaction
from mica.records import dataclass
from mica.scan.table import rows_in
from mica.wording import counted, sized

#: The files that a fsck finds.
MISSING = pa.schema(
    [
        pa.field("data_file_path", pa.string(), nullable=False),
        pa.field("data_file_missing", pa.bool_(), nullable=False),
        pa.field("deletion_vector_path", pa.string()),
        pa.field("deletion_vector_missing", pa.bool_(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Fsck:
    """The files that a fsck left out of the table, or with `dry_run` would leave out. `missing` has one row for each:
    data_file_path and deletion_vector_path (full names; null without a vector), data_file_missing,
    deletion_vector_missing. `rows` are those that the log counts in them, without deleted ones; None if it does not.
    """

    table: str
    version: int
    dry_run: bool
    files: int
    bytes: int
    rows: int | None
    missing: pa.Table = field(repr=False, compare=False)
    snapshot: Snapshot | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """As plain values; `missing` is a list of rows."""
        names = ("table", "version", "dry_run", "files", "bytes", "rows")
        return {name: getattr(self, name) for name in names} | {"missing": self.missing.to_pylist()}

    def __str__(self) -> str:
        if not self.files:
            return f"{self.table}, version {self.version}: every file is there"
        verb = "would leave" if self.dry_run else "left"
        rows = "an unknown number of rows" if self.rows is None else counted(self.rows, "row")
        return f"{self.table}: {counted(self.files, 'file')} {verb} the table, {sized(self.bytes)} with {rows}"


def fsck(snapshot: Snapshot, *, dry_run: bool = False) -> Fsck:
    """Commits that files which are gone are no longer of the table; see `Table.fsck`."""
    features.check_write(snapshot.protocol, snapshot.metadata, str(snapshot.storage))
    listed = arrow_array([entry.path for entry in snapshot.storage.list()], pa.string())
    found = missing(snapshot, snapshot.files, listed)
    rows = [
        {
            "data_file_path": file.data,
            "data_file_missing": file.is_data_missing,
            "deletion_vector_path": file.vector,
            "deletion_vector_missing": file.is_vector_missing,
        }
        for file in found
    ]
    at = arrow_array([file.at for file in found], pa.int64())
    gone = snapshot.files.select(["size", "deletion_vector"]).take(at)
    size = pc.sum(gone.column("size")).as_py() or 0
    last = snapshot
    if found and not dry_run:
        transaction = Transaction(snapshot, "FSCK", metrics={"numRemovedFiles": len(found), "numRemovedBytes": size})
        transaction.remove_files(at)
        last = transaction.commit().snapshot
    held = rows_in(snapshot.stats(at), one_array(gone.column("deletion_vector")))
    lost = None if held.null_count else pc.sum(held).as_py() or 0
    told = pa.Table.from_batches([batch_of(rows, MISSING)])
    return Fsck(str(snapshot.storage), last.version, dry_run, len(found), size, lost, told, last)
