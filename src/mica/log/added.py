"""The files that a commit adds, as columns.

The rule: a new file is one row of typed columns, from the task that wrote it to the transaction. Only the transaction
turns the row into a log line.
Source: PROTOCOL.md, "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, arrow_array
from mica.log.replay import DELETION_VECTOR, PARTITION_VALUES
from mica.stats import documents

if TYPE_CHECKING:
    from mica.log.snapshot import Snapshot

#: `path` is the URI of the file in the log (`paths.encode_path`), times are in ms since the epoch; null means that the
#: line omits the key.
ADDED = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("partition_values", PARTITION_VALUES),
        pa.field("size", pa.int64()),
        pa.field("modification_time", pa.int64()),
        pa.field("data_change", pa.bool_()),
        pa.field("stats", pa.string()),
        pa.field("tags", pa.map_(pa.string(), pa.string())),
        pa.field("deletion_vector", DELETION_VECTOR),
        # The ids of rows (`row_tracking`); null: the transaction gives them if the table tracks rows.
        pa.field("base_row_id", pa.int64()),
        pa.field("default_row_commit_version", pa.int64()),
        pa.field("clustering_provider", pa.string()),
    ]
)

#: A table with the columns of `ADDED` (others are ignored), or rows of such columns; missing values are null.
Added: TypeAlias = pa.Table | Sequence[Mapping[str, Any]]


def changes_data(files: Added) -> bool:
    """Whether files have rows that no version had: `data_change` is not false (PROTOCOL.md, "Add File")."""
    if isinstance(files, pa.Table):
        return bool(pc.any(pc.fill_null(files.column("data_change"), True)).as_py())
    return any(file.get("data_change") is not False for file in files)


def again(snapshot: Snapshot, indices: np.ndarray) -> pa.Table:
    """Returns files of a version (positions in `snapshot.files`), unchanged, as rows to add again."""
    files = snapshot.files.take(arrow_array(indices))
    known = {**{name: files.column(name) for name in files.column_names}, "stats": snapshot.stats(indices)}
    known |= {"tags": snapshot.tags(indices), "data_change": pa.nulls(len(indices), pa.bool_())}
    ids = snapshot.file_ids(indices)
    known |= {name: pc.struct_field(ids, name) for name in ("base_row_id", "default_row_commit_version")}
    known["clustering_provider"] = snapshot.clustering_providers(indices)
    return pa.table([known[name] for name in ADDED.names], schema=ADDED)


def with_vectors(
    snapshot: Snapshot, indices: NDArray[np.int64], vectors: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Returns files of a version as rows to add again, each with a deletion vector. `tightBounds` becomes false, since
    the bounds may be wider than the remaining rows (PROTOCOL.md, "Per-file Statistics").
    """
    found = []
    for file, vector in zip(rows(again(snapshot, indices)), vectors, strict=True):
        document = documents.read(file["stats"])
        stats = documents.write(document | {"tightBounds": False})
        found.append({**file, "stats": stats, "deletion_vector": vector, "data_change": True})
    return found


def rows(files: Added) -> Iterator[Mapping[str, Any]]:
    """Yields the files one by one."""
    if isinstance(files, pa.Table):
        yield from files.select(ADDED.names).to_pylist(maps_as_pydicts="lossy")
    else:
        yield from files
