"""Variants changed at a path, JSON texts read: the answers recorded from Spark 4.3.0 (texts from 4.2.1, too)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mica.errors import CorruptDataError, UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.schema.arrow import variant_field
from mica.schema.ddl import parse_ddl
from mica.variant import from_json, kernel
from mica.variant.values import to_json

SCHEMA = parse_ddl("v variant, n int, s string, a array<int>")
ROWS = pa.record_batch(
    [
        from_json(pa.array(['{"a":1,"b":[1,null]}', "null", None, "[1]"])), pa.array([1, 2, 3, None], pa.int32()),
        pa.array(['{"x":1}', "no", None, "2 rest"]), pa.array([[1, None], None, [], [7]], pa.list_(pa.int32())),
    ],
    schema=pa.schema([variant_field("v"), pa.field("n", pa.int32()), pa.field("s", pa.string()),
                      pa.field("a", pa.list_(pa.int32()))]),
)  # fmt: skip


def values(text: str, ansi: bool = True) -> list[object]:
    bound = bind_value(text, SCHEMA, ansi=ansi)
    found = kernel.extract(ROWS, [leaf.request() for leaf in bound.leaves])
    made = evaluate(bound, found.columns, num_rows=ROWS.num_rows)
    return (to_json(made) if pa.types.is_struct(made.type) else made).to_pylist()


def first(text: str) -> object:
    return values(text)[0]


def code(text: str) -> str:
    with pytest.raises((UserError, CorruptDataError)) as raised:
        values(text)
    return raised.value.code


MISMATCH = "PATH_MISMATCH"


@pytest.mark.parametrize(
    ("document", "arguments", "set_", "insert"),
    [
        ("null", "'$.a', 1", MISMATCH, MISMATCH), ("7", "'$.a', 1", MISMATCH, MISMATCH),
        ('{"a":null}', "'$.a.b', 1", MISMATCH, MISMATCH), ("[null]", "'$[0].b', 1", MISMATCH, MISMATCH),
        ('{"a":[1]}', "'$.a.b', 1", MISMATCH, MISMATCH), ('{"a":{}}', "'$.a[0]', 1", MISMATCH, MISMATCH),
        ('{"a":1}', "'$.a', 2", '{"a":2}', MISMATCH), ('{"a":null}', "'$.a', 2", '{"a":2}', MISMATCH),
        ('{"b":1,"a":2}', "'$.c', 'x'", '{"a":2,"b":1,"c":"x"}', '{"a":2,"b":1,"c":"x"}'),
        ("{}", "'$.a[2].b', 1", '{"a":[null,null,{"b":1}]}', '{"a":[null,null,{"b":1}]}'),
        ("{}", "'$.a[2][1]', 9", '{"a":[null,null,[null,9]]}', '{"a":[null,null,[null,9]]}'),
        ('{"a":[1,2]}', "'$.a[0]', 9", '{"a":[9,2]}', '{"a":[9,1,2]}'),
        ('{"a":[1,2]}', "'$.a[2]', 9", '{"a":[1,2,9]}', '{"a":[1,2,9]}'),
        ('{"a":[1,2]}', "'$.a[4].x', 9", '{"a":[1,2,null,null,{"x":9}]}', '{"a":[1,2,null,null,{"x":9}]}'),
        ('{"a":[{},2]}', "'$.a[0].x', 9", '{"a":[{"x":9},2]}', '{"a":[{"x":9},2]}'),
        ('{"A":1}', "'$.a', 2", '{"A":1,"a":2}', '{"A":1,"a":2}'), ("{}", "'$[\"\"]', 3", '{"":3}', '{"":3}'),
        ("{}", "'$[\"a.b\"]', DATE'2020-01-01'", '{"a.b":"2020-01-01"}', '{"a.b":"2020-01-01"}'),
        ("[]", "'$[0]', X'01'", '["AQ=="]', '["AQ=="]'), ("{}", "'$.a', 1.50", '{"a":1.5}', '{"a":1.5}'),
        ("{}", "'$.a', NULL", None, None), ("{}", "CAST(NULL AS STRING), 1", None, None),
        ("{}", "'$.a', parse_json('{\"x\":[1.25,\"y\"]}')", '{"a":{"x":[1.25,"y"]}}', '{"a":{"x":[1.25,"y"]}}'),
    ],
)  # fmt: skip
def test_set_and_insert(document: str, arguments: str, set_: object, insert: object) -> None:
    for function, expected in (("set", set_), ("insert", insert)):
        text = f"variant_{function}(parse_json('{document}'), {arguments})"
        if expected == MISMATCH:
            assert code(text) == MISMATCH
            assert first(f"try_{text}") is None
        else:
            assert first(text) == first(f"try_{text}") == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("variant_set(parse_json('{\"a\":[1]}'), '$.a[3]', 1, false)", '{"a":[1]}'),
        ("variant_set(parse_json('{\"a\":[1]}'), '$.b.c', 1, false)", '{"a":[1]}'),
        ("variant_set(parse_json('{\"a\":1}'), '$.a', 1, NULL)", None),
        ("variant_delete(parse_json('{\"a\":[1,2,3]}'), '$.a[1]', NULL, '$.a[5]', '$.a.x', '$[0]')", '{"a":[1,3]}'),
        ("variant_delete(parse_json('{\"a\":{\"b\":{\"c\":1}}}'), '$.a.b.c')", '{"a":{"b":{}}}'),
        ("variant_delete(parse_json('7'), '$.a')", "7"), ("variant_delete(parse_json('{\"a\":1}'), NULL)", '{"a":1}'),
        ("variant_array_append(parse_json('{\"a\":[[]]}'), '$.a[0]', 1)", '{"a":[[1]]}'),
        ("variant_array_append(parse_json('{\"a\":[]}'), '$.a[0]', 1)", '{"a":[]}'),
        ("variant_array_append(parse_json('{\"a\":[]}'), '$.b[0]', 1)", '{"a":[]}'),
        ("variant_array_append(parse_json('[1]'), '$', a)", "[1,[1,null]]"),
        ("try_variant_array_append(parse_json('7'), '$.a', 1)", None),
        ("variant_strip_nulls(parse_json('[[null],{\"a\":null,\"b\":[null,{\"c\":null}]}]'))", '[[],{"b":[{}]}]'),
        ("variant_strip_nulls(parse_json('[[null],{\"a\":null,\"b\":[null,{\"c\":null}]}]'), false)",
         '[[null],{"b":[null,{}]}]'),
        ("variant_strip_nulls(parse_json('null'))", "null"), ("variant_strip_nulls(parse_json('[null]'), NULL)", None),
        ("variant_delete(try_variant_set(v, '$.c.d', n), '$.a', '$.b[0]')", '{"b":[null],"c":{"d":1}}'),
        ("parse_json(s):x", "1"), ("parse_json(s):x::int + 1", 2), ("cast(a as variant)", "[1,null]"),
        ("CASE WHEN n = 1 THEN variant_set(v, '$.a', 'x') ELSE v END", '{"a":"x","b":[1,null]}'),
    ],
)  # fmt: skip
def test_other_edits(text: str, shown: object) -> None:
    assert first(text.replace("parse_json(s)", "try_parse_json(s)")) == shown


@pytest.mark.parametrize(
    "function",
    [
        "variant_array_append(parse_json('{}'), '$[0]', 1)", "variant_array_append(parse_json('7'), '$', 1)",
        "variant_array_append(parse_json('{\"a\":null}'), '$.a', 1)",
        "variant_array_append(parse_json('{\"a\":5}'), '$.a[0]', 1)", "variant_set(v, '$.a', 1)",
    ],
)  # fmt: skip
def test_rows_without_the_place_are_errors(function: str) -> None:
    assert code(function) == MISMATCH


def test_a_name_that_is_gone_is_gone_from_the_metadata() -> None:
    bound = bind_value("variant_delete(v, '$.secret')", SCHEMA)
    made = evaluate(bound, [from_json(pa.array(['{"a":1,"secret":{"key":2}}', '{"a":1}']))])
    assert all(b"secret" not in row["metadata"] and b"key" not in row["metadata"] for row in made.to_pylist())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1 2", "1"),
        ('{"a":1}x', '{"a":1}'), ("[1],[2]", "[1]"), ("true x", "true"), ('"a"b', '"a"'), ("null]", "null"),
        (" 1 ", "1"),
        ("truex", None), ("1x", None), ("1,", None), ("", None), ("nul", None), ("01", None), ("NaN", None),
        ('{"a":1,"a":2}', None), ("-0", "0"), ("1e400", '"Infinity"'),
    ],
)  # fmt: skip
def test_texts_are_read_as_by_spark(text: str, shown: str | None) -> None:
    assert first(f"try_parse_json('{text}')") == shown
    if shown is None:
        assert code(f"parse_json('{text}')") == "INVALID_JSON"
    else:
        assert first(f"parse_json('{text}')") == shown


def test_only_rows_that_are_asked_are_parsed() -> None:
    assert values("if(n = 2, NULL, parse_json(s))") == ['{"x":1}', None, None, "2"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("variant_set(v, '$', 1)", "INVALID_PATH"), ("variant_set(v, 'a', 1)", "INVALID_PATH"),
        ("variant_insert(v, '$[-1]', 1)", "INVALID_PATH"), ("variant_delete(v, '$')", "INVALID_PATH"),
        ("variant_set(v, s, 1)", "UNSUPPORTED_EXPRESSION"), ("variant_set(s, '$.a', 1)", "TYPE_MISMATCH"),
        ("variant_set(v, '$.a', 1, n > 1)", "UNSUPPORTED_EXPRESSION"), ("variant_delete(v)", "INVALID_EXPRESSION"),
        ("parse_json(1)", "TYPE_MISMATCH"), ("parse_json(v)", "TYPE_MISMATCH"), ("lower(s):a", "TYPE_MISMATCH"),
        ("variant_set(cast('[1]' as variant), '$[2000000000]', 1)", "PATH_MISMATCH"),
        ("variant_set(parse_json('[1]'), '$[2000000000]', 1)", "TOO_LARGE"),
        ("variant_set(v, '$.a', INTERVAL 1 DAY)", "TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_refuses(text: str, found: str) -> None:
    assert code(text) == found


@pytest.mark.parametrize("text", ["cast(parse_json('[]') AS INT)", "cast(cast(s AS VARIANT) AS INT)"])
def test_a_variant_of_another_type_fails_without_ansi_too(text: str) -> None:
    with pytest.raises(UserError, match="INVALID_CAST"):
        values(text, ansi=False)
    assert values(f"try_{text}", ansi=False) == [None] * 4
