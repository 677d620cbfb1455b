"""Finds files whose Variants hold only types that Spark's Variants have.

The rule: Spark's own reader gets a file only if its writer vouches for every value. mica does so in the tag
`mica.lateTypes` of its files. For other files the footer names the writer: Spark writes no time, no timestamp in
nanoseconds and no UUID, and its reader refuses those that it copied. Other writers may have written such values
anywhere, also in residuals, which have no statistics in the footer.

Source: Delta protocol, "Add File" (`tags`); docs/decisions.md, "Spark".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from mica import threads
from mica.errors import MicaError
from mica.storage import Storage
from mica.tasks.parts import FilePart
from mica.variant import kernel

#: A tag of a file: whether its Variants hold a time, nanoseconds or a UUID ("no"), or may.
TAG = "mica.lateTypes"

#: Key in the footers of the files that Spark writes.
_SPARK_VERSION = "org.apache.spark.version"


def late_tags(may_hold: bool) -> dict[str, str]:
    """The tags of a file that was written."""
    return {} if may_hold else {TAG: "no"}


def may_hold_late_types(storage: Storage, files: Sequence[FilePart], own: Sequence[Mapping[str, str] | None]) -> bool:
    """Whether one of these files, with these tags, may hold values that Spark has no type for."""
    unknown = [file for file, said in zip(files, own, strict=True) if (said or {}).get(TAG) != "no"]
    if not unknown:
        return False
    return not all(threads.each(partial(_by_spark, storage), unknown))


def _by_spark(storage: Storage, file: FilePart) -> bool:
    """Whether Spark wrote the file; False if its footer cannot be read."""
    try:
        reader = kernel.open_file(*storage.locate(file.path), file.size)
    except MicaError:
        return False
    return (reader.created_by or "").startswith("parquet-mr") and _SPARK_VERSION in reader.key_value_metadata
