"""What a write returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from mica.log.snapshot import Snapshot
from mica.records import dataclass


@dataclass(frozen=True)
class Commit:
    """The result of a write: the version, and the number of added files, rows and bytes."""

    version: int
    files: int
    rows: int
    bytes: int = 0
    snapshot: Snapshot | None = field(default=None, compare=False)
    #: Metrics of a change of rows, named as in delta-spark's history: `numDeletedRows`, `numCopiedRows`, ….
    metrics: Mapping[str, int] = field(default_factory=dict, compare=False)
    #: Whether nothing was written, because the table has this version of the application (`txn`) already.
    repeated: bool = False

    def __repr__(self) -> str:
        """As of any record; of the metrics those that are not 0: `rows` alone do not say what a delete did."""
        metrics = {name: number for name, number in self.metrics.items() if number}
        numbers = f"version={self.version}, files={self.files}, rows={self.rows}, bytes={self.bytes}"
        return f"Commit({numbers}, repeated={self.repeated}{f', metrics={metrics}' if metrics else ''})"
