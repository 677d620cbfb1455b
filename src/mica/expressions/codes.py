"""Comparisons of a column that is codes of a dictionary: evaluated once for each value of the dictionary.

The rule: the result is that of the values themselves, row by row. A comparison of a column with constants fails on no
value, so it can be evaluated on values that are in no row.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from mica.arrays import to_numpy
from mica.expressions.tree import Compare, Expr, In, LeafRef, Literal, Op

#: So many codes are compared one after another; more are looked up.
FEW = 8


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
    if found.null_count or codes.offset % 8 or not len(codes):
        return found.take(codes)
    valid, held = codes.buffers()
    rows = np.frombuffer(held, codes.type.to_pandas_dtype())[codes.offset :][: len(codes)]
    answers, most = to_numpy(found), found.true_count > len(found) // 2
    few = np.flatnonzero(answers != most)
    if len(few) > FEW:
        packed = np.packbits(answers.take(rows, mode="clip"), bitorder="little")  # a null may have any code
    else:
        hit = np.zeros(len(rows), np.bool_)
        for code in few.tolist():
            hit |= rows == code
        packed = np.packbits(hit, bitorder="little")
        packed = ~packed if most else packed
    nulls = None if valid is None else valid.slice(codes.offset // 8)
    return pa.Array.from_buffers(pa.bool_(), len(codes), [nulls, pa.py_buffer(packed)])
