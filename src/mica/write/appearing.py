"""The files of a write that is still running elsewhere, as far as its storage shows them.

The rule: a file counts from the moment that its footer can be read. A look takes at most a tenth of the time: it waits
ten times as long as the last one took, so that a large table or a slow store is not listed all the time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from mica.errors import MicaError
from mica.tasks.write import WriteSpec
from mica.variant import kernel

#: Seconds between two looks at least.
PAUSE = 1.0


@dataclass
class Appearing:
    """The files of the write of this spec, which have its mark in their names."""

    spec: WriteSpec
    #: The rows of the files that are complete, by name.
    rows: dict[str, int] = field(default_factory=dict)
    _next: float = 0.0

    def look(self) -> None:
        """Looks for new files, if it is time to."""
        began = time.monotonic()
        if began < self._next:
            return
        storage = self.spec.storage
        for entry in storage.list():
            name = entry.path.rpartition("/")[2]
            if entry.path not in self.rows and name.startswith(f"part-{self.spec.mark}"):
                try:
                    self.rows[entry.path] = kernel.open_file(*storage.locate(entry.path), entry.size).num_rows
                except MicaError:
                    continue  # it is being written
        self._next = began + max(PAUSE, 10 * (time.monotonic() - began))
