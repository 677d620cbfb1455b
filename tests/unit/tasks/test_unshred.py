"""Rows that are given in the storage layout of a file: reconstructed, checked, and written as the table wants them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import mica
from mica.checking.inspect import inspect_file
from mica.schema.arrow import variant_field
from mica.schema.types import VARIANT, ArrayType, MapType, Primitive, StructField, StructType
from mica.tasks.unshred import unshredded, unshredded_schema

TEXTS = ['{"a":1,"b":"x"}', '{"a":"odd"}', "null", None, "[1,2]", '{"a":3.50}']
SHREDDED = pa.schema([variant_field("v")])


@pytest.fixture
def stored(tmp_path: Path) -> pa.Table:
    """A shredded file, as pyarrow reads it: a struct with typed_value."""
    rows = pa.table({"v": mica.variant.from_json(TEXTS)}, schema=SHREDDED)
    mica.write_parquet(rows, tmp_path / "a.parquet", shredding={"v": "struct<a: bigint, b: string>"})
    table = pq.read_table(tmp_path / "a.parquet")
    assert [f.name for f in table.schema.field("v").type] == ["metadata", "value", "typed_value"]
    return table


def _texts(scan: mica.Scan) -> list[str | None]:
    found: list[str | None] = mica.variant.to_json(scan.to_arrow()["v"]).to_pylist()
    return found


@pytest.mark.parametrize("shreds", ["true", "false"])
def test_shredded_rows_are_appended_as_the_table_wants_them(tmp_path: Path, stored: pa.Table, shreds: str) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT", properties={"delta.enableVariantShredding": shreds})
    with pytest.warns(UserWarning, match="unshredded") if shreds == "false" else contextlib.nullcontext():
        table.append(stored, shredding={"v": "struct<a: string>"})
    assert _texts(table.scan()) == mica.variant.to_json(mica.variant.from_json(TEXTS)).to_pylist()
    (file,) = (tmp_path / "t").glob("*.parquet")
    paths = [row["path"] for row in inspect_file(str(file))]
    assert paths == (["$", "$['a']"] if shreds == "true" else ["$"])


def test_shredded_rows_that_break_the_rules_are_refused(tmp_path: Path, stored: pa.Table) -> None:
    group = stored["v"].combine_chunks()
    # A residual where the row has a typed value that is not an object's: rule 25 of the shredding specification.
    value = pa.array([b"\x0c\x01"] * len(group), pa.binary())
    broken = pa.StructArray.from_arrays(
        [group.field("metadata"), value, pa.array(range(len(group)), pa.int64())], ["metadata", "value", "typed_value"]
    )
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    with pytest.raises(mica.CorruptDataError) as caught:
        table.append(pa.table({"v": broken}))
    assert caught.value.code == "MALFORMED_SHREDDING"
    assert mica.Table.open(table.path).version == 0
    assert not list((tmp_path / "t").glob("*.parquet"))


def test_shredded_rows_of_any_layout_are_appended(tmp_path: Path, stored: pa.Table) -> None:
    group = stored["v"].combine_chunks()
    metadata, value, typed = (group.field(name) for name in ("metadata", "value", "typed_value"))
    names = ["metadata", "value", "typed_value"]
    coded = pa.StructArray.from_arrays(
        [metadata.dictionary_encode(), value.dictionary_encode(), typed], names, mask=group.is_null()
    )
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append(pa.table({"v": coded}))
    assert _texts(table.scan()) == mica.variant.to_json(mica.variant.from_json(TEXTS)).to_pylist()


def test_shredded_variants_in_runs_are_refused_by_name(tmp_path: Path, stored: pa.Table) -> None:
    group = stored["v"].combine_chunks()
    mask = group.is_null()

    def runs(at: pa.Array, *path: str) -> pa.Array:
        if not path:
            return pc.run_end_encode(at)
        names = [f.name for f in at.type]
        parts = [runs(at.field(name), *path[1:]) if name == path[0] else at.field(name) for name in names]
        return pa.StructArray.from_arrays(parts, names, mask=mask if at is group else None)

    for path in (("metadata",), ("value",), ("typed_value", "a", "value"), ("typed_value", "b", "typed_value")):
        table = mica.Table.create(tmp_path / ".".join(path), "v VARIANT")
        shredded = runs(group, *path).slice(1)
        for refused in (lambda: table.append(pa.table({"v": shredded})), lambda: mica.variant.to_json(shredded)):  # noqa: B023
            with pytest.raises(mica.UserError, match=f"{'.'.join(path)} is in runs: decode them") as caught:
                refused()
            assert caught.value.code == "UNSUPPORTED_TYPE"


def test_runs_may_stand_beside_variants(stored: pa.Table) -> None:
    runs = pc.run_end_encode(pa.array(["x"] * stored.num_rows))
    rows = pa.StructArray.from_arrays([runs, stored["v"].combine_chunks()], ["r", "v"])
    batch = pa.record_batch([rows], ["s"])
    type_ = StructType((StructField("s", StructType((StructField("v", VARIANT),))),))
    schema = unshredded_schema(batch.schema, type_)
    found = schema.field("s").type
    assert found.field("r").type == runs.type
    assert [f.name for f in found.field("v").type] == ["metadata", "value"]
    assert unshredded(batch, type_).schema == schema


def test_shredded_variants_are_put_together_at_any_depth(stored: pa.Table) -> None:
    group = stored["v"].combine_chunks()
    n = len(group)
    plain = unshredded(pa.record_batch([group], ["v"]), StructType((StructField("v", VARIANT),))).column(0)
    nested = {
        "s": (pa.StructArray.from_arrays([group], ["v"]), StructType((StructField("v", VARIANT),))),
        "l": (pa.ListArray.from_arrays(pa.array(range(n + 1), pa.int32()), group), ArrayType(VARIANT)),
        "m": (
            pa.MapArray.from_arrays(pa.array(range(n + 1), pa.int32()), pa.array(["k"] * n), group),
            MapType(Primitive("string"), VARIANT),
        ),
    }
    batch = pa.record_batch({name: array for name, (array, _) in nested.items()})
    made = unshredded(batch, StructType(tuple(StructField(name, type_) for name, (_, type_) in nested.items())))
    expected = mica.variant.to_python(plain)
    assert mica.variant.to_python(made.column("s").field("v")) == expected
    assert mica.variant.to_python(made.column("l").values) == expected
    assert mica.variant.to_python(made.column("m").items) == expected
    assert unshredded(made, StructType((StructField("s", Primitive("string")),))).equals(made), (
        "what is no Variant stays"
    )
