"""Which version an append may follow when the log no longer has the one that was read.

The rule: what was committed in between is unknown, so only rows are added, and only to a table whose newest version has
the same metadata, protocol and whatever else the append depends on, as an append does beside commits that it can read.
"""

from __future__ import annotations

from collections.abc import Iterable

from mica.errors import MicaError
from mica.log.snapshot import Snapshot, load


def newest_for_append(base: Snapshot, applications: Iterable[str], domains: Iterable[str]) -> Snapshot | None:
    """The newest version of the table; None if an append to `base` must not follow it. It depends on the transactions
    of these applications, and on these domains."""
    try:
        found = load(base.storage)
    except MicaError:
        return None
    same = (
        found.version > base.version
        and found.metadata == base.metadata
        and found.protocol == base.protocol
        and all(found.app_transactions.get(name) == base.app_transactions.get(name) for name in applications)
        and all(found.domains.get(name) == base.domains.get(name) for name in domains)
    )
    return found if same else None
