"""Converts schemas between mica and Spark, through the JSON form that both share."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica.errors import UserError
from mica.schema import json as schema_json
from mica.schema.arrow import from_arrow
from mica.schema.collations import for_spark
from mica.schema.ddl import type_to_ddl
from mica.schema.edit import map_fields
from mica.schema.spelling import quoted
from mica.schema.types import DataType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType as SparkStructType

#: What Spark's SQL of a type has for a string whose collation is not certain.
_MIXED = " COLLATE NULL"

#: The type in a DDL, and no name: that of a field is before a colon or in quotes.
_TIMESTAMP = re.compile(r"\bTIMESTAMP\b(?!\s*:)(?=[^`]*(?:`[^`]*`[^`]*)*$)")


def type_text(type_: DataType | str) -> str:
    """A type, or its DDL, as a text for Spark, where `spark.sql.timestampType` says what TIMESTAMP is."""
    return _TIMESTAMP.sub("TIMESTAMP_LTZ", type_ if isinstance(type_, str) else type_to_ddl(type_))


def cast_text(text: str, type_: DataType) -> str:
    """An expression of Spark's, cast to a type."""
    return f"CAST(({text}) AS {type_text(type_)})"


def to_spark(schema: StructType) -> SparkStructType:
    """The schema as PySpark's StructType, without what only the table's log knows of a column: rows keep what Spark has
    beside it, and a table made of them would have the numbers of another one. Errors: UNKNOWN_COLLATION if Spark lacks
    the collation of a string."""
    from pyspark.sql.types import StructType as SparkStructType

    return SparkStructType.fromJson(json.loads(schema_json.dumps(map_fields(for_spark(schema), _without_own))))


def _without_own(f: StructField) -> StructField:
    """The field without the metadata of Delta: physical names, generated columns, identities, earlier types."""
    return f.with_metadata(dict.fromkeys(key for key in f.metadata if key.startswith("delta.")))


def of_arrow(schema: pa.Schema) -> SparkStructType:
    """The schema of Arrow batches as PySpark's StructType."""
    return to_spark(from_arrow(schema))


def from_spark(schema: SparkStructType) -> StructType:
    """PySpark's StructType, or the JVM's, as mica's."""
    return schema_json.loads(json_of(schema))


def json_of(schema: Any) -> str:
    """The JSON of a schema of PySpark or the JVM. Errors: COLLATION_MISMATCH for a string without a certain collation,
    of which Spark writes none."""
    try:
        return str(schema.json())
    except Exception as error:
        mixed = [str(f.name()) for f in schema.fields() if _MIXED in str(f.sql())]
        if not mixed:
            raise
        raise UserError(
            "COLLATION_MISMATCH",
            f"the column {mixed[0]} is made of strings of different collations, so it has none",
            hint="Name one: concat(a, b) COLLATE UTF8_BINARY.",
            column=mixed[0],
        ) from error


def refuse_mixed(frame: DataFrame) -> None:
    """Refuses rows that have such a string: PySpark has no schema of them. Errors: COLLATION_MISMATCH."""
    if (found := _unknown(frame)) is not None:
        json_of(found)


def without_mixed(frame: DataFrame) -> DataFrame:
    """The DataFrame, where such strings are plain ones, as Spark makes them where it stores them."""
    found = _unknown(frame)
    if found is None:
        return frame
    texts = [(quoted(str(f.name())), str(f.dataType().sql())) for f in found.fields()]
    casts = (
        f"CAST({name} AS {text.replace(_MIXED, '')}) AS {name}" if _MIXED in text else name for name, text in texts
    )
    return frame.selectExpr(*casts)


def _unknown(frame: DataFrame) -> Any:
    """The JVM's schema, if PySpark has none of it. On Connect it has."""
    try:
        _ = frame.schema
    except ValueError:
        return frame._jdf.schema()  # noqa: SLF001
    return None


def is_frame(data: Any) -> bool:
    """Whether it is a Spark DataFrame, classic or Connect. Does not import pyspark."""
    return _is_sparks(data, "mapInArrow")


def is_column(data: Any) -> bool:
    """Whether it is a Spark Column. Does not import pyspark."""
    return _is_sparks(data, "isNotNull")


def unread(frame: Any) -> Any:
    """The DataFrame, whose rows are read by tasks whenever somebody asks for them (`deferred`), not now."""
    made = getattr(type(frame), "unread", None)
    return frame if made is None else made(frame)


def is_session(given: Any) -> bool:
    """Whether it is a Spark session, classic or Connect. Does not import pyspark."""
    return _is_sparks(given, "createDataFrame")


def _is_sparks(given: Any, method: str) -> bool:
    # The class is checked, since a Column instance has every attribute.
    kinds = type(given).__mro__
    return hasattr(kinds[0], method) and any(kind.__module__.startswith("pyspark.sql") for kind in kinds)
