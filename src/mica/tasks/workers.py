"""How many threads read the files of a scan at once.

The rule: where little is read at a time, one. The kernel works without Python's lock, but between its calls a thread
needs the lock: with short calls two threads mostly wait for each other, and take longer than one.
"""

from __future__ import annotations

from collections.abc import Sequence

from mica.tasks.file import ReadSpec
from mica.tasks.parts import FilePart
from mica.tasks.together import alike, share

#: What is read of a file, or of several as one, in bytes, from which on threads gain. Of 200 files of 300 KB that are
#: read one by one, two threads take 0.6 of the time of one for whole rows, 0.9 for four paths, 1.7 for one path.
WORTH = 96 << 10


def workers(spec: ReadSpec, files: Sequence[FilePart], threads: int) -> int:
    """The number of threads, at most `threads`. Requests wait for an object store, not for the lock."""
    if spec.storage.local_path is None or not files:
        return threads
    at = reads = 0
    while at < len(files):
        at += len(alike(spec, files, at))
        reads += 1
    read = share(spec) * sum((file.size or 0) / file.parts for file in files) / reads
    return threads if read >= WORTH else 1
