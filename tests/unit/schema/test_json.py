"""What Delta's schema JSON says is kept, known or not."""

import json

import pytest

from mica.errors import CorruptDataError, UserError
from mica.schema import json as schema_json
from mica.schema.types import Primitive


def test_unknown_metadata_and_types_are_kept() -> None:
    document = {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "geometry(4326)", "nullable": True, "metadata": {"x": {"y": [1, 1 << 70]},
            "z": None}},
            {"name": "b", "type": {"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType":
             "decimal(5,2)", "containsNull": False}, "valueContainsNull": False}, "nullable": False,
             "metadata": {"__COLLATIONS": {"b.key": "ICU.de_DE.78"}, "delta.columnMapping.id": 4}},
        ],
    }  # fmt: skip
    text = json.dumps(document, separators=(",", ":"))
    schema = schema_json.loads(text)
    assert json.loads(schema_json.dumps(schema)) == document
    assert not isinstance(schema.fields[0].type, Primitive) or not schema.fields[0].type.known


@pytest.mark.parametrize(
    "text",
    ["", "[]", '"long"', "{", '{"type":"struct"}', '{"type":"struct","fields":[1]}',
     '{"type":"struct","fields":[{"name":"a"}]}',
     '{"type":"struct","fields":[{"name":"a","type":"long","nullable":1}]}',
     '{"type":"struct","fields":[{"name":"a","type":"long","metadata":[1]}]}', "[" * 100_000],
)  # fmt: skip
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(CorruptDataError) as raised:
        schema_json.loads(text)
    assert raised.value.code == "INVALID_SCHEMA_JSON"


@pytest.mark.parametrize("kind", ["decimal(0,0)", "decimal(39,0)", "decimal(5,6)", "decimal(10,-2)"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_decimal_that_no_value_has(kind: str, nested: bool) -> None:
    of = {"type": "array", "elementType": kind, "containsNull": True} if nested else kind
    fields = [{"name": "a", "type": of, "nullable": True, "metadata": {}}]
    with pytest.raises(CorruptDataError, match=r"the type of a.* is decimal\(") as raised:
        schema_json.loads(json.dumps({"type": "struct", "fields": fields}))
    assert raised.value.code == "INVALID_SCHEMA_JSON"


@pytest.mark.parametrize("kind", ["decimal(1,0)", "decimal(38,38)", "decimal(38,0)", "decimal(x)"])
def test_other_decimals_and_unknown_types_are_kept(kind: str) -> None:
    fields = [{"name": "a", "type": kind, "nullable": True, "metadata": {}}]
    assert schema_json.loads(json.dumps({"type": "struct", "fields": fields})).fields[0].type == Primitive(kind)


def test_a_type_of_the_user_s_is_named() -> None:
    """A column of vectors was said to be a damaged schema."""
    vector = {"type": "udt", "class": "org.apache.spark.ml.linalg.VectorUDT", "pyClass": "pyspark.ml.linalg.VectorUDT"}
    field = {"name": "features", "type": vector, "nullable": True, "metadata": {}}
    with pytest.raises(UserError, match=r"UNSUPPORTED_TYPE.*'features'.*VectorUDT[\s\S]*vector_to_array"):
        schema_json.loads(json.dumps({"type": "struct", "fields": [field]}))
