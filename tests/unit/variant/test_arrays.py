"""Arrow arrays of Variants: from JSON, to JSON, to Python."""

import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.errors import CorruptDataError, UserError
from mica.schema.arrow import variant_field
from mica.variant import from_json, infer, to_json, to_python
from tests.support import shared_files

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
