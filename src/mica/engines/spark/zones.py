"""Which times a Spark session reads exactly as mica does.

The rule: where Spark evaluates rows, files are skipped only by what is certain in its zones too. mica and Spark have
different versions of the time zone database, so a local time in a predicate may be another instant in Spark. UTC and
fixed offsets are the same in both. In other zones Spark is asked to convert the constants, and bounds that are
converted between instants and local times are as wide as any zone makes them (`mica.skipping.clocks`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from mica.arrays import arrow_array
from mica.engines.spark.arrow_rows import of_arrow_table
from mica.expressions.bound_expr import BoundExpr, type_of
from mica.expressions.lookup import FUNCTIONS
from mica.expressions.tree import And, Call, Cast, Expr, LeafRef, Literal, walk
from mica.schema.types import BOOLEAN, TIMESTAMP
from mica.variant import kernel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def skips_by(spark: SparkSession, predicate: BoundExpr, *, folded: bool) -> BoundExpr:
    """The predicate without the parts of its AND whose constants the session reads differently; it only skips files.
    `folded`: its constants are those of Spark's plan, which are instants."""
    zone = predicate.timezone
    if kernel.fixed_offset(zone) is not None:
        return predicate
    others = frozenset() if folded else _read_otherwise(spark, _instants(predicate.expr), zone)
    kept = [part for part in predicate.parts if others.isdisjoint(_instants(part))]
    expr = predicate.expr if len(kept) == len(predicate.parts) else And(tuple(kept)) if kept else Literal(True, BOOLEAN)
    return replace(predicate, expr=expr, other_zones=True)


def reads_alike(spark: SparkSession, bound: BoundExpr, *, folded: bool) -> bool:
    """Whether the session evaluates it exactly as mica; `folded` as above."""
    zone = bound.timezone
    if kernel.fixed_offset(zone) is not None:
        return True
    return not _moves(bound) and (folded or not _read_otherwise(spark, _instants(bound.expr), zone))


def _instants(part: Expr) -> set[int]:
    """The constants of type TIMESTAMP, in µs since the epoch."""
    found = (node for node in walk(part) if isinstance(node, Literal) and node.type == TIMESTAMP)
    return {node.value for node in found if node.value is not None}


def _moves(bound: BoundExpr) -> bool:
    """Whether it casts values of rows between instants and local times, or casts a path of a Variant to an instant."""
    for node in walk(bound.expr):
        if isinstance(node, Cast) and (node.type == TIMESTAMP) != (type_of(node.child) == TIMESTAMP):
            return True
        if isinstance(node, Call) and node.name in FUNCTIONS and "timezone" in FUNCTIONS[node.name].needs:
            return True
        if isinstance(node, LeafRef) and node.type == TIMESTAMP and bound.leaves[node.index].path is not None:
            return True
    return False


def _read_otherwise(spark: SparkSession, given: set[int], zone: str) -> frozenset[int]:
    """The instants whose local time is another instant in Spark."""
    if not given:
        return frozenset()
    instants = sorted(given)
    column = arrow_array(instants, pa.int64()).cast(pa.timestamp("us", "UTC"))
    batch = pa.RecordBatch.from_arrays([column], names=["t"])
    local = kernel.cast(batch, pa.timestamp("us"), timezone=zone).column(0).cast(pa.int64())
    # Local times are passed as µs as if in UTC, which avoids a text form for years of any length. What TIMESTAMP is, a
    # setting of the session says; it may be a local time.
    frame = of_arrow_table(spark, pa.table({"instant": arrow_array(instants, pa.int64()), "local": local}))
    read = "TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, local / 1000000BD)"
    found = frame.selectExpr("instant", f"unix_micros(CAST({read} AS TIMESTAMP_LTZ)) AS theirs").toArrow()
    return frozenset(a for a, b in zip(*(c.to_pylist() for c in found.columns), strict=True) if a != b)
