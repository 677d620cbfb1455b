"""Texts that ask Spark where a row comes from: input_file_name() and its like.

The rule: Spark's own reader knows. Where mica's kernel has to read, `_metadata` has the names of files; what it has not
is refused: Spark would answer with nothing.
"""

from __future__ import annotations

from mica.engines.spark import reader
from mica.engines.spark.texts import OF_FILES
from mica.errors import UserError
from mica.query.names import words
from mica.scan.scan import Scan
from mica.schema.hidden import is_shown
from mica.schema.types import StructType


def asked(text: str) -> bool:
    """Whether a text has one of the functions."""
    return not OF_FILES.isdisjoint(words(text))


def is_refused(error: UserError, text: str) -> bool:
    """Whether a text was refused because of the functions."""
    return error.code == "UNSUPPORTED_EXPRESSION" and asked(text)


def refuse_metadata(columns: StructType) -> None:
    """Errors: UNSUPPORTED_EXPRESSION for a table whose `_metadata` the text names, too."""
    if any(map(is_shown, columns.fields)):
        raise UserError(
            "UNSUPPORTED_EXPRESSION",
            "the text asks for input_file_name(), or its like, and for _metadata",
            hint="Ask for _metadata.file_path instead of input_file_name().",
        )


def left_to_spark(scan: Scan) -> Scan:
    """The scan, which Spark's own reader runs, or nobody where there are no files. Errors: UNSUPPORTED_EXPRESSION if it
    cannot."""
    reason = reader.reason_for_kernel(scan.reading())
    if reason is None or not scan.kept.num_rows:
        return scan
    raise UserError(
        "UNSUPPORTED_EXPRESSION",
        f"Spark does not read the files of {scan.source.storage} itself, so it has no names for them: {reason}",
        hint="Ask for _metadata.file_path in a text over the table: SELECT _metadata.file_path FROM …",
    )
