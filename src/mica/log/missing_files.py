"""Which files of a version are not there: data files and deletion vectors.

The rule: a file is missing if its store says so when it is asked for it by name; any other error is raised. A listing
only spares the questions about files that it has.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import threads
from mica.arrays import one_array, to_numpy
from mica.log.deletion_vectors import file_of
from mica.log.paths import canonical_keys
from mica.log.snapshot import Snapshot
from mica.records import dataclass
from mica.storage import Storage


@dataclass(frozen=True)
class Missing:
    """A file of the log that cannot be read: its position among the files asked for, its name, and that of the file of
    its deletion vector (None without one); which of the two is missing."""

    at: int
    data: str
    is_data_missing: bool
    vector: str | None
    is_vector_missing: bool


def missing(snapshot: Snapshot, files: pa.Table, listed: pa.Array | None = None) -> list[Missing]:
    """Those of the version's `files` that are not there, or whose deletion vector is not, in their order. `listed` are
    names below the table that a listing had. Names of the answer are full ones, as Spark takes them."""
    paths, descriptors = one_array(files.column("path")), one_array(files.column("deletion_vector"))
    vectors = {
        int(at): file
        for at in np.flatnonzero(to_numpy(descriptors.is_valid()))
        if (file := file_of(snapshot.storage, descriptors[at].as_py())) is not None
    }
    seen = set[str]() if listed is None else set(pc.filter(listed, pc.ends_with(listed, ".bin")).to_pylist())
    # One file has the vectors of many.
    asked = [name for name in dict.fromkeys(vectors.values()) if name not in seen]
    unlisted = np.arange(len(paths))
    if listed is not None:
        unlisted = np.flatnonzero(to_numpy(pc.invert(pc.is_in(canonical_keys(paths), value_set=listed))))
    places = {int(at): snapshot.locate(paths[at].as_py()) for at in unlisted}
    found = threads.each(_is_there, [*places.values(), *map(snapshot.storage.locate, asked)])
    no_data = {at for at, there in zip(places, found, strict=False) if not there}
    no_vector = {name for name, there in zip(asked, found[len(places) :], strict=True) if not there}
    wrong = sorted(no_data | {at for at, name in vectors.items() if name in no_vector})
    return [
        Missing(
            at,
            _full(*snapshot.locate(paths[at].as_py())),
            at in no_data,
            _full(*snapshot.storage.locate(vectors[at])) if at in vectors else None,
            vectors.get(at) in no_vector,
        )
        for at in wrong
    ]


def _is_there(place: tuple[Storage, str]) -> bool:
    storage, name = place
    return storage.exists(name)


def _full(storage: Storage, name: str) -> str:
    return storage.path(name)
