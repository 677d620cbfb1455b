"""Predicates over partition columns only, evaluated from the log.

The rule: a partition value applies to every row of its file, so such a predicate is true for all rows of a file or
for none, and no file is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from mica import compute as pc
from mica.expressions.bind import BoundExpr
from mica.expressions.evaluate import filter_rows
from mica.expressions.rewrite import leaves_of
from mica.expressions.tree import And
from mica.schema.arrow import to_arrow_type
from mica.schema.char import padded, unpadded
from mica.schema.types import StructType
from mica.stats.columns import physical_names
from mica.stats.partition import column_texts, format_values, parse_values


def is_decided(bound: BoundExpr | None) -> bool:
    """Whether the log alone decides which rows match."""
    return bound is None or all(leaf.partition for leaf in bound.leaves)


def of_partitions(bound: BoundExpr) -> BoundExpr | None:
    """What the predicate says of partition columns alone: its parts that do, or None where none does."""
    parts = tuple(part for part in bound.parts if all(bound.leaves[i].partition for i in leaves_of(part)))
    return replace(bound, expr=And(parts) if len(parts) > 1 else parts[0]) if parts else None


def holds(bound: BoundExpr, schema: StructType, partition_values: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
    """Returns for each file, by its map of partition values, whether the predicate is true for its rows.

    Leaves that it no longer names are null (`of_partitions`).
    """
    columns: list[pa.Array] = []
    for leaf in bound.leaves:
        if not leaf.partition:
            columns += [pa.nulls(len(partition_values), to_arrow_type(leaf.type))]
            columns += [] if leaf.path is None else [pa.nulls(len(partition_values), pa.bool_())]
            continue
        texts = column_texts(partition_values, physical_names(schema, leaf.column)[0])
        columns.append(padded(parse_values(texts, leaf.type, timezone=bound.timezone), leaf.padded))
    return filter_rows(bound, columns, num_rows=len(partition_values))


def those_of(
    schema: StructType, partition_by: Sequence[str], files: pa.Table, *, timezone: str
) -> Callable[[pa.Table], pa.Array]:
    """A function that returns for each file whether it is in a partition of `files`."""
    names = [physical_names(schema, (name,))[0] for name in partition_by]
    fields = [f for name in partition_by if (f := schema.find(name)) is not None]

    def keys(files: pa.Table) -> pa.Array:
        """One text a file: its values with their lengths, spelled in one way."""
        columns = []
        for name, f in zip(names, fields, strict=True):
            values = parse_values(column_texts(files.column("partition_values"), name), f.type, timezone=timezone)
            texts = unpadded(format_values(values, f.type), f)
            columns.append(pc.fill_null(_joined(pc.cast(pc.utf8_length(texts), pa.string()), texts), "null"))
        return _joined(*columns)

    wanted = keys(files)
    return lambda files: pc.is_in(keys(files), value_set=wanted)


def _joined(*texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*texts, ":")
