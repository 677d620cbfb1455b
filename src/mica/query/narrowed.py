"""One place of a table in a query, and how it is read: what runs, and what `mica.explain` shows.

The rule: it is a value; nothing is read for it.
"""

from __future__ import annotations

from dataclasses import replace

from mica.engines.spark.computed import Computed
from mica.engines.spark.folds import Folded
from mica.records import dataclass
from mica.scan.scan import Scan
from mica.table import Table


@dataclass(frozen=True)
class Narrowed:
    """One place of a table in a query, and how it is read."""

    view: str
    table: Table
    #: What is read for Spark, and by which conditions files are skipped.
    read: Scan
    where: str | None
    #: The conjuncts that the scan evaluates, those by which it only skips files, and those that only Spark evaluates,
    #: with the reason.
    evaluated: tuple[str, ...]
    skipping: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    reader: str
    #: The aggregate that takes rows that are alike as one, with their number.
    folded: Folded | None = None
    #: How many rows are enough, if Spark asks for neither all nor the names of their files.
    limit: int | None = None
    #: The query, if `read` gives its rows.
    computed: Computed | None = None

    @property
    def scan(self) -> Scan:
        """The scan with all conditions by which it skips."""
        return replace(self.read, where=self.where)
