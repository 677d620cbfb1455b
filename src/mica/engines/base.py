"""The interface of engines: they run tasks, move rows to tasks, and compare strings.

The rule: a task is a picklable function from one input to Arrow batches and does not know engines; an engine does not
know formats. All differences of the two engines (threads or a job, sort in memory or shuffle, settings of the call or
of the session, comparator of collations) are behind this interface; which other code knows the engine that it has is
listed in docs/architecture.md, "Engines and tasks".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from mica.arrays import NDArray
from mica.collation.ordering import Ordering
from mica.expressions.bind import BoundExpr
from mica.records import dataclass
from mica.schema.types import StructType
from mica.tasks.packed import PACKED, collected

Batches = Iterable[pa.RecordBatch]

#: A function from one input to batches.
Task = Callable[[Any], Batches]

#: A function from rows to batches, such as the facts of the written files.
RowsTask = Callable[[Batches], Batches]

#: Bytes in memory that are worth a thread and a file of their own.
SHARE_BYTES = 64 << 20


class Comparator(Ordering, Protocol):
    """Compares strings by collation, exactly as the engine does when it evaluates predicates."""

    def compared(self, left: pa.Array, right: pa.Array, collations: Sequence[str]) -> NDArray[np.int8]:
        """Returns -1, 0 or 1 for each pair of strings (none is null), by the collation (SQL name) at the same index."""

    def classes(self, strings: pa.Array, collation: str) -> pa.Array:
        """Returns a string for each of these (none is null, each is there once): the same one for those that are equal
        by the collation (an identifier in Spark's spelling)."""


@dataclass(frozen=True)
class Ends:
    """A request to replace columns of lists of strings by their minimum and maximum.

    `of` maps columns to SQL names of collations: each becomes `<column>_min` and `<column>_max`, at the end. With `by`
    the result has one row for each value of that column, and no other columns.
    """

    of: Mapping[str, str] = field(default_factory=dict)
    by: str | None = None

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the result for rows of `schema`."""
        kept = [f for f in schema if f.name not in self.of and self.by in (None, f.name)]
        return pa.schema([*kept, *(pa.field(f"{n}_{side}", pa.string()) for n in self.of for side in ("min", "max"))])


NO_ENDS = Ends()


@dataclass(frozen=True)
class Order:
    """The order of rows in files: rows of a partition are together, and all files together are sorted by `keys`
    (column, descending). The keys are not columns of the files."""

    partition_by: tuple[str, ...] = ()
    keys: tuple[tuple[str, bool], ...] = ()


AS_THEY_COME = Order()


@dataclass(frozen=True)
class MadeRows:
    """Rows that tasks make, to be arranged and written to files."""

    task: Task
    inputs: Sequence[Any]
    #: The columns, including the keys of an `Order`.
    schema: StructType
    #: Their approximate size in bytes, and the number of files of about equal size to write.
    size: int
    files: int = 1
    #: Returns the keys of a sample of an input's rows (`ranges.weighted`), packed; or such a sample of all rows.
    sample: Task | None = None
    sampled: pa.Table | None = None
    share_bytes: int = SHARE_BYTES

    def sample_by(self, engine: Engine) -> pa.Table | None:
        """The sample of all rows; None without a row."""
        if self.sampled is not None or self.sample is None:
            return self.sampled
        return collected(engine.run(self.sample, self.inputs, PACKED))


#: `MadeRows`, or the engine's own rows: a DataFrame for Spark, an Arrow table or reader for threads.
Rows = Any


class Engine(ABC):
    """Runs tasks."""

    #: Whether it brings the rows of a partition together before they are written.
    shuffles: bool

    @property
    @abstractmethod
    def parallelism(self) -> int:
        """How many tasks run at once."""

    @property
    @abstractmethod
    def comparator(self) -> Comparator:
        """The engine's comparator of strings by collation."""

    @abstractmethod
    def settings(self, ansi: bool = True, timezone: str = "UTC") -> tuple[bool, str]:
        """The ANSI mode and time zone that apply on this engine, given those of the call."""

    @abstractmethod
    def skips_by(self, predicate: BoundExpr, *, folded: bool = False) -> BoundExpr:
        """What of a predicate may skip files if this engine evaluates the rows. `folded`: its constants are those of
        the engine's plan, and no local times."""

    @abstractmethod
    def reads_alike(self, bound: BoundExpr, *, folded: bool = False) -> bool:
        """Whether this engine evaluates it exactly as mica; `folded` as above."""

    @abstractmethod
    def owns(self, data: Any) -> bool:
        """Whether the given data is the engine's own kind of rows and needs no conversion."""

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
    ) -> Iterator[pa.RecordBatch]:
        """Runs the task over the inputs; its batches have the schema. An error of a task is raised unchanged; other
        failures of a job are raised as a MicaError."""

    @abstractmethod
    def write(
        self,
        rows: Rows,
        task: RowsTask,
        schema: pa.Schema,
        *,
        order: Order = AS_THEY_COME,
        ends: Ends = NO_ENDS,
    ) -> Iterator[pa.RecordBatch]:
        """Arranges the rows and runs the task over them; its batches have the schema. Errors: as in `run`."""
