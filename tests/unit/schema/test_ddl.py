"""Spark DDL to schema and back; what Spark itself makes of these texts was read from Spark 4.2.1."""

import pytest

from mica.collation.names import LCASE
from mica.errors import UserError
from mica.schema import char, ddl
from mica.schema import json as schema_json
from mica.schema.types import ArrayType, MapType, Primitive, StructField, StructType


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a INT NOT NULL", "a INT NOT NULL"),
        ("a: long, b dec, c numeric(5)", "a BIGINT,b DECIMAL(10,0),c DECIMAL(5,0)"),
        ("`c d` struct<a: int not null comment 'k', `b.c`: array<string> >",
         "`c d` STRUCT<a: INT NOT NULL COMMENT 'k', `b.c`: ARRAY<STRING>>"),
        ("m map<string,decimal(10,2)>", "m MAP<STRING, DECIMAL(10,2)>"),
        ("1a int, `123` int, `a``b` int, `` int", "`1a` INT,`123` INT,`a``b` INT,`` INT"),
        ("b struct<>", "b STRUCT<>"),
        ("a int /* x */, -- y\n b timestamp_ltz", "a INT,b TIMESTAMP"),
        ("v variant, select int, struct int", "v VARIANT,select INT,struct INT"),
        ("struct<a: int>", "a INT"),
        ("s STRING COLLATE sr_cyrl_srb_ci", "s STRING COLLATE sr_Cyrl_SRB_CI"),
        ("a INT COMMENT 'x' DEFAULT 2 + b NOT NULL", "a INT NOT NULL DEFAULT 2 + b COMMENT 'x'"),
        ("a TIMESTAMP WITHOUT TIME ZONE NOT NULL, b array<timestamp with local time zone>",
         "a TIMESTAMP_NTZ NOT NULL,b ARRAY<TIMESTAMP>"),
        ("s STRING COLLATE System.builtin.`de`", "s STRING COLLATE de"),
        (r"""r INT COMMENT r'a\b\'R"'"'\t'""", "r INT COMMENT 'a\\\\b\\\\\\'\t'"),
    ],
)  # fmt: skip
def test_reads_and_prints_as_spark(text: str, printed: str) -> None:
    schema = ddl.parse_ddl(text)
    assert ddl.to_ddl(schema) == printed
    assert ddl.parse_ddl(ddl.to_ddl(schema)) == schema
    assert schema_json.loads(schema_json.dumps(schema)) == schema


def test_comments_and_nullability() -> None:
    schema = ddl.parse_ddl(r"""b STRING NOT NULL COMMENT 'it''s \' x\n"' """)
    assert schema == StructType((StructField("b", Primitive("string"), False, {"comment": "it's ' x\n\""}),))
    assert ddl.parse_ddl(ddl.to_ddl(schema)) == schema


