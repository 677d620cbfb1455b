"""The rows of a DataFrame that the driver has already: `VALUES`, a DataFrame of a pyarrow table, one row of constants.

The rule: rows are at hand if the optimised plan holds them or makes one row of nothing; then they are collected, which
takes no Python worker. A Connect client has no plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica.engines.spark import jobs, types
from mica.schema.types import VARIANT, contains

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Spark's plans for rows that the driver has, and for one row without columns.
_ROWS, _ONE_ROW = "LocalRelation", "OneRowRelation"


def at_hand(frame: DataFrame, most: int) -> pa.Table | None:
    """Returns the rows if the driver has them and they are `most` or fewer; else None."""
    java = getattr(frame, "_jdf", None)
    if java is None:
        return None
    query = java.queryExecution()
    leaves = query.analyzed().collectLeaves()
    if leaves.size() != 1 or leaves.head().nodeName() not in (_ROWS, _ONE_ROW):
        return None
    if not _is_at_hand(query.optimizedPlan(), most):
        return None
    schema = types.from_spark(frame.schema)
    if not contains(schema, VARIANT):
        return jobs.collect_given(frame)
    held = [number for number, field in enumerate(schema.fields) if contains(field.type, VARIANT)]
    # Where a Variant within another column is null cannot be told apart below.
    return _with_variants(frame, held) if all(schema.fields[number].type == VARIANT for number in held) else None


def _is_at_hand(plan: Any, most: int) -> bool:
    if plan.nodeName() == _ROWS:
        count = plan.stats().rowCount()
        return count.isDefined() and bool(count.get() <= most)
    return bool(plan.nodeName() == "Project" and plan.children().head().nodeName() == _ONE_ROW)


def _with_variants(frame: DataFrame, held: list[int]) -> pa.Table:
    """Collects rows with Variants in these columns, null ones too: PySpark refuses them, for it casts to groups whose
    parts are never null."""
    from pyspark.sql import functions as sql

    names = frame.columns
    numbered = frame.toDF(*map(str, range(len(names))))
    columns = [sql.col(str(number)) for number in range(len(names))]
    masks = [sql.isnull(columns[number]) for number in held]
    for number in held:
        columns[number] = sql.coalesce(columns[number], sql.parse_json(sql.lit("null")))
    found = jobs.collect_given(numbered.select(*columns, *masks)).combine_chunks()
    rows = found.select(range(len(names))).rename_columns(names)
    for number, mask in zip(held, found.columns[len(names) :], strict=True):
        chunks = zip(rows.column(number).chunks, mask.chunks, strict=True)
        values = [pa.StructArray.from_arrays(v.flatten(), fields=list(v.type), mask=m) for v, m in chunks]
        column = pa.chunked_array(values, rows.column(number).type)
        rows = rows.set_column(number, names[number], column)
    return rows
