"""The result of binding: an expression with its leaves.

The rule: a bound expression holds everything that evaluation needs: the values that a file must supply, their types,
and the session's settings.
"""

from __future__ import annotations

from dataclasses import field, replace

from mica.cached import cached_property
from mica.expressions.rewrite import conjuncts, leaves_of, rebuilt
from mica.expressions.tree import Call, Cast, Collate, Expr, IsNull, LeafRef, Literal
from mica.records import dataclass
from mica.schema.arrow import to_arrow_type
from mica.schema.spelling import spelled
from mica.schema.types import BOOLEAN, VARIANT, DataType
from mica.variant.kernel import Request
from mica.variant.path import VariantPath


@dataclass(frozen=True)
class Leaf:
    """A value that a file supplies: a column, a struct's field, or a cast path of a variant column.

    `path` is None for plain values. If `strict`, a failed cast of the path is an error. A leaf of a partition
    column is not in the file: the scan supplies it. If `json`, a VARIANT comes as its JSON text.
    """

    column: tuple[str, ...]
    path: VariantPath | None
    # Leaves are looked up for every batch, and few differ in what follows alone.
    type: DataType = field(hash=False)
    strict: bool = field(default=True, hash=False)
    partition: bool = field(default=False, hash=False)
    json: bool = field(default=False, hash=False)
    #: The declared type of a column with a CHAR in it (`mica.schema.char`), whose values are read with their blanks.
    padded: str = field(default="", hash=False)

    def request(self, column: tuple[str, ...] | None = None) -> Request:
        """The kernel's request for this leaf; `column` is its name in the file. A path returns two columns: the values
        and the mask of failed casts."""
        asked = Request(self.column if column is None else column)
        if self.path is None:
            return asked
        wanted = None if self.type == VARIANT else to_arrow_type(self.type)
        return replace(asked, path=self.path.steps, type=wanted, json=self.json)

    @property
    def name(self) -> str:
        """SQL without the cast: `v:a.b`, `s.x`."""
        column = spelled(self.column)
        return column if self.path is None or not self.path.steps else f"{column}:{self.path}"


@dataclass(frozen=True)
class BoundExpr:
    """A bound expression with its leaves; a predicate has type BOOLEAN. Picklable."""

    expr: Expr
    type: DataType
    leaves: tuple[Leaf, ...]
    ansi: bool = True
    timezone: str = "UTC"
    #: The collations that the values keep: (path inside the value, identifier), as in ((".element", "icu.de"),).
    collations: tuple[tuple[str, str], ...] = ()
    #: Whether another database of time zones than the kernel's evaluates the rows, so that this may only skip files.
    other_zones: bool = False

    @cached_property
    def parts(self) -> tuple[Expr, ...]:
        """The parts of a predicate that must all be true, without NOT; see `rewrite`."""
        return conjuncts(self.expr)

    def part(self, expr: Expr) -> BoundExpr:
        """A part of the expression, with the leaves that it needs, in their order."""
        kept = sorted(leaves_of(expr))
        numbers = {old: new for new, old in enumerate(kept)}

        def change(node: Expr) -> Expr | None:
            return replace(node, index=numbers[node.index]) if isinstance(node, LeafRef) else None

        leaves = tuple(self.leaves[i] for i in kept)
        return replace(self, expr=rebuilt(expr, change), type=type_of(expr), leaves=leaves, collations=())

    @cached_property
    def only_nulls(self) -> frozenset[Leaf]:
        """The leaves that are in IS NULL and nowhere else: their values are irrelevant."""
        asked, used, todo = set(), set(), [self.expr]
        while todo:
            match todo.pop():
                case IsNull(LeafRef(index)):
                    asked.add(self.leaves[index])
                case LeafRef(index):
                    used.add(self.leaves[index])
                case other:
                    todo.extend(other.children)
        return frozenset(asked - used)


def type_of(expr: Expr) -> DataType:
    """The type of a bound expression's values."""
    match expr:
        case Literal(type=type_) | Cast(type=type_) | LeafRef(type=type_):
            return type_
        case Collate(child):
            return type_of(child)
        case Call(type=found) if found is not None:
            return found
        case _:
            return BOOLEAN
