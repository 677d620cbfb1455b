"""What a shredding schema may be made of."""

from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from mica.errors import UserError
from mica.schema.types import Primitive
from mica.variant.shredding import Limits, ShreddingSchema


@pytest.mark.parametrize(
    ("given", "ddl"),
    [
        ("struct<a: bigint, A: string>", "STRUCT<a: BIGINT, A: STRING>"),
        ("array<struct<x: decimal(9,2), y: variant>>", "ARRAY<STRUCT<x: DECIMAL(9,2), y: VARIANT>>"),
        ({"a": "bigint", "b": {"c d": "timestamp"}}, "STRUCT<a: BIGINT, b: STRUCT<`c d`: TIMESTAMP>>"),
        (pa.struct([("a", pa.large_string()), ("u", pa.binary(16))]), "STRUCT<a: STRING, u: UUID>"),
        (
            spark.StructType().add("a b", "long").add("x:int,y", spark.ArrayType(spark.StructType().add("`", "void"))),
            "STRUCT<`a b`: BIGINT, `x:int,y`: ARRAY<STRUCT<````: VARIANT>>>",
        ),
        (spark.DecimalType(9, 2), "DECIMAL(9,2)"),
        (pa.timestamp("us", "Europe/Berlin"), "TIMESTAMP"),
        ("variant", "VARIANT"),
        ("struct<>", "STRUCT<>"),
    ],
)
def test_accepts(given: object, ddl: str) -> None:
    schema = ShreddingSchema.of(given)
    assert schema.to_ddl() == ddl
    assert ShreddingSchema.of(schema) == schema


def nested(depth: int) -> object:
    return reduce(lambda inner, _: {"a": inner}, range(depth), "int")


@pytest.mark.parametrize(
    "given",
    [
        "map<string,int>", pa.uint8(), pa.timestamp("ms"), pa.struct([("a", pa.int8()), ("a", pa.int8())]), 7,
        {1: "int"}, nested(2_000), spark.MapType(spark.StringType(), spark.LongType()), spark.DayTimeIntervalType(),
        spark.LongType, Primitive("interval year"), Primitive("varchar(3)"),
    ],
    ids=range(12),
)  # fmt: skip
def test_refuses(given: object) -> None:
    with pytest.raises(UserError):
        ShreddingSchema.of(given)


@pytest.mark.parametrize(
    "given",
    ["struct<b: int, `a\0b`: int>", {"a": {"x\0": "int"}}, pa.list_(pa.struct([("\0", pa.int8())]))],
    ids=range(3),
)
def test_a_name_is_not_cut_at_a_nul(given: object) -> None:
    with pytest.raises(UserError, match="holds a NUL") as raised:
        ShreddingSchema.of(given)
    assert raised.value.code == "INVALID_SHREDDING_SCHEMA"


def test_limits_are_checked() -> None:
    with pytest.raises(UserError):
        Limits(max_depth=101)
    with pytest.raises(UserError):
        Limits(min_share=1.5)
