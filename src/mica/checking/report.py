"""The result of a check.

The rule: every violation has a kind, a stable word that scripts may match. The first ones of each kind and file are
listed, and all are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from mica.records import dataclass
from mica.wording import counted

#: A listed violation.
VIOLATIONS = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("rule", pa.int64()),
        pa.field("path", pa.string(), nullable=False),
        pa.field("row_group", pa.int64()),
        pa.field("row", pa.int64()),
        pa.field("found", pa.string(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
    ]
)
#: How many violations of a kind a file has, listed or not.
TOTALS = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("rule", pa.int64()),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Violation:
    """One violation. `rule` is a number in the checklist of Parquet variants (docs/check.md), None for other kinds;
    `path` is a column path of the file, or a column and a normalized path of the log's bounds; `row` counts
    from 0 in the file.
    """

    kind: str
    rule: int | None
    path: str
    row_group: int | None
    row: int | None
    found: str
    file: str


class Report:
    """The result of a check; iterating gives the listed violations, `len` counts all of them."""

    def __init__(self, files: int, violations: pa.Table, totals: pa.Table, notes: Sequence[str] = ()) -> None:
        #: How many files were checked.
        self.files = files
        #: The listed violations as Arrow, with the columns of `Violation`.
        self.violations = violations
        #: kind, rule, count, file.
        self.totals = totals
        #: What could not be checked, and why.
        self.notes = tuple(notes)

    def with_more(self, found: Iterable[pa.RecordBatch], notes: Sequence[str] = ()) -> Report:
        """Returns the report with more violations and totals, batches of either, and with more notes."""
        batches = list(found)
        rows, totals = (
            pa.concat_tables([before, pa.Table.from_batches([b for b in batches if b.schema == schema], schema)])
            for before, schema in ((self.violations, VIOLATIONS), (self.totals, TOTALS))
        )
        return Report(self.files, rows, totals, (*self.notes, *notes))

    @property
    def ok(self) -> bool:
        """Whether there are no violations."""
        return len(self) == 0

    @property
    def faulty(self) -> list[str]:
        """The files with violations, in the order of the check."""
        return list(dict.fromkeys(self.totals.column("file").to_pylist()))

    def __len__(self) -> int:
        return sum(self.totals.column("count").to_pylist())

    def __bool__(self) -> bool:
        # A report without violations is still a report.
        return True

    def __iter__(self) -> Iterator[Violation]:
        for row in self.violations.to_pylist():
            yield Violation(**row)

    def __repr__(self) -> str:
        return f"Report({counted(self.files, 'file')}, {counted(len(self), 'violation')})"
