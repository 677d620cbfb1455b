"""How a function whose types follow from its arguments gets them.

The rule: `Resolve` returns the types that the arguments are cast to and the type of the result, or None for what Spark
rejects or is not supported here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mica.schema.types import DataType

#: The types of the arguments, and of the result.
Signature = tuple[tuple[DataType, ...], DataType]


class Asked(NamedTuple):
    """The arguments' types, the values of those that are constants (otherwise None), and whether ANSI applies."""

    types: tuple[DataType, ...]
    values: tuple[Any, ...]
    ansi: bool


Resolve = Callable[[Asked], "Signature | None"]
