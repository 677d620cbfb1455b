"""How the results of a call follow its arguments.

The rule: where results rise or fall with each argument while the others stay the same, those of the arguments' bounds
enclose all. Functions say it in their tables; of operators it is

| operator | |
|---|---|
| x + y | rises with both |
| x - y, -x | rises with x, falls with y; falls |
| x * c, x / c, x DIV c | rises with x if the constant c is positive, falls if it is negative |
| a time + - an interval | as numbers, but not a time of day + months: 30 January 12:00 comes before 31 January 10:00 |

What others say is asked of these: `from_unixtime(s, p)` is `date_format(timestamp_seconds(s), p)`, and of a time
`unix_timestamp(t)` is `unix_micros(t) DIV 1000000`, cut towards zero, where `unix_seconds` rounds down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mica.expressions import arithmetic, lookup
from mica.expressions.bind import type_of
from mica.expressions.coerce import TIMES, is_number
from mica.expressions.signatures import FALLS, RISES, UNORDERED
from mica.expressions.tree import Call, Literal
from mica.schema.interval_types import is_interval, of_months
from mica.schema.types import DATE, INTEGRALS, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ

_SECOND, _SECONDS = Literal(1_000_000, LONG), Literal("yyyy-MM-dd HH:mm:ss", STRING)


def directions(call: Call) -> Sequence[int] | None:
    """RISES or FALLS for each argument, anything for constants; None if results follow some argument in no way."""
    function = lookup.FUNCTIONS.get(call.name)
    varying = [i for i, arg in enumerate(call.args) if not isinstance(arg, Literal)]
    constants = [arg.value for arg in call.args if isinstance(arg, Literal)]
    if not varying:
        return None
    if function is None:
        found = _of_operator(call, constants)
    elif len(varying) > 1 and (function.wraps or function.orders is not None):
        return None  # what wraps around might do so more than once
    elif function.orders is None or function.orders(*constants):
        found = (*function.order, *(UNORDERED for _ in call.args[len(function.order) :]))
    else:
        return None
    return None if any(found[i] == UNORDERED for i in varying) else found


def _of_operator(call: Call, constants: Sequence[Any]) -> Sequence[int]:
    name, nothing = arithmetic.TRIED.get(call.name, call.name), (UNORDERED,) * len(call.args)
    if any(isinstance(value, float) and not math.isfinite(value) for value in constants):
        return nothing
    types = [type_of(arg) for arg in call.args]
    spans = [t for t in types if is_interval(t)]
    if spans and (len(constants) != 1 or call.type not in TIMES or (of_months(spans[0]) and call.type != DATE)):
        return nothing
    if not spans and not is_number(type_of(call)):  # the time between two others
        return nothing
    match name:
        case "+":
            return RISES, RISES
        case "-":
            return RISES, FALLS
        case "negate":
            return (FALLS,)
        case "*" if len(constants) == 1:
            return (_sign(constants[0]),) * 2
        case "/" | "div" if isinstance(call.args[1], Literal) and (name == "/" or set(types) <= set(INTEGRALS)):
            return _sign(constants[0]), UNORDERED
    return nothing


def _sign(value: Any) -> int:
    if not value:  # NULL too
        return UNORDERED
    return RISES if value > 0 else FALLS


def plainly(call: Call) -> Call:
    """The same value by functions whose order is known."""
    match call:
        case Call("from_unixtime", (seconds, *pattern)):
            time = Call("timestamp_seconds", (seconds,), TIMESTAMP)
            return Call("date_format", (time, *(pattern or [_SECONDS])), STRING)
        case Call("unix_timestamp", (time, *_)) if type_of(time) in (TIMESTAMP, TIMESTAMP_NTZ):
            return Call("div", (Call("unix_micros", (time,), LONG), _SECOND), LONG)
    return call
