"""What the change data feed adds to a table: columns, and a directory (PROTOCOL.md, "Change Data Files").

The feed has the columns of its last version; `other_type` is the error for a file that fits only an older one.
"""

from __future__ import annotations

from typing import Any

from mica.errors import UserError

#: The columns that a reader of the feed sees beside those of the table; change files hold the first one.
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)

#: The directory of change files, below the table's root.
DIRECTORY = "_change_data"


def other_type(found: str, **context: Any) -> UserError:
    """`found` completes "… in the last version that was asked for"."""
    return UserError(
        "INCOMPATIBLE_TYPE",
        f"{found} in the last version that was asked for",
        hint="The column's type was changed: ask for the versions before and after that apart.",
        **context,
    )
