"""What is wrong with a data file that the log names: it is gone, or does not hold what the table's schema says.

The rule: an error names the file, and the column or version, and says who can have done it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mica.errors import CorruptDataError, MicaError, StorageError
from mica.log.feed_columns import COMMIT_VERSION, other_type
from mica.schema.ddl import type_to_ddl
from mica.schema.types import TIMESTAMP, TIMESTAMP_NTZ, StructField
from mica.tasks.parts import FilePart


def gone(name: str, version: int, *, of_commits: bool) -> StorageError:
    """A version of the table names the file, or a commit up to that version does, and it is not there."""
    names = f"a commit up to version {version}" if of_commits else f"version {version} of the table"
    way_out = (
        "Read the changes of later versions only; give a stream a new checkpointLocation, to begin with all rows of "
        "the newest version."
        if of_commits
        else "Open the newest version, or put the file back; `Table.fsck` leaves files out that are lost."
    )
    return StorageError(
        "NOT_FOUND",
        f"{name} is gone: {names} names it",
        hint=f"It was vacuumed or deleted. {way_out}",
        path=name,
        version=version,
    )


@contextmanager
def of_gone(name: str, version: int | None, *, of_commits: bool = False) -> Iterator[None]:
    """Tells by `gone` that the file is not there, where a version of a table names it."""
    try:
        yield
    except StorageError as error:
        if error.code != "NOT_FOUND" or version is None:
            raise
        raise gone(name, version, of_commits=of_commits) from None


def without_ids(name: str) -> CorruptDataError:
    """The table maps columns by id, and the file has none."""
    return CorruptDataError(
        "MISSING_FIELD_ID",
        f"the table maps columns by id, and {name} has no field ids",
        hint="Another writer made the file: rewrite it, or remove it from the table.",
        path=name,
    )


def untracked(name: str) -> CorruptDataError:
    """The table tracks rows, and the log has no ids for those of the file."""
    return CorruptDataError(
        "CORRUPT_LOG",
        f"the log has no ids for the rows of {name}, and the table tracks rows",
        hint="Another writer added the file. Set delta.enableRowTracking to false, or restore the table.",
        path=name,
    )


def in_file(name: str, column: str, error: CorruptDataError) -> CorruptDataError:
    """An error about a column, with the name of the file."""
    return CorruptDataError(error.code, f"{name}: {error.message}", hint=error.hint, path=name, column=column)


def of_other_type(name: str, part: FilePart, column: str, held: object, wanted: StructField) -> MicaError:
    """The file holds `held` where the table's schema has the type of `wanted`."""
    holds = f"holds {held} in the column {column}, which is {type_to_ddl(wanted.type)}"
    version = part.partition.get(COMMIT_VERSION)
    if version is not None:
        return other_type(f"{name}, whose rows version {version} changed, {holds}", path=name, column=column)
    return CorruptDataError(
        "INCOMPATIBLE_TYPE",
        f"{name} {holds}",
        hint="Another writer made or changed the file, or the column: restore the version before that, "
        "rewrite the file, or remove it from the table.",
        path=name,
        column=column,
    )


def beyond(name: str, column: str, wanted: StructField, why: Exception) -> CorruptDataError:
    """The file's type is read as that of `wanted`, which does not have one of its values."""
    hint = "Change the values in the file, or leave the column out."
    if wanted.type in (TIMESTAMP, TIMESTAMP_NTZ):
        hint = "Spark's timestamps have microseconds: round the times in the file, or leave the column out."
    return CorruptDataError(
        "INCOMPATIBLE_TYPE",
        f"{name} holds a value in the column {column} that is no {type_to_ddl(wanted.type)}: {why}",
        hint=hint,
        path=name,
        column=column,
    )
