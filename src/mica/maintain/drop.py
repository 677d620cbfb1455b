"""A table deleted, with all that is in its folder.

The rule: its log goes first, so that whoever comes between finds no table, and not one whose files are missing.
"""

from __future__ import annotations

from mica.log.paths import LOG
from mica.storage import Storage


def drop(storage: Storage) -> None:
    """Deletes the table at a place, and what else is there. Errors: those of the storage, which leave files that no
    log names."""
    storage.child(LOG).remove()
    storage.remove()
