"""The Spark engine: tasks run as jobs, and Spark's types are derived here from Arrow schemas.

The rule: tasks are the same functions that threads run; their batches are then converted for Spark. Data never passes
through the driver, only facts do; but a few rows that the driver has already (`VALUES`, a DataFrame of a pyarrow table)
are written there, because a job of Python workers takes longer than they do.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica.arrays import arrow_array
from mica.engines.base import (
    AS_THEY_COME,
    NO_ENDS,
    Ends,
    Engine,
    MadeRows,
    Order,
    Rows,
    RowsTask,
    Task,
)
from mica.engines.local import IN_PROCESS
from mica.engines.spark import comparator, decimals, jobs, types, zones
from mica.engines.spark.arrow_rows import of_arrow_table
from mica.engines.spark.at_hand import at_hand
from mica.engines.spark.batches import ForSpark, Late
from mica.engines.spark.fused import fused, narrowed
from mica.engines.spark.making import Maker
from mica.engines.spark.marks import framed
from mica.engines.spark.session import is_connect, is_true
from mica.errors import UserError
from mica.expressions.bind import BoundExpr
from mica.schema.arrow import to_arrow
from mica.schema.ddl import type_to_ddl
from mica.schema.edit import places
from mica.schema.interval_types import is_interval
from mica.schema.spelling import quote_if_needed
from mica.schema.types import VARIANT, StructType, contains
from mica.tasks import blocks, ranges
from mica.tasks.packed import PACKED, packed, packing, unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: So many rows and bytes may be sent to every task; of rows whose bytes are known before they are collected more.
FEW_ROWS = 100_000
FEW_BYTES = 64 << 20
_MORE = 10

#: So many bytes of a process's rows go to Spark as one value.
_PACK_BYTES = 4 << 20


class Spark(Engine):
    """A Spark session, classic or Connect."""

    shuffles = True

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @property
    def parallelism(self) -> int:
        """The number of cores that Spark reports."""
        return jobs.parallelism(self.session)

    @property
    def is_local(self) -> bool:
        """Whether tasks run on this machine only."""
        return str(self.session.sparkContext.master).startswith("local")

    @property
    def comparator(self) -> comparator.SparkComparator:
        """Spark's own."""
        return comparator.SparkComparator(self.session)

    def settings(self, ansi: bool = True, timezone: str = "UTC") -> tuple[bool, str]:  # noqa: ARG002 - the session decides
        """The session's settings."""
        return is_true(self.session, "spark.sql.ansi.enabled"), str(self.session.conf.get("spark.sql.session.timeZone"))

    def skips_by(self, predicate: BoundExpr, *, folded: bool = False) -> BoundExpr:
        """The parts whose constants the session reads alike, by bounds that hold in its zones."""
        return zones.skips_by(self.session, predicate, folded=folded)

    def reads_alike(self, bound: BoundExpr, *, folded: bool = False) -> bool:
        """Whether it does not depend on the rules of a zone, which Spark has in another version."""
        return zones.reads_alike(self.session, bound, folded=folded)

    def owns(self, data: Any) -> bool:
        """A DataFrame."""
        return types.is_frame(data)

    def schema(self, rows: Rows) -> pa.Schema:
        """The columns of a DataFrame that is written. Errors: UNSUPPORTED_TYPE for an interval: of months, Spark's
        batches hold another type than ours, which pyarrow cannot read."""
        found = types.from_spark(rows.schema)
        for at, type_, _, _ in places(found):
            if is_interval(type_):
                raise UserError(
                    "UNSUPPORTED_TYPE",
                    f"the column {at!r} is {type_to_ddl(type_)}, which cannot be stored",
                    hint="Cast it to BIGINT or STRING.",
                    column=at,
                )
        return to_arrow(found)

    def run(
        self,
        task: Task,
        inputs: Sequence[Any],
        schema: pa.Schema,
        *,
        ends: Ends = NO_ENDS,
    ) -> Iterator[pa.RecordBatch]:
        """Runs one job; its batches arrive when it has ended."""

        def frame() -> DataFrame:
            return jobs.over_tasks(self.session, task, inputs, types.of_arrow(schema))

        return self._collected(frame, schema, ends)

    def write(
        self,
        rows: Rows,
        task: RowsTask,
        schema: pa.Schema,
        *,
        order: Order = AS_THEY_COME,
        ends: Ends = NO_ENDS,
    ) -> Iterator[pa.RecordBatch]:
        """Runs one job, with a shuffle if the order needs one; none for a few rows that the driver has."""
        rows = rows if isinstance(rows, MadeRows) else narrowed(rows, stays=not order.partition_by)
        # Spark itself compares strings of a collation, which `ends` are of.
        found = None if ends.of or isinstance(rows, MadeRows) else at_hand(rows, FEW_ROWS)
        if found is not None:
            return IN_PROCESS.write(found, task, schema, order=order)

        def frame() -> DataFrame:
            if isinstance(rows, MadeRows):
                return self._made(rows, order, task, schema)
            arranged, wanted = _together(rows, order), types.of_arrow(schema)
            return fused(arranged, task, wanted) or jobs.over_rows(arranged, task, wanted)

        return self._collected(frame, schema, ends)

    def frame(self, task: Task, inputs: Sequence[Any], schema: StructType, size: int, late: Late) -> DataFrame:
        """The task's batches as a lazy DataFrame for the user, about `size` bytes large."""
        wanted, numbers = types.to_spark(schema), {} if is_connect(self.session) else decimals.short(schema)
        run = ForSpark(task, schema, late, numbers)
        given = types.to_spark(decimals.crossing(schema, numbers)) if numbers else wanted
        frame = jobs.over_tasks(self.session, run, inputs, given, size_in_bytes=size, for_people=True)
        return decimals.made(frame, numbers, wanted)

    def given(self, rows: pa.Table, schema: StructType) -> DataFrame:
        """Rows of this process in Spark's form (`for_spark`), as a DataFrame."""
        found: Any = of_arrow_table(self.session, rows, types.to_spark(schema))
        make = Maker.of(self.session)
        plan = make.unfolded(found._jdf.queryExecution().analyzed())  # noqa: SLF001
        return framed(self.session, make.of_rows(found._jdf.sparkSession(), plan))  # noqa: SLF001

    # --- a merge's own jobs ------------------------------------------------------------------------------------------

    def at_hand(self, rows: DataFrame, columns: Sequence[str]) -> pa.Table | None:
        """These columns, if the plan says that the rows are few, or if the driver has them."""
        found = at_hand(rows.select(*map(quote_if_needed, columns)), FEW_ROWS)
        return found if found is not None and self.few(found) else None

    def kept(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """These columns of a DataFrame, computed once: a source that is computed twice may differ."""
        asked = narrowed(rows.select(*map(quote_if_needed, columns)), stays=False)
        return jobs.ran(self.session, lambda: asked.localCheckpoint(eager=False))

    def counted(self, rows: DataFrame) -> int:
        """How many rows there are."""
        return jobs.ran(self.session, rows.count)

    def forget(self, rows: Any) -> None:
        """Frees what `kept` made. Without, Spark does when the driver's JVM collects its garbage, which may be never.
        A frame of Connect asks the server for it when Python frees the frame: if that is the garbage collector inside a
        call of gRPC, the call waits for itself forever."""
        plan: Any = getattr(rows, "_plan", None)
        if type(plan).__name__ == "CachedRemoteRelation":
            plan.__del__()
            plan._relation_id = None  # noqa: SLF001 - nothing is left to do for the collector
        elif java := getattr(rows, "_jdf", None):
            java.queryExecution().analyzed().rdd().unpersist(False)

    def collected(self, rows: DataFrame) -> pa.Table | None:
        """The rows if they are few, so that every task can have them all; else None."""
        found = self.all_of(rows.limit(FEW_ROWS + 1))
        return found if self.few(found) else None

    def all_of(self, few: DataFrame) -> pa.Table:
        """All rows, of which there are not many."""
        if contains(types.from_spark(few.schema), VARIANT):
            # PySpark's own collection refuses null Variants: it casts to groups whose parts are never null.
            packs = jobs.collect(jobs.over_rows(few, packing, types.of_arrow(PACKED)))
            empty = None if packs.num_rows else to_arrow(types.from_spark(few.schema))
            return pa.Table.from_batches(unpacked(packs.to_batches()), empty)
        return jobs.collect_given(few)

    def few(self, rows: pa.Table) -> bool:
        """Whether every task can have all these rows."""
        return bool(rows.num_rows <= FEW_ROWS and rows.nbytes <= FEW_BYTES)

    def fits(self, rows: int, size: int) -> bool:
        """Whether every task can have so many rows of so many bytes."""
        return rows <= _MORE * FEW_ROWS and size <= FEW_BYTES

    def spread(self, rows: pa.Table, schema: StructType) -> DataFrame:
        """Rows of this process as a DataFrame, of which each task gets a part."""
        count = max(1, -(-rows.nbytes // _PACK_BYTES), min(self.parallelism, rows.num_rows))
        size = -(-rows.num_rows // count)
        packs = [arrow_array([packed(rows.slice(at, size))], pa.binary()) for at in range(0, rows.num_rows, size or 1)]
        frame = of_arrow_table(self.session, pa.table({"rows": pa.chunked_array(packs, pa.binary())}))
        return self.mapped(frame.repartition(max(1, min(len(packs), 4 * self.parallelism))), unpacked, schema)

    def made(self, task: Task, inputs: Sequence[Any], schema: StructType) -> DataFrame:
        """The rows that tasks make."""
        return jobs.over_tasks(self.session, ForSpark(task, schema), inputs, types.to_spark(schema))

    def mapped(self, rows: DataFrame, task: RowsTask, schema: StructType) -> DataFrame:
        """The rows that a task makes of these."""
        return jobs.over_rows(rows, ForSpark(task, schema), types.to_spark(schema))

    def _collected(self, frame: Any, schema: pa.Schema, ends: Ends) -> Iterator[pa.RecordBatch]:
        def work() -> pa.Table:
            # Spark compares the strings that the Python function gathered in the same job: bounds need no second job.
            return jobs.collect(comparator.with_ends(frame(), ends))

        found = jobs.interruptible(self.session, work)
        return iter(found.cast(ends.schema(schema)).to_batches())

    def _made(self, rows: MadeRows, order: Order, task: RowsTask, schema: pa.Schema) -> DataFrame:
        """What a task makes of rows that tasks make, arranged: those of a file are brought together by the ranges of
        their keys, so that no task runs twice, and sorted by the task that writes them."""
        if not order.keys:
            made = jobs.over_tasks(
                self.session, ForSpark(rows.task, rows.schema), rows.inputs, types.to_spark(rows.schema),
                size_in_bytes=rows.size,
            )  # fmt: skip
            return jobs.over_rows(jobs.together(made, order.partition_by), task, types.of_arrow(schema))
        by = (*((name, False) for name in order.partition_by), *order.keys)
        each = ranges.finer(rows.size, rows.files)
        found = self._ranges(rows, order, rows.files * each)
        cut = blocks.Cut(rows.task, found, tuple(name for name, _ in by), each)
        frame = jobs.over_tasks(self.session, cut, rows.inputs, types.of_arrow(blocks.BLOCKS), size_in_bytes=rows.size)
        arranged = by_number(frame, blocks.FILE, -(-len(found) // each), [blocks.RANGE])
        write = blocks.Sorted(task, by, tuple(dict(order.keys)))
        return jobs.over_rows(arranged, write, types.of_arrow(schema))

    def _ranges(self, rows: MadeRows, order: Order, count: int) -> ranges.Ranges:
        """The boundaries of the ranges of a sorted job, of which there are at most `count`."""
        found = ranges.plan(rows.sample_by(self), count, [down for _, down in order.keys]) if count > 1 else None
        return ranges.EVERYTHING if found is None else found


def by_keys(frames: Sequence[DataFrame], keys: Sequence[str], count: int, order: Sequence[str]) -> DataFrame:
    """The rows of all, those of equal keys in one of `count` partitions, each sorted."""
    every = functools.reduce(lambda one, other: one.unionAll(other), frames)
    return every.repartition(count, *keys).sortWithinPartitions(*order)


def by_number(frame: DataFrame, number: str, count: int, order: Sequence[str]) -> DataFrame:
    """The rows in the partitions that a column numbers, each sorted."""
    from pyspark.sql import functions as sql

    return frame.repartitionById(count, sql.col(number)).sortWithinPartitions(*order)


def gathered(
    frame: DataFrame, names: Mapping[str, str], into: str, columns: StructType, where: tuple[str, Sequence[int]]
) -> DataFrame:
    """Columns by new names, and one of these `columns` as fields, which is null in rows whose column `where[0]` is none
    of these numbers. A field that the frame lacks is null."""
    from pyspark.sql import functions as sql

    has, (number, some) = set(frame.columns), where
    fields = []
    for f in types.to_spark(columns).fields:
        value = sql.col(quote_if_needed(f.name)) if f.name in has else sql.lit(None).cast(f.dataType)
        fields.append(value.alias(f.name))
    whole = sql.when(sql.col(number).isin(list(some)), sql.struct(*fields)).alias(into)
    return frame.select(*[sql.col(name).alias(new) for name, new in names.items()], whole)


def _together(frame: DataFrame, order: Order) -> DataFrame:
    """Brings the rows of a partition value together, so that its files reach their target size."""
    wanted = {name.lower() for name in order.partition_by}
    columns = [name for name in frame.columns if name.lower() in wanted]
    return jobs.together(frame, columns) if columns else frame
