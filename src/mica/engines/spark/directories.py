"""Decides whether Spark's own reader may take partition values from the names of directories.

The rule: every file is where its partition values say, and each value is spelled in a way that Spark reads as mica
does. The log stays the only source of the values: a file elsewhere, or a text that can be read in two ways, makes the
answer no. If it is yes, Spark skips directories by itself, however many there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from mica.arrays import arrow_array
from mica.errors import MicaError
from mica.schema.types import DATE, INTEGER, LONG, STRING, StructType
from mica.stats.partition import format_values, parse_values

#: Names and texts that need no escapes, neither in a directory's name nor in a path of the log.
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
#: Types whose values stand in names as they are.
_TOLD = (STRING, DATE, INTEGER, LONG)
#: The directory of rows without a value.
_NULL = "__HIVE_DEFAULT_PARTITION__"


def told(
    schema: StructType, partition_by: Sequence[str], files: Mapping[tuple[str | None, ...], Iterable[str]]
) -> bool:
    """Whether the directories of `files`, paths relative to the table by partition values, tell their values."""
    if not partition_by or not files or not all(map(_PLAIN.fullmatch, partition_by)):
        return False
    for name, texts in zip(partition_by, zip(*files, strict=True), strict=True):
        kind = schema.field(name).type
        if kind not in _TOLD or any(text == _NULL or (text and not _PLAIN.fullmatch(text)) for text in texts):
            return False
        given = arrow_array(texts, pa.string())
        try:
            # The text of no value, and what Spark reads as another one or not at all, is spelled otherwise.
            if not format_values(parse_values(given, kind), kind).equals(given):
                return False
        except MicaError:
            return False  # whoever reads the value says what it lacks
    for values, paths in files.items():
        named = zip(partition_by, values, strict=True)
        directory = "/".join(f"{name}={_NULL if text is None else text}" for name, text in named)
        if any(path.rpartition("/")[0] != directory for path in paths):
            return False
    return True
