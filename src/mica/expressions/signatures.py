"""What a function is, and how one whose types follow from its arguments gets them.

The rule: `Resolve` returns the types that the arguments are cast to and the type of the result, or None for what Spark
rejects or is not supported here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

from mica.records import dataclass
from mica.schema.types import DataType

#: Results go with an argument, against it, or neither; equal ones may stand for different arguments.
RISES, FALLS, UNORDERED = 1, -1, 0

#: The types of the arguments, and of the result.
Signature = tuple[tuple[DataType, ...], DataType]


class Asked(NamedTuple):
    """The arguments' types, the values of those that are constants (otherwise None), and whether ANSI applies."""

    types: tuple[DataType, ...]
    values: tuple[Any, ...]
    ansi: bool


Resolve = Callable[[Asked], "Signature | None"]


@dataclass(frozen=True)
class Function:
    """`parameters` are the types of the arguments; the last `optional` of them may be omitted."""

    parameters: tuple[DataType, ...]
    result: DataType
    #: Returns the values, or the values and the mask of rows that fail.
    evaluate: Callable[..., Any]
    optional: int = 0
    #: If all arguments are binary, they stay binary, and a string result becomes binary.
    binary: bool = False
    #: The positions of the arguments that must be constants, and of those that are cast to VARIANT.
    constants: Container[int] = ()
    anything: Container[int] = ()
    #: Whether the last parameter may be repeated any number of times.
    repeats: bool = False
    #: Whether strings are compared by their collation.
    compares: bool = False
    #: Whether it compares or gives elements of arrays, whose collations are not known to it.
    elements: bool = False
    #: Whether only integers (for a LONG) or no values are cast for it.
    exact: bool = False
    #: Whether it has a value where an argument is null.
    of_null: bool = False
    #: Gives the types from those of the arguments, in place of `parameters` and `result`.
    resolve: Resolve | None = None
    #: Whether those that `resolve` gives are cast to as without ANSI, in any session.
    lenient: bool = False
    #: Checks the constants, None for the others. Raises OnlySparkError, or ValueError for what Spark rejects.
    check: Callable[..., None] | None = None
    #: What is passed by name: `ansi`, `types` of the arguments, `result`'s type, the session's `timezone`.
    needs: Sequence[str] = ()
    #: How results follow each argument while the others stay: RISES, FALLS or UNORDERED, as is what is left out.
    order: Sequence[int] = ()
    #: Whether the constants let them; always without.
    orders: Callable[..., bool] | None = None
    #: The unit of NumPy's times in which they do: `month` rises within a year, "Y". None: everywhere.
    within: str | None = None
    #: The numbers between which the argument must be for it: microseconds of times, days of dates.
    domain: tuple[int, int] | None = None
    #: Whether results wrap around, so that one bound alone tells nothing.
    wraps: bool = False
