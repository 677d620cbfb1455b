"""Which files of a table a query reads, and what is known of the others.

The rule: every file is kept or dropped, and a dropped one has its reason.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from mica.expressions.bind import BoundExpr
from mica.expressions.tree import Expr
from mica.records import dataclass

if TYPE_CHECKING:
    from mica.skipping.collated import CollatedVerdicts
    from mica.skipping.intervals import Interval

Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class FilePlan:
    """`kept` and `dropped` are row numbers of the snapshot's files, in order; `reasons[i]` is the number of the part
    of the predicate (`parts`) that no row of file `dropped[i]` can make true."""

    total: int
    kept: Rows
    dropped: Rows
    reasons: np.ndarray[Any, np.dtype[np.int32]]
    parts: tuple[Expr, ...]
    bound: BoundExpr | None
    #: Per stage: the files it evaluated, and what was known about each leaf there. For explain.
    stages: tuple[tuple[Rows, dict[int, Interval]], ...] = field(default=(), repr=False)
    #: Per stage that compared by collations: the files it evaluated, and what was known about them.
    collated: tuple[tuple[Rows, CollatedVerdicts], ...] = field(default=(), repr=False)

    @classmethod
    def of_all(cls, total: int) -> FilePlan:
        """The plan that keeps so many files, all there are: what is read without a predicate."""
        every = np.arange(total, dtype=np.int64)
        return cls(total, every, every[:0], np.zeros(0, np.int32), (), None)
