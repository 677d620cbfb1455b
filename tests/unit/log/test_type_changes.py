"""Type changes that are read: the protocol's table, wherever in the schema they stand. (delta-spark: tests/interop.)"""

from __future__ import annotations

from typing import Any

import pytest

from mica.errors import UnsupportedTableError
from mica.log.type_changes import check, is_wider
from mica.schema.types import DOUBLE, INTEGER, LONG, STRING, ArrayType, DataType, MapType, StructField, StructType
from mica.stats.columns import TYPE_CHANGES

_TYPES = "byte short integer long float double date timestamp timestamp_ntz string boolean".split()
_WIDER = {
    "byte": {"short", "integer", "long", "double"}, "short": {"integer", "long", "double"},
    "integer": {"long", "double"}, "float": {"double"}, "date": {"timestamp_ntz"},
}  # fmt: skip


def test_the_types_that_hold_all_values_of_another() -> None:
    for source in _TYPES:
        assert {target for target in _TYPES if is_wider(source, target)} == {source} | _WIDER.get(source, set())


@pytest.mark.parametrize(
    ("source", "target", "wider"),
    [
        ("byte", "decimal(10,0)", True), ("short", "decimal(12,2)", True), ("integer", "decimal(12, 2)", True),
        ("integer", "decimal(11,2)", False), ("byte", "decimal(9,0)", False),
        ("long", "decimal(20,0)", True), ("long", "decimal(22,2)", True), ("long", "decimal(19,0)", False),
        ("decimal(5,2)", "decimal(10,4)", True), ("decimal(5,2)", "decimal(6,3)", True),
        ("decimal(5,2)", "decimal(6,2)", True), ("decimal(5,2)", "decimal(5,3)", False),
        ("decimal(5,2)", "decimal(9,1)", False), ("decimal(5,0)", "long", False),
        ("double", "decimal(38,0)", False), ("date", "decimal(38,0)", False),
    ],
)  # fmt: skip
def test_decimals_keep_the_digits_on_both_sides_of_the_point(source: str, target: str, wider: bool) -> None:
    assert is_wider(source, target) is wider


def _schema(type_: DataType, changes: Any) -> StructType:
    return StructType((StructField("c", type_, True, {TYPE_CHANGES: changes}),))


@pytest.mark.parametrize(
    ("column", "nest"),
    [
        ("c", lambda s: s),
        ("s.c", lambda s: StructType((StructField("s", s),))),
        ("a.element.c", lambda s: StructType((StructField("a", ArrayType(s)),))),
        ("m.key.c", lambda s: StructType((StructField("m", MapType(s, STRING)),))),
        ("m.value.c", lambda s: StructType((StructField("m", MapType(STRING, s)),))),
    ],
)
def test_each_change_counts_wherever_it_stands(column: str, nest: Any) -> None:
    known, unknown = {"fromType": "integer", "toType": "long"}, {"fromType": "long", "toType": "double"}
    check(nest(_schema(LONG, [known])), "t")
    for changes in ([unknown], [known, unknown], unknown, ["?"], [{}], [{"toType": "decimal(38,0)"}]):
        with pytest.raises(UnsupportedTableError) as raised:
            check(nest(_schema(DOUBLE, changes)), "t")
        assert raised.value.code == "UNSUPPORTED_TYPE_CHANGE"
        assert raised.value.context["column"] == column
    check(nest(StructType((StructField("c", INTEGER),))), "t")
