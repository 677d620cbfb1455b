"""Files that may hold wrong times after 2037.

The rule: a file with timestamps after 2037 is listed, as a note and not a violation, if it was written before mica used
the latest time zone rules (no tag `mica.zones`, see `tasks/zones.py`). The file does not say whether the timestamps
were read from texts without an offset, or in which zone.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from mica import compute as pc
from mica.arrays import arrow_array
from mica.log.paths import decode_path
from mica.log.snapshot import Snapshot
from mica.schema.types import TIMESTAMP
from mica.stats.columns import leaves_of
from mica.stats.read import Wanted, read_stats
from mica.tasks.late_types import TAG as OURS
from mica.tasks.zones import TAG

#: 2038-01-01 in UTC, less a day: the old rules ended during 2037, depending on the zone.
_LAST = datetime(2038, 1, 1, tzinfo=UTC) - timedelta(days=1)
_SHOWN = 20


def late_times(snapshot: Snapshot) -> list[str]:
    """Returns a note for each column with the affected files."""
    leaves = [x for x in leaves_of(snapshot.schema, snapshot.partition_columns) if x.type == TIMESTAMP]
    files = snapshot.files
    if not leaves or not files.num_rows:
        return []
    tags = [dict(found or ()) for found in snapshot.tags().to_pylist()]
    old = np.array([OURS in found and TAG not in found for found in tags])
    if not old.any():
        return []
    rows = np.flatnonzero(old)
    paths = files.column("path").take(arrow_array(rows)).to_pylist()
    notes = []
    for leaf, stats in zip(
        leaves, read_stats(snapshot.stats(rows), [Wanted(leaf.names, leaf.type) for leaf in leaves]), strict=True
    ):
        # A maximum beyond the year 9999 is omitted: then only the minimum exists.
        beyond = pc.and_(pc.is_null(stats.max), pc.is_valid(stats.min))
        late = pc.or_(pc.fill_null(pc.greater_equal(stats.max, _LAST), False), beyond)
        names = [decode_path(path) for path, is_late in zip(paths, late.to_pylist(), strict=True) if is_late]
        if names:
            notes.append(_note(".".join(leaf.column), names))
    return notes


def _note(column: str, names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        f"{column} has times after 2037 that were written before mica used the latest time zone rules; times read "
        f"from texts or dates without an offset, in a zone whose rules changed recently, may be off by an hour: "
        f"{', '.join(names[:_SHOWN])}{more}. Ingest their input again, or compare with Spark's cast"
    )
