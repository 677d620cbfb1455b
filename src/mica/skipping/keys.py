"""What the keys of a merge's source say about the rows of the target that can match: a predicate over the target.

The rule: the predicate is true for every row that can match, so a file, row group or page that it skips holds none. Few
values are listed, so that files between them are skipped too; of many values the least and the greatest are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.collation import lcase
from mica.expressions.bind import BoundExpr
from mica.expressions.coerce import is_real
from mica.expressions.joined import Condition, Key, conjunction
from mica.expressions.plain_values import from_values, to_values
from mica.expressions.tree import And, Compare, Expr, In, IsNull, Literal, Op, Or
from mica.records import dataclass
from mica.schema.types import BINARY, BOOLEAN, DataType

#: Up to this many values are listed, of collated strings fewer: each costs comparisons with the bounds of all files.
MOST_VALUES = 20_000
MOST_COLLATED = 100

#: Up to this many are listed where rows are filtered: each file compares them with its pages and rows.
MOST_IN_FILES = 1_000


@dataclass(frozen=True)
class KeyValues:
    """The values of a key in the source, as in `plain_values.to_values`."""

    #: The distinct ones, without null; None: too many.
    values: tuple[Any, ...] | None
    #: The least and the greatest, None if there are none; the greatest is None too if it is NaN.
    low: Any
    high: Any
    has_null: bool

    @classmethod
    def of(cls, key: Key, values: pa.Array) -> KeyValues:
        """The summary of the key's values in some rows."""
        present = pc.unique(pc.drop_null(values))
        if len(present) == 0:
            return cls((), None, None, values.null_count > 0)
        type_ = key.source.type
        low, high = _ends(key, present, type_)
        most = MOST_VALUES if key.collation is None else MOST_COLLATED
        listed = tuple(to_values(present, type_)) if len(present) <= most else None
        return cls(listed, low, high, values.null_count > 0)

    @classmethod
    def joined(cls, key: Key, parts: Sequence[KeyValues]) -> KeyValues:
        """The summary of several: their values are listed if they are few enough together."""
        null = any(part.has_null for part in parts)
        some = [part for part in parts if part.values != ()]
        listed: list[Any] = []
        for part in some:
            if part.values is None:
                ends = [v for one in some for v in (one.low, one.high) if v is not None]
                found = cls.of(key, from_values(ends, key.source.type))
                nan = any(one.high is None for one in some)
                return cls(None, found.low, None if nan else found.high, null)
            listed += part.values
        return replace(cls.of(key, from_values(listed, key.source.type)), has_null=null)


def _ends(key: Key, present: pa.Array, type_: DataType) -> tuple[Any, Any]:
    if key.collation is not None:
        low, high = lcase.ends(present.cast(pa.string())).to_pylist()
        return low, high
    nan = is_real(type_) and pc.any(pc.is_nan(present)).as_py()
    if nan:
        present = present.filter(pc.invert(pc.is_nan(present)))
    if type_ in (BINARY, BOOLEAN) or len(present) == 0:
        return None, None
    found = pc.min_max(present)
    low, high = to_values(pa.concat_arrays([pa.repeat(found[end], 1) for end in ("min", "max")]), type_)
    return low, None if nan else high


def possible(on: Condition, known: Sequence[KeyValues], most: int = MOST_VALUES) -> BoundExpr | None:
    """The predicate over the target that is true for every row that can match a row of a source with such keys, one for
    each of `on.keys`; None if every row can. More than `most` values are not listed.
    """
    parts = [] if on.target is None else [on.target]
    for key, values in zip(on.keys, known, strict=True):
        found = _possible(key, values, most)
        if found is not None:
            parts.append(replace(key.target, expr=found, type=BOOLEAN))
    return conjunction(parts)


def _possible(key: Key, known: KeyValues, most: int) -> Expr | None:
    child, type_ = key.target.expr, key.source.type
    found: Expr | None
    if known.values == ():
        found = Literal(False, BOOLEAN)
    elif key.alike is not None:
        strings = [] if known.values is None else key.alike.all_of(arrow_array(known.values, pa.string())).to_pylist()
        found = In(child, tuple(Literal(v, type_) for v in strings)) if 0 < len(strings) <= most else None
    elif known.values is not None and len(known.values) <= most:
        found = In(child, tuple(Literal(v, type_) for v in known.values), collation=key.collation)
    else:
        ends = [(Op.GE, known.low), (Op.LE, known.high)]
        sides: list[Expr] = [
            Compare(op, child, Literal(value, type_), collation=key.collation)
            for op, value in ends
            if value is not None
        ]
        found = None if not sides else sides[0] if len(sides) == 1 else And(tuple(sides))
    if found is None or not (key.null_safe and known.has_null):
        return found
    return Or((found, IsNull(child)))
