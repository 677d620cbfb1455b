"""Decides whether Spark's own reader may take partition values from the names of directories.

The rule: every file is where its partition values say, and each value is spelled in a way that Spark reads as mica
does. The log stays the only source of the values: a file elsewhere, or a text that can be read in two ways, makes the
answer no. If it is yes, Spark skips directories by itself, however many there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from mica.schema.types import DATE, INTEGER, LONG, STRING, DataType, StructType

#: Names and texts that need no escapes, neither in a directory's name nor in a path of the log.
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_NUMBER = re.compile(r"-?[0-9]+")
_SPELLED: Mapping[DataType, re.Pattern[str]] = {
    STRING: _PLAIN,
    DATE: re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    INTEGER: _NUMBER,
    LONG: _NUMBER,
}
#: The directory of rows without a value.
_NULL = "__HIVE_DEFAULT_PARTITION__"


def told(
    schema: StructType, partition_by: Sequence[str], files: Mapping[tuple[str | None, ...], Iterable[str]]
) -> bool:
    """Whether the directories of `files`, paths relative to the table by partition values, tell their values."""
    if not partition_by or not all(map(_PLAIN.fullmatch, partition_by)):
        return False
    spellings = [_SPELLED.get(schema.field(name).type) for name in partition_by]
    for values, paths in files.items():
        parts = []
        for name, spelling, text in zip(partition_by, spellings, values, strict=True):
            if spelling is None or text == _NULL or (text is not None and not spelling.fullmatch(text)):
                return False
            parts.append(f"{name}={_NULL if text is None else text}")
        directory = "/".join(parts)
        if any(path.rpartition("/")[0] != directory for path in paths):
            return False
    return True
