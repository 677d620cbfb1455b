"""Spark's own comparator of strings, through DataFrames.

The rule: whoever judges the predicate makes the bounds. Strings go to Spark as they are, and Spark's ICU4J compares
them; never sort keys and never another library, which order some strings otherwise (facts.md, section 2). DataFrames
alone are used, so that Spark Connect serves as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from mica.collation.identifier import parse
from mica.collation.names import to_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: A session's version, asked once: it costs a job.
_VERSIONS: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


class Comparator:
    """The comparator of a Spark session. Collations are given by their SQL names: `de`, `UNICODE_CI`."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @property
    def version(self) -> str:
        """The version of all of Spark's collations, as its CollationFactory reports it: `78.3`.

        The SQL function says `78.3.0.0`, and nothing for UTF8_*; CollationFactory gives its first two parts for all.
        """
        if self.spark not in _VERSIONS:
            listed = self.spark.sql("SELECT max(ICU_VERSION) FROM collations()").collect()[0][0]
            _VERSIONS[self.spark] = ".".join(str(listed).split(".")[:2])
        return _VERSIONS[self.spark]

    def judges(self, collation: str) -> bool:
        """Whether the session has a collation (an identifier in Spark's spelling)."""
        return to_sql(parse(collation)) is not None

    def signs(self, columns: Sequence[pa.Array], asked: Sequence[tuple[int, str, str]]) -> list[pa.Array]:
        """For each (number of a column, collation, constant), aligned with the column: -1, 0 or 1 as a string stands
        below, is equal to or stands above the constant; null for null. The columns are of one length; one job for all.
        """
        from pyspark.sql import functions as sql

        if not asked or not len(columns[0]):
            return [pa.array([], pa.int8()) for _ in asked]
        rows = pa.array(range(len(columns[0])), pa.int32())
        table = pa.table({"row": rows, **{f"c{i}": column for i, column in enumerate(columns)}})
        found = []
        for i, (column, collation, constant) in enumerate(asked):
            left, right = sql.collate(sql.col(f"c{column}"), collation), sql.collate(sql.lit(constant), collation)
            sign = sql.when(left < right, -1).when(left == right, 0).when(left > right, 1)
            found.append(sign.cast("tinyint").alias(f"r{i}"))
        judged = self.spark.createDataFrame(table).select("row", *found).toArrow()
        order = pc.sort_indices(judged.column("row"))
        return [judged.column(f"r{i}").take(order).combine_chunks() for i in range(len(asked))]


def ends(rows: DataFrame, collations: Mapping[str, str]) -> DataFrame:
    """Rows whose columns `collations` (column → SQL name) are arrays of strings, with `<column>_min` and
    `<column>_max` instead: array functions find them where the row is, nothing is shuffled.
    """
    from pyspark.sql import functions as sql

    found = [sql.col(name) for name in rows.columns if name not in collations]
    for name, collation in collations.items():
        strings = sql.col(name).cast(f"array<string collate {collation}>")
        found += [sql.array_min(strings).alias(f"{name}_min"), sql.array_max(strings).alias(f"{name}_max")]
    return rows.select(*found)


def extremes(batches: DataFrame, collations: Mapping[str, str]) -> DataFrame:
    """Per file: the least and the greatest string of each column. `batches` has `file` (int), and per column an array
    of strings and `<column>_ok` (boolean, whether all have one place in the order); `collations` maps columns to SQL
    names. Comes out as file, `<column>_min`, `<column>_max`, `<column>_ok`.
    """
    from pyspark.sql import functions as sql

    whole = []
    for name in collations:
        whole += [sql.min(f"{name}_min").alias(f"{name}_min"), sql.max(f"{name}_max").alias(f"{name}_max")]
        whole.append(sql.min(f"{name}_ok").alias(f"{name}_ok"))
    return ends(batches, collations).groupBy("file").agg(*whole)
