"""Comparisons by collations that tasks do not have, as comparisons of bytes.

The rule: a task compares bytes, or by UTF8_LCASE; only the engine's comparator has ICU's collations. So the strings of
the files that a change reads are asked of it first, each once, and the comparison becomes a list of those for which it
holds: `s = 'x' COLLATE de_CI` is `s IN ('X', 'x')`, or, if these are fewer, NOT IN those for which it does not. A file
that another writer adds meanwhile is a conflict, as it is for every change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.collation.identifier import parse
from mica.collation.names import to_sql
from mica.engines.base import Engine
from mica.expressions.bind import BoundExpr
from mica.expressions.collations import collations_of, judged_in_process, stripped
from mica.expressions.rewrite import rebuilt
from mica.expressions.tree import And, Cast, Compare, Expr, In, IsNull, Literal, Op, Or, walk
from mica.schema.types import STRING
from mica.tasks.file import ReadSpec
from mica.tasks.parts import FilePart, in_tasks
from mica.tasks.read import read_parts

#: Longer lists are not shipped to tasks.
MOST = 100_000

_STRINGS = pa.schema([pa.field("string", pa.string())])

#: The signs of a string against the constant for which a comparison holds.
_SIGNS = {
    Op.EQ: (0,), Op.NE: (-1, 1), Op.LT: (-1,), Op.LE: (-1, 0), Op.GT: (1,), Op.GE: (0, 1), Op.SAFE_EQ: (0,),
    Op.DISTINCT: (-1, 1),
}  # fmt: skip


def needs_comparator(engine: Engine, expr: Expr) -> bool:
    """Whether it compares by collations that only the comparator has, and this engine has it."""
    names = [name for name in collations_of(expr) if not judged_in_process(name)]
    return bool(names) and all(map(engine.comparator.judges, names))


class Bytewise:
    """Rewrites expressions over the rows of these files. What it cannot rewrite stays: comparisons of two columns, of
    casts, which may fail in rows that nobody asks for, by LIKE, and of more than `MOST` strings."""

    def __init__(self, engine: Engine, read: ReadSpec, parts: Sequence[FilePart]) -> None:
        self._engine, self._read, self._parts = engine, read, parts
        self._known: dict[BoundExpr, pa.Array] = {}

    def __call__(self, bound: BoundExpr) -> BoundExpr:
        """The same expression; its comparisons by such collations are lists of strings."""
        return replace(bound, expr=rebuilt(bound.expr, partial(self._listed, bound)))

    def _listed(self, bound: BoundExpr, expr: Expr) -> Expr | None:
        found = self._of_list(bound, expr)
        match expr:
            case Compare(Op.SAFE_EQ | Op.DISTINCT as op, left, right) if found is not None:
                # A list is null for null.
                child = right if isinstance(stripped(left), Literal) else left
                is_null = IsNull(stripped(child), op is Op.SAFE_EQ)
                return And((found, is_null)) if op is Op.SAFE_EQ else Or((found, is_null))
        return found

    def _of_list(self, bound: BoundExpr, expr: Expr) -> Expr | None:
        match expr:
            case Compare(op, left, right, collation=str(name)) if op in _SIGNS:
                child, constant = stripped(left), stripped(right)
                if isinstance(child, Literal):
                    child, constant, op = constant, child, op.flipped
                constants, signs = [constant], _SIGNS[op]
            case In(child, values, collation=str(name)):
                child, constants, signs = stripped(child), [*map(stripped, values)], (0,)
            case _:
                return None
        texts = [c.value for c in constants if isinstance(c, Literal) and isinstance(c.value, str)]
        risky = any(isinstance(node, Cast) for node in walk(child))
        if judged_in_process(name) or len(texts) < len(constants) or isinstance(child, Literal) or risky:
            return None
        strings = self._strings(bound, child)
        asked = [(0, str(to_sql(parse(name))), text) for text in texts]
        found = [np.isin(to_numpy(one), signs) for one in self._engine.comparator.signs([strings], asked)]
        holds = np.logical_or.reduce(found)
        negated = isinstance(expr, In) and expr.negated
        if 2 * int(holds.sum()) > len(holds):
            holds, negated = ~holds, not negated
        listed = strings.filter(arrow_array(holds))
        if not len(listed):
            return Compare(Op.EQ if negated else Op.NE, child, child)  # null for null, as a list is
        if len(listed) > MOST:
            return None
        return In(child, tuple(Literal(text, STRING) for text in listed.to_pylist()), negated, at=expr.at)

    def _strings(self, bound: BoundExpr, expr: Expr) -> pa.Array:
        """The values of a part of an expression."""
        own = bound.part(expr)
        if own not in self._known:
            self._known[own] = distinct_strings(self._engine, self._read, self._parts, own)
        return self._known[own]


def distinct_strings(engine: Engine, read: ReadSpec, parts: Sequence[FilePart], bound: BoundExpr) -> pa.Array:
    """The values of an expression in the rows of these files, each once; null is none."""
    task = partial(_distinct, replace(read, outputs={"string": bound}, predicate=None, limit=None))
    batches = [batch.column(0) for batch in engine.run(task, in_tasks(parts, engine.parallelism), _STRINGS)]
    return pc.drop_null(pc.unique(pa.chunked_array(batches, pa.string())))


def _distinct(read: ReadSpec, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    for batch in read_parts(read, parts):
        yield pa.RecordBatch.from_arrays([pc.unique(batch.column(0))], schema=_STRINGS)
