"""Evaluates a bound expression over rows.

The rule: a row matches if the predicate is true for it, as Spark evaluates it: three-valued logic, AND and OR from left
to right. A strict cast that fails is an error only on rows where it is evaluated: those that the earlier operands of
the same AND or OR have not decided. The conjuncts of a predicate are filters in sequence, as in Spark's FilterExec: a
row for which one is null does not reach the next.

Functions and casts are imported with the first of them: most predicates compare columns with constants.

Source: Spark SQL reference, "Null Semantics"; Spark's And, Or and In for what is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import FALSE, scalar
from mica.errors import UserError
from mica.expressions import codes, lookup, set_field
from mica.expressions.bind import BoundExpr, Leaf, type_of
from mica.expressions.collations import in_process, refuse_in_process
from mica.expressions.compare import Datum, compare, is_in, literal
from mica.expressions.room import is_of_room, named, repeated
from mica.expressions.tree import And, Call, Cast, Compare, Expr, In, IsNull, LeafRef, Literal, Not, Op, Or, to_sql
from mica.schema.arrow import to_arrow_type
from mica.schema.ddl import type_to_ddl
from mica.schema.literals import show_date, show_timestamp
from mica.schema.types import VARIANT, DataType

#: Why a row has no value: code, reason, hint, and Spark's name for it where the code does not say it.
Failure = tuple[str, str, str, "str | None"]


class RowError(UserError):
    """An expression that fails on a row: the reason, and the leaf whose cast failed, or the value."""

    def __init__(
        self,
        code: str,
        what: str,
        row: int,
        *,
        hint: str,
        condition: str | None = None,
        leaf: Leaf | None = None,
        value: str | None = None,
    ) -> None:
        super().__init__(code, f"{what}: in row {row} of the batch", hint=hint, row=row, condition=condition)
        self.what, self.leaf, self.value = what, leaf, value

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild, (_, *rest) = super().__reduce__()
        return rebuild, (UserError, *rest)


def filter_rows(
    bound: BoundExpr, leaves: pa.RecordBatch | Sequence[pa.Array], *, num_rows: int | None = None
) -> pa.BooleanArray:
    """Returns the mask of rows for which the predicate is true; it has no nulls.

    `leaves` holds the columns of `bound.leaves` in their order, as the kernel's scan returns them: one for a plain
    value or a partition column, two for a path (the values, and the mask of failed casts). `num_rows` is required if
    the predicate has no leaves.
    Errors: INVALID_CAST if a strict cast fails on a row where it is evaluated, TOO_LARGE if the values of the rows have
    no room in one array.
    """
    rows = _Rows(bound, leaves, num_rows)
    passing: pa.BooleanArray | None = None
    for part in bound.parts:
        with named():
            found = rows.as_array(rows.judge(part, passing), pa.bool_())
        found = pc.fill_null(found, FALSE) if found.null_count else found
        passing = found if passing is None else pc.and_(passing, found)
    return passing


def evaluate(bound: BoundExpr, leaves: pa.RecordBatch | Sequence[pa.Array], *, num_rows: int | None = None) -> pa.Array:
    """Returns the values of any bound expression, one per row. Leaves and errors as in `filter_rows`."""
    rows = _Rows(bound, leaves, num_rows)
    with named():
        return rows.as_array(rows.judge(bound.expr, None), to_arrow_type(bound.type))


class _Rows:
    def __init__(self, bound: BoundExpr, leaves: pa.RecordBatch | Sequence[pa.Array], num_rows: int | None) -> None:
        self.bound = bound
        columns = leaves.columns if isinstance(leaves, pa.RecordBatch) else list(leaves)
        self.values: list[pa.Array] = []
        self.failed: list[pa.Array | None] = []
        at = 0
        for leaf in bound.leaves:
            values = columns[at]
            wanted = to_arrow_type(leaf.type)
            if leaf.type != VARIANT and values.type != wanted and not isinstance(values, pa.DictionaryArray):
                values = values.cast(wanted)
            self.values.append(values)
            self.failed.append(None if leaf.path is None else columns[at + 1])
            at += 1 if leaf.path is None else 2
        if at != len(columns):
            raise ValueError(f"the leaves need {at} columns, got {len(columns)}")
        own = leaves.num_rows if isinstance(leaves, pa.RecordBatch) else len(columns[0]) if columns else 0
        self.count = own if num_rows is None else num_rows

    def judge(self, expr: Expr, asked: pa.Array | None) -> Datum:
        """Returns the values of the expression; `asked` masks the rows that need them, None means all."""
        match expr:
            case Literal(value, type_):
                return literal(value, type_)
            case Compare() | In() if (coded := codes.compared(expr)) is not None and codes.worth(self.values[coded]):
                return self.over_dictionary(expr, coded, asked)
            case LeafRef(index):
                return self.leaf(index, asked)
            case And(parts):
                return self.connect(parts, asked, pc.and_kleene, decided=False)
            case Or(parts):
                return self.connect(parts, asked, pc.or_kleene, decided=True)
            case Not(child):
                return pc.invert(self.judge(child, asked))
            case IsNull(child, negated):
                values = self.judge(child, asked)
                return pc.is_valid(values) if negated else pc.is_null(values)
            case Compare():
                return self.compare(expr, asked)
            case In(child, values, negated):
                wanted = [(in_process(v.value, expr.collation), v.type) for v in values if isinstance(v, Literal)]
                found = in_process(self.judge(child, asked), expr.collation)
                found = is_in(found, type_of(child), *map(list, zip(*wanted, strict=True)))
                return pc.invert(found) if negated else found
            case Cast():
                return self.cast(expr, asked)
            case Call("case" | "coalesce" as name, parts):
                from mica.expressions.conditionals import evaluate_case, evaluate_coalesce

                chosen = evaluate_case if name == "case" else evaluate_coalesce
                return chosen(parts, asked, self.count, self.judge)
            case Call(set_field.NAME, (struct, Literal(str(name)), value)):
                structs = self.as_array(self.judge(struct, asked), to_arrow_type(type_of(struct)))
                values = self.as_array(self.judge(value, asked), to_arrow_type(type_of(value)))
                return set_field.replaced(structs, name, values)
            case Call():
                return self.call(expr, asked)
        raise TypeError(f"{expr!r} is not bound")

    def compare(self, expr: Compare, asked: pa.Array | None) -> Datum:
        a = self.judge(expr.left, asked)
        null_safe = expr.op in (Op.SAFE_EQ, Op.DISTINCT)
        b = self.judge(expr.right, asked if null_safe else self.with_value(a, expr.right, asked))
        a, b = (in_process(side, expr.collation) for side in (a, b))
        if isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar):
            a = repeated(a, self.count)
        return compare(expr.op, a, b, type_of(expr.left), type_of(expr.right))

    def with_value(self, first: Datum, expr: Expr, asked: pa.Array | None) -> pa.Array | None:
        """`asked` without the rows where `first` is null: Spark does not evaluate the other side there."""
        if not isinstance(first, pa.Array) or not first.null_count or isinstance(expr, Literal):
            return asked
        valid = pc.is_valid(first)
        return valid if asked is None else pc.and_(asked, valid)

    def with_divisor(self, divisor: Datum, asked: pa.Array | None) -> pa.Array | None:
        """`asked` without the rows where a divisor is 0: without ANSI Spark does not evaluate the other side there."""
        zero = pc.equal(divisor, scalar(0, divisor.type))
        if isinstance(zero, pa.Scalar):
            return pa.repeat(FALSE, self.count) if zero.as_py() else asked
        if not zero.true_count:
            return asked
        other = pc.fill_null(pc.invert(zero), FALSE)
        return other if asked is None else pc.and_(asked, other)

    def call(self, expr: Call, asked: pa.Array | None) -> pa.Array:
        from mica.expressions.arithmetic import DIVISIONS
        from mica.expressions.calls import apply, failure

        refuse_in_process(expr)
        # Spark evaluates the divisor first.
        first, *others = reversed(expr.args) if expr.name in DIVISIONS else expr.args
        values = [self.judge(first, asked)]
        rest = self.with_divisor(values[0], asked) if expr.name in DIVISIONS and not self.bound.ansi else asked
        # Spark evaluates every argument of these, whatever is null.
        all_asked = expr.name == "concat" or (expr.name in lookup.FUNCTIONS and lookup.FUNCTIONS[expr.name].of_null)
        values += [self.judge(o, rest if all_asked else self.with_value(values[0], o, rest)) for o in others]
        args = values[::-1] if expr.name in DIVISIONS else values
        if isinstance(args[0], pa.Scalar):
            args[0] = repeated(args[0], self.count)
        types, bound = [type_of(a) for a in expr.args], self.bound
        try:
            found, failed = apply(expr, args, types, ansi=bound.ansi, timezone=bound.timezone)
        except ValueError as e:  # a pattern that is too long for Arrow
            if is_of_room(e):
                raise
            raise UserError("INVALID_EXPRESSION", str(e)) from e
        if failed is not None:
            self.raise_on(failed, asked, partial(failure, expr))
        return found

    def connect(self, parts: tuple[Expr, ...], asked: pa.Array | None, join: Any, *, decided: bool) -> Datum:
        """A false decides AND, a true decides OR; only undecided rows go on to the next operand."""
        found = self.judge(parts[0], asked)
        for part in parts[1:]:
            open_rows = pc.fill_null(pc.invert(found) if decided else found, True)
            if isinstance(open_rows, pa.Scalar):
                open_rows = pa.repeat(open_rows, self.count)
            if asked is not None:
                open_rows = pc.and_(open_rows, asked)
            found = join(found, self.judge(part, open_rows))
        return found

    def leaf(self, index: int, asked: pa.Array | None) -> pa.Array:
        self.refuse_leaf(index, asked)
        if isinstance(self.values[index], pa.DictionaryArray):
            self.values[index] = self.values[index].dictionary_decode()
        return self.values[index]

    def refuse_leaf(self, index: int, asked: pa.Array | None) -> None:
        failed, leaf = self.failed[index], self.bound.leaves[index]
        if failed is not None and leaf.strict:
            self.raise_on(failed, asked, lambda: _not_cast(leaf.name, VARIANT, leaf.type), leaf=leaf)

    def over_dictionary(self, expr: Expr, index: int, asked: pa.Array | None) -> Datum:
        self.refuse_leaf(index, asked)
        values = self.values[index]
        once = copy(self)
        once.values, once.failed, once.count = list(self.values), [None] * len(self.failed), len(values.dictionary)
        once.values[index] = values.dictionary
        return codes.spread(once.as_array(once.judge(expr, None), pa.bool_()), values.indices)

    def cast(self, expr: Cast, asked: pa.Array | None) -> Datum:
        from mica.expressions.casts import cast_array

        values = self.judge(expr.child, asked)
        if isinstance(values, pa.Scalar):
            values = repeated(values, self.count)
        source = type_of(expr.child)
        zone, ansi = self.bound.timezone, not expr.legacy
        found, failed = cast_array(values, source, expr.type, zone, ansi=ansi, by_name=expr.stores)
        if failed is not None and expr.strict:
            self.raise_on(failed, asked, lambda: _not_cast(to_sql(expr.child), source, expr.type), values=values)
        return found

    def raise_on(
        self,
        failed: pa.Array,
        asked: pa.Array | None,
        failure: Callable[[], Failure],
        *,
        leaf: Leaf | None = None,
        values: Any = None,
    ) -> None:
        """Raises what `failure` returns, if a row failed that is asked for."""
        wrong = failed if asked is None or not failed.true_count else pc.and_(failed, asked)
        if not wrong.true_count:
            return
        row = pc.index(wrong, True).as_py()
        code, what, hint, condition = failure()
        shown = None if values is None or pa.types.is_nested(values.type) else _shown(values[row])
        raise RowError(code, what, row, hint=hint, condition=condition, leaf=leaf, value=shown).at_rows(wrong)

    def as_array(self, found: Datum, type_: pa.DataType) -> pa.Array:
        if isinstance(found, pa.Scalar):
            return pa.nulls(self.count, type_) if not found.is_valid else repeated(found, self.count)
        return found


def _shown(value: pa.Scalar) -> str:
    if pa.types.is_date(value.type):
        return show_date(value.value)
    # Spark's times go beyond the years that Python has.
    return show_timestamp(value.value) if pa.types.is_timestamp(value.type) else repr(value.as_py())


def _not_cast(shown: str, source: DataType, wanted: DataType) -> Failure:
    from mica.expressions.casts import condition_of

    hint = "Use try_variant_get or try_cast to get NULL where a value has another type."
    return "INVALID_CAST", f"{shown} cannot be cast to {type_to_ddl(wanted)}", hint, condition_of(source, wanted)
