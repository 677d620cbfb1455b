"""The flow of every write: an engine writes rows to files and reports facts; for a table one commit follows.

The rule: everything or nothing. Files are written first, and one commit adds them to the table. If anything fails there
is no commit, and the written files are deleted, as far as possible, unless a log may name them; this includes files of
tasks that did not report. Statistics and collated bounds of a file are gathered in the pass that writes it.

    append, overwrite, ingest, convert, repair, …     what to write, and what the commit removes
                │  RowSource
            write │ commit                            this file
                │  WriteSpec, tasks
              Engine                                  where it runs
                │  Facts
             Target                                   the transaction
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from mica.engines.base import AS_THEY_COME, Engine, Order, Rows, Task
from mica.errors import MicaError
from mica.log.deletion_vectors import write_vectors
from mica.records import dataclass
from mica.storage import Storage
from mica.tasks.changed_rows import write_inserted
from mica.tasks.write import WriteSpec, write_files
from mica.write import collated
from mica.write.appearing import shown
from mica.write.commit import Commit
from mica.write.facts import Facts
from mica.write.target import Target


class RowSource(ABC):
    """The source of the rows of a write."""

    @abstractmethod
    def run(self, engine: Engine, spec: WriteSpec) -> Iterator[pa.RecordBatch]:
        """Writes the rows; returns facts, with the minimum and maximum of collated columns."""


@dataclass(frozen=True)
class FromRows(RowSource):
    """Rows of the engine (a DataFrame, Arrow data), or rows that tasks make and the engine arranges."""

    rows: Rows
    order: Order = AS_THEY_COME
    #: Whether the commit has change files, so that these must have the new rows too.
    feeds: bool = False

    def run(self, engine: Engine, spec: WriteSpec) -> Iterator[pa.RecordBatch]:
        """The engine moves the rows to the tasks that write."""
        schema, ends = collated.reported(spec)
        task = partial(write_inserted if self.feeds else write_files, spec)
        return engine.write(self.rows, task, schema, order=self.order, ends=ends)


@dataclass(frozen=True)
class FromTasks(RowSource):
    """Tasks that read their rows themselves; `task` makes the task from the write spec."""

    task: Callable[[WriteSpec], Task]
    inputs: Sequence[Any]

    def run(self, engine: Engine, spec: WriteSpec) -> Iterator[pa.RecordBatch]:
        """One task reads and writes each input."""
        schema, ends = collated.reported(spec)
        return engine.run(self.task(spec), self.inputs, schema, ends=ends)


def write(engine: Engine, spec: WriteSpec, source: RowSource) -> Facts:
    """Writes files outside of tables."""
    with _undone(spec, lambda: True):
        return _written(engine, spec, source)


def commit(
    engine: Engine,
    target: Target,
    spec: WriteSpec,
    source: RowSource,
    *,
    inspect: Callable[[Facts], None] | None = None,
    aside: Storage | None = None,
    input_bytes: int = 0,
) -> tuple[Commit, Facts]:
    """Writes files and commits them to the table. `inspect` sees the files before the commit and may raise an error to
    refuse them. `aside` is the storage for by-products such as bad lines; it is cleared if the write fails.
    `input_bytes` is the size of the input, for the progress."""
    leaves, version = collated.comparable(target.collated, engine)
    spec = replace(spec, collated=tuple(leaves), version=version)
    with _undone(spec, lambda: target.certainly_not_written, aside) as undo:
        facts = _written(engine, spec, source, input_bytes)
        undo.files = facts.names
        bounded = collated.bounded(engine, spec, facts)
        if inspect is not None:
            inspect(bounded)
        if facts.vectors.num_rows:
            found = facts.vectors
            bodies, counts = (found.column(name).to_pylist() for name in ("vector", "cardinality"))
            target.vectors, file = write_vectors(target.storage, bodies, counts)
            undo.files += [] if file is None else [file]
        if leaves and facts.files.num_rows:
            target.versions = ([leaf.collation for leaf in leaves], version)
        return target.commit(bounded), facts


class _NothingChangedError(Exception):
    """There is nothing to commit."""


def commit_changes(engine: Engine, target: Target, spec: WriteSpec, source: RowSource) -> Commit:
    """As `commit`, for a table that may be there: if neither a row nor the schema changes, nothing is committed
    (`Target.commit_nothing`), as in delta-spark."""

    def refuse_nothing(facts: Facts) -> None:
        if not (target.alters or facts.files.num_rows or len(facts.removed) or facts.vectors.num_rows):
            raise _NothingChangedError

    try:
        return commit(engine, target, spec, source, inspect=refuse_nothing)[0]
    except _NothingChangedError:
        return target.commit_nothing()


def _written(engine: Engine, spec: WriteSpec, source: RowSource, input_bytes: int = 0) -> Facts:
    schema, ends = collated.reported(spec)
    schema = ends.schema(schema)
    found = list[pa.RecordBatch]()
    with shown(spec, input_bytes) as show:
        batches = source.run(engine, spec)
        try:
            for batch in batches:
                found.append(batch)
                show(batch)
        finally:
            # Tasks end before their files are deleted, also if the progress callback raises.
            close = getattr(batches, "close", None)
            if close is not None:
                close()
    return Facts.of(pa.Table.from_batches(found, schema))


@dataclass
class _Undo:
    """The files to delete after a failure; None: all files with the mark of the write."""

    files: list[str] | None = None


@contextlib.contextmanager
def _undone(spec: WriteSpec, may: Callable[[], bool], aside: Storage | None = None) -> Iterator[_Undo]:
    """Deletes the files of a failed write if `may` allows it, that is, if no log can name them."""
    undo = _Undo()
    try:
        yield undo
    except BaseException:
        if may():
            with contextlib.suppress(MicaError):
                spec.storage.discard(marked(spec) if undo.files is None else undo.files)
            if aside is not None:
                aside.clear()
        raise


def marked(spec: WriteSpec) -> list[str]:
    """The files of a write by the mark in their names, for files without facts."""
    if not spec.mark:
        return []  # without a mark, files of other writes look alike
    names = [entry.path for entry in spec.storage.list()]
    return [name for name in names if name.rpartition("/")[2].startswith((f"part-{spec.mark}", f"cdc-{spec.mark}"))]
