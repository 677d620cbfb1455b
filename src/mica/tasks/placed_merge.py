"""Changes of rows whose places are known: nothing is matched, each change goes to the task of its file.

The rule: a row that changes comes with its file, its number there, its clause, and what the clause needs of the source.
Files change as in `shuffled_merge`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from mica.arrays import to_numpy
from mica.schema.types import INTEGER, StructField, StructType
from mica.tasks.file import DataFileReader
from mica.tasks.leaf_values import extract
from mica.tasks.matching import Changes, Rows, single
from mica.tasks.parts import FilePart, grouped, in_tasks
from mica.tasks.shuffled_merge import Batches, ShuffleSpec, in_schema, inserted, unpacked

#: Columns of the rows: the task that changes the file, the file, the row's number in it, and the clause.
TASK, FILE, INDEX, CLAUSE = "__mica_task", "__mica_file", "__mica_index", "__mica_clause"

#: Not more tasks than so many for each core: those of files that do not change have nothing to do.
_TASKS = 16


def in_few_tasks(parts: Sequence[FilePart], parallelism: int) -> list[list[FilePart]]:
    """The files by the tasks that change them."""
    tasks, most = in_tasks(parts, parallelism), _TASKS * parallelism
    if len(tasks) <= most:
        return tasks
    return grouped(parts, lambda part: part.size or 0, sum(part.size or 0 for part in parts) // most)


def placed_inserts(spec: ShuffleSpec, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Rows to insert, whose clauses are known, on their way to the tasks that do."""
    schema = StructType((StructField("clause", INTEGER), StructField("source", spec.source)))
    for batch in in_schema(batches, schema):
        clauses: Rows = to_numpy(batch.column("clause")).astype(np.int64)
        rows = unpacked(batch.column("source"), spec.source)
        leaves = extract(spec.match.leaves("source", "insert"), rows, spec.match.timezone)
        yield from inserted(spec, rows, leaves, np.arange(batch.num_rows), clauses)


def once_each(spec: ShuffleSpec, file: DataFileReader, found: Changes) -> Changes:
    """The changes of a file, at most one for each of its rows."""
    return single(spec.match, found, lambda rows: "; ".join(f"row {row} of {file.name}" for row in rows.tolist()))
