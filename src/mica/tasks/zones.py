"""Records the version of the time zone rules that made the times of a file.

The rule: a file of new rows has the tag `mica.zones`, the version of the database that converted texts and dates
without an offset to instants. Files without it are from before mica used the last rules of each zone: there a time
after 2037 may follow another year's rules. A rewrite keeps values, so it does not set the tag.
"""

from __future__ import annotations

from mica.variant import kernel

TAG = "mica.zones"


def zone_tags() -> dict[str, str]:
    """The tags of a file of new rows."""
    return {TAG: kernel.zones()}
