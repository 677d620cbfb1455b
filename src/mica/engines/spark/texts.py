"""Predicates and columns that Spark itself evaluates.

The rule: Spark runs the user's own SQL text, never generated SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


#: Functions that tell of files which Spark reads itself; they say nothing of rows that come from mica's tasks.
OF_FILES = frozenset(("input_file_name", "input_file_block_start", "input_file_block_length"))

#: How columns are called that `nested` puts into a struct.
NESTED = "__mica_nested_"


def nested(frame: DataFrame, name: str, columns: Sequence[str]) -> DataFrame:
    """The rows with these columns, which are called `NESTED` and the name of a field, as fields of a struct `name`."""
    from pyspark.sql import functions as sql

    fields = [sql.col(column).alias(column.removeprefix(NESTED)) for column in columns]
    return frame.withColumn(name, sql.struct(*fields)).drop(*columns)


def judged(frame: DataFrame, where: str | None, columns: Mapping[str, str], limit: int | None) -> DataFrame:
    """The rows of `frame` for which `where` is true, as `columns` (name → expression), up to `limit` of them."""
    from pyspark.sql import functions as sql

    if where is not None:
        frame = frame.where(where)
    frame = frame.select(*[sql.expr(text).alias(name) for name, text in columns.items()])
    return frame if limit is None else frame.limit(limit)


def joined(left: DataFrame, right: DataFrame, on: str, how: str) -> DataFrame:
    """The rows of two sides, which have aliases, for which `on` is true."""
    from pyspark.sql import functions as sql

    return left.join(right, sql.expr(on), how)


def without(left: DataFrame, right: DataFrame, key: str) -> DataFrame:
    """The rows of one side whose value of this column the other has not."""
    return left.join(right.select(key), key, "left_anti")


def with_numbers(frame: DataFrame, name: str) -> DataFrame:
    """The rows with a number of each, whichever."""
    from pyspark.sql import functions as sql

    return frame.withColumn(name, sql.monotonically_increasing_id())


def numbered(frame: DataFrame, number: str) -> DataFrame:
    """The rows with a number in this column."""
    from pyspark.sql import functions as sql

    return frame.where(sql.col(number).isNotNull())


def decided(
    frame: DataFrame,
    number: str,
    conditions: Mapping[int, str | None],
    values: Mapping[str, tuple[int, str]],
    kept: Sequence[str],
) -> DataFrame:
    """The rows with the number of the first condition that is true (None is) in the column `number`, null if none is; a
    value is evaluated in the rows of its number. Of the other columns those of these names stay."""
    from pyspark.sql import functions as sql

    tests = [(key, sql.lit(True) if text is None else sql.expr(text)) for key, text in conditions.items()]
    first, *others = tests
    chosen = sql.when(first[1], sql.lit(first[0]))
    for key, test in others:
        chosen = chosen.when(test, sql.lit(key))
    frame = frame.withColumn(number, chosen)
    told = [sql.when(sql.col(number) == key, sql.expr(text)).alias(name) for name, (key, text) in values.items()]
    return frame.select(*map(sql.col, kept), number, *told)
