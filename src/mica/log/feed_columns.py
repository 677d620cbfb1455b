"""What the change data feed adds to a table: columns, and a directory (PROTOCOL.md, "Change Data Files")."""

#: The columns that a reader of the feed sees beside those of the table; change files hold the first one.
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)

#: The directory of change files, below the table's root.
DIRECTORY = "_change_data"
