"""Keeps the lines of an ingest that make no row.

The rule: a line that cannot be read is kept unchanged; a document for which a column cannot be computed, or that a rule
of the table refuses, as JSON, without its place. One NDJSON file per task: file, line, column, reason, text.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self, TypeVar

import orjson
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.errors import CorruptDataError, MicaError, UserError
from mica.storage import Storage, Writer
from mica.tasks import lane
from mica.variant.values import to_json

T = TypeVar("T")

#: Where they are kept below a table, unless the user says where.
QUARANTINE = "_quarantine"


class LineReader(Protocol):
    """Who reads lines and keeps the bad ones."""

    def take_errors(self) -> pa.RecordBatch:
        """The bad lines since the last call."""


class BadLines:
    """The bad lines of one task; without a storage they are errors. `count` is their number."""

    def __init__(self, storage: Storage | None, places: Sequence[tuple[str, int]]) -> None:
        self._storage = storage
        # Named after the task and its input: a retried task replaces the file of its previous attempt.
        named = "\n".join([str(lane.current().index), *(f"{name}\n{start}" for name, start in places)])
        self._path = f"bad-{uuid.uuid5(uuid.NAMESPACE_URL, named)}.ndjson"
        self._writer: Writer | None = None
        self._done = False
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            return
        with contextlib.suppress(MicaError):
            if self._writer is not None:
                self._writer.abort()
            if self._done and self._storage is not None:
                self._storage.delete(self._path)

    def take(self, reader: LineReader) -> None:
        """Keeps the lines that the reader could not read."""
        if self._storage is not None:
            self._keep(self._storage, reader.take_errors().to_pylist())

    def sift(self, batch: pa.RecordBatch, made: Callable[[pa.RecordBatch], T], name: str) -> Iterator[T]:
        """What `made` makes of the documents in the first column, without those for which it fails: they are kept.
        `name` is the file's."""
        if self._storage is None:
            yield made(batch)
        else:
            storage = self._storage
            yield from sifted(batch, made, lambda rows, why: self._keep(storage, _unmade(rows, why, name)))

    def _keep(self, storage: Storage, lines: list[dict[str, object]]) -> None:
        if not lines:
            return
        if self._writer is None:
            # Bad lines may hold anything, so only the user who runs the job may read the file.
            self._writer = storage.writer(self._path, private=True)
        for line in lines:
            self._writer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE, default=_text))
        self.count += len(lines)

    def close(self) -> None:
        """Makes the file appear, if there is one."""
        if self._writer is not None:
            self._writer.close()
            self._writer, self._done = None, True


def sifted(
    batch: pa.RecordBatch,
    made: Callable[[pa.RecordBatch], T],
    bad: Callable[[pa.RecordBatch, MicaError], object],
) -> Iterator[T]:
    """What `made` makes of the rows of a batch, in one part or in several; `bad` gets those for which it fails."""
    while batch.num_rows:
        try:
            found = made(batch)
        except (UserError, CorruptDataError) as e:
            if e.failing is None and batch.num_rows > 1:
                # It does not say which rows: halves do.
                half = batch.num_rows // 2
                yield from sifted(batch.slice(0, half), made, bad)
                batch = batch.slice(half)
                continue
            failing = arrow_array([True]) if e.failing is None else pc.fill_null(e.failing, False)
            bad(batch.filter(failing), e)
            batch = batch.filter(pc.invert(failing))
        else:
            yield found
            return


def count_bad_lines(quarantine: Storage) -> int:
    """The number of quarantined lines of a run, over all tasks."""
    return sum(quarantine.read(entry.path).count(b"\n") for entry in quarantine.list())


def _unmade(batch: pa.RecordBatch, error: MicaError, name: str) -> list[dict[str, object]]:
    """What is kept of documents: the reason is that of the first, of which the error may show the value."""
    place = {"file": name, "line": None, "column": None, "offset": None}
    reason = f"[{error.code}] {error.message.removeprefix(f'{name}: ')}"
    return [{**place, "reason": reason, "text": document} for document in to_json(batch.column(0)).to_pylist()]


def _text(value: object) -> str:
    # Lines that are not UTF-8 are kept readable rather than exact: JSON can't hold them.
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
