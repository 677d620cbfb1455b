"""The in-process engine: tasks on threads.

The rule: the tasks that Spark would run, on as many threads as there are cores (`running`). The kernel releases the
GIL, so they run in parallel.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar

import pyarrow as pa

from mica import late
from mica.arrays import arrow_array, batch_of
from mica.collation import lcase
from mica.cores import cores
from mica.engines import progress, running
from mica.engines.base import AS_THEY_COME, NO_ENDS, SHARE_BYTES, Ends, Engine, MadeRows, Order, Rows, RowsTask
from mica.engines.base import Task as AnyTask
from mica.expressions.bind import BoundExpr
from mica.schema.arrow import to_arrow
from mica.tasks import lane
from mica.tasks.batches import Arranged, joined

Task = TypeVar("Task")

#: Rows that take more bytes than this are sorted on local disk.
SORT_BYTES = 256 << 20
#: Rows per batch.
BATCH_ROWS = 16_384

#: A table of up to so many bytes is arranged by partition at once: Arrow's offsets end at 2 GiB.
TAKEN_BYTES = 1 << 30


def threads() -> int:
    """The number of concurrent tasks: the cores that this process may use."""
    return cores()


def run(
    function: Callable[[Task], Iterable[pa.RecordBatch]], tasks: Sequence[Task], *, parallelism: int | None = None
) -> Generator[pa.RecordBatch]:
    """As `running.run`, on the cores of this process."""
    return running.run(function, tasks, parallelism or threads())


def shown(
    function: Callable[[Task], Iterable[pa.RecordBatch]], tasks: Sequence[Task], *, parallelism: int | None = None
) -> Generator[pa.RecordBatch]:
    """Like `run`, for batches that are not shown as they come: a watcher sees how many tasks have ended."""
    work = progress.current()
    if work is None:
        yield from run(function, tasks, parallelism=parallelism)
        return
    numbers, done = itertools.count(1), 0

    def counted(task: Task) -> Iterator[pa.RecordBatch]:
        nonlocal done
        yield from function(task)
        done = next(numbers)

    try:
        with closing(run(counted, tasks, parallelism=parallelism)) as batches:
            for batch in batches:
                work.tell(tasks=len(tasks), ended_tasks=done)
                yield batch
        work.tell(tasks=len(tasks), ended_tasks=len(tasks))
    finally:
        work.ended()


class Threads(Engine):
    """The threads of this process. UTF8_LCASE is the only collation that they compare, as Spark (`collation.lcase`)."""

    shuffles = False
    comparator = lcase.InProcess()

    @property
    def parallelism(self) -> int:
        """The cores that this process may use."""
        return threads()

    def settings(self, ansi: bool = True, timezone: str = "UTC") -> tuple[bool, str]:
        """Those of the call."""
        return ansi, timezone

    def skips_by(self, predicate: BoundExpr, *, folded: bool = False) -> BoundExpr:  # noqa: ARG002 - they are its own
        """All of it, since this process also evaluates the rows."""
        return predicate

    def reads_alike(self, bound: BoundExpr, *, folded: bool = False) -> bool:  # noqa: ARG002 - it is mica
        """Always."""
        return True

    def owns(self, data: Any) -> bool:  # noqa: ARG002 - `write.given` converts all kinds of data
        """None."""
        return False

    def schema(self, rows: Rows) -> pa.Schema:
        """The columns of an Arrow table or reader."""
        found: pa.Schema = rows.schema
        return found

    def run(
        self,
        task: AnyTask,
        inputs: Sequence[Any],
        schema: pa.Schema,
        *,
        ends: Ends = NO_ENDS,
    ) -> Iterator[pa.RecordBatch]:
        """Batches are in the order of the inputs."""
        return ended(shown(task, inputs), schema, ends)

    def write(
        self,
        rows: Rows,
        task: RowsTask,
        schema: pa.Schema,
        *,
        order: Order = AS_THEY_COME,
        ends: Ends = NO_ENDS,
    ) -> Iterator[pa.RecordBatch]:
        """One thread writes a stream as it arrives; several threads write a table, sorted in memory or, if it is large,
        on local disk, in contiguous shares. Without keys, the rows of each partition are brought together where those
        that follow each other are of too many."""
        if isinstance(rows, pa.RecordBatchReader):
            lane.begin(0)
            return ended(self._streamed(rows, task, order), schema, ends)
        if isinstance(rows, MadeRows) and order != AS_THEY_COME and rows.size > SORT_BYTES:
            return ended(self._spilled(rows, task, order), schema, ends)
        share_bytes = SHARE_BYTES
        if isinstance(rows, MadeRows):
            share_bytes = rows.share_bytes
            rows = pa.Table.from_batches(shown(rows.task, rows.inputs), to_arrow(rows.schema))
        if order.keys:
            from mica.tasks import ranges

            by = [*((name, False) for name in order.partition_by), *order.keys]
            places = ranges.sort_indices(rows, by)
            rows = Arranged(rows.drop_columns([name for name, _ in order.keys]), places)
        elif order.partition_by:
            from mica.tasks import partitions

            if partitions.scatter(rows, order.partition_by):
                if rows.nbytes > TAKEN_BYTES:
                    return ended(self._streamed(rows.to_reader(BATCH_ROWS), task, order), schema, ends)
                rows = partitions.arranged(rows, order.partition_by)
        return ended(self._shared(rows, task, share_bytes), schema, ends)

    def _shared(self, rows: pa.Table | Arranged, task: RowsTask, share_bytes: int) -> Iterator[pa.RecordBatch]:
        """Writes rows in contiguous shares."""
        count = max(1, min(threads(), rows.nbytes // share_bytes))
        edges = [rows.num_rows * i // count for i in range(count + 1)]

        def share(edge: tuple[int, int]) -> Iterable[pa.RecordBatch]:
            return task(_batches(rows, *edge))

        return shown(share, [*itertools.pairwise(edges)])

    def _streamed(self, rows: pa.RecordBatchReader, task: RowsTask, order: Order) -> Iterator[pa.RecordBatch]:
        """Writes a stream, arranged where its first rows are of too many partitions."""
        if not order.partition_by:
            yield from task(rows)
            return
        from mica.tasks import partitions

        # An iterator's batches may differ in their columns and types: runs of equal ones are arranged.
        runs = itertools.groupby(partitions.alike(rows, SORT_BYTES), lambda batch: batch.schema)
        arranged = (_arranged(schema, batches, order.partition_by) for schema, batches in runs)
        first = next(arranged, iter(()))
        second = next(arranged, None) if isinstance(first, Arranged) else None
        if isinstance(first, Arranged) and second is None:
            yield from self._shared(first, task, SHARE_BYTES)
            return
        whole = itertools.chain([first], [] if second is None else [second], arranged)
        yield from task(batch for one in whole for batch in (one.batches() if isinstance(one, Arranged) else one))

    def _spilled(self, rows: MadeRows, task: RowsTask, order: Order) -> Iterator[pa.RecordBatch]:
        """Writes rows that are sorted on local disk."""
        import tempfile

        from mica.tasks import ranges, spill

        by = [*((name, False) for name in order.partition_by), *order.keys]
        each = ranges.finer(rows.size, rows.files)
        found = ranges.plan(rows.sample_by(self), rows.files * each, [down for _, down in order.keys])
        found = ranges.EVERYTHING if found is None else found
        with tempfile.TemporaryDirectory(prefix="mica-sort-") as place:

            def part(numbered: tuple[int, Any]) -> spill.Spilled:
                number, given = numbered
                path = os.path.join(place, f"{number}.arrow")  # noqa: PTH118
                return spill.spill(rows.task(given), found, [name for name, _ in by], path)

            with late.futures.ThreadPoolExecutor(threads(), thread_name_prefix="mica") as pool:
                files = list(pool.map(part, enumerate(rows.inputs)))
            # Ranges end with a partition: what has no other order may be written by any of the threads.
            step = each if order.keys else 1
            shares = [range(start, min(start + step, len(found))) for start in range(0, len(found), step)]
            dropped = [name for name, _ in order.keys]
            yield from shown(lambda numbers: task(spill.sorted_rows(files, numbers, by, dropped)), shares)


IN_PROCESS = Threads()


def _arranged(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], names: Sequence[str]
) -> Arranged | Iterator[pa.RecordBatch]:
    """The rows of batches of one schema, arranged where the first are of too many partitions; if few, in memory."""
    from mica.tasks import partitions

    first = partitions.taken(batches, partitions.FIRST_ROWS, SHARE_BYTES)
    scattered = partitions.scatter(pa.Table.from_batches(first, schema), names)
    batches = partitions.drained(first, batches)
    if not scattered:
        return batches
    # An empty batch takes a thousand bytes beside its own.
    batches = joined(partitions.plain(batches, schema))
    gathered = partitions.taken(batches, sys.maxsize, SORT_BYTES)
    following = next(batches, None)
    if following is None:
        return partitions.arranged(pa.Table.from_batches(gathered), names)
    return partitions.arranged_on_disk(partitions.drained(gathered, itertools.chain([following], batches)), names)


def _batches(rows: pa.Table | Arranged, start: int, end: int) -> Iterable[pa.RecordBatch]:
    """The rows from `start` to `end`, in batches of a length."""
    if isinstance(rows, Arranged):
        return rows.batches(start, end)
    found: list[pa.RecordBatch] = rows.slice(start, end - start).to_batches(max_chunksize=BATCH_ROWS)
    return found


def ended(batches: Iterator[pa.RecordBatch], schema: pa.Schema, ends: Ends) -> Iterator[pa.RecordBatch]:
    """The batches, with minimum and maximum of their strings if `ends` requests them."""
    if not ends.of:
        yield from batches
        return
    wanted = ends.schema(schema)
    rows: dict[Any, dict[str, Any]] = {}
    for number, row in enumerate(row for batch in batches for row in batch.to_pylist()):
        one = rows.setdefault(number if ends.by is None else row[ends.by], {**row, **dict.fromkeys(ends.of, ())})
        for name in ends.of:
            strings = arrow_array([*one[name], *(row[name] or ())], pa.string())
            one[name] = lcase.ends(strings).to_pylist()
    for one in rows.values():
        for name in ends.of:
            one[f"{name}_min"], one[f"{name}_max"] = one[name] or (None, None)
    yield batch_of(list(rows.values()), schema=wanted)
