"""A merge of which Spark has said which rows change, how, and where they are.

The rule: each row that changes is named by its file and its number there, so no key is matched and no file without such
a row is opened. What Spark has read decides which files those can be.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from mica.arrays import NDArray, arrow_array
from mica.expressions.joined import BOTH, Side
from mica.log.replay import PARTITION_VALUES
from mica.log.snapshot import Snapshot
from mica.records import dataclass
from mica.scan.table import TableSource
from mica.schema.types import INTEGER, StructField, StructType
from mica.tasks.matching import NOT_BY_SOURCE, When
from mica.tasks.merge import MergeSpec
from mica.tasks.parts import FilePart, parts_of
from mica.tasks.placed_merge import FILE, INDEX, TASK, in_few_tasks
from mica.write.commit import Commit
from mica.write.merge_clauses import SEES
from mica.write.merge_jobs import Placed
from mica.write.once import Txn
from mica.write.running_merge import RunningMerge

if TYPE_CHECKING:
    import numpy as np
    from pyspark.sql import DataFrame

    from mica.write.merge import Merge

#: The columns with the place of a row.
PLACES = (TASK, FILE, INDEX)


class Numbered(TableSource):
    """A version of a table with the number of its file in each row, and that of the task that changes the file."""

    def __init__(self, snapshot: Snapshot, parallelism: int) -> None:
        super().__init__(snapshot)
        self.parallelism = parallelism
        self.schema = StructType((*self.schema.fields, *(StructField(name, INTEGER) for name in (TASK, FILE))))

    def files(self, indices: pa.Array, *, ids: bool = False) -> pa.Table:
        """As of a table, with the two numbers as constants."""
        found, places = super().files(indices, ids=ids), indices.to_pylist()
        tasks = in_few_tasks(parts_of(found), self.parallelism)
        numbers = [number for number, some in enumerate(tasks) for _ in some]
        told = [[(TASK, str(task)), (FILE, str(file))] for task, file in zip(numbers, places, strict=True)]
        return found.append_column("constants", arrow_array(told, PARTITION_VALUES))

    def parts(self, files: pa.Table) -> list[FilePart]:
        """Each made anew, as they depend on the others that are read."""
        return parts_of(files)


@dataclass(frozen=True)
class PlacedRows:
    """Rows with the columns of the source and `CLAUSE`: those that change with `PLACES`, and those to insert."""

    changed: DataFrame
    inserted: DataFrame | None
    #: Those of the source, without rows, and how many rows it has.
    source: DataFrame
    count: int
    #: The files that were read.
    kept: NDArray[np.int64]


class PlacedMerge(RunningMerge):
    """One execution; `given` has a clause for each of the user's, whose texts see the columns that Spark made."""

    seen: Mapping[When, tuple[Side, ...]] = {**SEES, NOT_BY_SOURCE: BOTH}

    def __init__(self, given: Merge, rows: PlacedRows, txn: Txn | None) -> None:
        super().__init__(replace(given, source=rows.source, on="true"), txn)
        self.rows = rows

    def commit(self) -> Commit:
        """Changes the rows and commits; commits nothing if there are none."""
        self.planned = time.monotonic()
        self._describe(None, self.rows.count)
        rows, kept = self.rows, self.rows.kept

        def whole(spec: MergeSpec) -> Placed:
            return Placed(spec, rows.changed, rows.inserted, self.columns, rows.count, self.table.rewritten(kept))

        return self._run(kept, None, whole)
