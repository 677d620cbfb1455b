"""What an engine is: whoever runs tasks, moves rows to them, and compares strings.

The rule: a task is a picklable function from one input to Arrow batches, and knows no engine; an engine knows where
tasks run, and no format. What the two engines do differently (threads or a job, a sort in memory or a shuffle, the
process's settings or the session's, who compares by collations) is behind this interface; nobody else asks which of
them it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mica.expressions.bind import BoundExpr
from mica.schema.types import StructType
from mica.skipping.collated import Ordering

Batches = Iterable[pa.RecordBatch]

#: One input to batches.
Task = Callable[[Any], Batches]

#: Rows to batches, such as the facts of the files that they were written to.
RowsTask = Callable[[Batches], Batches]

#: Called now and then with the share of a job that is done, by an engine whose batches arrive at the end.
Watch = Callable[[float], None]


class Comparator(Ordering, Protocol):
    """Compares strings by collations as whoever evaluates predicates on the engine does."""

    def compared(self, left: pa.Array, right: pa.Array, collations: Sequence[str]) -> NDArray[np.int8]:
        """-1, 0 or 1 for each pair of strings (none is null) by the collation (its SQL name) at its place."""


@dataclass(frozen=True)
class Ends:
    """Columns of lists of strings, of which the least and the greatest string are wanted instead.

    `of` maps columns to SQL names of collations: each becomes `<column>_min` and `<column>_max`, at the end. With `by`
    there is one row for each value of that column, and no other column.
    """

    of: Mapping[str, str] = field(default_factory=dict)
    by: str | None = None

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of what comes out, where `schema` goes in."""
        kept = [f for f in schema if f.name not in self.of and self.by in (None, f.name)]
        return pa.schema([*kept, *(pa.field(f"{n}_{side}", pa.string()) for n in self.of for side in ("min", "max"))])


NO_ENDS = Ends()


@dataclass(frozen=True)
class Order:
    """How rows are to be in files: those of a partition together, and by `keys` (column, descending) in one order over
    all files. The keys are not columns of the files."""

    partition_by: tuple[str, ...] = ()
    keys: tuple[tuple[str, bool], ...] = ()


AS_THEY_COME = Order()


@dataclass(frozen=True)
class MadeRows:
    """Rows that tasks make, on their way to files."""

    task: Task
    inputs: Sequence[Any]
    #: The columns, keys of an `Order` among them.
    schema: StructType
    #: About how many bytes they are, and how many files of about equal size they are to be.
    size: int
    files: int = 1
    #: Gives for an input the keys of some of its rows, as `ranges.plan` takes them.
    sample: Task | None = None
    #: Bytes in memory that are worth a thread of their own.
    share_bytes: int = 64 << 20


#: `MadeRows`, or the rows that an engine has: a DataFrame for Spark, an Arrow table or reader for threads.
Rows = Any


class Engine(ABC):
    """Where tasks run."""

    #: Whether it brings the rows of a partition together before they are written.
    shuffles: bool

    @property
    @abstractmethod
    def parallelism(self) -> int:
        """How many tasks run at once."""

    @property
    @abstractmethod
    def comparator(self) -> Comparator:
        """Who compares strings by collations here."""

    @abstractmethod
    def settings(self, ansi: bool, timezone: str) -> tuple[bool, str]:
        """ANSI mode and time zone that count here, where those are asked for."""

    @abstractmethod
    def read_alike(self, predicate: BoundExpr) -> BoundExpr:
        """The parts of a predicate that files are skipped by, if this engine evaluates the rows."""

    @abstractmethod
    def owns(self, data: Any) -> bool:
        """Whether rows that a person gives need no reading: they are `Rows` of this engine."""

    @abstractmethod
    def schema(self, rows: Rows) -> pa.Schema:
        """The columns of rows that are not `MadeRows`."""

    @abstractmethod
    def run(
        self,
        task: Task,
        inputs: Sequence[Any],
        schema: pa.Schema,
        *,
        ends: Ends = NO_ENDS,
        watch: Watch | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Runs the task over the inputs; its batches have the schema. An error of a task is raised as the task raised
        it, a job that breaks otherwise as a MicaError."""

    @abstractmethod
    def write(
        self,
        rows: Rows,
        task: RowsTask,
        schema: pa.Schema,
        *,
        order: Order = AS_THEY_COME,
        ends: Ends = NO_ENDS,
        watch: Watch | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Moves rows, arranged by the order, through the task; what it yields has the schema. Errors as of `run`."""
