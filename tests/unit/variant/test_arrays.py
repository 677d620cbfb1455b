"""Arrow arrays of Variants: from JSON, to JSON, to Python."""

import datetime as dt
import json
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mica
from mica.errors import CorruptDataError, MicaError, UserError
from mica.schema.arrow import variant_field
from mica.schema.ddl import parse_ddl
from mica.schema.evolution import plan_write
from mica.variant import from_json, infer, kernel, to_json, to_python
from tests.support import dealt, shared_files

DOCUMENTS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.text(),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=12,
)


@given(st.lists(DOCUMENTS, max_size=4))
def test_python_to_json_to_variant_and_back(documents: list[Any]) -> None:
    texts = [json.dumps(d, ensure_ascii=False) for d in documents]
    variants = from_json(texts)
    assert variants.type == variant_field("v").type
    # A number with a point and no exponent is a decimal: equal to the float that wrote it.
    assert [normal(v) for v in to_python(variants)] == [normal(d) for d in documents]
    assert [normal(json.loads(t)) for t in to_json(variants).to_pylist()] == [normal(d) for d in documents]


def normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: normal(v) for k, v in value.items()}
    if isinstance(value, list):
        return [normal(v) for v in value]
    return float(value) if isinstance(value, Decimal) else value


def test_numbers_are_exact() -> None:
    found = to_python(from_json(["1.10", "1e2", "12345678901234567890.5", "7", None, "null"]))
    assert found == [Decimal("1.1"), 100.0, Decimal("12345678901234567890.5"), 7, None, None]
    assert [type(v) for v in found[:4]] == [Decimal, float, Decimal, int]


def test_chunks_slices_and_nulls() -> None:
    variants = from_json(pa.chunked_array([['{"a":1}', None], [], ["[1]"]], pa.string()))
    assert to_python(variants) == [{"a": 1}, None, [1]]
    assert to_python(variants.slice(1, 2)) == [None, [1]]
    assert to_json(pa.chunked_array([variants, variants.slice(2)])).to_pylist() == ['{"a":1}', None, "[1]", "[1]"]
    assert to_python(pa.chunked_array([], variants.type)) == []
    assert from_json([]).type == variants.type


def test_parts_may_have_any_layout() -> None:
    plain = from_json(['{"a":1}', None, "[2]"])
    metadata, value = plain.field("metadata"), plain.field("value")
    for made in (
        metadata.dictionary_encode(), pc.run_end_encode(metadata), metadata.cast(pa.binary_view()),
        metadata.cast(pa.large_binary()),
    ):  # fmt: skip
        found = pa.StructArray.from_arrays([made, value], ["metadata", "value"], mask=plain.is_null())
        assert to_python(found) == [{"a": 1}, None, [2]]
        rows = pa.record_batch([found], names=["v"])
        assert to_python(plan_write(parse_ddl("v VARIANT"), rows.schema).apply(rows)["v"]) == [{"a": 1}, None, [2]]


@pytest.mark.slow
def test_parts_beyond_2_gib_are_refused_and_a_slice_of_them_is_read() -> None:
    data = np.zeros((1 << 31) + 1, np.uint8)
    ends = pa.py_buffer(np.array([0, 1 << 31, (1 << 31) + 1]))
    value = pa.Array.from_buffers(pa.large_binary(), 2, [None, ends, pa.py_buffer(data)])
    parts = [pa.array([b"\x01\0\0"] * 2, pa.large_binary()), value]
    variants = pa.StructArray.from_arrays(parts, ["metadata", "value"])
    assert to_json(variants.slice(1)).to_pylist() == ["null"]
    with pytest.raises(UserError) as raised:
        to_json(variants)
    assert raised.value.code == "TOO_LARGE"


@pytest.mark.parametrize("function", [to_json, to_python, infer])
def test_chunks_of_shredded_variants_may_be_empty(function: Any, tmp_path: Path) -> None:
    mica.write_parquet(pa.table({"v": from_json(['{"a":1}', '{"a":2}'])}), tmp_path / "v.parquet")
    shredded = pq.read_table(tmp_path / "v.parquet")["v"].chunk(0)
    assert shredded.type.get_field_index("typed_value") > 0
    whole = function(shredded)
    assert function(pa.chunked_array([shredded, shredded.slice(2)])) == whole
    assert function(shredded.slice(2)) == function(from_json([]))


