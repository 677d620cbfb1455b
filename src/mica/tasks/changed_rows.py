"""Change files: the rows that a commit inserts, deletes or updates, each with the type of its change.

The rule: if a commit has change files, they hold all of its changes, because readers of the feed then look at nothing
else. So either every task of an operation writes the rows that it changes, or none does. A change file has the columns
of the table and `_change_type`, but no ids of rows; partition values are in its path and its `cdc` action, as for data
files.

Source: PROTOCOL.md, "Add CDC File", "Change Data Files".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from mica.arrays import scalar
from mica.log.feed_columns import CHANGE_TYPE, DIRECTORY
from mica.schema.types import STRING, StructField, StructType
from mica.tasks.facts import facts
from mica.tasks.rules import Rules
from mica.tasks.write import TableWriter, WriteSpec, write_files

ChangeType = Literal["insert", "delete", "update_preimage", "update_postimage"]


def write_changes(spec: WriteSpec, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes change files and yields facts about them, of the kind `cdc`. `spec` is the write spec of the table's data
    files; the batches have the table's columns, complete by the rules of the table, and `_change_type`.
    """
    made = _feeding(spec)
    yield from write_files(made, (batch.select(made.schema.names) for batch in rows))


def write_inserted(spec: WriteSpec, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes new rows to data files and to change files, in one pass; yields facts about both. The batches are as for
    `write_files`."""
    made = _feeding(spec)
    with TableWriter(made) as changes:

        def write_change(batch: pa.RecordBatch) -> None:
            changes.write(_typed("insert", batch).select(made.schema.names))

        yield from write_files(spec, rows, write_change)
        yield facts(changes.close(), spec.collated)


def of_type(change: ChangeType, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the table as rows that all have this type of change."""
    for batch in rows:
        yield _typed(change, batch)


def _typed(change: ChangeType, batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column(CHANGE_TYPE, pa.repeat(scalar(change, pa.string()), batch.num_rows))


def _feeding(spec: WriteSpec) -> WriteSpec:
    """The write spec of the change files beside these data files."""
    schema = StructType((*spec.schema.fields, StructField(CHANGE_TYPE, STRING)))
    return replace(spec, schema=schema, directory=DIRECTORY, kind="cdc", rules=Rules(), row_ids=None)
