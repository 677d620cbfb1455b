"""The rows and files of a write that is still running, for its progress.

The rule: facts count as they arrive, and a file counts from the moment that its footer can be read, since a job's facts
arrive at its end. A look takes at most a tenth of the time: the next one waits ten times as long as the last one took,
so that a large table or a slow store is not listed all the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field

import pyarrow as pa

from mica.engines import progress
from mica.engines.progress import Progress, Work
from mica.errors import MicaError
from mica.records import dataclass
from mica.tasks.write import WriteSpec
from mica.variant import kernel

#: Seconds between two looks at least.
PAUSE = 1.0


@contextmanager
def shown(spec: WriteSpec, input_bytes: int) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Shows a write of so many bytes of input; gives what is to see each batch of its facts."""
    work = progress.current()
    if work is None:
        yield lambda _: None
        return
    work.progress, ended = Progress(total_bytes=input_bytes), threading.Event()
    looking = threading.Thread(target=_look, args=(Appearing(spec), work, ended), daemon=True)
    if spec.mark:  # without a mark, files of other writes look alike
        looking.start()
    try:
        yield Arriving(work).facts
    finally:
        ended.set()
        if spec.mark:
            looking.join(PAUSE)
        work.ended()
        work.progress = Progress()


@dataclass
class Arriving:
    """The facts of a write as they arrive."""

    work: Work
    read: int = 0
    written: int = 0
    files: int = 0
    bytes: int = 0

    def facts(self, batch: pa.RecordBatch) -> None:
        """Counts and reports. The rows of an ingest are read long before their file is complete."""
        for row in batch.select(["kind", "rows", "bytes"]).to_pylist():
            if row["kind"] == "read":
                self.read += row["rows"]
                self.bytes += row["bytes"]
            elif row["kind"] == "add":
                self.written += row["rows"]
                self.files += 1
        # If rows are sorted, these are the bytes of the rows.
        known = {"input_bytes": min(self.work.progress.total_bytes, self.bytes)} if self.bytes else {}
        self.work.tell(rows=max(self.read, self.written), files=self.files, **known)


def _look(appearing: Appearing, work: Work, ended: threading.Event) -> None:
    """Looks until the write has ended."""
    pause = PAUSE
    while not ended.wait(pause):
        began = time.monotonic()
        try:
            appearing.look()
            if not ended.is_set():
                work.tell(rows=sum(appearing.rows.values()), files=len(appearing.rows))
        except BaseException:  # noqa: BLE001 - a callback that raises does so in the writing thread too
            return
        pause = max(PAUSE, 10 * (time.monotonic() - began))


@dataclass
class Appearing:
    """The files of the write of this spec, which have its mark in their names."""

    spec: WriteSpec
    #: The rows of the files that are complete, by name.
    rows: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        """Looks for new files."""
        storage = self.spec.storage
        for entry in storage.list():
            name = entry.path.rpartition("/")[2]
            if entry.path not in self.rows and name.startswith(f"part-{self.spec.mark}"):
                try:
                    self.rows[entry.path] = kernel.open_file(*storage.locate(entry.path), entry.size).num_rows
                except MicaError:
                    continue  # it is being written
