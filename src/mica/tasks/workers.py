"""How many threads read the files of a scan at once.

The rule: where little is read at a time, or in all, one. The kernel works without Python's lock, but between its calls
a thread needs the lock: with short calls two threads mostly wait for each other, and take longer than one.
"""

from __future__ import annotations

from collections.abc import Sequence

from mica.expressions.tree import LeafRef
from mica.schema.types import DOUBLE, FLOAT, INTEGRALS
from mica.tasks.file import ReadSpec
from mica.tasks.parts import FilePart
from mica.tasks.together import groups, share

#: What is read of a file, or of several as one, in bytes, from which on threads gain. Of 200 files of 300 KB that are
#: read one by one, two threads take 0.6 of the time of one for whole rows, 0.9 for four paths, 1.7 for one path.
WORTH = 96 << 10
#: What is read of some paths in all, from which on threads gain. A file of 47 MB has a path of numbers in 1.3 ms by one
#: thread and 2.2 by two, one of short texts in 3, one of long texts in 41 and 23.
ALONE = 1 << 20

_NUMBERS = (*INTEGRALS, FLOAT, DOUBLE)


def workers(spec: ReadSpec, files: Sequence[FilePart], threads: int) -> int:
    """The number of threads, at most `threads`. Requests wait for an object store, not for the lock."""
    if spec.storage.local_path is None or not files:
        return threads
    part, reads = share(spec.leaves), sum(1 for _ in groups(spec, files))
    read = part * sum((file.size or 0) / file.parts for file in files)
    least = 0 if part == 1 else 3 * ALONE if _are_numbers(spec) else ALONE
    return threads if read >= max(least, WORTH * reads) else 1


def _are_numbers(spec: ReadSpec) -> bool:
    """Whether nothing but numbers is read, as they are: decoding them takes a third of what texts take."""
    outputs = spec.outputs.values() if spec.predicate is None else ()
    return any(outputs) and all(isinstance(one.expr, LeafRef) and one.type in _NUMBERS for one in outputs)
