"""Compares strings with Spark's own comparator, through DataFrames.

The rule: bounds are made by the comparator that evaluates predicates. Strings are sent to Spark unchanged, and Spark's
ICU4J compares them. Sort keys and other libraries order some strings differently, so they are not used
(docs/decisions.md). Only DataFrames are used, so Spark Connect works too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, arrow_array, scalar, to_numpy
from mica.collation.identifier import parse
from mica.collation.names import to_sql
from mica.collation.narrow import Signs
from mica.engines.base import Ends
from mica.engines.spark.arrow_rows import of_arrow_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: The collation version per session, cached because it costs a job.
_VERSIONS: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()

#: Pairs of strings per job: they are sent and returned as one table.
JOB_PAIRS = 1_000_000


class SparkComparator:
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
        """Whether the session has the collation (an identifier in Spark's spelling)."""
        return to_sql(parse(collation)) is not None

    def signs(self, columns: Sequence[pa.Array], asked: Sequence[tuple[int, str, str]]) -> list[pa.Array]:
        """For each (index of a column, collation, constant), aligned with the column: -1, 0 or 1 if a string is less
        than, equal to or greater than the constant; null for null.

        `narrow` decides what it can without Spark; one job decides the rest unless it is too much, then none does.
        """
        known: dict[tuple[int, str], Signs] = {}
        found: list[pa.Array] = []
        left: list[list[tuple[int, NDArray[np.int64]]]] = [[]]
        size = 0
        for number, (column, name, constant) in enumerate(asked):
            if (column, name) not in known:
                known[column, name] = Signs(columns[column], name, self.version)
            signs = known[column, name].to(constant)
            found.append(signs)
            rows = np.flatnonzero(pc.and_(signs.is_null(), columns[column].is_valid()))
            if len(rows):
                left[-1].append((number, rows))
                size += len(rows)
            if size > JOB_PAIRS:
                left.append([])
                size = 0
        for number, rows, signs in itertools.chain.from_iterable(self._asked(columns, asked, some) for some in left):
            whole = np.array(found[number].fill_null(0))
            whole[rows] = signs
            found[number] = arrow_array(whole, pa.int8(), mask=to_numpy(columns[asked[number][0]].is_null()))
        return found

    def compared(self, left: pa.Array, right: pa.Array, collations: Sequence[str]) -> NDArray[np.int8]:
        """-1, 0 or 1 for each pair of strings (none is null), by the collation at the same index, in one job."""
        from pyspark.sql import functions as sql

        if not len(left):
            return np.zeros(0, np.int8)
        names = {name: number for number, name in enumerate(dict.fromkeys(collations))}
        numbers = arrow_array([names[name] for name in collations], pa.int32())
        table = pa.table({"row": arrow_array(np.arange(len(left))), "l": left, "r": right, "n": numbers})
        sign: Any = sql
        for name, number in names.items():
            a, b = (sql.collate(sql.col(side), name) for side in ("l", "r"))
            sign = sign.when(sql.col("n") == number, sql.when(a < b, -1).when(a == b, 0).otherwise(1))
        judged = of_arrow_table(self.spark, table).select("row", sign.cast("tinyint").alias("sign")).toArrow()
        return to_numpy(judged.column("sign").take(pc.sort_indices(judged.column("row"))))

    def classes(self, strings: pa.Array, collation: str) -> pa.Array:
        """The least string of those that are equal to each of these, in one job."""
        from pyspark.sql import functions as sql

        if not len(strings):
            return strings
        table = pa.table({"row": arrow_array(np.arange(len(strings))), "s": strings})
        by = sql.collate("s", str(to_sql(parse(collation))))
        grouped = of_arrow_table(self.spark, table).groupBy(by.alias("by"))
        found = grouped.agg(sql.min("s").alias("least"), sql.collect_list("row").alias("rows"))
        judged = found.select(sql.explode("rows").alias("row"), "least").toArrow()
        return judged.column("least").combine_chunks().take(pc.sort_indices(judged.column("row")))

    def _asked(
        self,
        columns: Sequence[pa.Array],
        asked: Sequence[tuple[int, str, str]],
        left: Sequence[tuple[int, NDArray[np.int64]]],
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int8]]]:
        """The signs that Spark must decide: index of the request, rows of the column, their signs."""
        if not left:
            return
        strings, constants, names = [], [], []
        for number, rows in left:
            column, name, constant = asked[number]
            strings.append(columns[column].take(arrow_array(rows)))
            constants.append(pa.repeat(scalar(constant, pa.string()), len(rows)))
            names += [name] * len(rows)
        signs = self.compared(pa.concat_arrays(strings), pa.concat_arrays(constants), names)
        start = 0
        for number, rows in left:
            yield number, rows, signs[start : start + len(rows)]
            start += len(rows)


def with_ends(rows: DataFrame, ends: Ends) -> DataFrame:
    """The rows with minimum and maximum of their strings, if `ends` requests them. Array functions compute them per
    row; only one row for each value of `ends.by` is shuffled.
    """
    from pyspark.sql import functions as sql

    if not ends.of:
        return rows
    found = [sql.col(name) for name in rows.columns if name not in ends.of]
    for name, collation in ends.of.items():
        strings = sql.col(name).cast(f"array<string collate {collation}>")
        found += [sql.array_min(strings).alias(f"{name}_min"), sql.array_max(strings).alias(f"{name}_max")]
    whole = rows.select(*found)
    if ends.by is None:
        return whole
    both = [(sql.min(f"{n}_min").alias(f"{n}_min"), sql.max(f"{n}_max").alias(f"{n}_max")) for n in ends.of]
    return whole.groupBy(ends.by).agg(*(column for pair in both for column in pair))
