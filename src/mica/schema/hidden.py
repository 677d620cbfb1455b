"""Columns that rows have beside those of the schema: `_metadata`, as Spark names it.

The rule: a hidden column is found by its name and never listed, so `*` and messages leave it out. A column of the table
with that name hides it. Its fields come from the log (a file's path, size and time), from the place of a row, or from
columns of files that no schema names (`log/row_tracking.py`). mica's tasks may read any share of a file, so its block
is the whole file.

Source: Spark SQL reference, "File Metadata"; PROTOCOL.md, "Row Tracking".
"""

from __future__ import annotations

from mica.records import dataclass
from mica.schema.spelling import quote_if_needed
from mica.schema.types import LONG, STRING, TIMESTAMP, DataType, StructField, StructType

METADATA = "_metadata"

#: Fields of rows: the number in the file, the stable id, and the version that inserted or last updated it.
ROW_INDEX = (METADATA, "row_index")
ROW_ID, ROW_VERSION = (METADATA, "row_id"), (METADATA, "row_commit_version")

_TYPES = {
    "file_path": STRING, "file_name": STRING, "file_size": LONG, "file_block_start": LONG, "file_block_length": LONG,
    "file_modification_time": TIMESTAMP, ROW_INDEX[1]: LONG, ROW_ID[1]: LONG, ROW_VERSION[1]: LONG,
}  # fmt: skip
_COLUMN = StructField(METADATA, StructType(tuple(StructField(name, type_) for name, type_ in _TYPES.items())))
_WITHOUT_IDS = StructField(METADATA, StructType(tuple(StructField(name, type_) for name, type_ in _TYPES.items()
                                                      if name not in (ROW_ID[1], ROW_VERSION[1]))))  # fmt: skip
FIELDS = tuple((METADATA, name) for name in _TYPES)


@dataclass(frozen=True)
class Readable(StructType):
    """The columns of a table, and the hidden one."""

    def find(self, name: str) -> StructField | None:
        """As of a schema; the hidden column where it has none of that name."""
        found = StructType.find(self, name)
        return _COLUMN if found is None and name.lower() == METADATA else found


def shown(schema: StructType, *, ids: bool = True) -> StructType:
    """The columns of a table with the hidden one in their list, which a column of its name hides; `ids`: with those of
    rows."""
    if schema.find(METADATA) is not None:
        return schema
    return StructType((*schema.fields, _COLUMN if ids else _WITHOUT_IDS))


def spelled(schema: StructType) -> dict[str, str]:
    """The columns of a list, as expressions: of the hidden one (`shown`) all of its fields."""
    return {f.name: _all_of(f.type) if is_shown(f) else quote_if_needed(f.name) for f in schema.fields}


def is_shown(column: StructField) -> bool:
    """Whether a column of a list is the hidden one."""
    return column in (_COLUMN, _WITHOUT_IDS)


def _all_of(kind: DataType) -> str:
    names = kind.names if isinstance(kind, StructType) else ()
    return f"struct({', '.join(f'{METADATA}.{name} AS {name}' for name in names)})"


def is_hidden(schema: StructType, column: tuple[str, ...]) -> bool:
    """Whether these names lead to a hidden column of a table with this schema."""
    return column[0] == METADATA and StructType.find(schema, METADATA) is None


def field_named(schema: StructType, text: str) -> tuple[str, ...] | None:
    """The names of a field of a hidden column, written with a dot, as in `_metadata.row_id`; else None."""
    names = tuple(text.lower().split("."))
    known = schema.find(text) is None and schema.find(METADATA) is _COLUMN
    return names if known and names in FIELDS else None
