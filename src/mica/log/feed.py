"""The change data feed: which rows each commit inserted, deleted or updated.

Source: PROTOCOL.md, "Change Data Files", "Add CDC File".
"""

from __future__ import annotations

from mica.errors import UserError
from mica.schema.types import StructType

#: The columns that a reader of the feed sees beside those of the table; change files hold the first one.
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)

#: The directory of change files, below the table's root.
DIRECTORY = "_change_data"


def refuse_reserved(schema: StructType) -> None:
    """Refuses a schema with a column that the feed adds by itself, as delta-spark does. Errors: INVALID_NAME."""
    for name in schema.names:
        if name.lower() in COLUMNS:
            raise UserError(
                "INVALID_NAME",
                f"the column {name!r} has a name that the change data feed needs for itself",
                hint="Rename the column, or set delta.enableChangeDataFeed to false.",
                column=name,
            )
