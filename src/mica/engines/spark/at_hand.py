"""The rows of a DataFrame that are few by its plan: of VALUES, of a pyarrow table, a list, a LIMIT, a small file.

The rule: rows are at hand if the plan says that there are a few at most, or if the driver has them already, or if what
they are made of is small and they are no larger; then they are collected, which takes no Python worker. A client of
Connect has no plans.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from mica.engines.spark import jobs, listed, types
from mica.engines.spark.hidden_column import opened
from mica.errors import MicaError
from mica.schema.types import VARIANT, contains

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Spark's plan for rows that the driver has.
_ROWS = "LocalRelation"

#: Spark's plans for rows whose bytes it knows before they are read: of a range, of files that it has listed.
_RANGE, _FILES = "Range", "LogicalRelation"

#: A file of another format may have any number of rows, however small it is.
_TEXT_FORMATS = ("csv", "json", "text", "xml")

#: So many bytes are small: the driver writes them sooner than a job of Python workers begins.
_SMALL_BYTES = 1 << 20

#: Spark's plans that have as many rows as what they are made of, or fewer.
_NO_MORE = ("Project", "Filter", "Sort", "SubqueryAlias", "View")

#: Spark's expressions whose values take about as much as what they are made of.
_NO_LARGER = {
    *("AttributeReference", "Alias", "Literal", "Cast", "GetStructField", "CreateNamedStruct"),
    *("Upper", "Lower", "StringTrim", "Concat", "ParseJson"),
}

#: Types whose values take a few bytes, whatever makes them.
_SMALL = re.compile(r"(boolean|tinyint|smallint|int|bigint|float|double|date|timestamp|decimal|void|time|interval)\b.*")

#: Larger expressions are not looked at; literals are part of them.
_LONGEST = 16_384

#: So many rows may have to be computed first.
_FEW = 1000

#: What the plan of a DataFrame shows whose rows shall come in so many files, if these are more than one.
_DIVIDED = re.compile(r"Repartition(?! 1, )|Rebalance")


def at_hand(frame: DataFrame, most: int) -> pa.Table | None:
    """Returns the rows if there are few, or if the driver has them and they are `most` or fewer; else None."""
    java = getattr(frame, "_jdf", None)
    if java is not None:
        frame = opened(frame)
        java = frame._jdf  # noqa: SLF001
    if java is None or not (_are_few(java.queryExecution()) or _are_held(java.queryExecution(), most)):
        return None
    schema = types.from_spark(frame.schema)
    held = [number for number, field in enumerate(schema.fields) if contains(field.type, VARIANT)]
    if any(schema.fields[number].type != VARIANT for number in held):
        return None  # where a Variant within another column is null cannot be told apart below
    try:
        return _with_variants(frame, held) if held else jobs.collect_given(frame)
    except MicaError as error:
        if error.message == jobs.CANCELLED:
            raise  # the user wants no second job for the same rows
        return None  # rows larger than Spark lets the driver have; whatever else fails, the workers' job says


def _are_few(query: Any) -> bool:
    """Whether the plan has a bound of its rows, such as that of a LIMIT. It is not optimised: that may ask sources."""
    plan = query.analyzed()
    most = plan.maxRows()
    return bool(most.isDefined() and most.get() <= _FEW and not _DIVIDED.search(plan.treeString()))


def _are_held(query: Any, most: int) -> bool:
    plan = query.analyzed()
    leaves = plan.collectLeaves()
    if leaves.size() == 1 and leaves.head().nodeName() == _ROWS:
        plan = query.optimizedPlan()
        while plan.nodeName() == "Repartition" and plan.numPartitions() == 1:  # what was read here is one partition
            plan = plan.child()
        count = plan.stats().rowCount()
        return bool(plan.nodeName() == _ROWS and count.isDefined() and count.get() <= most)
    while plan.nodeName() in _NO_MORE:
        if plan.nodeName() == "Project" and not _is_no_larger(plan.projectList()):
            return False  # what the rows are made of is small, but not what is computed of it
        plan = plan.child()
    if plan.nodeName() == _RANGE or (plan.nodeName() == _FILES and plan.relation().toString() in _TEXT_FORMATS):
        return bool(plan.stats().sizeInBytes() <= _SMALL_BYTES)
    return plan.nodeName() == listed.RDD and listed.is_list(plan, most)


def _is_no_larger(columns: Any) -> bool:
    """Whether rows of these columns take about as much as the rows that they are computed of."""
    found = (columns.apply(number) for number in range(columns.size()))
    return all(
        column.nodeName() == "AttributeReference" or _SMALL.match(column.dataType().simpleString()) or _is_moved(column)
        for column in found
    )


def _is_moved(column: Any) -> bool:
    text = column.toJSON()
    return len(text) <= _LONGEST and {node["class"].rpartition(".")[2] for node in orjson.loads(text)} <= _NO_LARGER


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
