"""The parts of a foreign filter that are certain in Spark's algebra.

The rule: a part is translated only if every row for which the foreign filter is true makes the translation true, too.
Under NOT that must hold the other way round, so there only parts are translated that mean exactly the same.

| part | certain |
|---|---|
| a column beside a constant or a column | of one class: integers and decimals by value, else of one type |
| floats | not under NOT, not beside NaN, not with another column: libraries differ on NaN; constants are exact |
| strings | without a collation: libraries compare bytes; not of CHAR columns, whose constants Spark pads |
| IN | as comparisons, with the nulls of the list as the library treats them; a long list by its range, not under NOT |
| a boolean column, IS NULL, a prefix, a suffix, a part, AND, OR, NOT | the same |
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.errors import MicaError
from mica.expressions.bind import bind
from mica.expressions.coerce import is_exact, is_real
from mica.expressions.collations import collations_of
from mica.expressions.constants import number
from mica.expressions.parse import parse
from mica.expressions.plain_values import to_values
from mica.expressions.tree import And, Call, Cast, Column, Compare, Expr, In, IsNull, Literal, Not, Op, Or, to_sql
from mica.records import dataclass
from mica.scan.scan import Scan
from mica.schema.arrow import from_arrow_type, to_arrow_type
from mica.schema.hidden import field_named
from mica.schema.types import BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, StructType

#: Integers below it are doubles without an error.
_EXACT = 2**53
#: A longer list is pushed by its least and its greatest value: parsing and comparing it costs more than it skips.
MOST = 1000
_PLAIN = (STRING, BINARY, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ)


@dataclass(frozen=True)
class Term:
    """A column or a constant of a foreign filter."""

    expr: Expr
    type: DataType

    @property
    def constant(self) -> bool:
        """Whether it is a constant."""
        return isinstance(self.expr, Literal)


class Terms:
    """Builds the parts of a filter over the columns of a scan; None is what is not certain."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        asked, readable = asked_columns(scan), scan.source.readable
        named = not isinstance(scan.columns, Mapping)
        self.own = {n: Column(field_named(readable, t) or (t,)) if named else parse(t) for n, t in asked.items()}

    def column(self, *names: str) -> Term | None:
        """A column of the scan, or a field of a struct column."""
        first, *inner = names
        if first not in self.own or any(leaf.padded for leaf in self.scan.outputs[first].leaves):
            return None
        expr, type_ = self.own[first], self.scan.outputs[first].type
        for name in inner:
            found = type_.find(name) if isinstance(type_, StructType) else None
            if found is None or not isinstance(expr, Column):
                return None
            expr, type_ = Column((*expr.names, found.name)), found.type
        return Term(expr, type_)

    def compare(self, op: Op, left: Term | None, right: Term | None, *, negated: bool) -> Expr | None:
        """`left op right`."""
        if left is None or right is None or (left.constant and right.constant):
            return None
        if left.constant:
            return self.compare(op.flipped, right, left, negated=negated)
        if is_real(left.type):
            real = _real(left.type, right)
            return None if real is None or negated else Compare(op, left.expr, real)
        exact = is_exact(left.type) and is_exact(right.type)
        if not exact and (left.type != right.type or left.type not in _PLAIN):
            return None
        if isinstance(right.expr, Literal) and right.expr.value is None:
            return None
        return Compare(op, left.expr, right.expr)

    def among(self, of: Term | None, values: pa.Array, *, negated: bool) -> Expr | None:
        """Whether a column has one of the values of an array, nulls aside; of many, whether it is in their range."""
        known = values.drop_null()
        if len(known) <= MOST:
            constants = of_array(known)
            return None if constants is None else self.is_in(of, constants, negated=negated)
        if negated or (pa.types.is_floating(known.type) and pc.any(pc.is_nan(known)).as_py()):  # NaN is beyond each end
            return None
        ends = pc.min_max(known)
        sides = [
            self.compare(op, of, of_arrow(ends[end]), negated=False) for op, end in ((Op.GE, "min"), (Op.LE, "max"))
        ]
        return self.joined(sides, conjunction=True, negated=False)

    def is_in(self, of: Term | None, values: Sequence[Term], *, negated: bool) -> Expr | None:
        """Whether a column has one of the values; no null is among them."""
        if of is None or of.constant or len(values) > MOST:
            return None
        found = []
        for value in values:
            equal = self.compare(Op.EQ, of, value, negated=negated)
            if not isinstance(equal, Compare):
                return None
            found.append(equal.right)
        return In(of.expr, tuple(found)) if found else None

    def is_null(self, of: Term | None, *, wanted: bool) -> Expr | None:
        """`of IS NULL`, or IS NOT NULL."""
        return None if of is None or of.constant else IsNull(of.expr, not wanted)

    def true(self, of: Term | None) -> Expr | None:
        """A boolean column or constant as a filter."""
        if of is None or of.type != BOOLEAN or (isinstance(of.expr, Literal) and of.expr.value is None):
            return None
        return of.expr

    def matches(self, function: str, of: Term | None, text: str) -> Expr | None:
        """Whether a string column begins (`startswith`) or ends with a text, or contains it."""
        return None if of is None or of.type != STRING else Call(function, (of.expr, Literal(text, STRING)))

    def joined(self, parts: Iterable[Expr | None], *, conjunction: bool, negated: bool) -> Expr | None:
        """AND or OR; a part of an AND may be missing, under NOT one of an OR."""
        every = list(parts)
        known = [p for p in every if p is not None]
        if len(known) < len(every) and conjunction is negated:
            return None
        if len(known) < 2:
            return known[0] if known else None
        return And(tuple(known)) if conjunction else Or(tuple(known))

    def conjuncts(self, found: Expr | None) -> list[str]:
        """The texts of the parts that the scan takes: what it would refuse or read otherwise is left out."""
        if found is None or self.scan.limit is not None:  # a limit comes before the filter
            return []
        if isinstance(found, And):
            return [text for part in found.parts for text in self.conjuncts(part)]
        text = self._text(found)
        return [] if text is None else [text]

    def _text(self, part: Expr) -> str | None:
        scan = self.scan
        options: dict[str, Any] = {"ansi": scan.ansi, "timezone": scan.timezone}
        options["partition_columns"] = scan.source.partition_by
        try:
            text = to_sql(part, most=None)
            bound, again = (bind(given, scan.source.readable, **options) for given in (part, text))
        except MicaError:
            return None
        same = bound.expr == again.expr and bound.leaves == again.leaves
        return text if same and not collations_of(bound.expr) else None


