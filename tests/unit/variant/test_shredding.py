"""What a shredding schema may be made of."""

from functools import reduce

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.variant.shredding import Limits, ShreddingSchema


@pytest.mark.parametrize(
    ("given", "ddl"),
    [
        ("struct<a: bigint, A: string>", "STRUCT<a: BIGINT, A: STRING>"),
        ("array<struct<x: decimal(9,2), y: variant>>", "ARRAY<STRUCT<x: DECIMAL(9,2), y: VARIANT>>"),
        ({"a": "bigint", "b": {"c d": "timestamp"}}, "STRUCT<a: BIGINT, b: STRUCT<`c d`: TIMESTAMP>>"),
        (pa.struct([("a", pa.large_string()), ("u", pa.binary(16))]), "STRUCT<a: STRING, u: UUID>"),
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
        {1: "int"}, nested(2_000),
    ],
    ids=range(7),
)  # fmt: skip
def test_refuses(given: object) -> None:
    with pytest.raises(UserError):
        ShreddingSchema.of(given)


def test_limits_are_checked() -> None:
    with pytest.raises(UserError):
        Limits(max_depth=101)
    with pytest.raises(UserError):
        Limits(min_share=1.5)
