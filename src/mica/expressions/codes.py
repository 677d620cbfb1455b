"""Comparisons of a column that is codes of a dictionary: evaluated once for each value of the dictionary.

The rule: the result is that of the values themselves, row by row. A comparison of a column with constants fails on no
value, so it can be evaluated on values that are in no row.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.expressions.tree import Compare, Expr, In, LeafRef, Literal, Op

#: So many codes are compared one after another; more are looked up.
FEW = 4


def compared(expr: Expr) -> int | None:
    """The leaf that the expression compares with constants, if it does nothing else."""
    match expr:
        case Compare(op, LeafRef(index), Literal()) | Compare(op, Literal(), LeafRef(index)):
            return None if op in (Op.SAFE_EQ, Op.DISTINCT) else index  # these are not null where the column is
        case In(LeafRef(index), values) if all(isinstance(value, Literal) for value in values):
            return index
    return None


def worth(values: pa.Array) -> bool:
    """Whether the dictionary has no more values than there are rows."""
    return isinstance(values, pa.DictionaryArray) and len(values.dictionary) <= len(values)


def spread(found: pa.BooleanArray, codes: pa.Array) -> pa.BooleanArray:
    """What was found for the values of the dictionary, by row; null where the code is null."""
    if found.null_count:
        return found.take(codes)
    others = found.true_count > len(found) // 2
    few = np.flatnonzero(found.to_numpy(zero_copy_only=False) != others)
    if len(few) > FEW:
        return found.take(codes)
    scalars = [pa.scalar(code, codes.type) for code in (few if len(few) else [-1])]
    if others:
        return reduce(pc.and_, [pc.not_equal(codes, code) for code in scalars])
    return reduce(pc.or_, [pc.equal(codes, code) for code in scalars])
