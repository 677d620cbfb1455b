"""Which of some strings are equal by a collation, for those who compare bytes: tasks have no ICU.

The rule: a comparator says it once, of all the strings that will meet; then each has the bytes of its class.
"""

from __future__ import annotations

import pyarrow as pa

from mica import compute as pc
from mica.records import dataclass


@dataclass(frozen=True)
class Alike:
    """Strings, each once, and their classes: equal strings have the same (`Comparator.classes`)."""

    strings: pa.Array
    classes: pa.Array

    def of(self, values: pa.Array) -> pa.Array:
        """The classes of strings that are among these; null stays null."""
        return self.classes.take(pc.index_in(values, self.strings))

    def all_of(self, values: pa.Array) -> pa.Array:
        """Every string that is equal to one of these."""
        return self.strings.filter(pc.is_in(self.classes, self.of(values)))