def asked_columns(scan: Scan) -> dict[str, str]:
    """What was given for each output of a scan: its text, or its name in a list, which may name a hidden field."""
    if isinstance(scan.columns, Mapping):
        return dict(scan.columns)
    return dict(zip(scan.outputs, scan.columns or scan.outputs, strict=True))


def constant(value: Any, type_: DataType) -> Term:
    """A constant; dates and times are numbers, as in `Literal`. Those of exact types are spelled as in SQL."""
    if is_exact(type_) and value is not None:
        spelled = number(f"{value:f}" if isinstance(value, Decimal) else str(value), 0)
        return Term(spelled, spelled.type)
    return Term(Literal(value, type_), type_)


def of_array(values: pa.Array) -> list[Term] | None:
    """Constants from an Arrow array; None if Delta has no such type or not each of the values. Errors: INVALID_TYPE."""
    type_ = from_arrow_type(values.type)
    try:
        # No value becomes one of Python's, which has no dates beyond the year 9999.
        array = values.cast(to_arrow_type(type_))
    except pa.ArrowInvalid:
        return None
    return [constant(value, type_) for value in to_values(array, type_)]


def of_arrow(value: pa.Scalar) -> Term | None:
    """A constant from an Arrow scalar, as `of_array`."""
    found = of_array(pa.repeat(value, 1))
    return None if found is None else found[0]


def of_python(value: Any) -> Term | None:
    """A constant from a Python value; None for a null and what has no type of Delta's."""
    if value is None:
        return None
    try:
        return of_arrow(pa.scalar(value))
    except (pa.ArrowInvalid, MicaError):
        return None


def negation(part: Expr | None) -> Expr | None:
    """NOT part."""
    return None if part is None else Not(part)


def _real(type_: DataType, right: Term) -> Expr | None:
    """The constant that a float column is compared with, if every library takes the same one."""
    if not isinstance(right.expr, Literal) or right.expr.value is None:
        return None
    value = right.expr.value
    numeric = is_real(right.type) or is_exact(right.type)
    if not numeric or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and abs(value) > _EXACT:
        return None
    real = float(value)
    if not math.isfinite(real):
        return None
    if type_ != DOUBLE:
        try:
            if struct.unpack("<f", struct.pack("<f", real))[0] != real:
                return None
        except OverflowError:
            return None
    return Cast(Literal(repr(real), STRING), DOUBLE)
