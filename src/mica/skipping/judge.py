"""A predicate over bounds: might some row make it true?

The one rule of all skipping: *a file, row group or page is skipped only if no row in it can make the predicate
true.* The result is ROWS_CANNOT_MATCH only if that is certain; everything unknown is ROWS_MIGHT_MATCH. Whole
arrays are evaluated at once, one element per file, row group or page. Predicates come without NOT
(`expressions/rewrite.py`).

[l, L] and [r, R] are the intervals of x and y. NaN is above every number. A file with only nulls never matches:

| predicate | rows might match when |
|---|---|
| x < y, x <= y | l < R, l <= R; always if y may be NaN |
| x = y | l <= R and r <= L; always if both may be NaN |
| x <> y | not l = L = r = R; always if one may be NaN |
| x <=> y | x = y might, or both may be null |
| x IS DISTINCT FROM y | x <> y might, or one may be null and the other not |
| x IN (…) | a constant is in [l, L] |
| x NOT IN (…) | no constant is NULL, and not l = L = one of them |
| x IS NULL, x IS NOT NULL | x may be null; x is not all null |
| (x < y) IS NULL, … | x or y may be null |
| x LIKE 'p%', startswith(x, 'p') | l <= p or l begins with p, and p <= L; LIKE 'p%q' as 'p%' |
| x NOT LIKE 'p%' | not both of l and L begin with p |
| f(x) < y, … | as x < y, with f(l) and f(L), where f keeps the order: date_trunc, date_format, year, floor, … |
| x::timestamp < y, … | as x < y, with what `clocks` and `written` make of l and L |
| coalesce(x, y) < z, … | as x < z with the least and the greatest bound of x and y |
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import FALSE, TRUE, arrow_array, scalar
from mica.expressions import lookup
from mica.expressions.bind import type_of
from mica.expressions.calls import apply
from mica.expressions.casts import cast_array
from mica.expressions.coerce import has_bounds, is_exact, is_real
from mica.expressions.compare import Datum, compare, literal
from mica.expressions.plain_values import to_values
from mica.expressions.strings import Pattern
from mica.expressions.tree import And, Call, Cast, Compare, Expr, In, IsNull, LeafRef, Literal, Not, Op, Or
from mica.schema.types import DATE, INTEGRALS, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, Primitive
from mica.skipping import written
from mica.skipping.clocks import Bounds, clocks, instants
from mica.skipping.collated import CollatedVerdicts
from mica.skipping.filled import filled
from mica.skipping.intervals import Interval, unknown

ROWS_MIGHT_MATCH = True
ROWS_CANNOT_MATCH = False
_MIGHT_MATCH, _CANNOT_MATCH = (scalar(answer, pa.bool_()) for answer in (ROWS_MIGHT_MATCH, ROWS_CANNOT_MATCH))

#: Up to this many constants are evaluated one by one over whole arrays; longer lists are searched per file.
_FEW = 8


def judge(
    expr: Expr,
    intervals: Mapping[int, Interval],
    count: int,
    *,
    timezone: str = "UTC",
    other_zones: bool = False,
    collated: CollatedVerdicts | None = None,
) -> pa.BooleanArray:
    """Returns ROWS_MIGHT_MATCH or ROWS_CANNOT_MATCH for each of `count` files; `expr` comes from `rewrite.push_not`.

    `other_zones`: the rows are evaluated by another database of time zones. `collated` evaluates comparisons by a
    collation; the intervals are binary and cannot.
    """
    found = _Judge(intervals, count, timezone, other_zones, collated).predicate(expr)
    found = filled(found, ROWS_MIGHT_MATCH)
    return pa.repeat(found, count) if isinstance(found, pa.Scalar) else found


class _Judge:
    def __init__(
        self,
        intervals: Mapping[int, Interval],
        count: int,
        timezone: str,
        other_zones: bool,
        collated: CollatedVerdicts | None,
    ) -> None:
        self.intervals, self.count, self.collated = intervals, count, collated
        self.timezone, self.other_zones = timezone, other_zones

    def predicate(self, expr: Expr) -> Datum:
        match expr:
            case And(parts):
                return self.fold(parts, pc.and_)
            case Or(parts):
                return self.fold(parts, pc.or_)
            case Literal(value):
                return TRUE if value is True else FALSE
            case Compare() | In() if expr.collation is not None:
                if self.collated is None:
                    return _MIGHT_MATCH
                return self.collated.judge(expr, self.intervals)
            case Compare(Op.EQ, Call() as call, Literal(bool(wanted))) if (like := lookup.pattern_of(call)) is not None:
                return self.matches(self.value(call.args[0]), like, wanted)
            case Compare(left=left) if not isinstance(type_of(left), Primitive):
                return _MIGHT_MATCH  # nested values have no bounds
            case Compare(op, left, right):
                return self.compare(op, self.value(left), self.value(right), type_of(left), type_of(right))
            case In():
                return self.is_in(expr)
            case IsNull(child, negated):
                found = self.value(child)
                return pc.invert(found.all_null) if negated else found.may_be_null
        raise TypeError(f"{expr!r} was not rewritten")

    def fold(self, parts: tuple[Expr, ...], join: Any) -> Datum:
        found = filled(self.predicate(parts[0]), ROWS_MIGHT_MATCH)
        for part in parts[1:]:
            found = join(found, filled(self.predicate(part), ROWS_MIGHT_MATCH))
        return found

    # --- values

    def value(self, expr: Expr) -> Interval:
        match expr:
            case LeafRef(index):
                return self.intervals[index]
            case Literal(value, type_):
                return _constant(value, type_)
            case Cast(child, type_) if _keeps_order(type_of(child), type_, wraps=expr.legacy):
                return self.cast(self.value(child), type_of(child), type_)
            case Cast(child, type_) if type_of(child) == STRING and type_ in written.READ:
                inner = self.value(child)
                low, high = written.times(self.array(inner.low), self.array(inner.high), type_)
                return Interval(low, high, TRUE, inner.all_null)
            case Cast(child, type_):
                inner = self.value(child)
                nothing = unknown(self.count, type_)
                return Interval(nothing.low, nothing.high, nothing.may_be_null, inner.all_null, nothing.may_be_nan)
            case Call("coalesce", args) if has_bounds(type_of(expr)):
                return self.first(args)
            case Call(_, args) if (order := self.ordered_by(expr)) is not None:
                return self.call(expr, args, *order)
        return replace(unknown(self.count, type_of(expr)), may_be_null=self.may_be_null(expr))

    def ordered_by(self, expr: Call) -> tuple[int, bool] | None:
        """The position of the argument in whose order the call's results are, if the others are constants, and whether
        it is the opposite one."""
        function = lookup.FUNCTIONS.get(expr.name)
        if function is None:
            return None
        for at, falls in ((function.monotone, False), (function.falling, True)):
            if at is None or is_real(type_of(expr.args[at])):  # NaN is above every number, and 0 once it is rounded
                continue
            others = [a for i, a in enumerate(expr.args) if i != at]
            constants = [a.value for a in others if isinstance(a, Literal)]
            if len(constants) == len(others) and (function.orders is None or function.orders(*constants)):
                return at, falls
        return None

    def first(self, args: tuple[Expr, ...]) -> Interval:
        """The first of these values that is not null is within the bounds of all that it may be."""
        found = self.value(args[-1])
        for part in map(self.value, reversed(args[:-1])):
            found = _either(part, found)
        return found

    def call(self, expr: Call, args: tuple[Expr, ...], at: int, falls: bool) -> Interval:
        """The function's results for both bounds contain those of all values between them."""
        inner, sides = self.value(args[at]), []
        types = [type_of(a) for a in args]
        function = lookup.FUNCTIONS[expr.name]
        low, high = self.array(inner.low), self.array(inner.high)
        zoned = "timezone" in function.needs  # then it is of wall clocks, which are here those of UTC
        if zoned:
            low, high = self.clocks(low, high)
        if function.domain is not None:
            inside = filled(_within(low, high, *function.domain), False)
            low, high = (pc.if_else(inside, side, scalar(None, side.type)) for side in (low, high))
        for side in (low, high):
            given = [
                literal(a.value, a.type) if isinstance(a, Literal) and i != at else side for i, a in enumerate(args)
            ]
            given[0] = pa.repeat(given[0], self.count) if isinstance(given[0], pa.Scalar) else given[0]
            found, _ = apply(expr, given, types, ansi=False, timezone="UTC")
            sides.append(found)
        low, high = reversed(sides) if falls else sides
        if zoned and type_of(expr) == TIMESTAMP:
            low, high = self.instants(low, high)
        if function.wraps:
            # Where one bound has wrapped around and the other has not, they have changed places.
            sound = filled(compare(Op.LE, low, high, type_of(expr), type_of(expr)), False)
            low, high = (pc.if_else(sound, side, scalar(None, side.type)) for side in (low, high))
        return Interval(low, high, TRUE, inner.all_null, False)

    def may_be_null(self, expr: Expr) -> Datum:
        """Whether a predicate that is used as a value may be null, as in (a = 1) IS NULL: if one of its parts may."""
        match expr:
            case IsNull() | Compare(Op.SAFE_EQ | Op.DISTINCT):
                return FALSE
            case And() | Or() | Not() | Compare() | In():
                found = FALSE
                for part in expr.children:
                    part_is = self.may_be_null(part) if isinstance(part, _PREDICATES) else self.value(part).may_be_null
                    found = pc.or_(found, filled(part_is, True))
                return found
        return TRUE

    def cast(self, inner: Interval, source: DataType, target: DataType) -> Interval:
        low, high = self.array(inner.low), self.array(inner.high)
        if source == TIMESTAMP != target:
            (low, high), source = self.clocks(low, high), TIMESTAMP_NTZ
        into = TIMESTAMP_NTZ if target == TIMESTAMP != source else target
        low, high = (cast_array(side, source, into, "UTC", ansi=True)[0] for side in (low, high))
        if into != target:
            low, high = self.instants(low, high)
        if is_real(target):
            low, high = _finite(low), _finite(high)
        # The cast may fail and so produce nulls where there were none; a NaN is made of a NaN alone.
        return Interval(low, high, TRUE, inner.all_null, inner.may_be_nan)

    # --- comparisons

    def compare(self, op: Op, x: Interval, y: Interval, x_type: DataType, y_type: DataType) -> Datum:
        if op in (Op.GT, Op.GE):
            return self.compare(op.flipped, y, x, y_type, x_type)
        both = pc.invert(pc.or_(x.all_null, y.all_null))
        match op:
            case Op.LT | Op.LE:
                found = TRUE if y.may_be_nan else _known(op, x.low, y.high, x_type, y_type)
            case Op.EQ | Op.SAFE_EQ:
                found = self.might_equal(x, y, x_type, y_type)
            case _:
                found = self.might_differ(x, y, x_type, y_type)
        found = pc.and_(found, both)
        if op is Op.SAFE_EQ:
            return pc.or_(found, pc.and_(x.may_be_null, y.may_be_null))
        if op is Op.DISTINCT:
            one = pc.and_(x.may_be_null, pc.invert(y.all_null))
            other = pc.and_(y.may_be_null, pc.invert(x.all_null))
            return pc.or_(found, pc.or_(one, other))
        return found

    def might_equal(self, x: Interval, y: Interval, x_type: DataType, y_type: DataType) -> Datum:
        if x.may_be_nan and y.may_be_nan:
            return TRUE
        below = _known(Op.LE, x.low, y.high, x_type, y_type)
        return pc.and_(below, _known(Op.LE, y.low, x.high, y_type, x_type))

    def might_differ(self, x: Interval, y: Interval, x_type: DataType, y_type: DataType) -> Datum:
        if x.may_be_nan or y.may_be_nan:
            return TRUE
        one = _certain(x.low, x.high, x_type, x_type)
        other = _certain(y.low, y.high, y_type, y_type)
        same = _certain(x.low, y.low, x_type, y_type)
        return pc.invert(pc.and_(pc.and_(one, other), same))

    def is_in(self, expr: In) -> Datum:
        x, type_ = self.value(expr.child), type_of(expr.child)
        constants = [v for v in expr.values if isinstance(v, Literal)]
        present = [v for v in constants if v.value is not None]
        if expr.negated:
            return self.not_in(x, type_, constants)
        if not present:
            return _CANNOT_MATCH
        if x.may_be_nan and any(isinstance(v.value, float) and math.isnan(v.value) for v in present):
            return pc.invert(x.all_null)
        if len(present) <= _FEW:
            found = _CANNOT_MATCH
            for v in present:
                found = pc.or_(found, self.compare(Op.EQ, x, _constant(v.value, v.type), type_, v.type))
            return found
        values = sorted(v.value for v in present if not (isinstance(v.value, float) and math.isnan(v.value)))
        lows, highs = self.plain(x.low, type_), self.plain(x.high, type_)
        hit = arrow_array([_any_within(values, a, b) for a, b in zip(lows, highs, strict=True)], pa.bool_())
        return pc.and_(hit, pc.invert(x.all_null))

    def not_in(self, x: Interval, type_: DataType, constants: list[Literal]) -> Datum:
        if any(v.value is None for v in constants):
            return _CANNOT_MATCH  # x <> NULL is never true
        if x.may_be_nan:
            return pc.invert(x.all_null)
        excluded = {v.value for v in constants}
        lows, highs = self.plain(x.low, type_), self.plain(x.high, type_)
        only = [a is not None and a == b and a in excluded for a, b in zip(lows, highs, strict=True)]
        return pc.invert(pc.or_(arrow_array(only, pa.bool_()), x.all_null))

    def matches(self, x: Interval, pattern: Pattern, wanted: bool) -> Datum:
        """LIKE and startswith. Strings are ordered by bytes, so all strings with one prefix are contiguous."""
        prefix, some = pattern.prefix, pc.invert(x.all_null)
        constant = literal(prefix, STRING)
        if wanted:
            within = pc.starts_with(x.low, prefix) if not pattern.is_text else FALSE
            below = pc.or_kleene(pc.less_equal(x.low, constant), within)
            found = pc.and_(filled(below, True), filled(pc.greater_equal(x.high, constant), True))
        elif pattern.is_text:
            same = pc.and_(pc.equal(x.low, constant), pc.equal(x.high, constant))
            found = pc.invert(filled(same, False))
        elif pattern.is_prefix:
            every = pc.and_(pc.starts_with(x.low, prefix), pc.starts_with(x.high, prefix))
            found = pc.invert(filled(every, False))
        else:
            return some
        return pc.and_(found, some)

    def clocks(self, low: pa.Array, high: pa.Array) -> Bounds:
        return clocks(low, high, self.timezone, others=self.other_zones)

    def instants(self, low: pa.Array, high: pa.Array) -> Bounds:
        return instants(low, high, self.timezone, others=self.other_zones)

    def array(self, side: Datum) -> pa.Array:
        return pa.repeat(side, self.count) if isinstance(side, pa.Scalar) else side

    def plain(self, side: Datum, type_: DataType) -> list[Any]:
        return to_values(self.array(side), type_)


