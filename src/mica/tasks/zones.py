"""Which time zone rules made the times of a file.

The rule: a file of new rows carries the tag `mica.zones`, the version of the database by which texts and dates without
an offset became instants. Files without it are from before mica took the last rules of each zone: there a time after
2037 may be that of another year's rules. A rewrite keeps values and so makes no such claim.
"""

from __future__ import annotations

from mica.variant import kernel

TAG = "mica.zones"


def zone_tags() -> dict[str, str]:
    """The tags of a file of new rows."""
    return {TAG: kernel.zones()}
