"""Which blanks a session gives CHAR columns.

The rule: as Spark does with its own tables, since what a user filters after a scan is evaluated by Spark.

Source: Spark's ApplyCharTypePadding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mica.engines.spark.session import is_true
from mica.schema.char import declared, is_padded
from mica.schema.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Whether CHAR is STRING, and whether CHAR columns are read with blanks: each with its usual value.
AS_STRING = ("spark.sql.legacy.charVarcharAsString", "false")
READ_PADDED = ("spark.sql.readSideCharPadding", "true")


def padding(spark: SparkSession, schema: StructType) -> tuple[bool, bool]:
    """Whether a CHAR column and a text are compared with blanks, and whether the column is read with them."""
    if not any(is_padded(declared(f)) for f in schema.fields):
        return True, True
    return (False, False) if is_true(spark, *AS_STRING) else (True, is_true(spark, *READ_PADDED))
