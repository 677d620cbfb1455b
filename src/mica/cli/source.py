"""Opens a table or Parquet files named on the command line as a scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mica.cli.console import storage_options
from mica.errors import StorageError, UserError
from mica.log.opened import snapshot_of
from mica.parquet import read_parquet
from mica.scan.scan import Scan
from mica.table import Table


def scan_of(
    sources: Sequence[str],
    where: str | None,
    columns: Sequence[str] | None,
    *,
    version: int | None = None,
    timestamp: str | None = None,
    options: Sequence[str] | None = None,
    limit: int | None = None,
) -> Scan:
    """A scan of the one table, or of the Parquet files."""
    wanted = named(columns)
    stored = storage_options(options)
    newest = version is None and timestamp is None
    if len(sources) == 1 and sources[0].endswith(".parquet"):
        # A file, or a folder that may be a table: its log is read once.
        if newest:
            return read_parquet(sources[0], columns=wanted, where=where, limit=limit, storage_options=stored)
        try:
            return Table.open(sources[0], version, timestamp, stored).scan(where, wanted, limit)
        except (UserError, StorageError) as e:
            raise e if e.code not in ("TABLE_NOT_FOUND", "NOT_A_DIRECTORY") else _no_versions() from None
    if all(_is_parquet(source, stored) for source in sources):
        if not newest:
            raise _no_versions()
        return read_parquet(list(sources), columns=wanted, where=where, limit=limit, storage_options=stored)
    if len(sources) > 1:
        raise UserError(
            "INVALID_ARGUMENT", f"{len(sources)} tables were named", hint="Name one table, or Parquet files."
        )
    return Table.open(sources[0], version, timestamp, stored).scan(where, wanted, limit)


def _no_versions() -> UserError:
    return UserError("INVALID_ARGUMENT", "a Parquet file has no versions", hint="Name a table.")


def _is_parquet(path: str, stored: Mapping[str, str] | None) -> bool:
    """By the name, which Spark gives to folders too, and a folder may be a table; or by the first bytes of a local file
    with another one."""
    if path.endswith(".parquet"):
        return snapshot_of(path, stored) is None
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def named(columns: Sequence[str] | None) -> dict[str, str] | None:
    """`name`, or `name=expression`; an expression without a name is named by its text."""
    if not columns:
        return None
    found: dict[str, str] = {}
    for text in columns:
        name, equals, expression = text.partition("=")
        if not (equals and name.replace("_", "").isalnum()):
            name = expression = text
        if name in found:
            raise UserError.bad_value("--column", text, f"a name of its own: two columns are called {name}")
        found[name] = expression.strip()
    return found
