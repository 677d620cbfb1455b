"""LIKE and its relatives, and the functions of Variants."""

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.schema.arrow import variant_field
from mica.schema.ddl import parse_ddl
from mica.skipping.bind import bind_value
from mica.skipping.rows import evaluate
from mica.skipping.strings import ANY, ONE, Pattern
from mica.variant import from_json, kernel

SCHEMA = parse_ddl("s string, p string, bin binary, i int, v variant")
TEXTS = ["abc", "a\nc", "a%c", None, "", "a😀c", "a\\c"]
DOCUMENTS = ['{"a":null,"b":{"c":[1,2.5]}}', '{"a":1.50}', "null", None, '["x",{"k y":true}]', '{"a":"abcd"}', "100.0"]
ROWS = pa.record_batch(
    [
        pa.array(TEXTS), pa.array(["a_c", "a%", "a\\%c", "a", "", None, "a\\\\_"]),
        pa.array([None if t is None else t.encode() for t in TEXTS]), pa.array([1, 12, None, 3, 4, 5, 21], pa.int32()),
        from_json(pa.array(DOCUMENTS)),
    ],
    schema=pa.schema([
        pa.field("s", pa.string()), pa.field("p", pa.string()), pa.field("bin", pa.binary()), pa.field("i", pa.int32()),
        variant_field("v"),
    ]),
)  # fmt: skip


def values(text: str) -> list[object]:
    bound = bind_value(text, SCHEMA)
    found = kernel.extract(ROWS, [leaf.item for leaf in bound.leaves])
    return evaluate(bound, found.columns, num_rows=ROWS.num_rows).to_pylist()


def hits(text: str) -> str:
    return "".join("-" if hit is None else str(int(bool(hit))) for hit in values(text))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("s LIKE 'a_c'", "111-011"), ("s LIKE 'a%'", "111-011"), ("s LIKE '%c'", "111-011"),
        ("s LIKE '%b%'", "100-000"),
        ("s LIKE ''", "000-100"), ("s LIKE '%'", "111-111"), ("s LIKE '_'", "000-000"), ("s LIKE '___'", "111-011"),
        ("s LIKE 'a\\\\%c'", "001-000"), ("s LIKE 'a/%c' ESCAPE '/'", "001-000"), ("s NOT LIKE 'ab%'", "011-111"),
        ("s LIKE 'a\\\\\\\\c'", "000-001"), ("s LIKE p", "111-1-1"), ("s LIKE null", "-------"),
        ("startswith(s, 'a%')", "001-000"), ("endswith(s, '')", "111-111"), ("contains(s, '😀')", "000-010"),
        ("startswith(bin, X'61')", "111-011"), ("contains(s, p)", "000-1-0"),
        ("i LIKE '%1'", "10-0001"), ("startswith(i, 1)", "11-0000"), ("v:a LIKE 'ab%'", "-0---1-"),
        ("is_variant_null(v:a)", "1000000"), ("is_variant_null(v)", "0010000"), ("is_variant_null(null)", "0000000"),
    ],
)  # fmt: skip
def test_judges(text: str, rows: str) -> None:
    assert hits(text) == rows


def test_schema_of_variant_shows_the_physical_type() -> None:
    assert values("schema_of_variant(v)") == [
        "OBJECT<a: VOID, b: OBJECT<c: ARRAY<DECIMAL(21,1)>>>", "OBJECT<a: DECIMAL(2,1)>", "VOID", None,
        "ARRAY<VARIANT>", "OBJECT<a: STRING>", "DECIMAL(3,0)",
    ]  # fmt: skip
    assert values("schema_of_variant(variant_get(v, '$[1]'))")[4] == "OBJECT<`k y`: BOOLEAN>"
    assert hits("schema_of_variant(v:a) = 'DECIMAL(2,1)'") == "01---0-"


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("", ()), ("%", (ANY,)), ("a%%b", ("a", ANY, "b")), ("_%", (ONE, ANY)), ("a\\_b", ("a_b",)), ("%%", (ANY,)),
    ],
)  # fmt: skip
def test_patterns(pattern: str, parts: tuple[object, ...]) -> None:
    assert Pattern.read(pattern).parts == parts


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("s LIKE 'a\\\\b'", "INVALID_EXPRESSION"), ("s LIKE 'a\\\\'", "INVALID_EXPRESSION"),
        ("s LIKE 'a' ESCAPE 'xy'", "INVALID_EXPRESSION"), ("s LIKE 'a' ESCAPE ''", "INVALID_EXPRESSION"),
        ("startswith(s)", "INVALID_EXPRESSION"), ("is_variant_null(i)", "TYPE_MISMATCH"),
        ("schema_of_variant('a')", "TYPE_MISMATCH"), ("s LIKE ANY ('a')", "UNSUPPORTED_EXPRESSION"),
        ("v:a + 1", "TYPE_MISMATCH"), ("cast(i as date)", "TYPE_MISMATCH"), ("cast(i as variant)",
        "UNSUPPORTED_EXPRESSION"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        values(text)
    assert raised.value.code == code
