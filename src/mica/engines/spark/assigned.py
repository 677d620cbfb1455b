"""Spark's store assignment: what INSERT does to the rows of its query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.functions import coalesce, concat, expr, is_variant_null, lit, raise_error, when
from pyspark.sql.types import StructType as SparkStructType

from mica.engines.spark.types import cast_text, from_spark, to_spark
from mica.schema import types
from mica.schema.special import DEFAULT
from mica.schema.spelling import quote_if_needed
from mica.schema.types import StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def assigned(rows: DataFrame, named: StructType, stored: StructType) -> DataFrame:
    """The rows with the types of `named`, which have other names of fields, and then cast to those of `stored`: a value
    that does not fit is an error, with ANSI and without.
    """
    given, wanted = from_spark(rows.schema), SparkStructType.fromJson(rows.schema.jsonValue())
    names, types = to_spark(named), to_spark(stored)
    for at, field in enumerate(wanted.fields):
        if named.fields[at].type != given.fields[at].type:
            renamed = rows[quote_if_needed(field.name)].cast(names.fields[at].dataType)
            rows = rows.withColumn(field.name, renamed)  # not quoted: it reads no name
        if stored.fields[at].type != given.fields[at].type:
            field.dataType = types.fields[at].dataType
    return rows if wanted == rows.schema else rows.to(wanted)


def checked(value: Column, given: types.DataType, type_: DataType, name: str) -> Column:
    """The value, of type `given`, cast to the type of its column as ANSI does, in a session without: what cannot be
    cast is an error."""
    read, is_none = value.try_cast(type_), value.isNull()
    is_none = is_none | is_variant_null(value) if given == types.VARIANT else is_none
    wrong = concat(
        lit("the value '"),
        coalesce(value.try_cast("string"), lit("…")),
        lit(f"' for the column {quote_if_needed(name)} cannot be cast to {type_.simpleString().upper()}"),
    )
    return when(is_none | read.isNotNull(), read).otherwise(raise_error(wrong))


def with_constants(rows: DataFrame, texts: Mapping[str, str | None], types: Mapping[str, str]) -> DataFrame:
    """The rows with more columns, each of one value: its text, and the type that it is cast to."""
    return rows.withColumns({name: lit(text).cast(types[name]) for name, text in texts.items()})


def with_defaults(rows: DataFrame, columns: Iterable[StructField]) -> DataFrame:
    """The rows with the defaults of these columns, which they lack."""
    return rows.withColumns({f.name: expr(cast_text(f.metadata[DEFAULT], f.type)) for f in columns})


def without_comments(rows: DataFrame, named: Collection[str]) -> DataFrame:
    """The rows, of which the named columns have no metadata of their own: neither a comment nor a length."""
    if not any(f.metadata for f in rows.schema.fields if f.name in named):
        return rows
    columns = {name: rows[quote_if_needed(name)] for name in rows.columns}
    return rows.select(
        *(column.alias(name, metadata={}) if name in named else column for name, column in columns.items())
    )
