"""The tombstones of a version: files that its log removed and whose bytes may still exist.

The rule: a tombstone names a logical file that is not in the version; of several for one file the newest applies.
They come from the last checkpoint and from the commits since (PROTOCOL.md "Add File and Remove File").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, one_array, to_numpy
from mica.log.actions import parse_line
from mica.log.arrays import typed
from mica.log.checkpoint import PartSource, conform
from mica.log.paths import file_keys
from mica.log.replay import DELETION_VECTOR, PARTITION_VALUES, State
from mica.log.snapshot import Snapshot

#: Without `stats` and `tags`, which tombstones do not need (PROTOCOL.md "Checkpoints").
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", PARTITION_VALUES),
        ("size", pa.int64()),
        ("deletionVector", DELETION_VECTOR),
        # PROTOCOL.md, "Writer Requirements for Row Tracking": also in checkpoints.
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)


def tombstones(snapshot: Snapshot) -> pa.StructArray:
    """Returns the tombstones as `REMOVE`, including expired ones."""
    return snapshot.consistently(_tombstones)


def _tombstones(state: State) -> pa.StructArray:
    recent = [_tombstone(parse_line(line.as_buffer().to_pybytes())) for line in one_array(state.removes["line"])]
    parts = [typed(recent, REMOVE, "remove")]
    for source in state.sources:
        if isinstance(source, PartSource):
            found = source.removes()
            if found is not None and len(found):
                parts.append(conform(found, REMOVE))
    every = pa.concat_arrays(parts)
    if not len(every):
        return every
    keys = file_keys(pc.struct_field(every, "path"), pc.struct_field(every, "deletionVector"))
    alive = file_keys(one_array(state.files["path"]), one_array(state.files["deletion_vector"]))
    # Recent ones come first, so the first of equal keys is the newest.
    _, first = np.unique(to_numpy(pc.dictionary_encode(keys).indices), return_index=True)
    chosen = np.zeros(len(every), bool)
    chosen[first] = True
    return pc.filter(every, pc.and_(pc.invert(pc.is_in(keys, value_set=alive)), arrow_array(chosen)))


def _tombstone(line: Mapping[str, Any]) -> dict[str, Any]:
    action = dict(line["remove"])
    if isinstance(action.get("partitionValues"), dict):
        action["partitionValues"] = list(action["partitionValues"].items())
    return action
