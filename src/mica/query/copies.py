"""The query of a statement that writes its rows.

The rule: where the rows are those of large files, and no more than names and places of columns are changed, mica's
tasks read them, since they write them too; of Spark's own reader the JVM has rows that nobody else wants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mica.engines.spark import fused, reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def copied(query: Callable[[str], DataFrame], text: str) -> DataFrame:
    """The rows of a query that are about to be written."""
    rows = query(text)
    if not fused.is_copy(rows):
        return rows
    with reader.for_tasks():
        rows = query(text)
        _ = rows._jdf  # noqa: SLF001 - the rows of a text are looked for where they are first asked for
    return rows
