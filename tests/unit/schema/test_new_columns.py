"""What rows have and a table lacks: behind the old fields of each level, and nothing else changes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.schema.arrow import from_arrow, variant_field
from mica.schema.ddl import parse_ddl, to_ddl
from mica.schema.new_columns import bare, with_new
from mica.schema.types import STRING, VARIANT, StructField, StructType

TABLE = parse_ddl(
    "a INT NOT NULL, s STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT>>, v VARIANT"
)


def test_nothing_new_is_the_same_schema() -> None:
    assert with_new(TABLE, TABLE) is TABLE
    assert with_new(TABLE, from_arrow(pa.schema([("A", pa.int64()), ("s", pa.struct([("X", pa.int64())]))]))) is TABLE
    assert with_new(TABLE, from_arrow(pa.schema([("v", pa.struct([("anything", pa.int64())]))]))) is TABLE


def test_new_ones_come_last_at_every_level() -> None:
    given = parse_ddl(
        "b STRING NOT NULL, s STRUCT<n: DATE, y: INT>, l ARRAY<STRUCT<n: INT>>, m MAP<STRING, STRUCT<n: INT>>"
    )
    assert to_ddl(with_new(TABLE, given)) == (
        "a INT NOT NULL,s STRUCT<x: INT, y: INT, n: DATE>,l ARRAY<STRUCT<x: INT, n: INT>>,"
        "m MAP<STRING, STRUCT<x: INT, n: INT>>,v VARIANT,b STRING"
    )


def test_what_is_in_a_new_one_may_be_null() -> None:
    given = parse_ddl("n STRUCT<x: ARRAY<STRUCT<y: INT NOT NULL>> NOT NULL>")
    found = with_new(TABLE, given)
    assert to_ddl(found).endswith(",n STRUCT<x: ARRAY<STRUCT<y: INT>>>")


def test_variants_stay_variants() -> None:
    assert with_new(TABLE, from_arrow(pa.schema([variant_field("w")]))).field("w").type == VARIANT


def test_a_column_of_nulls_has_no_type() -> None:
    with pytest.raises(UserError, match=r"s\.n") as caught:
        with_new(TABLE, from_arrow(pa.schema([("s", pa.struct([("n", pa.null())]))])))
    assert caught.value.code == "UNSUPPORTED_TYPE"


def test_a_new_one_keeps_what_is_said_of_it_and_no_rule() -> None:
    inner = StructField("x", STRING, True, {"__COLLATIONS": {"x": "spark.UTF8_LCASE"}, "delta.columnMapping.id": 7})
    outer = {"comment": "c", "k": 1, "CURRENT_DEFAULT": "1", "EXISTS_DEFAULT": "1", "delta.generationExpression": "1"}
    given = StructType((StructField("n", StructType((inner,)), False, outer),))
    found = with_new(TABLE, given).field("n")
    assert (found.nullable, found.metadata) == (True, {"comment": "c", "k": 1})
    assert isinstance(found.type, StructType)
    assert found.type.field("x").metadata == {"__COLLATIONS": {"x": "spark.UTF8_LCASE"}}
    assert bare(StructType((found,))).field("n").metadata == {}
    assert bare(found.type) == found.type


def test_a_type_that_no_column_has() -> None:
    with pytest.raises(UserError, match=r"n\.element") as caught:
        with_new(TABLE, from_arrow(pa.schema([("n", pa.list_(pa.duration("s")))]), strict=False))
    assert caught.value.code == "UNSUPPORTED_TYPE"
    known = from_arrow(pa.schema([("a", pa.duration("s"))]), strict=False)  # the write says what is wrong with it
    assert with_new(TABLE, known) is TABLE
