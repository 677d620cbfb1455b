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
| f(x) < y, … | as x < y, with f(l) and f(L), where f keeps the order or turns it round: `ordered` |
| x::timestamp < y, … | as x < y, with what `clocks` and `written` make of l and L |
| coalesce(x, y) < z, CASE … END < z | as `choices` takes them apart |
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import FALSE, TRUE, arrow_array, scalar, to_numpy
from mica.expressions import lookup
from mica.expressions.bind import type_of
from mica.expressions.calls import apply
from mica.expressions.casts import cast_array
from mica.expressions.coerce import TIMES, is_exact, is_number, is_real
from mica.expressions.compare import Datum, compare, literal
from mica.expressions.intervals import DAY
from mica.expressions.plain_values import to_values
from mica.expressions.signatures import RISES, Function
from mica.expressions.strings import Pattern
from mica.expressions.time_patterns import FOUR_DIGITS
from mica.expressions.tree import And, Call, Cast, Compare, Expr, In, IsNull, LeafRef, Literal, Not, Op, Or
from mica.schema.types import DATE, INTEGER, INTEGRALS, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, Primitive
from mica.skipping import written
from mica.skipping.choices import PREDICATES, spread
from mica.skipping.clocks import Bounds, clocks, instants
from mica.skipping.collated import CollatedVerdicts
from mica.skipping.filled import filled
from mica.skipping.intervals import Interval, unknown
from mica.skipping.ordered import directions, plainly

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
    found = _Judge(intervals, count, timezone, other_zones, collated).predicate(spread(expr))
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
            case Call() if (order := directions(plain := plainly(expr))) is not None:
                return self.call(plain, order)
        return replace(unknown(self.count, type_of(expr)), may_be_null=self.may_be_null(expr))

    def call(self, expr: Call, order: Sequence[int]) -> Interval:
        """The results for the bounds of the arguments enclose those of all values between them."""
        type_, types = type_of(expr), [type_of(a) for a in expr.args]
        given = {i: self.value(a) for i, a in enumerate(expr.args) if not isinstance(a, Literal)}
        function = lookup.FUNCTIONS.get(expr.name)
        may_be_nan = any(one.may_be_nan for one in given.values())
        if may_be_nan and (function is not None or not is_real(type_)):  # 0 once it is rounded, below all else
            return unknown(self.count, type_)
        moves_days = function is None and type_ == TIMESTAMP  # an interval is added to wall clocks
        zoned = moves_days or (function is not None and "timezone" in function.needs)  # here those of UTC
        bounds = {}
        for i, one in given.items():
            low, high = self.array(one.low), self.array(one.high)
            if zoned:
                low, high = self.clocks(low, high)
            if function is not None:
                low, high = _allowed(low, high, function)
            bounds[i] = (low, high) if order[i] == RISES else (high, low)
        sides = []
        for side in (0, 1):
            args = [bounds[i][side] if i in bounds else self.repeated(a, at=i) for i, a in enumerate(expr.args)]
            # An operator that overflows has no result, with ANSI; some functions wrap around.
            found, _ = apply(expr, args, types, ansi=function is None, timezone="UTC")
            sides.append(found)
        low, high = sides
        if zoned and type_ == TIMESTAMP:
            low, high = self.instants(low, high)
        if is_real(type_):
            low, high = _finite(low), _finite(high)
        if function.wraps if function is not None else type_ in INTEGRALS:
            # Where one bound has wrapped around and the other has not, they have changed places or one is missing.
            low, high = _where(compare(Op.LE, low, high, type_, type_), low, high)
        all_null = reduce(pc.or_, (one.all_null for one in given.values()))
        # Infinite values of one sign have no difference.
        return Interval(low, high, TRUE, all_null, may_be_nan or (is_real(type_) and len(given) > 1))

    def repeated(self, constant: Expr, at: int) -> Datum:
        """A constant; the first argument is an array."""
        assert isinstance(constant, Literal)
        value = literal(constant.value, constant.type)
        return value if at else self.array(value)

    def may_be_null(self, expr: Expr) -> Datum:
        """Whether a predicate that is used as a value may be null, as in (a = 1) IS NULL: if one of its parts may."""
        match expr:
            case IsNull() | Compare(Op.SAFE_EQ | Op.DISTINCT):
                return FALSE
            case And() | Or() | Not() | Compare() | In():
                found = FALSE
                for part in expr.children:
                    part_is = self.may_be_null(part) if isinstance(part, PREDICATES) else self.value(part).may_be_null
                    found = pc.or_(found, filled(part_is, True))
                return found
        return TRUE

    def cast(self, inner: Interval, source: DataType, target: DataType) -> Interval:
        low, high = self.array(inner.low), self.array(inner.high)
        if inner.may_be_nan and not is_real(target):
            return unknown(self.count, target)
        number = is_number(source) or is_number(target)
        if source == TIMESTAMP and not number:
            (low, high), source = self.clocks(low, high), TIMESTAMP_NTZ
        elif target == TIMESTAMP and number:
            low, high = _where(_within_seconds(low, high), low, high)
        if target == STRING:
            low, high = _where(_within(low, high, *(_YEARS if source == DATE else FOUR_DIGITS)), low, high)
        into = TIMESTAMP_NTZ if target == TIMESTAMP != source and not number else target
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


