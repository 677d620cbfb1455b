"""`mica.enable`: `spark.sql` and `spark.table` of one session go through `mica.sql`, and its DataFrames know our names.

The rule: what names no table of mica's reaches Spark as it was written, and `disable` leaves nothing behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mica.arguments import SESSION, takes
from mica.engines.spark.doors import close_doors, open_doors
from mica.engines.spark.session import current
from mica.format.source import register
from mica.query import names
from mica.query.by_name import ANSWERS
from mica.query.entry import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@takes(spark=SESSION)
def enable(spark: SparkSession | None = None) -> SparkSession:
    """Lets `spark.sql` and `spark.table` of this session (None: the active one) go through `mica.sql`, makes
    `format("mica")` known to it, and returns it; `disable` undoes the former. Off by default.

    What a DataFrame filters after `spark.table` stays with Spark, whose own reader then prunes columns and paths; a
    condition in the text of `spark.sql` skips files too. `spark.read.table`, `df.write.saveAsTable` and `insertInto`,
    `df.writeTo`, `spark.readStream.table`, `toTable` and `spark.catalog.tableExists` take registered names too (not on
    Spark Connect), as `format("mica")` takes their paths, with the options of the reader or writer. Texts with
    `{names}` of Python objects (keyword arguments of `spark.sql`) go to Spark unchanged.
    """
    session: Any = current(spark)
    if "sql" in session.__dict__:
        return current(spark)
    register(session)
    own_sql, own_table = session.sql, session.table

    def sql(sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - Spark's name
        def by_spark() -> DataFrame:
            given: DataFrame = own_sql(sqlQuery, args, **kwargs)
            return given

        if kwargs or not isinstance(sqlQuery, str):
            return by_spark()
        return run(sqlQuery, session, args, by_spark)

    def table(tableName: str) -> DataFrame:  # noqa: N803 - Spark's name
        def by_spark() -> DataFrame:
            given: DataFrame = own_table(tableName)
            return given

        return run(f"TABLE {tableName}", session, None, by_spark)

    session.__dict__.update(sql=sql, table=table)
    open_doors(session, names.place_of, ANSWERS)
    return current(spark)


@takes(spark=SESSION)
def disable(spark: SparkSession | None = None) -> SparkSession:
    """Undoes `enable`: `spark.sql` and `spark.table` of the session are Spark's own again. Returns the session."""
    session: Any = current(spark)
    for name in ("sql", "table"):
        session.__dict__.pop(name, None)
    close_doors(session)
    return current(spark)
