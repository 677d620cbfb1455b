"""What `_metadata` says of the files of a table themselves: where each is, how large it is, and when it was written.

The rule: all of it is in the log, so a scan can leave out files by it. A file that the table may not read is called as
the log calls it.

Source: Spark SQL reference, "File Metadata".
"""

from __future__ import annotations

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar
from mica.errors import StorageError
from mica.log.paths import as_uri
from mica.storage import Storage


def file_facts(storage: Storage, field: str, paths: pa.Array, sizes: pa.Array, modified: pa.Array) -> pa.Array | None:
    """The values of a field for files with these names (decoded), sizes, and times of modification in ms; None for one
    that differs by row."""
    match field:
        case "file_path":
            return arrow_array([as_uri(_place(storage, path)) for path in paths.to_pylist()], pa.string())
        case "file_name":
            return pc.replace_substring_regex(paths, pattern="(?s)^.*/", replacement="")
        case "file_size" | "file_block_length":
            return sizes
        case "file_block_start":
            return pa.repeat(scalar(0, pa.int64()), len(paths))
        case "file_modification_time":
            return pc.multiply(modified, scalar(1000, pa.int64())).cast(pa.timestamp("us", "UTC"))
    return None


def _place(storage: Storage, path: str) -> str:
    try:
        holder, rel = storage.locate(path)
    except StorageError:
        return path
    return holder.path(rel)
