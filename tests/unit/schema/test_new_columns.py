"""What rows have and a table lacks: behind the old fields of each level, and nothing else changes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.schema.arrow import to_arrow, variant_field
from mica.schema.ddl import parse_ddl, to_ddl
from mica.schema.new_columns import with_new
from mica.schema.types import VARIANT

TABLE = parse_ddl(
    "a INT NOT NULL, s STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT>>, v VARIANT"
)


def test_nothing_new_is_the_same_schema() -> None:
    assert with_new(TABLE, to_arrow(TABLE)) is TABLE
    assert with_new(TABLE, pa.schema([("A", pa.int64()), ("s", pa.struct([("X", pa.int64())]))])) is TABLE
    assert with_new(TABLE, pa.schema([("v", pa.struct([("anything", pa.int64())]))])) is TABLE


def test_new_ones_come_last_at_every_level() -> None:
    given = parse_ddl(
        "b STRING NOT NULL, s STRUCT<n: DATE, y: INT>, l ARRAY<STRUCT<n: INT>>, m MAP<STRING, STRUCT<n: INT>>"
    )
    assert to_ddl(with_new(TABLE, to_arrow(given))) == (
        "a INT NOT NULL,s STRUCT<x: INT, y: INT, n: DATE>,l ARRAY<STRUCT<x: INT, n: INT>>,"
        "m MAP<STRING, STRUCT<x: INT, n: INT>>,v VARIANT,b STRING"
    )


def test_what_is_in_a_new_one_may_be_null() -> None:
    given = parse_ddl("n STRUCT<x: ARRAY<STRUCT<y: INT NOT NULL>> NOT NULL>")
    found = with_new(TABLE, to_arrow(given))
    assert to_ddl(found).endswith(",n STRUCT<x: ARRAY<STRUCT<y: INT>>>")


def test_variants_stay_variants() -> None:
    assert with_new(TABLE, pa.schema([variant_field("w")])).field("w").type == VARIANT


def test_a_column_of_nulls_has_no_type() -> None:
    with pytest.raises(UserError, match=r"s\.n") as caught:
        with_new(TABLE, pa.schema([("s", pa.struct([("n", pa.null())]))]))
    assert caught.value.code == "UNSUPPORTED_TYPE"
