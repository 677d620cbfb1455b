"""Nothing is written that was not validated: Variants shredded or as they stand, inside lists and maps too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.schema.arrow import variant_field
from tests.variant_files import ABC, ONE, TWO, column, container, metadata

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


NESTED = ["l ARRAY<VARIANT>", "l MAP<STRING, VARIANT>", "l ARRAY<STRUCT<v: VARIANT>>"]


def _nested(ddl: str, values: list[bytes | None], offsets: list[int], names: bytes = ABC) -> pa.Array:
    """A list or map of Variants."""
    cells, ends = column(values, names=names).cast(FIELD.type), pa.array(offsets, pa.int32())
    if "MAP" in ddl:
        kind = pa.map_(pa.string(), FIELD.with_name("value"))
        return pa.MapArray.from_arrays(ends, pa.array(list("abcd")[: len(values)]), cells, type=kind)
    if "STRUCT" in ddl:
        structs = pa.StructArray.from_arrays([cells], fields=[FIELD])
        return pa.ListArray.from_arrays(ends, structs, type=pa.list_(pa.field("element", structs.type)))
    return pa.ListArray.from_arrays(ends, cells, type=pa.list_(FIELD.with_name("element")))


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("ddl", NESTED)
def test_variants_in_lists_and_maps_are_validated_too(tmp_path: Path, name: str, ddl: str) -> None:
    value, rule = BAD[name]
    rows = _nested(ddl, [ONE, TWO, None, value], [0, 1, 1, 4])
    table = mica.Table.create(tmp_path / "t", ddl)
    table.append(pa.table({"l": rows.slice(0, 2)}))
    with pytest.raises(mica.MicaError) as caught:
        table.append(pa.table({"l": rows}))
    assert _what(caught.value) == ("MALFORMED_VARIANT", rule, 2)
    assert caught.value.context["path"].startswith("l.")


@pytest.mark.parametrize("shreds", ["true", "false"])
@pytest.mark.parametrize("ddl", NESTED)
def test_unsorted_ids_in_lists_and_maps_are_sorted(tmp_path: Path, ddl: str, shreds: str) -> None:
    """Beside a Variant that is shredded, and one in an object."""
    unsorted = container([ONE, container([TWO, ONE], [1, 0])], [2, 0])
    plain = column([unsorted, None, ONE]).cast(FIELD.type)
    wanted = {"delta.enableVariantShredding": shreds}
    table = mica.Table.create(tmp_path / "t", f"v VARIANT, {ddl}, n INT", properties=wanted)
    nested = _nested(ddl, [TWO, unsorted, None], [0, 2, 2, 3])
    given = [FIELD, pa.field("l", nested.type), pa.field("n", pa.int32())]
    table.append(pa.Table.from_arrays([plain, nested, pa.array([1, 2, 3], pa.int32())], schema=pa.schema(given)))
    assert mica.check(tmp_path / "t").ok
    at = "value" if "MAP" in ddl else "v" if "STRUCT" in ddl else None
    found = table.scan().to_pandas()
    of = lambda cell: dict(cell)["b"] if at == "value" else cell[1][at] if at else cell[1]  # noqa: E731
    assert of(found["l"][0]) == {"c": 1, "a": {"b": 2, "a": 1}} == found["v"][0]
    assert list(of(found["l"][0])) == ["a", "c"]
    assert found["n"].tolist() == [1, 2, 3]
    assert len(found["l"][1]) == 0


@pytest.mark.parametrize("shreds", ["true", "false"])
@pytest.mark.parametrize("ddl", ["v VARIANT", *NESTED])
def test_no_metadata_that_says_wrongly_that_it_is_sorted_is_written(tmp_path: Path, ddl: str, shreds: str) -> None:
    values, bad = [container([ONE, TWO], [1, 0]), ONE], metadata("b", "a", ordered=True)
    plain = ddl == "v VARIANT"
    rows = column(values, names=bad).cast(FIELD.type) if plain else _nested(ddl, values, [0, 2], bad)
    field = FIELD if plain else pa.field("l", rows.type)
    table = mica.Table.create(tmp_path / "t", ddl, properties={"delta.enableVariantShredding": shreds})
    table.append(pa.Table.from_arrays([rows], schema=pa.schema([field])))
    assert mica.check(tmp_path / "t").ok


def test_unsorted_ids_are_sorted_where_nothing_is_shredded(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    rows = column([container([ONE, TWO], [2, 0])]).cast(FIELD.type)
    table.append(pa.Table.from_arrays([rows], schema=pa.schema([FIELD])))
    assert mica.check(tmp_path / "t").ok
    assert table.scan().to_pandas()["v"].tolist() == [{"c": 1, "a": 2}]