def test_collations_go_to_the_nearest_field() -> None:
    schema = ddl.parse_ddl(
        "s STRING COLLATE de, t ARRAY<STRING COLLATE utf8_lcase>, m MAP<STRING, STRUCT<x: STRING COLLATE unicode_ci>>"
    )
    s, t, m = schema.fields
    assert s == StructField("s", Primitive("string"), True, {"__COLLATIONS": {"s": "icu.de"}})
    assert t.type == ArrayType(Primitive("string"))
    assert t.metadata == {"__COLLATIONS": {"t.element": "spark.UTF8_LCASE"}}
    assert isinstance(m.type, MapType)
    assert isinstance(m.type.value, StructType)
    assert m.type.value.fields[0].metadata == {"__COLLATIONS": {"x": "icu.UNICODE_CI"}}
    assert ddl.parse_ddl(ddl.to_ddl(schema)) == schema


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "INVALID_DDL"), ("a int,", "INVALID_DDL"), ("a int b int", "INVALID_DDL"), ("a foo", "INVALID_DDL"),
        ("a char", "INVALID_DDL"), ("a char(0)", "INVALID_DDL"),
        ("a varchar", "INVALID_DDL"), ("a array<varchar>", "INVALID_DDL"), ("1 int", "INVALID_DDL"),
        ("a array<int", "INVALID_DDL"), ("a int; b int", "INVALID_DDL"),
        ("a INT, A int", "DUPLICATE_COLUMN"), ("a struct<x: int, X: int>", "DUPLICATE_COLUMN"),
        ("a timestamp with time zone", "INVALID_DDL"), ("a timestamp_ntz without time zone", "INVALID_DDL"),
        ("a string collate builtin.de", "INVALID_DDL"), ("a int comment r 'a'", "INVALID_DDL"),
        ("a decimal(50,2)", "INVALID_TYPE"), ("a decimal(3,-1)", "INVALID_TYPE"),
        ("a " + "array<" * 300 + "int" + ">" * 300, "INVALID_DDL"),
        ("a " + "struct<a:" * 1000 + "int" + ">" * 1000, "INVALID_DDL"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        ddl.parse_ddl(text)
    assert raised.value.code == code


def test_the_keys_of_a_variant_may_differ_only_in_case() -> None:
    text = "STRUCT<a: INT, A: ARRAY<STRUCT<x: INT, X: STRING>>>"
    assert ddl.type_to_ddl(ddl.parse_type(text, exact_names=True)) == text
    assert ddl.parse_column_type(text, exact_names=True) == (ddl.parse_type(text, exact_names=True), "")
    for read in (ddl.parse_type, lambda text: ddl.parse_type(text.replace("A:", "a:"), exact_names=True)):
        with pytest.raises(UserError, match="DUPLICATE_COLUMN"):
            read(text)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        (
            "a INT, b BOOLEAN GENERATED ALWAYS AS (a IS NOT NULL) NOT NULL",
            "delta.generationExpression",
            "a IS NOT NULL",
        ),
        (
            "end DATE, b INT GENERATED ALWAYS AS (datediff(end, end)) NOT NULL",
            "delta.generationExpression",
            "datediff(end, end)",
        ),
        (
            "generated INT, b INT GENERATED ALWAYS AS (1+generated) NOT NULL",
            "delta.generationExpression",
            "1+generated",
        ),
        ("b BOOLEAN DEFAULT 1 IS NOT NULL NOT NULL COMMENT 'x'", "CURRENT_DEFAULT", "1 IS NOT NULL"),
        (
            "b INT DEFAULT CASE WHEN 1 IS NOT NULL THEN 1 END NOT NULL",
            "CURRENT_DEFAULT",
            "CASE WHEN 1 IS NOT NULL THEN 1 END",
        ),
        ("b INT DEFAULT 5 NOT NULL", "CURRENT_DEFAULT", "5"),
    ],
)
def test_an_expression_ends_where_the_next_clause_begins(text: str, key: str, value: str) -> None:
    column = ddl.parse_ddl(text).fields[-1]
    assert (column.metadata[key], column.nullable) == (value, False)


@pytest.mark.parametrize("clause", ["CONSTRAINT pos CHECK (a > 0)", "constraint pk PRIMARY KEY (a)", "PRIMARY KEY (a)"])
def test_a_constraint_among_the_columns_is_refused_with_the_way_to_one(clause: str) -> None:
    with pytest.raises(UserError) as caught:
        ddl.parse_ddl(f"a INT, {clause}")
    assert "ADD CONSTRAINT" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["id bigint, type string", "date DATE", "id: INT"])
def test_columns_in_the_place_of_a_type_are_told_to_be_a_struct(text: str) -> None:
    """The hint for `--shredding "id bigint, …"` was "Is VOID meant?"."""
    with pytest.raises(UserError) as caught:
        ddl.parse_type(text)
    assert caught.value.hint == f"Fields are a struct: STRUCT<{text}>."
    assert ddl.parse_type(f"STRUCT<{text}>").fields  # type: ignore[union-attr]


def test_strings_that_name_no_collation_have_the_default() -> None:
    text = (
        "a STRING, b STRING COLLATE UTF8_BINARY, c ARRAY<STRING>, d CHAR(2), s STRUCT<x: STRING, y: STRING COLLATE de>"
    )
    expected = (
        "a STRING COLLATE UTF8_LCASE,b STRING,c ARRAY<STRING COLLATE UTF8_LCASE>,d CHAR(2) COLLATE UTF8_LCASE,"
        "s STRUCT<x: STRING COLLATE UTF8_LCASE, y: STRING COLLATE de>"
    )
    assert ddl.to_ddl(char.sized(ddl.parse_ddl(text, LCASE))) == expected
    assert ddl.parse_ddl(f"STRUCT<{text}>".replace("CHAR(2)", "INT"), LCASE).field("a").metadata
    assert [bool(new.field.metadata) for new in ddl.parse_new_columns("s.z STRING, q STRING, n INT", LCASE)] == [
        True,
        True,
        False,
    ]
