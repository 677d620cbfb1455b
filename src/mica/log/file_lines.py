"""The log lines of files: `add`, `cdc` and `remove`.

The rule: a key without a value is left out, and what a reader needs of a file that is gone is in its `remove` too.

Source: PROTOCOL.md, "Add File and Remove File", "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mica.log import row_tracking
from mica.log.actions import format_line


def add_line(file: Mapping[str, Any]) -> str:
    """Formats the log line that adds a file, given as a row of `added.ADDED`."""
    action: dict[str, Any] = {
        "path": file["path"],
        "partitionValues": dict(file.get("partition_values") or {}),
        "size": file["size"],
        "modificationTime": file["modification_time"],
        "dataChange": file.get("data_change") is not False,
    }
    if file.get("stats") is not None:
        action["stats"] = file["stats"]
    if file.get("tags"):
        action["tags"] = dict(file["tags"])
    vector = file.get("deletion_vector")
    if vector is not None:
        action["deletionVector"] = {key: value for key, value in vector.items() if value is not None}
    action |= row_tracking.keys(file)
    if file.get("clustering_provider") is not None:
        action["clusteringProvider"] = file["clustering_provider"]
    return format_line("add", action)


def change_line(file: Mapping[str, Any]) -> str:
    """Formats the log line of a change file (PROTOCOL.md, "Add CDC File")."""
    values = dict(file["partition_values"] or {})
    return format_line(
        "cdc", {"path": file["path"], "partitionValues": values, "size": file["size"], "dataChange": False}
    )


def remove_line(
    file: Mapping[str, Any], *, deletion_timestamp: int, data_change: bool, tags: Mapping[str, str] | None
) -> str:
    """Formats the log line that removes a file, given as a row of `snapshot.files`."""
    action: dict[str, Any] = {
        "path": file["path"],
        "deletionTimestamp": deletion_timestamp,
        "dataChange": data_change,
        "extendedFileMetadata": True,
        "partitionValues": dict(file["partition_values"] or {}),
        "size": file["size"],
    }
    if tags:
        action["tags"] = dict(tags)
    vector = file["deletion_vector"]
    if vector is not None:
        action["deletionVector"] = {key: value for key, value in vector.items() if value is not None}
    action |= row_tracking.keys(file)
    return format_line("remove", action)
