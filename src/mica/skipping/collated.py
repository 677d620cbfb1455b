"""Collated comparisons over bounds: might some row of a file make one true?

The rule: a collated comparison is evaluated only on bounds of exactly that collation, made by the same comparator in
the same version. Otherwise the file is kept, with the reason.

| found for a column in a file | evaluated |
|---|---|
| a partition value | yes: it is the value of every row, whoever wrote it |
| bounds of the collation in the comparator's version, made by mica (the file's tag `mica.collatedBounds`) | yes |
| such bounds without the tag: other writers truncate strings, or use another library of the same version | no |
| bounds of other versions or collations, or binary ones | no |
| a bound that was omitted because it is too long | unknown |
| bounds of a CHAR(n): files hold its texts without the blanks that rows are read with | no |

The comparator orders low at or below every row and high at or above it. Two comparisons per bound then prove:

    = IN       low <= constant <= high        <  <=      low < constant, low <= constant
    <> NOT IN  not low = constant = high      >  >=      high > constant, high >= constant

If the collation does not order all strings of a constant's letters consistently (`collation.trust`), its primary level
is used instead: a bound that differs there proves the same, an equal bound proves nothing.

Equal bounds prove that all rows are equal by the collation; the rows may still be different strings.

LIKE, startswith and similar functions use no bounds: under an ICU collation a longer string may sort before its prefix
(Thai), and a following character can change the first one (`c` in Czech before an `h`). LIKE by UTF8_LCASE folds case
as Java's patterns do (`ſ` matches `s`), which differs from its order.

Source: Delta RFC "Collated String Type", "Reader Requirements for Collations".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import pyarrow as pa

from mica import compute as pc
from mica.arrays import FALSE, TRUE
from mica.collation import trust
from mica.collation.ordering import Ordering
from mica.expressions.bind import Leaf
from mica.expressions.compare import Datum
from mica.expressions.tree import Call, Compare, Expr, In, LeafRef, Literal, Op, walk
from mica.records import dataclass
from mica.schema.types import STRING
from mica.skipping.filled import filled
from mica.skipping.intervals import Interval
from mica.stats.collated import Evidence

#: The maximum of comparisons of a column's bounds with constants; beyond it every file is kept.
MOST_COMPARISONS = 10_000_000

#: A leaf and the collation that it is compared by.
Place = tuple[int, str]


@dataclass(frozen=True)
class CollatedVerdicts:
    """The evaluated collated comparisons of a predicate: `signs` of both bounds by place and constant."""

    evidence: Mapping[Place, Evidence]
    signs: Mapping[tuple[Place, str], tuple[pa.Array, pa.Array]] = field(repr=False)

    def judge(self, expr: Compare | In, intervals: Mapping[int, Interval]) -> Datum:
        """As `judge.judge`, for one comparison that has a collation."""
        if isinstance(expr, In):
            return self._is_in(expr, intervals)
        op, left, right = expr.op, expr.left, expr.right
        if isinstance(left, Literal):
            op, left, right = op.flipped, right, left
        if not isinstance(left, LeafRef) or not isinstance(right, Literal):
            return TRUE
        known = intervals[left.index]
        if right.value is None:
            if op is Op.SAFE_EQ:
                return known.may_be_null
            return pc.invert(known.all_null) if op is Op.DISTINCT else FALSE
        might = pc.and_(self._compare(op, (left.index, str(expr.collation)), right.value), pc.invert(known.all_null))
        return pc.or_(might, known.may_be_null) if op is Op.DISTINCT else might

    def _is_in(self, expr: In, intervals: Mapping[int, Interval]) -> Datum:
        constants = [v.value for v in expr.values if isinstance(v, Literal)]
        if not isinstance(expr.child, LeafRef):
            return TRUE
        if expr.negated and None in constants:
            return FALSE  # x <> NULL is never true
        place = expr.child.index, str(expr.collation)
        found: Datum = TRUE if expr.negated else FALSE
        for constant in constants:
            if constant is not None:
                one = self._compare(Op.NE if expr.negated else Op.EQ, place, constant)
                found = pc.and_(found, one) if expr.negated else pc.or_(found, one)
        return pc.and_(found, pc.invert(intervals[expr.child.index].all_null))

    def _compare(self, op: Op, place: Place, constant: str) -> Datum:
        signs = self.signs.get((place, constant))
        if signs is None:
            return TRUE
        low, high = signs
        match op:
            case Op.EQ | Op.SAFE_EQ:
                cannot = pc.or_kleene(pc.greater(low, 0), pc.less(high, 0))
            case Op.NE | Op.DISTINCT:
                cannot = pc.and_kleene(pc.equal(low, 0), pc.equal(high, 0))
            case Op.LT:
                cannot = pc.greater_equal(low, 0)
            case Op.LE:
                cannot = pc.greater(low, 0)
            case Op.GT:
                cannot = pc.less_equal(high, 0)
            case _:
                cannot = pc.less(high, 0)
        return pc.invert(filled(cannot, False))


def places_of(parts: Iterable[Expr]) -> dict[Place, list[str]]:
    """Returns the places that are compared with constants, with those constants."""
    found: dict[Place, list[str]] = {}
    for part in parts:
        for node in walk(part):
            for index, collation, constants in _asked(node):
                known = found.setdefault((index, collation), [])
                known += [c for c in constants if c not in known]
    return found


def searched_of(parts: Iterable[Expr]) -> list[Place]:
    """Returns the places that are searched (LIKE, contains and similar) instead of compared."""
    nodes = (node for part in parts for node in walk(part) if isinstance(node, Call) and node.collation is not None)
    leaves = ((node.args[0], str(node.collation)) for node in nodes)
    return list(dict.fromkeys((leaf.index, name) for leaf, name in leaves if isinstance(leaf, LeafRef)))


def _asked(node: Expr) -> Iterator[tuple[int, str, list[str]]]:
    match node:
        case Compare(_, LeafRef() as leaf, Literal() as constant, collation=str(collation)):
            values = [constant.value]
        case Compare(_, Literal() as constant, LeafRef() as leaf, collation=str(collation)):
            values = [constant.value]
        case In(LeafRef() as leaf, constants, collation=str(collation)):
            values = [v.value for v in constants if isinstance(v, Literal)]
        case _:
            return
    if leaf.type == STRING:
        yield leaf.index, collation, [v for v in values if isinstance(v, str)]


def weighed(
    leaf: Leaf, collation: str, known: Interval, found: Evidence | None, ordering: Ordering | None, count: int
) -> Evidence:
    """Returns the usable part of what was found for a leaf; `found` is None for partition columns."""
    nothing = pa.nulls(count, pa.string())
    if ordering is None or not ordering.judges(collation):
        return Evidence(nothing, nothing, [f"only Spark compares by {collation}, and no session was given"] * count)
    if leaf.partition:
        return Evidence(known.low, known.high, [None] * count)
    if found is None:
        raise ValueError("bounds of a column in files were not read")
    if leaf.padded:
        return Evidence(nothing, nothing, ["bounds of a CHAR column are of texts without its blanks"] * count)
    return found


@dataclass(frozen=True)
class _Question:
    """A constant to compare with the bounds of a place: their columns are number `low` and the one after it."""

    place: Place
    constant: str
    #: The SQL name of the collation that compares, or of its primary level.
    by: str
    low: int
    #: Whether equal by it is equal; otherwise it proves nothing.
    ties: bool

    def read(self, signs: pa.Array) -> pa.Array:
        """What the signs prove."""
        return signs if self.ties else pc.if_else(pc.equal(signs, 0), None, signs)


def judged(
    evidence: Mapping[Place, Evidence],
    constants: Mapping[Place, list[str]],
    leaves: Sequence[Leaf],
    ordering: Ordering | None,
    searched: Iterable[Place],
    count: int,
) -> CollatedVerdicts:
    """Compares all bounds with all constants, in one job; `searched` are places that bounds cannot decide."""
    columns: list[pa.Array] = []
    questions: list[_Question] = []
    told = dict(evidence)
    for place in searched:
        # Bounds of another version would not help either, so none are reported.
        why = ["LIKE, startswith, endswith and contains cannot use collated bounds"] * count
        nothing = pa.nulls(count, pa.string())
        told.setdefault(place, Evidence(nothing, nothing, why))
    for place, found in evidence.items():
        name = place[1].partition(".")[2]
        usable = constants[place]
        if 2 * len(usable) * len(found.low) > MOST_COMPARISONS:
            many = f"{len(usable):,} constants are too many for the bounds of {len(found.low):,} files"
            told[place], usable = _because(found, many), []
        if ordering is None or not usable or min(found.low.null_count, found.high.null_count) == len(found.low):
            continue
        for constant in usable:
            # A partition value is the value itself: it is compared as its row would be.
            decided = leaves[place[0]].partition or trust.decides_ties(name, constant)
            by = name if decided else trust.primary(name)
            questions.append(_Question(place, constant, by, len(columns), ties=decided))
        columns += [found.low, found.high]
    asked = [(column, one.by, one.constant) for one in questions for column in (one.low, one.low + 1)]
    signs = iter(ordering.signs(columns, asked) if ordering is not None and asked else [])
    answers = {(one.place, one.constant): (one.read(next(signs)), one.read(next(signs))) for one in questions}
    return CollatedVerdicts(told, answers)


def _because(found: Evidence, reason: str) -> Evidence:
    return replace(found, why=[why or reason for why in found.why])