#: The years of four digits in days; the seconds whose microseconds 64 bits hold.
_YEARS = tuple(end // DAY for end in FOUR_DIGITS)
_SECONDS = 9.2e12


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
    return pc.and_(pc.greater_equal(_counts(low), scalar(first)), pc.less_equal(_counts(high), scalar(last)))


def _counts(side: pa.Array) -> pa.Array:
    """The days of dates, or the microseconds of times."""
    numbers = pa.int32() if pa.types.is_date(side.type) else pa.int64()  # Arrow casts dates to no other numbers
    return pc.cast(side.cast(numbers), pa.int64())


def _within_seconds(low: pa.Array, high: pa.Array) -> pa.Array:
    """Whether 64 bits hold the microseconds of all numbers between these."""
    least, most = (side.cast(pa.float64(), safe=False) for side in (low, high))
    return pc.and_(pc.greater_equal(least, scalar(-_SECONDS)), pc.less_equal(most, scalar(_SECONDS)))


def _within_unit(low: pa.Array, high: pa.Array, unit: str) -> pa.Array:
    """Whether dates or clocks are in the same year, month, …: a unit of NumPy's."""
    own = "datetime64[D]" if pa.types.is_date(low.type) else "datetime64[us]"
    counts = (to_numpy(pc.fill_null(_counts(side), 0)) for side in (low, high))
    one, other = (each.astype(own).astype(f"datetime64[{unit}]") for each in counts)
    return pc.and_(arrow_array(one == other), pc.and_(pc.is_valid(low), pc.is_valid(high)))


def _allowed(low: pa.Array, high: pa.Array, function: Function) -> Bounds:
    """The bounds between which the function keeps its order."""
    if function.domain is not None:
        low, high = _where(_within(low, high, *function.domain), low, high)
    if function.within is not None:
        low, high = _where(_within_unit(low, high, function.within), low, high)
    return low, high


def _where(sound: pa.Array, low: pa.Array, high: pa.Array) -> Bounds:
    """The bounds, both unknown elsewhere."""
    found = filled(sound, False)
    low, high = (pc.if_else(found, side, scalar(None, side.type)) for side in (low, high))
    return low, high


def _finite(values: pa.Array) -> pa.Array:
    # A bound that overflows to infinity was never written as such; unknown is always sound.
    return pc.if_else(pc.is_finite(values), values, scalar(None, values.type))


def _keeps_order(source: DataType, target: DataType, *, wraps: bool) -> bool:
    """Whether the cast is monotone: then the cast bounds contain the cast values. Integers that wrap around are not; of
    local times see `clocks`."""
    if is_number(source) and target == TIMESTAMP:  # seconds
        return True
    if is_exact(source):
        return (is_exact(target) and not (wraps and target in INTEGRALS)) or is_real(target)
    if is_real(source):
        return is_real(target) or target in (INTEGER, LONG)  # those do not wrap around
    if source == TIMESTAMP and (target == LONG or is_real(target)):
        return True
    return source in TIMES and target in (*TIMES, STRING)
