"""A version's content read a second time, after another writer replaced its checkpoint.

The rule: files keep their order, which plans and scans count by; only where their statistics and other columns are
found changes. Both contents must have the same files.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from mica import compute as pc
from mica.arrays import one_array
from mica.log.paths import file_keys
from mica.log.replay import State


def realigned(before: State, again: State) -> State | None:
    """Returns `again` with its files in the order of `before`; None if it is the content of another version."""
    if _table(before) != _table(again) or before.files.num_rows != again.files.num_rows:
        return None
    places = pc.index_in(_keys(before), value_set=_keys(again))
    return None if places.null_count else replace(again, files=again.files.take(places))


def _table(state: State) -> str | None:
    return None if state.metadata is None else state.metadata.id


def _keys(state: State) -> pa.Array:
    return file_keys(one_array(state.files["path"]), one_array(state.files["deletion_vector"]))
