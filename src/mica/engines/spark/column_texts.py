"""Columns of Spark's as texts that mica reads: what methods of DataFrames are given, in place of what SQL would say.

The rule: Spark alone decides what a column means over the rows that it is asked of; then each column of these rows is
named by its place, so that the text means the same wherever they have their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.functions import col

from mica.engines.spark.making import Maker
from mica.engines.spark.nodes import items

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def texts_of(sides: Mapping[str, DataFrame], columns: Sequence[Column | str]) -> list[str]:
    """The texts of columns, or names, over the rows of several DataFrames, whose names are before their columns.
    Errors: Spark's own; ValueError for what is no expression of one row."""
    first, *others = sides.values()
    rows = first
    for other in others:
        rows = rows.crossJoin(other)
    make = Maker.of(rows.sparkSession)
    asked = (col(one) if isinstance(one, str) else one for one in columns)
    plan: Any = rows.select(*(one.alias(f"c{at}") for at, one in enumerate(asked)))._jdf  # noqa: SLF001
    plan = plan.queryExecution().analyzed()
    if str(plan.nodeName()) != "Project" or int(plan.projectList().size()) != len(columns):
        raise ValueError(", ".join(map(str, columns)))
    # The rows right below: a join gives columns that come twice other ids.
    own, at, pairs = plan.child().output(), 0, []
    for side, frame in sides.items():
        for _ in frame.columns:
            one = own.apply(at)
            told = one.metadata(), one.exprId(), make.seq([side])
            pairs.append((one, make.attribute_reference(one.name(), one.dataType(), one.nullable(), *told)))
            at += 1
    found = plan.transformExpressions(make.rule(pairs))
    return [str(one.child().sql()) for one in items(found.projectList())]
