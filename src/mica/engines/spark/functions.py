"""Functions of Spark's columns that the kernel evaluates.

The rule: they give what Spark's functions of the same name give, for whole Arrow batches at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica import compute as pc
from mica.engines.spark.batches import for_spark
from mica.errors import MicaError, UserError
from mica.schema.types import VARIANT, StructField, StructType
from mica.variant import kernel
from mica.variant.plain import MAX_SIZE

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

_ROWS = StructType((StructField("v", VARIANT),))


def parse_json(column: SparkColumn | str) -> SparkColumn:
    """Parses JSON texts to Variants, as Spark's `parse_json` does: a column function for DataFrames and streams.

        events = spark.readStream.format("kafka").….load().select(mica.parse_json("value").alias("v"))

    `column` is a column of strings or bytes, or its name; bytes that are not UTF-8 become U+FFFD, as by Spark's cast.
    Nulls stay null. Needs Spark 4.1 (Arrow UDFs). A text that is not JSON fails the query (INVALID_JSON,
    DUPLICATE_KEY, TOO_DEEP, TOO_LARGE); `try_parse_json` gives null instead.
    """
    return _applied(_parsed, "parse_json", column)


def try_parse_json(column: SparkColumn | str) -> SparkColumn:
    """The same as `parse_json`, but a text that is not JSON becomes null: Spark's `try_parse_json`."""
    return _applied(_tried, "try_parse_json", column)


def _applied(function: Callable[[pa.Array], pa.Array], name: str, column: SparkColumn | str) -> SparkColumn:
    from pyspark.sql import functions
    from pyspark.sql.types import VariantType

    arrow_udf: Any = getattr(functions, "arrow_udf", None)
    if arrow_udf is None:
        raise UserError(
            "NOT_INSTALLED",
            "mica.parse_json needs Arrow UDFs, which Spark has since 4.1",
            hint="Use Spark's parse_json.",
        )
    function.__name__ = name  # by which Spark calls the column; workers find the function by its qualified name
    made: SparkColumn = arrow_udf(function, VariantType())(column)
    return made


def _tried(texts: pa.Array) -> pa.Array:
    return _made(texts).column(0)


def _parsed(texts: pa.Array) -> pa.Array:
    made = _made(texts)
    failed = pc.index(made.column("failed"), True).as_py()
    if failed >= 0:
        alone = pa.record_batch([_bytes(texts.slice(failed, 1))], names=["json"])
        try:
            kernel.json_to_variant(alone, max_size=MAX_SIZE)
        except MicaError as error:
            error.context = {name: value for name, value in error.context.items() if name != "row"}
            error.hint = "Use mica.try_parse_json: it gives null for such a text."
            raise
    return made.column(0)


def _made(texts: pa.Array) -> pa.RecordBatch:
    """Variants in the form that Spark takes, and the mask `failed`."""
    made = kernel.try_json_to_variant(pa.record_batch([_bytes(texts)], names=["json"]))
    variants = for_spark(made.select(["v"]), _ROWS).column(0)
    return pa.record_batch([variants, made.column("failed")], names=["v", "failed"])


def _bytes(texts: pa.Array) -> pa.Array:
    """The bytes of the texts: Spark's strings may hold any."""
    return texts.cast(pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary())