_PREDICATES = (And, Or, Not, Compare, In, IsNull)


def _either(one: Interval, other: Interval) -> Interval:
    """The values of one interval, and those of the other where these may be null."""
    maybe = filled(one.may_be_null, True)

    def side(own: Datum, given: Datum, outer: Callable[..., Datum]) -> Datum:
        given = given.cast(own.type)
        both = outer(own, given, skip_nulls=False)
        return pc.if_else(one.all_null, given, pc.if_else(maybe, both, own))

    return Interval(
        side(one.low, other.low, pc.min_element_wise),
        side(one.high, other.high, pc.max_element_wise),
        pc.and_(maybe, filled(other.may_be_null, True)),
        pc.and_(one.all_null, other.all_null),
        one.may_be_nan or other.may_be_nan,
    )


def _constant(value: Any, type_: DataType) -> Interval:
    constant, null = literal(value, type_), TRUE if value is None else FALSE
    if isinstance(value, float) and math.isnan(value):
        nothing = literal(None, type_)
        return Interval(nothing, nothing, null, null, True)
    return Interval(constant, constant, null, null, False)


def _known(op: Op, left: Datum, right: Datum, left_type: DataType, right_type: DataType) -> Datum:
    """Compares two bounds; true if one of them is unknown."""
    return filled(compare(op, left, right, left_type, right_type), True)


