"""The expression tree of `where` and of column texts.

The rule: expressions are values, without knowledge of a schema, a file or a row. The parser produces `Column`, `Path`
and `Text`; binding replaces them by `LeafRef` and `Literal`, so later stages handle fewer nodes.

    And Or Not · Compare In IsNull · Cast Call · LeafRef Literal   (bound)
    + Column Path Text                                                   (as read)
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial
from typing import Any

from mica.records import dataclass
from mica.schema.ddl import type_to_ddl
from mica.schema.literals import show
from mica.schema.spelling import quote_if_needed, spelled
from mica.schema.types import DataType
from mica.variant.path import VariantPath


class Op(enum.Enum):
    """A comparison. Its value is the SQL operator."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    SAFE_EQ = "<=>"
    #: NOT <=>: true where exactly one side is null, or both are values that differ.
    DISTINCT = "IS DISTINCT FROM"

    @property
    def negated(self) -> Op:
        """The comparison that is true where this one is false; null stays null (SQL's three-valued logic)."""
        return _NEGATED[self]

    @property
    def flipped(self) -> Op:
        """The same comparison with its sides exchanged."""
        return _FLIPPED.get(self, self)


#: The precedence of the arithmetic operators.
BINDING = {"+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "div": 6}

#: The ends of a text that trim and its kin cut.
_ENDS = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}

_NEGATED = {Op.EQ: Op.NE, Op.LT: Op.GE, Op.GT: Op.LE, Op.SAFE_EQ: Op.DISTINCT}
_NEGATED |= {after: before for before, after in _NEGATED.items()}
_FLIPPED = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}


@dataclass(frozen=True)
class Expr:
    """The base class. `at` is the offset in the parsed text, for errors."""

    at: int = field(default=0, compare=False, kw_only=True)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The expressions inside."""
        return ()


@dataclass(frozen=True)
class Literal(Expr):
    """A constant. Dates are days and timestamps microseconds since the epoch (int), intervals months or microseconds;
    None is NULL."""

    value: Any
    type: DataType
    #: Whether Spark pads it beside a CHAR column: not a value that a query gave.
    padded: bool = field(default=True, kw_only=True)


@dataclass(frozen=True)
class Text(Expr):
    """A literal whose value depends on a time zone: DATE'…', TIMESTAMP'…', TIMESTAMP_NTZ'…'."""

    type: DataType
    text: str


@dataclass(frozen=True)
class Column(Expr):
    """A column, or a field of a struct column: `a`, `a.b.c`."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Path(Expr):
    """A path in a Variant: `v:a.b`. Its type is VARIANT until it is cast."""

    child: Expr
    path: VariantPath

    @property
    def children(self) -> tuple[Expr, ...]:  # noqa: D102
        return (self.child,)


@dataclass(frozen=True)
class Cast(Expr):
    """`child::type`. A value that cannot be cast is an error if the cast is strict, null otherwise.

    `legacy` casts as Spark does without ANSI: integers wrap around, texts are parsed more leniently. `stores`: what an
    assignment adds; it follows ANSI in any session, and takes the fields of structs by their names.
    """

    child: Expr
    type: DataType
    strict: bool = True
    legacy: bool = field(default=False, kw_only=True)
    stores: bool = field(default=False, kw_only=True)

    @property
    def children(self) -> tuple[Expr, ...]:  # noqa: D102
        return (self.child,)


@dataclass(frozen=True)
class Collate(Expr):
    """A string with a collation, by its identifier. `explicit`: written with COLLATE; otherwise the string's own."""

    child: Expr
    collation: str
    explicit: bool = True

    @property
    def children(self) -> tuple[Expr, ...]:  # noqa: D102
        return (self.child,)


@dataclass(frozen=True)
class Call(Expr):
    """An arithmetic operator or a function, by its name in lower case; `negate` is unary minus.

    `type` is the result's type; None until bound. `collation` as in `Compare`.
    """

    name: str
    args: tuple[Expr, ...]
    type: DataType | None = None
    collation: str | None = field(default=None, kw_only=True)
    #: Whether it is no constant to Spark when that pads texts beside a CHAR column.
    late: bool = field(default=False, kw_only=True, compare=False)

    @property
    def children(self) -> tuple[Expr, ...]:  # noqa: D102
        return self.args


@dataclass(frozen=True)
class Compare(Expr):
    """Compares two values; strings by `collation` (an identifier in Spark's spelling), without one by their bytes."""

    op: Op
    left: Expr
    right: Expr
    collation: str | None = field(default=None, kw_only=True)
    #: Whether a text beside a CHAR column gets its blanks before they are compared: not in BETWEEN, as in Spark.
    pads: bool = field(default=True, kw_only=True, compare=False)

    @property
    def children(self) -> tuple[Expr, ...]:  # noqa: D102
        return (self.left, self.right)


@dataclass(frozen=True)
class In(Expr):
    """Whether the child equals one of the values; `negated` is NOT IN. `collation` as in `Compare`."""

    child: Expr
    values: tuple[Expr, ...]
    negated: bool = False
    collation: str | None = field(default=None, kw_only=True)

    @property
    def children(self) -> tuple[Expr, ...]:  # noqa: D102
        return (self.child, *self.values)


@dataclass(frozen=True)
class IsNull(Expr):
    """`IS NULL`, or `IS NOT NULL` when negated; never null itself."""

    child: Expr
    negated: bool = False

    @property
    def children(self) -> tuple[Expr, ...]:  # noqa: D102
        return (self.child,)


@dataclass(frozen=True)
class Not(Expr):
    """Negation: null stays null."""

    child: Expr

    @property
    def children(self) -> tuple[Expr, ...]:  # noqa: D102
        return (self.child,)


