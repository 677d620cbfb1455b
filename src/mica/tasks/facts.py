"""What a write task reports to the driver: a row for each file that it wrote or replaced, and its counts.

The rule: facts are Arrow columns of one schema, whatever the task did; numbers that are left out are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from mica.arrays import arrow_array
from mica.log.added import ADDED
from mica.stats.collated import CollatedColumn
from mica.tasks import candidates, lane

#: The facts of a write task. `kind` is `add` (a written file, with the columns of `ADDED`), `cdc` (a written change
#: file, with the same columns), `remove` (a replaced file: `file` is its position in the snapshot), `read` (rows, bytes
#: and bad lines that the task read), `vector` (a file of the snapshot that gets a deletion vector, with its
#: cardinality), `numbers` (the task gave identity columns numbers below `cardinality`), `left` (a path without a typed
#: column, `tasks/left.py`), or a count of rows: `copied`, `rebuilt`, `changed`, and those of a merge
#: (`tasks/merge.py`).
FACTS = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        *ADDED,
        pa.field("file", pa.int32()),
        pa.field("vector", pa.binary()),
        pa.field("cardinality", pa.int64()),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("bad", pa.int64(), nullable=False),
    ]
)


def facts_schema(leaves: Sequence[CollatedColumn]) -> pa.Schema:
    """`FACTS`, and the columns of `tasks.candidates` for leaves whose bounds the engine computes."""
    return pa.schema([*FACTS, *candidates.columns(leaves)])


def numbers(mine: lane.Lane) -> list[dict[str, Any]]:
    """The fact of the numbers that a task gave to new rows, if it gave some."""
    return [{"kind": "numbers", "cardinality": mine.end}] if mine.given else []


def facts(rows: list[dict[str, Any]], leaves: Sequence[CollatedColumn] = ()) -> pa.RecordBatch:
    """Facts as a batch; numbers that are left out are 0."""
    full = [{"rows": 0, "bytes": 0, "bad": 0, **row} for row in rows]
    columns = [arrow_array([row.get(f.name) for row in full], f.type) for f in FACTS]
    strings = candidates.values([row.get("candidates", ()) for row in rows], leaves)
    return pa.RecordBatch.from_arrays([*columns, *strings], schema=facts_schema(leaves))