def _certain(left: Datum, right: Datum, left_type: DataType, right_type: DataType) -> Datum:
    """Whether two bounds are certainly equal; false if one of them is unknown."""
    return filled(compare(Op.EQ, left, right, left_type, right_type), False)


def _any_within(values: list[Any], low: Any, high: Any) -> bool:
    at = 0 if low is None else bisect_left(values, low)
    return at < len(values) and (high is None or values[at] <= high)


def _within(low: pa.Array, high: pa.Array, first: int, last: int) -> pa.Array:
    numbers = pa.int32() if pa.types.is_date(low.type) else pa.int64()  # Arrow casts dates to no other numbers
    least, most = (pc.cast(side.cast(numbers), pa.int64()) for side in (low, high))
    return pc.and_(pc.greater_equal(least, scalar(first)), pc.less_equal(most, scalar(last)))


def _finite(values: pa.Array) -> pa.Array:
    # A bound that overflows to infinity was never written as such; unknown is always sound.
    return pc.if_else(pc.is_finite(values), values, scalar(None, values.type))


def _keeps_order(source: DataType, target: DataType, *, wraps: bool) -> bool:
    """Whether the cast is monotone: then the cast bounds contain the cast values. Integers that wrap around are not; of
    local times see `clocks`."""
    if is_exact(source):
        return (is_exact(target) and not (wraps and target in INTEGRALS)) or is_real(target)
    if is_real(source):
        return is_real(target)
    times = (TIMESTAMP, TIMESTAMP_NTZ, DATE)
    return source in times and target in times
