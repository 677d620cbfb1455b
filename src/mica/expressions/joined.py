"""Binds expressions over rows of two tables, the target and the source of a merge.

The rule: a column is named by the alias of its side (`t.id`, `s.v:id::string`); a bare name is accepted if only one
side has it. An expression sees both sides or one: a row to insert has no target, a row without a match no source.

The two schemas are bound as two structs of one schema, so that names, paths, types, casts and collations are those of
every other expression. `Condition` cuts ON into what each side decides alone, the equalities that join them, and the
rest.

Source: Spark SQL reference, "MERGE INTO"; "Name Resolution" for columns and aliases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

import pyarrow as pa

from mica.collation.alike import Alike
from mica.errors import UserError
from mica.expressions.bind import BoundExpr, Leaf, bind_value, type_of
from mica.expressions.moments import MOMENTS
from mica.expressions.parse import parse
from mica.expressions.rewrite import leaves_of, rebuilt
from mica.expressions.tree import And, Call, Column, Compare, Expr, LeafRef, Op
from mica.records import dataclass
from mica.schema.ddl import type_to_ddl
from mica.schema.types import BOOLEAN, VOID, Primitive, StructField, StructType

Side = Literal["target", "source"]
BOTH: tuple[Side, ...] = ("target", "source")


@dataclass(frozen=True)
class JoinedExpr:
    """A bound expression over a pair of rows; `sides[i]` is the side that supplies leaf i."""

    bound: BoundExpr
    sides: tuple[Side, ...]

    def leaves(self, side: Side) -> list[Leaf]:
        """The leaves that this side supplies."""
        return [leaf for leaf, own in zip(self.bound.leaves, self.sides, strict=True) if own == side]

    def columns(self, values: Mapping[Side, Mapping[Leaf, Sequence[pa.Array]]]) -> list[pa.Array]:
        """The columns that the expression is evaluated on, given the values of the leaves of each side."""
        pairs = zip(self.bound.leaves, self.sides, strict=True)
        return [column for leaf, side in pairs for column in values[side][leaf]]

    def part(self, expr: Expr) -> JoinedExpr:
        """A part of the expression, with the leaves that it needs."""
        return JoinedExpr(self.bound.part(expr), tuple(self.sides[i] for i in sorted(leaves_of(expr))))


@dataclass(frozen=True)
class Key:
    """An equality of ON between a value of the target and a value of the source."""

    target: BoundExpr
    source: BoundExpr
    #: Whether null equals null (`<=>`).
    null_safe: bool = False
    collation: str | None = None
    #: Instead of a collation that tasks do not have: which strings of both sides are equal by it.
    alike: Alike | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Condition:
    """ON: two rows match if each of these is true."""

    keys: tuple[Key, ...] = ()
    #: What one side decides alone. Constants are the target's.
    target: BoundExpr | None = None
    source: BoundExpr | None = None
    rest: JoinedExpr | None = None
    #: These three together, in the order of the text.
    unkeyed: JoinedExpr | None = None


@dataclass(frozen=True)
class Sides:
    """The schemas and aliases of both sides."""

    target: StructType
    source: StructType
    target_alias: str = "target"
    source_alias: str = "source"
    #: The partition columns of the target.
    partition_by: tuple[str, ...] = ()
    ansi: bool = True
    timezone: str = "UTC"
    #: The columns of the target with the hidden ones, which expressions may name and no clause sets.
    readable: StructType | None = None

    def __post_init__(self) -> None:
        for name, alias in (("target_alias", self.target_alias), ("source_alias", self.source_alias)):
            if not alias:
                raise UserError.bad_value(name, alias, "a name")
        if self.target_alias.lower() == self.source_alias.lower():
            raise UserError.bad_value("source_alias", self.source_alias, "another name than target_alias")

    def bind(self, given: str | Expr, sees: Sequence[Side] = BOTH, text: str | None = None) -> JoinedExpr:
        """Binds an expression that sees these sides; `text` is that of a tree. Errors: those of `bind_value`;
        AMBIGUOUS_COLUMN."""
        text = given if isinstance(given, str) else text
        tree = parse(given) if isinstance(given, str) else given
        names: dict[Side, str] = {"target": self.target_alias, "source": self.source_alias}
        schemas = self._schemas
        both = StructType(tuple(StructField(names[side], schemas[side]) for side in BOTH))

        def change(node: Expr) -> Expr | None:
            return self._resolved(node, sees) if isinstance(node, Column) else None

        bound = bind_value(rebuilt(tree, change), both, ansi=self.ansi, timezone=self.timezone, text=text)
        sides: tuple[Side, ...] = tuple(
            "target" if leaf.column[0] == names["target"] else "source" for leaf in bound.leaves
        )
        partitions = {name.lower() for name in self.partition_by}
        leaves = []
        for leaf, side in zip(bound.leaves, sides, strict=True):
            own = leaf.column[1:]
            partition = side == "target" and len(own) == 1 and own[0].lower() in partitions
            leaves.append(replace(leaf, column=own, partition=partition))
        return JoinedExpr(replace(bound, leaves=tuple(leaves)), sides)

    def predicate(self, text: str, sees: Sequence[Side] = BOTH) -> JoinedExpr:
        """Binds a condition. Errors: those of `bind`; NOT_A_PREDICATE."""
        found = self.bind(text, sees)
        if found.bound.type not in (BOOLEAN, VOID):
            shown = type_to_ddl(found.bound.type)
            raise UserError("NOT_A_PREDICATE", f"the condition {text!r} is {shown}, not BOOLEAN")
        return found

    def condition(self, text: str) -> Condition:
        """Binds ON and cuts it into its parts."""
        found = self.predicate(text)
        keys: list[Key] = []
        others: dict[Side | None, list[Expr]] = {"target": [], "source": [], None: []}
        unkeyed: list[Expr] = []
        for part in found.bound.parts:
            sides = {found.sides[i] for i in leaves_of(part)}
            key = _key(found, part) if len(sides) == 2 else None
            if key is not None:
                keys.append(key)
            else:
                others[None if len(sides) == 2 else next(iter(sides), "target")].append(part)
                unkeyed.append(part)
        target, source, rest = (_all(found, others[side]) for side in ("target", "source", None))
        return Condition(
            tuple(keys),
            None if target is None else target.bound,
            None if source is None else source.bound,
            rest,
            _all(found, unkeyed),
        )

    @property
    def _schemas(self) -> dict[Side, StructType]:
        """The columns that expressions may name."""
        return {"target": self.readable or self.target, "source": self.source}

    def _resolved(self, column: Column, sees: Sequence[Side]) -> Expr:
        aliases: dict[Side, str] = {"target": self.target_alias, "source": self.source_alias}
        schemas = self._schemas
        first, *rest = column.names
        named = next((side for side in BOTH if aliases[side].lower() == first.lower()), None) if rest else None
        if named is not None and named in sees and schemas[named].find(rest[0]) is not None:
            return replace(column, names=(aliases[named], *rest))
        owners = [side for side in sees if schemas[side].find(first) is not None]
        if len(owners) == 1:
            return replace(column, names=(aliases[owners[0]], *column.names))
        if not owners and not rest and first.lower() in MOMENTS:
            return Call(first.lower(), (), at=column.at)
        shown = ".".join(column.names)
        if owners:
            raise UserError(
                "AMBIGUOUS_COLUMN",
                f"both sides of the merge have a column {first!r}",
                hint=f"Write {' or '.join(f'{aliases[side]}.{shown}' for side in owners)}.",
                column=first,
            )
        if named is not None and named not in sees:
            other = "a row that is inserted has no target row" if named == "target" else "these rows have no source row"
            raise UserError("UNKNOWN_COLUMN", f"{shown} cannot be used here: {other}", column=shown)
        raise UserError.unknown_column(
            shown, [f"{aliases[side]}.{name}" for side in sees for name in schemas[side].names]
        )


def conjunction(parts: Iterable[BoundExpr]) -> BoundExpr | None:
    """Returns the predicate that is true where all of these are; None without any."""
    every = list(parts)
    if len(every) < 2:
        return every[0] if every else None
    leaves: list[Leaf] = list(dict.fromkeys(leaf for one in every for leaf in one.leaves))
    exprs = []
    for one in every:

        def change(node: Expr, one: BoundExpr = one) -> Expr | None:
            return replace(node, index=leaves.index(one.leaves[node.index])) if isinstance(node, LeafRef) else None

        exprs.append(rebuilt(one.expr, change))
    return replace(every[0], expr=And(tuple(exprs)), type=BOOLEAN, leaves=tuple(leaves), collations=())


def _all(found: JoinedExpr, parts: Sequence[Expr]) -> JoinedExpr | None:
    return None if not parts else found.part(parts[0] if len(parts) == 1 else And(tuple(parts)))


def _key(found: JoinedExpr, part: Expr) -> Key | None:
    """The equality of a target's with a source's value; None for anything else."""
    if not isinstance(part, Compare) or part.op not in (Op.EQ, Op.SAFE_EQ):
        return None
    if not isinstance(type_of(part.left), Primitive):
        return None  # equal nested values may have other bytes
    sides = {}
    for expr in (part.left, part.right):
        own = {found.sides[i] for i in leaves_of(expr)}
        if len(own) == 1:
            sides[own.pop()] = found.part(expr).bound
    if len(sides) < 2:
        return None
    return Key(sides["target"], sides["source"], part.op is Op.SAFE_EQ, part.collation)
