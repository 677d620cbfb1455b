"""Predicates over partition columns only, evaluated from the log.

The rule: a partition value applies to every row of its file, so such a predicate is true for all rows of a file or
for none, and no file is opened.
"""

from __future__ import annotations

import pyarrow as pa

from mica.expressions.bind import BoundExpr
from mica.expressions.evaluate import filter_rows
from mica.schema.types import StructType
from mica.stats.columns import physical_names
from mica.stats.partition import column_texts, parse_values


def is_decided(bound: BoundExpr | None) -> bool:
    """Whether the log alone decides which rows match."""
    return bound is None or all(leaf.partition for leaf in bound.leaves)


def holds(bound: BoundExpr, schema: StructType, partition_values: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
    """Returns for each file, by its map of partition values, whether the predicate is true for its rows."""
    columns = []
    for leaf in bound.leaves:
        texts = column_texts(partition_values, physical_names(schema, leaf.column)[0])
        columns.append(parse_values(texts, leaf.type, timezone=bound.timezone))
    return filter_rows(bound, columns, num_rows=len(partition_values))
