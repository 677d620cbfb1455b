"""Nothing is written that was not validated: Variants shredded or as they stand, inside lists and maps too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.schema.arrow import variant_field
from tests.variant_files import ONE, TWO, column, container

#: Values, and the rules that they break.
BAD = {
    "cut": (b"\x18\x01", 15),
    "unknown": (b"\x54", 7),
    "text": (b"\x05\xff", 6),
    "twice": (container([ONE] * 2, [1, 1]), 12),
}
FIELD = variant_field("v")


def _what(error: mica.MicaError) -> tuple[object, ...]:
    return error.code, error.context["rule"], error.context["row"]


@pytest.mark.parametrize("shreds", ["true", "false"])
@pytest.mark.parametrize("name", BAD)
def test_nothing_is_written_that_was_not_validated(tmp_path: Path, name: str, shreds: str) -> None:
    value, rule = BAD[name]
    table = mica.Table.create(tmp_path / "t", "v VARIANT", properties={"delta.enableVariantShredding": shreds})
    rows = column([ONE, value]).cast(FIELD.type)
    with pytest.raises(mica.MicaError) as caught:
        table.append(pa.Table.from_arrays([rows], schema=pa.schema([FIELD])))
    assert _what(caught.value) == ("MALFORMED_VARIANT", rule, 1)
    assert not list((tmp_path / "t").glob("*.parquet"))


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("ddl", ["l ARRAY<VARIANT>", "l MAP<STRING, VARIANT>", "l ARRAY<STRUCT<v: VARIANT>>"])
def test_variants_in_lists_and_maps_are_validated_too(tmp_path: Path, name: str, ddl: str) -> None:
    value, rule = BAD[name]
    cells = column([ONE, TWO, None, value]).cast(FIELD.type)
    offsets = pa.array([0, 1, 1, 4], pa.int32())
    if "MAP" in ddl:
        kind = pa.map_(pa.string(), FIELD.with_name("value"))
        rows = pa.MapArray.from_arrays(offsets, pa.array(list("abcd")), cells, type=kind)
    elif "STRUCT" in ddl:
        structs = pa.StructArray.from_arrays([cells], fields=[FIELD])
        rows = pa.ListArray.from_arrays(offsets, structs, type=pa.list_(pa.field("element", structs.type)))
    else:
        rows = pa.ListArray.from_arrays(offsets, cells, type=pa.list_(FIELD.with_name("element")))
    table = mica.Table.create(tmp_path / "t", ddl)
    table.append(pa.table({"l": rows.slice(0, 2)}))
    with pytest.raises(mica.MicaError) as caught:
        table.append(pa.table({"l": rows}))
    assert _what(caught.value) == ("MALFORMED_VARIANT", rule, 2)
    assert caught.value.context["path"].startswith("l.")


def test_unsorted_ids_are_sorted_where_nothing_is_shredded(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    rows = column([container([ONE, TWO], [2, 0])]).cast(FIELD.type)
    table.append(pa.Table.from_arrays([rows], schema=pa.schema([FIELD])))
    assert mica.check(tmp_path / "t").ok
    assert table.scan().to_pandas()["v"].tolist() == [{"c": 1, "a": 2}]
