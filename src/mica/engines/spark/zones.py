"""Finds the parts of a predicate whose times a Spark session reads exactly as mica does.

The rule: if Spark evaluates the rows, files are skipped only by parts that Spark reads alike. mica and Spark have
different versions of the time zone database, so a local time in a predicate may be another instant in Spark. UTC and
fixed offsets are the same in both. In other zones Spark is asked to convert the constants, and a comparison that
converts rows between local time and instants skips no files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from mica.arrays import arrow_array
from mica.expressions.bound_expr import BoundExpr, type_of
from mica.expressions.tree import And, Cast, Expr, LeafRef, Literal, walk
from mica.schema.types import BOOLEAN, TIMESTAMP
from mica.variant import kernel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_alike(spark: SparkSession, predicate: BoundExpr) -> BoundExpr:
    """The predicate without the parts of its AND that the session may read differently. Of another value, it tells only
    whether the session reads all of it alike: it is then returned as it is."""
    zone = predicate.timezone
    if kernel.fixed_offset(zone) is not None:
        return predicate
    # The parts of another value would be those of a predicate that asks whether it is true.
    parts = predicate.parts if predicate.type == BOOLEAN else (predicate.expr,)
    instants = sorted({value for part in parts for value in _instants(part)})
    others = _read_otherwise(spark, instants, zone) if instants else frozenset()
    kept = [part for part in parts if not _moves(part, predicate) and others.isdisjoint(_instants(part))]
    if len(kept) == len(parts):
        return predicate
    return replace(predicate, expr=And(tuple(kept)) if kept else Literal(True, BOOLEAN))


def _instants(part: Expr) -> set[int]:
    """The constants of type TIMESTAMP, in µs since the epoch."""
    found = (node for node in walk(part) if isinstance(node, Literal) and node.type == TIMESTAMP)
    return {node.value for node in found if node.value is not None}


def _moves(part: Expr, predicate: BoundExpr) -> bool:
    """Whether it casts values of rows between instants and local times, or casts a path of a Variant to an instant."""
    for node in walk(part):
        if isinstance(node, Cast) and (node.type == TIMESTAMP) != (type_of(node.child) == TIMESTAMP):
            return True
        if isinstance(node, LeafRef) and node.type == TIMESTAMP and predicate.leaves[node.index].path is not None:
            return True
    return False


def _read_otherwise(spark: SparkSession, instants: list[int], zone: str) -> frozenset[int]:
    """The instants whose local time is another instant in Spark."""
    column = arrow_array(instants, pa.int64()).cast(pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_arrays([column], names=["t"])
    local = kernel.cast(batch, pa.timestamp("us"), timezone=zone).column(0).cast(pa.int64())
    # Local times are passed as µs as if in UTC, which avoids a text form for years of any length. What TIMESTAMP is, a
    # setting of the session says; it may be a local time.
    frame = spark.createDataFrame(pa.table({"instant": arrow_array(instants, pa.int64()), "local": local}))
    read = "TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, local / 1000000BD)"
    found = frame.selectExpr("instant", f"unix_micros(CAST({read} AS TIMESTAMP_LTZ)) AS theirs").toArrow()
    return frozenset(a for a, b in zip(*(c.to_pylist() for c in found.columns), strict=True) if a != b)
