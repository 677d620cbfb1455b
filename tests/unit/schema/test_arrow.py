"""Delta types and Arrow types."""

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.schema import arrow
from mica.schema.ddl import parse_ddl, to_ddl
from mica.schema.types import TYPES, VOID, ArrayType


def test_every_type_there_and_back() -> None:
    names = [row.ddl[0] for row in TYPES.values()] + ["DECIMAL(38,10)", "ARRAY<VARIANT>", "MAP<STRING, VARIANT>"]
    schema = parse_ddl(", ".join(f"c{i} {name}" for i, name in enumerate([*names, "STRUCT<a: VARIANT, b: INT>"])))
    assert arrow.from_arrow(arrow.to_arrow(schema)) == schema


def test_variants_carry_the_extension_name() -> None:
    f = arrow.to_arrow(parse_ddl("v VARIANT")).field("v")
    assert f.metadata == {b"ARROW:extension:name": b"arrow.parquet.variant"}
    assert f.type.names == ["metadata", "value"]


def test_sparks_variant_is_recognised() -> None:
    spark = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})])
    assert arrow.is_variant(pa.field("v", spark))
    assert not arrow.is_variant(pa.field("v", pa.struct([("value", pa.binary()), ("metadata", pa.binary())])))


@pytest.mark.parametrize(
    ("type_", "ddl"),
    [
        (pa.uint32(), "BIGINT"), (pa.uint64(), "DECIMAL(20,0)"), (pa.large_string(), "STRING"),
        (pa.string_view(), "STRING"), (pa.dictionary(pa.int8(), pa.string()), "STRING"), (pa.date64(), "DATE"),
        (pa.timestamp("ns", "Europe/Berlin"), "TIMESTAMP"), (pa.timestamp("s"), "TIMESTAMP_NTZ"),
        (pa.list_(pa.int8(), 3), "ARRAY<TINYINT>"), (pa.binary(4), "BINARY"), (pa.decimal256(30, 3), "DECIMAL(30,3)"),
    ],
)  # fmt: skip
def test_arrows_other_spellings(type_: pa.DataType, ddl: str) -> None:
    assert to_ddl(arrow.from_arrow(pa.schema([("c", type_)]))) == f"c {ddl}"


@pytest.mark.parametrize("type_", [pa.time64("us"), pa.duration("s"), pa.decimal256(50, 2), pa.list_(pa.time32("s"))])
def test_what_no_delta_type_holds(type_: pa.DataType) -> None:
    with pytest.raises(UserError) as raised:
        arrow.from_arrow(pa.schema([("c", type_)]))
    assert raised.value.code == "UNSUPPORTED_TYPE"
    assert "'c" in str(raised.value)


def test_elements_without_a_type_may_be_null_for_arrow() -> None:
    """Spark says of `array()` that it holds no null, for it holds nothing."""
    found = arrow.to_arrow_type(ArrayType(VOID, contains_null=False))
    assert found == pa.list_(pa.field("element", pa.null()))
