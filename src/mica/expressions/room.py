"""What an array of texts or bytes has room for.

The rule: an array of Arrow's holds 2 GiB of them. Most of Arrow's functions say so where there is no room; `repeat`
does not, its offsets wrap around, and other texts than the given one would be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from mica.errors import UserError

#: What the offsets of an array count to.
MOST_BYTES = (1 << 31) - 1

#: How Arrow says it where its error has no class of its own.
_TOLD = ("offset overflow", "overflowed binary array capacity")


class NoRoomError(UserError):
    """The values of the rows have no room in one array, which those of fewer rows may have."""

    @classmethod
    def of(cls, what: str) -> NoRoomError:
        """The error, of the values that `what` names."""
        told = f"{what} are more than the 2 GiB that an array of Arrow holds"
        return cls("TOO_LARGE", told, hint="Make the values smaller, or give them to fewer rows at once.")


def repeated(value: pa.Scalar, count: int) -> pa.Array:
    """The constant, once for each row. Errors: TOO_LARGE."""
    if not count:  # of which `repeat` makes no arrays or maps
        return pa.nulls(0, value.type)
    if pa.repeat(value, 1).nbytes * count > MOST_BYTES:
        raise NoRoomError.of(f"{count:,} repetitions of a constant")
    return pa.repeat(value, count)


@contextmanager
def named() -> Iterator[None]:
    """Gives Arrow's errors of no room their name. Errors: TOO_LARGE."""
    try:
        yield
    except pa.ArrowException as e:
        if not is_of_room(e):
            raise
        raise NoRoomError.of("the values of an expression") from e


def is_of_room(error: Exception) -> bool:
    """Whether the error says that the values of the rows have no room in one array."""
    if isinstance(error, NoRoomError | pa.ArrowCapacityError):
        return True
    return isinstance(error, pa.ArrowInvalid) and any(told in str(error) for told in _TOLD)
