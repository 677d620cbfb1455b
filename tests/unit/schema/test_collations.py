"""Collations stand in the nearest field's metadata, and move with the schema."""

import pytest

from mica.collation.identifier import parse
from mica.errors import CorruptDataError, UserError
from mica.schema import json as schema_json
from mica.schema.collations import (
    COLLATIONS,
    for_spark,
    normalized,
    of_field,
    renamed,
    set_collation,
    walk_collated,
)
from mica.schema.ddl import parse_ddl, to_ddl
from mica.schema.types import STRING, MapType, StructField, StructType

#: The example of the RFC, section "Specifying collations in the table schema".
RFC = (
    '{"type":"struct","fields":[{"name":"col1","type":"string","metadata":{"__COLLATIONS":{"col1":"ICU.de_DE"}}},'
    '{"name":"col2","type":{"type":"array","elementType":{"type":"map","keyType":"string","valueType":{"type":"struct",'
    '"fields":[{"name":"f1","type":"string","metadata":{"__COLLATIONS":{"f1":"ICU.de_DE"}}}]}}},'
    '"metadata":{"__COLLATIONS":{"col2.element.key":"ICU.en_US"}}}]}'
)


def found(schema: StructType) -> dict[str, str]:
    return {".".join(c.column): str(c.identifier) for c in walk_collated(schema)}


def test_the_example_of_the_rfc() -> None:
    schema = schema_json.loads(RFC)
    expected = {"col1": "ICU.de_DE", "col2.element.key": "ICU.en_US", "col2.element.value.f1": "ICU.de_DE"}
    assert found(schema) == found(schema_json.loads(schema_json.dumps(schema))) == expected
    assert [c.plain for c in walk_collated(schema)] == [True, False, False]
    assert found(for_spark(schema)) == {
        "col1": "icu.de", "col2.element.key": "icu.en_USA", "col2.element.value.f1": "icu.de"
    }  # fmt: skip


def test_ddl_puts_them_on_the_nearest_field_and_prints_them_again() -> None:
    ddl = (
        "a STRING COLLATE de,m MAP<STRING COLLATE UTF8_LCASE, ARRAY<STRING COLLATE UNICODE_CI>>,"
        "x ARRAY<STRUCT<f: STRING COLLATE sv, g: STRING>>,b STRING"
    )
    schema = parse_ddl(ddl)
    assert to_ddl(schema) == ddl
    assert found(schema) == {
        "a": "icu.de", "m.key": "spark.UTF8_LCASE", "m.value.element": "icu.UNICODE_CI", "x.element.f": "icu.sv"
    }  # fmt: skip
    assert COLLATIONS not in schema.field("b").metadata
    assert COLLATIONS not in schema.field("x").metadata
    assert schema.field("m").metadata[COLLATIONS] == {
        "m.key": "spark.UTF8_LCASE", "m.value.element": "icu.UNICODE_CI"
    }  # fmt: skip


def test_an_unknown_name_in_ddl_is_an_error() -> None:
    with pytest.raises(UserError) as raised:
        parse_ddl("a STRING COLLATE klingon")
    assert raised.value.code == "UNKNOWN_COLLATION"


def test_a_collation_is_set_anywhere_and_taken_away() -> None:
    schema = parse_ddl("a STRING, s STRUCT<x: STRING>, m MAP<STRING, ARRAY<STRING>>, l ARRAY<STRUCT<f: STRING>>")
    for column in (("A",), ("s", "x"), ("m", "key"), ("m", "value", "element"), ("l", "element", "F")):
        schema = set_collation(schema, column, parse("icu.de"))
    assert set(found(schema)) == {"a", "s.x", "m.key", "m.value.element", "l.element.f"}
    schema = set_collation(schema, ("m", "key"), None)
    schema = set_collation(schema, ("s", "x"), parse("spark.UTF8_BINARY"))
    assert set(found(schema)) == {"a", "m.value.element", "l.element.f"}
    assert dict(schema.field("s").type.fields[0].metadata) == {}  # type: ignore[attr-defined]
    for column in (("m",), ("m", "value"), ("zz",), ("a", "b")):
        with pytest.raises(UserError, match="string column"):
            set_collation(schema, column, None)


def test_other_metadata_and_foreign_spellings_stay() -> None:
    kept = {"comment": "c", "delta.x": 1, COLLATIONS: {"m.key": "ORACLE.x.1.2", "m.value": "ICU.de_DE.75"}}
    schema = StructType((StructField("m", MapType(STRING, STRING), True, kept),))
    changed = set_collation(schema, ("m", "value"), parse("icu.sv"))
    assert dict(changed.fields[0].metadata) == {**kept, COLLATIONS: {"m.key": "ORACLE.x.1.2", "m.value": "icu.sv"}}
    with pytest.raises(UserError, match="Spark does not have"):
        for_spark(schema)


def test_binary_is_written_nowhere() -> None:
    schema = StructType((StructField("a", STRING, True, {COLLATIONS: {"a": "SPARK.utf8_binary"}}),))
    assert dict(normalized(schema).fields[0].metadata) == {}


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"b": "icu.de"}, "is not a string"), ({"a.element": "icu.de"}, "is not a string"), ({"a": 5}, "is not text"),
        ({"a": "de"}, "is not a collation"), ({"a": "icu.de."}, "is not a collation"), ("icu.de", "is not an object"),
        ({"A": "icu.de"}, "is not a string"),
    ],
)  # fmt: skip
def test_keys_that_mean_nothing_are_refused_with_their_column(metadata: object, why: str) -> None:
    with pytest.raises(CorruptDataError, match=why) as raised:
        of_field(StructField("a", STRING, True, {COLLATIONS: metadata}))
    assert raised.value.code == "INVALID_COLLATION"
    assert "'a'" in raised.value.message


def test_a_new_name_stands_in_the_keys_too() -> None:
    schema = parse_ddl("a STRING COLLATE de, m MAP<STRING, ARRAY<STRING COLLATE cs>>, s STRUCT<x: STRING COLLATE sv>")
    for column, name in ((("A",), "b"), (("m",), "n"), (("s", "x"), "y"), (("s",), "t")):
        schema = renamed(schema, column, name)
    assert schema == parse_ddl(
        "b STRING COLLATE de, n MAP<STRING, ARRAY<STRING COLLATE cs>>, t STRUCT<y: STRING COLLATE sv>"
    )
    assert schema.field("n").metadata["__COLLATIONS"] == {"n.value.element": "icu.cs"}
    for column, name, code in ((("q",), "r", "UNKNOWN_COLUMN"), (("b",), "N", "DUPLICATE_COLUMN")):
        with pytest.raises(UserError) as raised:
            renamed(schema, column, name)
        assert raised.value.code == code
