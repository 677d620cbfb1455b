"""Which rows of a merge's source match which rows of its target, and which clause changes them.

The rule: two rows match if ON is true for them; null never equals null, except by `<=>`. What ON says of one side alone
is judged before its keys; where a cast fails there, for the rows with equal keys only, as Spark's outer joins do. Of
the clauses for a pair the first whose condition is true applies. Two source rows that would change the same target row
are an error, except where the only clause for matched rows is an unconditional DELETE.

Keys are turned into numbers: equal keys have equal numbers, so several keys of any type join like one integer. All
functions take and return whole arrays, and know neither files nor engines.

Source: Spark SQL reference, "MERGE INTO"; Delta's documentation of merge for ambiguous matches.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, arrow_array, scalar, to_numpy
from mica.errors import UserError
from mica.expressions.bind import Leaf
from mica.expressions.coerce import is_exact, is_real
from mica.expressions.collations import in_process
from mica.expressions.compare import exact_pair, hashable
from mica.expressions.evaluate import RowError, evaluate, filter_rows
from mica.expressions.joined import Condition, JoinedExpr, Key, Side
from mica.expressions.plain_values import to_values
from mica.expressions.tree import to_sql
from mica.records import dataclass
from mica.schema import literals
from mica.schema.arrow import to_arrow_type
from mica.schema.types import DataType, StructField
from mica.tasks.leaf_values import Leaves, distinct, extract
from mica.tasks.row_errors import located

Rows = NDArray[np.int64]

#: Pairs of rows that are evaluated at once.
MOST_PAIRS = 1 << 20

#: Keys that an error shows.
_SHOWN = 5

#: The name of the source in errors of its values.
SOURCE = "the source of the merge"

When = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]

NOT_BY_SOURCE: When = "not matched by source"


#: Rows of one side by their numbers in its leaves, or pairs of rows of both.
Sides = Mapping[Side, tuple[Leaves, Rows]]


@dataclass(frozen=True)
class Assigned:
    """The new value of a column; `plain` values are converted as those of an append."""

    value: JoinedExpr
    column: StructField
    plain: bool = False


@dataclass(frozen=True)
class Clause:
    """One WHEN clause; `values` are the columns that it sets."""

    when: When
    action: Action
    condition: JoinedExpr | None = None
    values: Mapping[str, Assigned] = field(default_factory=dict)

    def expressions(self) -> list[JoinedExpr]:
        """All its expressions."""
        return [*([] if self.condition is None else [self.condition]), *(a.value for a in self.values.values())]


@dataclass(frozen=True)
class MatchSpec:
    """ON and the clauses, in the order of the call."""

    on: Condition
    clauses: tuple[Clause, ...]
    timezone: str = "UTC"
    #: Whether source rows that match are inserted too: the clauses of those that do not are for all of them.
    inserts_all: bool = False

    def numbers(self, when: When) -> list[int]:
        """The numbers of the clauses of this kind."""
        return [i for i, clause in enumerate(self.clauses) if clause.when == when]

    def leaves(self, side: Side, action: Action | None = None) -> list[Leaf]:
        """What the conditions and values of the clauses, or of those of one action, need of a side."""
        clauses = [clause for clause in self.clauses if action in (None, clause.action)]
        return distinct(leaf for clause in clauses for one in clause.expressions() for leaf in one.leaves(side))

    @property
    def key_leaves(self) -> list[Leaf]:
        """What matching needs of a target row: ON, and the conditions of the clauses for target rows."""
        on, conditions = self.on, [c.condition for c in self.clauses if c.when != "not matched" and c.condition]
        joined = [*([] if on.rest is None else [on.rest]), *conditions]
        own = [*(key.target for key in on.keys), *([] if on.target is None else [on.target])]
        of_pairs = [leaf for one in joined for leaf in one.leaves("target")]
        return distinct([*(leaf for one in own for leaf in one.leaves), *of_pairs])

    @property
    def source_key_leaves(self) -> list[Leaf]:
        """What the keys need of a source row."""
        own = [*(key.source for key in self.on.keys), *([] if self.on.source is None else [self.on.source])]
        return distinct(leaf for one in own for leaf in one.leaves)

    @property
    def source_leaves(self) -> list[Leaf]:
        """Everything that is needed of a source row."""
        rest = [] if self.on.rest is None else self.on.rest.leaves("source")
        return distinct([*self.source_key_leaves, *rest, *self.leaves("source")])


@dataclass(frozen=True)
class Changes:
    """What happens to some target rows: their numbers, sorted; the clauses; the source rows (-1: none)."""

    rows: Rows
    clauses: Rows
    sources: Rows

    @classmethod
    def of(cls, parts: Sequence[Changes]) -> Changes:
        """All of these, one after another."""
        if not parts:
            return cls(*(np.zeros(0, np.int64) for _ in range(3)))
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("rows", "clauses", "sources")))

    def where(self, chosen: NDArray[Any]) -> Changes:
        """Those that a mask or numbers choose."""
        return Changes(self.rows[chosen], self.clauses[chosen], self.sources[chosen])

    def of_files(self, ends: Sequence[int]) -> list[Changes]:
        """Those of files that are numbered through, of which these are the ends, each by the numbers of its file."""
        places = np.searchsorted(self.rows, [0, *ends])
        found = [self.where(np.arange(first, last)) for first, last in itertools.pairwise(places)]
        return [replace(own, rows=own.rows - begin) for own, begin in zip(found, [0, *ends[:-1]], strict=True)]

    def by_row(self) -> Changes:
        """The same, sorted by row."""
        return self.where(np.argsort(self.rows, kind="stable"))


class SourceRows:
    """The rows of a source, ready to be matched with any number of target rows."""

    def __init__(self, spec: MatchSpec, batch: pa.RecordBatch) -> None:
        self.spec, self.batch = spec, batch
        self.leaves = extract(spec.source_leaves, batch, spec.timezone)
        on = spec.on
        try:
            #: Which rows can match, and the values of each key, for `skipping.keys`.
            self.usable, self.key_values, self._late = key_values(on, "source", self.leaves)
            keys = comparable(on, "source", self.key_values)
        except RowError as e:
            raise located(e, SOURCE) from None
        self._codes = _Codes([key.null_safe for key in on.keys])
        codes = np.where(self.usable, self._codes.learn(keys, batch.num_rows), -1)
        order = np.argsort(codes, kind="stable")
        self._order = order[np.searchsorted(codes, 0, sorter=order) :].astype(np.int64)
        self._starts = np.searchsorted(codes[self._order], np.arange(self._codes.count + 1)).astype(np.int64)

    def pairs(self, target: Leaves) -> Iterator[tuple[Rows, Rows]]:
        """The pairs of target and source rows that match, sorted by target row; those of one row are together."""
        on = self.spec.on
        usable, values, late = key_values(on, "target", target)
        rest = on.unkeyed if late or self._late else on.rest
        codes = np.where(usable, self._codes.of(comparable(on, "target", values), target.rows), -1)
        rows = np.flatnonzero(codes >= 0).astype(np.int64)
        firsts = self._starts[codes[rows]]
        counts = self._starts[codes[rows] + 1] - firsts
        ends = np.cumsum(counts)
        start = 0
        while start < len(rows):
            before = int(ends[start - 1]) if start else 0
            end = max(start + 1, int(np.searchsorted(ends, before + MOST_PAIRS, side="right")))
            some = counts[start:end]
            within = np.arange(int(ends[end - 1]) - before) - np.repeat(ends[start:end] - some - before, some)
            pairs = np.repeat(rows[start:end], some), self._order[np.repeat(firsts[start:end], some) + within]
            yield self._remaining(rest, target, *pairs)
            start = end

    def _remaining(self, rest: JoinedExpr | None, target: Leaves, rows: Rows, sources: Rows) -> tuple[Rows, Rows]:
        if rest is None or not len(rows):
            return rows, sources
        mask = filter_rows(rest.bound, columns(rest, self._sides(target, rows, sources)), num_rows=len(rows))
        passing = to_numpy(mask)
        return rows[passing], sources[passing]

    def _sides(self, target: Leaves, rows: Rows, sources: Rows) -> Sides:
        return {"target": (target, rows), "source": (self.leaves, sources)}

    def changes(
        self, target: Leaves, matched: NDArray[np.bool_] | None = None, seen: NDArray[np.bool_] | None = None
    ) -> Changes:
        """What the clauses do to these target rows; marks the source rows that match one in `matched`. With `seen`
        there are more rows of the source: target rows that match one are marked there, nothing happens to the others.
        """
        spec = self.spec
        every: list[Changes] = []
        free = np.ones(target.rows, np.bool_)
        for rows, sources in self.pairs(target):
            free[rows] = False
            if matched is not None and not spec.inserts_all:
                matched[sources] = True
            acting, clauses = choose(spec, "matched", self._sides(target, rows, sources))
            acted = Changes(rows[acting], clauses, sources[acting])
            every.append(single(spec, acted, partial(self._keys_of, target)))
        if seen is not None:
            seen |= ~free
        elif spec.numbers(NOT_BY_SOURCE):
            every.append(without_source(spec, target, np.flatnonzero(free).astype(np.int64)))
        return Changes.of(every).by_row()

    def _keys_of(self, target: Leaves, rows: Rows) -> str:
        """The keys of some target rows, for an error."""
        keys = self.spec.on.keys
        texts = []
        for key in keys:
            values = evaluate(key.target, target.of(key.target), num_rows=target.rows).take(arrow_array(rows))
            texts.append([literals.show(v, key.target.type) for v in to_values(values, key.target.type)])
        named = [
            " and ".join(f"{to_sql(key.target.expr)} = {text}" for key, text in zip(keys, row, strict=True))
            for row in zip(*texts, strict=True)
        ]
        return "; ".join(named)


def single(spec: MatchSpec, found: Changes, keys_of: Callable[[Rows], str] = lambda _: "") -> Changes:
    """The changes, at most one for each target row; they are sorted by row. Errors: AMBIGUOUS_MERGE, with the keys."""
    again = np.flatnonzero(np.diff(found.rows) == 0) + 1
    if not len(again):
        return found
    matched = spec.numbers("matched")
    only = spec.clauses[matched[0]]
    if len(matched) == 1 and only.action == "delete" and only.condition is None:
        return found.where(np.setdiff1d(np.arange(len(found.rows)), again))
    rows = np.unique(found.rows[again])
    shown = keys_of(rows[:_SHOWN]) or "rows that no equality joins"
    more = "" if len(rows) <= _SHOWN else f", and {len(rows) - _SHOWN:,} more"
    raise UserError(
        "AMBIGUOUS_MERGE",
        f"several rows of the source match the same row of the table and would change it: {shown}{more}",
        hint="Keep one row for each key in the source, or make the conditions of the clauses exclude the others.",
    )


def without_source(spec: MatchSpec, target: Leaves, rows: Rows) -> Changes:
    """What the clauses do to these target rows, which match no row of the source."""
    acting, clauses = choose(spec, NOT_BY_SOURCE, {"target": (target, rows)})
    return Changes(rows[acting], clauses, np.full(len(acting), -1, np.int64))


def choose(spec: MatchSpec, when: When, sides: Sides) -> tuple[Rows, Rows]:
    """Which of these rows or pairs a clause of this kind applies to, by their places in `sides`, and the number of the
    clause: the first one whose condition is true."""
    _, rows = next(iter(sides.values()))
    found, left = np.full(len(rows), -1, np.int64), np.arange(len(rows))
    for number in spec.numbers(when):
        condition = spec.clauses[number].condition
        if not len(left):
            break
        if condition is None:
            found[left] = number
            break
        some = {side: (leaves, own[left]) for side, (leaves, own) in sides.items()}
        mask = filter_rows(condition.bound, columns(condition, some), num_rows=len(left))
        true = to_numpy(mask)
        found[left[true]] = number
        left = left[~true]
    acting = np.flatnonzero(found >= 0)
    return acting, found[acting]


def columns(expr: JoinedExpr, sides: Sides) -> list[pa.Array]:
    """The columns that an expression is evaluated on for these rows or pairs."""
    values: dict[Side, dict[Leaf, list[pa.Array]]] = {"target": {}, "source": {}}
    for side, (leaves, rows) in sides.items():
        places = arrow_array(rows)
        for leaf in expr.leaves(side):
            values[side].setdefault(leaf, [pc.take(column, places) for column in leaves.columns[leaf]])
    return expr.columns(values)


def key_values(on: Condition, side: Side, rows: Leaves) -> tuple[NDArray[np.bool_], list[pa.Array], bool]:
    """Which rows of a side can match by what ON says of that side alone, and the values of their keys. Keys of other
    rows are not evaluated, so a cast cannot fail there; they are null. True as the third: a cast failed in what ON says
    of the side; it is to be judged (`unkeyed`) for the rows that match by their keys."""
    alone = on.target if side == "target" else on.source
    bound = [key.target if side == "target" else key.source for key in on.keys]
    mask, late = None, False
    try:
        mask = None if alone is None else filter_rows(alone, rows.of(alone), num_rows=rows.rows)
    except RowError:
        late = True
    if mask is None or mask.false_count == 0:
        values = [evaluate(one, rows.of(one), num_rows=rows.rows) for one in bound]
        return np.ones(rows.rows, np.bool_), values, late
    some = rows.filter(mask, mask.true_count)
    usable: NDArray[np.bool_] = to_numpy(mask)
    places = arrow_array(np.cumsum(usable) - 1, mask=~usable)
    return usable, [evaluate(one, some.of(one), num_rows=some.rows).take(places) for one in bound], False


def comparable(on: Condition, side: Side, values: Sequence[pa.Array]) -> list[pa.Array]:
    """Values of the keys in a form in which equal ones of both sides have equal bytes."""
    return [_canonical(key, found, side) for key, found in zip(on.keys, values, strict=True)]


def _canonical(key: Key, values: pa.Array, side: Side) -> pa.Array:
    """Values of one side in a type that both sides share, so that equal ones have equal bytes."""
    own, other = (key.target.type, key.source.type) if side == "target" else (key.source.type, key.target.type)
    if is_exact(own):
        return _exact(values, own, other)
    if is_real(own):
        return hashable(values)
    return in_process(values, key.collation) if key.alike is None else key.alike.of(values)


def _exact(values: pa.Array, own: DataType, other: DataType) -> pa.Array:
    wide, _ = exact_pair(values, scalar(None, to_arrow_type(other)), own, other)
    return pc.cast(wide, pa.int64()) if pa.types.is_integer(wide.type) else wide


class _Codes:
    """Numbers of combinations of keys: those of the source from 0, in any order."""

    def __init__(self, null_safe: Sequence[bool]) -> None:
        self._null_safe = null_safe
        #: Per key the distinct values; from the second key on also the distinct combinations so far.
        self._values: list[pa.Array] = []
        self._combined: list[pa.Array] = []
        self.count = 1

    def learn(self, keys: Sequence[pa.Array], rows: int) -> Rows:
        """The numbers of the source's keys, of which there are `count` now."""
        for key, safe in zip(keys, self._null_safe, strict=True):
            self._values.append(pc.unique(key if safe else pc.drop_null(key)))
        found = self._of(keys, rows, learning=True)
        self.count = len(self._combined[-1]) if self._combined else len(self._values[0]) if keys else 1
        return found

    def of(self, keys: Sequence[pa.Array], rows: int) -> Rows:
        """The numbers of other keys; -1 for those that the source does not have."""
        return self._of(keys, rows, learning=False)

    def _of(self, keys: Sequence[pa.Array], rows: int, *, learning: bool) -> Rows:
        if not keys:
            return np.zeros(rows, np.int64)
        codes: pa.Array | None = None
        for i, key in enumerate(keys):
            known = self._values[i]
            one = pc.cast(pc.index_in(key, value_set=known, skip_nulls=not self._null_safe[i]), pa.int64())
            if codes is None:
                codes = one
                continue
            both = pc.add(pc.multiply(codes, max(1, len(known))), one)
            if learning:
                self._combined.append(pc.unique(both.drop_null()))
            # Renumbered after each key, so that numbers stay below the number of rows.
            codes = pc.index_in(both, value_set=self._combined[i - 1], skip_nulls=True).cast(pa.int64())
        found: Rows = to_numpy(pc.fill_null(codes, -1)).astype(np.int64)
        return found