@pytest.mark.slow
def test_a_name_in_any_number_of_objects_makes_no_text_beyond_an_array() -> None:
    """A value of 2 KB over a metadata of 16 MiB: 3 GiB of text."""
    name, count = b"k" * (16 << 20), 200
    metadata = b"\xc1" + struct.pack("<III", 1, 0, len(name)) + name
    value = _array([b"\x02\x01\x00\x00\x01\x00"] * count)  # {"k…": null}
    variants = pa.StructArray.from_arrays([pa.array([metadata]), pa.array([value])], ["metadata", "value"])
    rows = pa.record_batch([variants], schema=pa.schema([variant_field("v")]))
    asked = [pa.string(), pa.list_(pa.map_(pa.string(), pa.int64()))]
    makes: list[Callable[[], Any]] = [
        partial(to_json, variants),
        *[partial(kernel.extract, rows, [kernel.Request(("v",), path=(), type=type_)]) for type_ in asked],
    ]
    for make in dealt(makes, 0, 3):
        with pytest.raises(MicaError) as raised:
            make()
        assert raised.value.code == "TOO_LARGE"


def _array(elements: list[bytes]) -> bytes:
    """An array of at most 255 elements in Variant's encoding."""
    ends = [sum(len(one) for one in elements[:at]) for at in range(len(elements) + 1)]
    return bytes([3 | 3 << 2, len(elements)]) + struct.pack(f"<{len(ends)}I", *ends) + b"".join(elements)


def test_sparks_order_of_fields_is_read() -> None:
    variants = from_json(['{"a":1}'])
    swapped = pa.StructArray.from_arrays([variants.field("value"), variants.field("metadata")], ["value", "metadata"])
    assert to_python(swapped) == [{"a": 1}]


def test_bad_input_names_the_row() -> None:
    with pytest.raises(CorruptDataError) as raised:
        from_json(["1", "{"])
    assert (raised.value.code, raised.value.context["row"]) == ("INVALID_JSON", 1)
    with pytest.raises(CorruptDataError) as raised:
        from_json(['{"a":1,"a":2}'])
    assert raised.value.code == "DUPLICATE_KEY"
    assert to_python(from_json(['{"a":1,"a":2}'], duplicate_keys="last")) == [{"a": 2}]
    broken = pa.StructArray.from_arrays([pa.array([b"\x01\0\0"]), pa.array([b"\xff\xff"])], ["metadata", "value"])
    with pytest.raises(CorruptDataError) as raised:
        to_python(broken)
    assert raised.value.code == "MALFORMED_VARIANT"
    with pytest.raises(UserError):
        to_python(pa.array([1, 2]))
    with pytest.raises(UserError):
        from_json(["1"], duplicate_keys="first")


def test_a_schema_is_inferred() -> None:
    assert infer(from_json(['{"a":1,"b":"x"}', '{"a":300}'] * 5)).to_ddl() == "STRUCT<a: BIGINT, b: STRING>"


EXPECTED = {
    "array_empty": [], "array_primitive": [2, 1, 5, 9], "object_empty": {},
    "primitive_binary": bytes.fromhex("031337deadbeefcafe"),
    "primitive_date": dt.date(2025, 4, 16), "primitive_decimal16": Decimal("12345678912345678.90"),
    "primitive_decimal4": Decimal("12.34"), "primitive_decimal8": Decimal("12345678.90"),
    "primitive_double": 1234567890.1234, "primitive_int8": 42, "primitive_int64": 1234567890123456789,
    "primitive_null": None, "primitive_timestamp": dt.datetime.fromisoformat("2025-04-16T12:34:56.78-04:00"),
    "primitive_timestampntz": dt.datetime.fromisoformat("2025-04-16T12:34:56.78"),
    "primitive_timestampntz_nanos": pa.scalar(1730982834123456789, pa.timestamp("ns")),
    "primitive_uuid": uuid.UUID("f24f9b64-81fa-49d1-b74e-8c09a6e31c56"),
    "short_string": "Less than 64 bytes (❤️ with utf8)",
}  # fmt: skip


@pytest.mark.shared
@pytest.mark.parametrize("metadata", shared_files("conformance/variant-encoding/*.metadata"), ids=lambda p: p.stem)
def test_the_public_values(metadata: Path) -> None:
    value = metadata.with_suffix(".value")
    variants = pa.StructArray.from_arrays(
        [pa.array([metadata.read_bytes()]), pa.array([value.read_bytes()])], fields=list(variant_field("v").type)
    )
    (found,) = to_python(variants)
    if metadata.stem in EXPECTED:
        assert found == EXPECTED[metadata.stem]
