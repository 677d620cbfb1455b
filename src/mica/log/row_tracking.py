"""Row ids: which ids the rows of new files get.

The rule: an id is given once. Every added file has the id of its first row and the version that added it; files that
are added again keep theirs. Rows that are written again keep theirs in two columns of their file, which properties name
(`tasks/leaf_columns.py`). The highest id given is in a domain, which each commit reads and writes anew, so two writers
never give the same ids.

Source: PROTOCOL.md, "Row Tracking", "Row IDs", "Writer Requirements for Row Tracking".
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from mica.arrays import arrow_array
from mica.errors import CorruptDataError
from mica.log import features
from mica.log.actions import Metadata, Protocol
from mica.log.arrays import typed
from mica.log.line_source import LineSource
from mica.properties import ENABLE_ROW_TRACKING, ROW_ID_COLUMN, ROW_VERSION_COLUMN
from mica.stats import documents

#: The domain of the highest row id.
ROW_IDS = "delta.rowTracking"

#: What a file says of its rows.
FILE_IDS = pa.struct([("base_row_id", pa.int64()), ("default_row_commit_version", pa.int64())])
_KEYS = {"base_row_id": "baseRowId", "default_row_commit_version": "defaultRowCommitVersion"}
#: Of a file without ids.
NO_IDS: Mapping[str, None] = dict.fromkeys(_KEYS)
_ADD_IDS = pa.struct([("path", pa.string()), *((key, pa.int64()) for key in _KEYS.values())])

#: The tag of a commit that keeps the ids of all rows that it writes again.
PRESERVED = "delta.rowTracking.preserved"


def keys(file: Mapping[str, Any]) -> dict[str, int]:
    """The ids of a file as an action has them; none if it has none."""
    if file.get("base_row_id") is None:
        return {}
    return {key: file[name] for name, key in _KEYS.items()}


def is_supported(protocol: Protocol) -> bool:
    """Whether files get ids."""
    return features.supports(protocol, "rowTracking")


def is_enabled(metadata: Metadata) -> bool:
    """Whether rows keep their ids when they are rewritten."""
    return ENABLE_ROW_TRACKING.of(metadata.configuration)


def columns(configuration: Mapping[str, str]) -> dict[str, str]:
    """The properties that name the columns of ids in rewritten files, where row tracking is on and they are missing."""
    if not ENABLE_ROW_TRACKING.of(configuration):
        return {}
    wanted = {ROW_ID_COLUMN.name: "_row-id-col-", ROW_VERSION_COLUMN.name: "_row-commit-version-col-"}
    return {name: f"{prefix}{uuid.uuid4()}" for name, prefix in wanted.items() if name not in configuration}


def materialized(metadata: Metadata) -> tuple[str, str] | None:
    """The columns of files that hold the ids and the versions of rows that were written again; None if rows are not
    tracked.
    """
    names = [column.of(metadata.configuration) for column in (ROW_ID_COLUMN, ROW_VERSION_COLUMN)]
    return (str(names[0]), str(names[1])) if is_enabled(metadata) and None not in names else None


def to_write(metadata: Metadata, table: str) -> tuple[str, str] | None:
    """As `materialized`. Errors: CORRUPT_LOG if rows are tracked and the columns have no names."""
    found = materialized(metadata)
    if found is None and is_enabled(metadata):
        raise CorruptDataError(
            "CORRUPT_LOG",
            f"{table} tracks rows (delta.enableRowTracking=true), and {ROW_ID_COLUMN.name} or "
            f"{ROW_VERSION_COLUMN.name} is missing",
            hint="Restore the table's metadata, or set delta.enableRowTracking to false.",
        )
    return found


def highest(domain: str | None) -> int:
    """The highest id that was given; -1 if there is none. Errors: INVALID_DOMAIN."""
    if domain is None:
        return -1
    try:
        found = orjson.loads(domain)["rowIdHighWaterMark"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        found = None
    if not isinstance(found, int):
        raise CorruptDataError("INVALID_DOMAIN", f"the domain {ROW_IDS} is {domain!r}", hint="Restore the log.")
    return found


def numbered(files: Iterable[Mapping[str, Any]], last: int, version: int) -> tuple[Sequence[Mapping[str, Any]], int]:
    """The files with their ids, and the highest id that is given then: files that come back from before the feature was
    dropped may have higher ones than the log knows of. Errors: MISSING_STATISTICS."""
    found = [(file, file.get("base_row_id")) for file in files]
    last = max([last, *(first + _rows(file, first > last) - 1 for file, first in found if first is not None)])
    made = list[Mapping[str, Any]]()
    for file, first in found:
        if first is None:
            made.append({**file, "base_row_id": last + 1, "default_row_commit_version": version})
            last += _rows(file, needed=True)
        else:
            made.append(file)
    return made, last


def _rows(file: Mapping[str, Any], needed: bool) -> int:
    rows = documents.values(file.get("stats")).get("numRecords")
    if isinstance(rows, int):
        return rows
    if needed:
        raise CorruptDataError(
            "MISSING_STATISTICS",
            f"the row count of {file['path']} is not known, and its rows need ids",
            path=file["path"],
        )
    return 1


def written(last: int) -> str:
    """The content of the domain."""
    return orjson.dumps({"rowIdHighWaterMark": last}).decode()


def ids_of(source: Any, rows: np.ndarray) -> pa.Array:
    """The ids of files, from the commit lines or the checkpoint part that holds them; for `Snapshot.file_ids`."""
    if not isinstance(source, LineSource):
        found = [source.add_column(key) for key in _KEYS.values()]
        taken = [
            pa.nulls(len(rows), pa.int64()) if c is None else c.take(arrow_array(rows)).cast(pa.int64()) for c in found
        ]
        return pa.StructArray.from_arrays(taken, fields=list(FILE_IDS))
    lines = (orjson.loads(line.as_buffer().to_pybytes())["add"] for line in source.lines(rows))
    ids = typed([{key: add.get(key) for key in _ADD_IDS.names} for add in lines], _ADD_IDS, "add")
    return pa.StructArray.from_arrays([ids.field(key) for key in _KEYS.values()], fields=list(FILE_IDS))
