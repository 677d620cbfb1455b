"""A bound call judged over whole arrays.

The rule: a call of the table of functions and a sum are one thing to whoever asks: arrays in, an array out, and a mask
of the rows on which the result does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from mica.expressions import arithmetic
from mica.expressions.compare import Datum
from mica.expressions.functions import FUNCTIONS
from mica.expressions.tree import Call, to_sql
from mica.schema.ddl import type_to_ddl
from mica.schema.types import DataType


def apply(
    call: Call, args: Sequence[Datum], types: Sequence[DataType], *, ansi: bool, timezone: str
) -> tuple[pa.Array, pa.Array | None]:
    """The values, null where they do not exist, and the mask of rows on which that is an error; the first argument is
    an array.

    Raises ValueError for a pattern of LIKE that is none.
    """
    assert call.type is not None
    if call.name in FUNCTIONS:
        function = FUNCTIONS[call.name]
        found = function.evaluate(*args, timezone) if function.zoned else function.evaluate(*args)
        return found if isinstance(found, tuple) else (found, None)
    if call.name == "negate":
        values, failed = arithmetic.negate(args[0], call.type, ansi=ansi)
    else:
        values, failed = arithmetic.calculate(call.name, args[0], args[1], (types[0], types[1]), call.type, ansi=ansi)
    return values, failed if ansi else None


def failure(call: Call) -> tuple[str, str, str]:
    """Code, reason and way out of a row whose result does not exist."""
    assert call.type is not None
    if call.name in "/%":
        return "DIVIDE_BY_ZERO", f"{to_sql(call)} divides by zero or overflows", "Filter those rows out before it."
    return "ARITHMETIC_OVERFLOW", f"{to_sql(call)} overflows {type_to_ddl(call.type)}", "Cast to a wider type."
