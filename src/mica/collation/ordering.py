"""The comparator of strings that skipping needs, as an interface: `engines` have the implementations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa


class Ordering(Protocol):
    """A comparator of strings."""

    @property
    def version(self) -> str:
        """The version of its collations."""

    def judges(self, collation: str) -> bool:
        """Whether it supports a collation (an identifier in Spark's spelling)."""

    def signs(self, columns: Sequence[pa.Array], asked: Sequence[tuple[int, str, str]]) -> list[pa.Array]:
        """Returns for each (number of a column, SQL name, constant): -1, 0 or 1 per string, null for null."""