@dataclass(frozen=True)
class And(Expr):
    """A conjunction of two or more, evaluated from left to right."""

    parts: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:  # noqa: D102
        return self.parts


@dataclass(frozen=True)
class Or(Expr):
    """A disjunction of two or more, evaluated from left to right."""

    parts: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:  # noqa: D102
        return self.parts


@dataclass(frozen=True)
class LeafRef(Expr):
    """The value of leaf number `index` of a bound expression. `text` is its source text."""

    index: int
    type: DataType
    text: str = field(default="", compare=False)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yields the expression and everything inside it, parents first."""
    todo = [expr]
    while todo:
        found = todo.pop()
        yield found
        todo.extend(reversed(found.children))


def depth(expr: Expr) -> int:
    """Returns the number of nested levels."""
    deepest, todo = 0, [(expr, 1)]
    while todo:
        found, level = todo.pop()
        deepest = max(deepest, level)
        todo.extend((child, level + 1) for child in found.children)
    return deepest


def to_sql(expr: Expr, most: int | None = 10) -> str:
    """Returns SQL for people, as in explain; timestamps and dates are shown in UTC. `most` values of a list are shown;
    None: all of them, so that the text means what the expression does."""
    return _sql(expr, 0, most)


def _sql(expr: Expr, outer: int, most: int | None) -> str:
    """`outer` is the precedence around it: OR 1, AND 2, NOT 3, comparison 4, + 5, * 6, minus 7, cast 8."""
    sql = partial(_sql, most=most)
    match expr:
        case Or(parts):
            text, own = " OR ".join(sql(p, 1) for p in parts), 1
        case And(parts):
            text, own = " AND ".join(sql(p, 2) for p in parts), 2
        case Not(child):
            text, own = f"NOT {sql(child, 3)}", 3
        case Compare(Op.EQ, Call() as call, Literal(bool(value), _)):
            return sql(call if value else Not(call), outer)
        case Compare(op, left, right, collation=collation):
            text, own = f"{sql(left, 5)}{_collate(collation)} {op.value} {sql(right, 5)}", 4
        case In(child, values, negated, collation=collation):
            shown = [sql(v, 0) for v in values[:most]] + (["…"] if len(values) > len(values[:most]) else [])
            text, own = f"{sql(child, 5)}{_collate(collation)} {'NOT ' * negated}IN ({', '.join(shown)})", 4
        case Collate(child, collation):
            return f"{sql(child, 8)}{_collate(collation)}"
        case IsNull(child, negated):
            text, own = f"{sql(child, 5)} IS {'NOT ' * negated}NULL", 4
        case Call(args=(first, *rest), collation=str(collation)):
            return sql(replace(expr, args=(Collate(first, collation), *rest), collation=None), outer)
        case Call(name, (left, right)) if name in BINDING:
            own = BINDING[name]
            text = f"{sql(left, own)} {name.upper()} {sql(right, own + 1)}"
        case Call("&" | "|" | "^" as name, (left, right)):
            text, own = f"{sql(left, 5)} {name} {sql(right, 5)}", 4
        case Call("negate" | "~" as name, (child,)):
            text, own = f"{'~' if name == '~' else '-'} {sql(child, 7)}", 7
        case Call("trim" | "ltrim" | "rtrim" as name, (child, taken)):
            return f"trim({_ENDS[name]} {sql(taken, 0)} FROM {sql(child, 0)})"
        case Call("timestampadd" | "timestampdiff" as name, (Literal(str(unit)), *others)):
            return f"{name}({unit.upper()}, {', '.join(sql(a, 0) for a in others)})"
        case Call(name, (child,)) if name.startswith("extract "):
            return f"extract({name.removeprefix('extract ').upper()} FROM {sql(child, 0)})"
        case Call("like", (child, pattern, *escape)):
            behind = f" ESCAPE {sql(escape[0], 8)}" if escape else ""
            text, own = f"{sql(child, 5)} LIKE {sql(pattern, 5)}{behind}", 4
        case Call("rlike", (child, pattern)):
            text, own = f"{sql(child, 5)} RLIKE {sql(pattern, 5)}", 4
        case Call("[]", (child, place)):
            return f"{sql(child, 8)}[{sql(place, 0)}]"
        case Call(".", (child, Literal(str(name)))):
            return f"{sql(child, 8)}.{quote_if_needed(name)}"
        case Call("concat", args) if len(args) > 1:
            text, own = " || ".join(sql(a, 6) for a in args), 5
        case Call("case", parts):
            branches = zip(parts[:-1:2], parts[1::2], strict=True)
            cases = "".join(f" WHEN {sql(one, 0)} THEN {sql(other, 0)}" for one, other in branches)
            behind = "" if isinstance(parts[-1], Literal) and parts[-1].value is None else f" ELSE {sql(parts[-1], 0)}"
            return f"CASE{cases}{behind} END"
        case Call(name, args):
            return f"{name}({', '.join(sql(a, 0) for a in args)})"
        case Cast(child, type_, strict):
            inner = sql(child, 8)
            return f"{inner}::{type_to_ddl(type_)}" if strict else f"try_cast({inner} AS {type_to_ddl(type_)})"
        case Path(child, path):
            return f"{sql(child, 8)}:{path}"
        case Column(names):
            return spelled(names)
        case LeafRef(text=text):
            return text
        case Text(type_, text):
            return f"{type_to_ddl(type_)}'{text}'"
        case Literal(value, type_):
            return show(value, type_)
        case _:
            raise TypeError(f"{expr!r} is not an expression")
    return f"({text})" if own < outer else text


def _collate(collation: str | None) -> str:
    return "" if collation is None else f" COLLATE {collation.partition('.')[2]}"
