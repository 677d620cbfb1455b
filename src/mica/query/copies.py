"""Queries whose rows are written as they are read.

The rule: where a query is one table's rows, or what mica computes of them as Spark does, and who writes its rows
neither casts nor shuffles them, mica's tasks read them, because they write them too (`fused`): of Spark's own reader
the JVM has rows that nobody else wants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mica.engines.spark.catalyst import Query
from mica.engines.spark.types import from_spark
from mica.schema.types import StructType

#: Whether rows of these columns are stored as they are. None of a query whose rows are not written.
_STORED: ContextVar[Callable[[StructType], bool] | None] = ContextVar("_STORED", default=None)


@contextmanager
def written(stored: Callable[[StructType], bool]) -> Iterator[None]:
    """The rows of queries are written meanwhile, those of which `stored` is true as they are."""
    token = _STORED.set(stored)
    try:
        yield
    finally:
        _STORED.reset(token)


def are_written() -> bool:
    """Whether the rows of queries are written, once."""
    return _STORED.get() is not None


def are_stored(query: Query) -> bool:
    """Whether the rows of a query may be those of one table, or computed of them, and are written as they are."""
    stored = _STORED.get()
    if stored is None or (query.root.name != "Project" and query.relation_of(query.root) is None):
        return False
    return stored(from_spark(query.schema))
