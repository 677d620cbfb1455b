"""Which parts of a predicate a bloom filter can answer, and which a search of pages for the bytes of a text.

The rule: a filter or a search is used only for a part `leaf = value` or `leaf IN (values)` of the predicate, with the
values in the leaf's type, compared as stored, byte by byte, so without a collation. The kernel decides whether the file
stores that type and nothing else.

Source: Parquet "VariantShredding", "Data Skipping" (docs/check.md, rule 41).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from mica.arrays import arrow_array
from mica.expressions.bind import BoundExpr, type_of
from mica.expressions.tree import Compare, Expr, In, LeafRef, Literal, Op
from mica.schema.arrow import to_arrow_type
from mica.schema.types import DATE, INTEGRALS, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType

#: Types whose equal values have equal bytes. Floats have two zeros, decimals several encodings.
_ASKED = frozenset({*INTEGRALS, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ})
#: Those whose constants are numbers of another type.
_STORED: dict[DataType, pa.DataType] = {DATE: pa.int32(), TIMESTAMP: pa.int64(), TIMESTAMP_NTZ: pa.int64()}


def questions(bound: BoundExpr) -> Iterator[tuple[int, int, pa.Array]]:
    """Yields (number of the part, number of the leaf, values): if the leaf has none of the values, no row matches."""
    for number, part in enumerate(bound.parts):
        match part:
            case Compare(Op.EQ | Op.SAFE_EQ, LeafRef(index), Literal() as value, collation=None):
                values = [value]
            case Compare(Op.EQ | Op.SAFE_EQ, Literal() as value, LeafRef(index), collation=None):
                values = [value]
            case In(LeafRef(index), found, False, collation=None) if all(isinstance(v, Literal) for v in found):
                values = [v for v in found if isinstance(v, Literal)]
            case _:
                continue
        leaf = bound.leaves[index]
        asked = None if leaf.padded else _array(values, leaf.type)  # files hold texts without their blanks
        if asked is not None:
            yield number, index, asked


def searches(bound: BoundExpr) -> Iterator[tuple[int, pa.Array]]:
    """Yields (number of the leaf, texts) of the parts that a search may answer: no part before them can fail on a row
    for which they are not true, so such a row need not be evaluated.
    """
    for before, (number, index, values) in enumerate(questions(bound)):
        leaf = bound.leaves[index]
        if number != before or (leaf.path is not None and leaf.type != STRING):
            return
        if leaf.type == STRING:
            yield index, values


def _array(values: list[Literal], type_: DataType) -> pa.Array | None:
    """Returns the values in the leaf's type, without nulls, which equal nothing; None if that is not certain."""
    if type_ not in _ASKED or not all(_same(v, type_) for v in values):
        return None
    present = [v.value for v in values if v.value is not None]
    if not present:
        return None
    if type_ in INTEGRALS:
        return arrow_array(present, pa.int64())
    storage, wanted = _STORED.get(type_), to_arrow_type(type_)
    return arrow_array(present, wanted) if storage is None else arrow_array(present, storage).cast(wanted)


def _same(value: Expr, type_: DataType) -> bool:
    found = type_of(value)
    return found == type_ or (found in INTEGRALS and type_ in INTEGRALS)
