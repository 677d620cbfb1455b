"""Binding: after it nothing is open, and what Spark would not analyse is refused with its place."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.bind import bind, bind_columns, bind_value, type_of
from mica.expressions.tree import Collate, Column, Compare, In, LeafRef, Path, Text, to_sql, walk
from mica.schema.ddl import parse_ddl, type_to_ddl
from mica.schema.types import BOOLEAN, INTEGRALS, Primitive
from mica.variant.kernel import Request

SCHEMA = parse_ddl(
    "id bigint, i int, s string, d date, ts timestamp, f float, x double, n decimal(10,2), b boolean, bin binary, "
    "v variant, st struct<k: int, vv: variant>, arr array<int>, p string, c string collate de"
)

#: Text → the bound expression, the leaves that a file must give.
BOUND: list[tuple[str, str, list[str]]] = [
    ("ID = 1", "id = 1", ["id BIGINT"]),
    ("i = id", "i = id", ["i INT", "id BIGINT"]),
    ("i = 1.5", "i = 1.5", ["i INT"]),
    ("i = '1'", "i = 1", ["i INT"]),
    ("s = 1", "s::BIGINT = 1", ["s STRING"]),
    ("x = 1", "x = 1.0", ["x DOUBLE"]),
    ("x = f", "x = f::DOUBLE", ["x DOUBLE", "f FLOAT"]),
    ("n = 1", "n = 1.00", ["n DECIMAL(10,2)"]),
    ("n = x", "n::DOUBLE = x", ["n DECIMAL(10,2)", "x DOUBLE"]),
    ("ts = d", "ts = d::TIMESTAMP", ["ts TIMESTAMP", "d DATE"]),
    ("d = '2020-01-01'", "d = DATE'2020-01-01'", ["d DATE"]),
    ("b = 'true'", "b = TRUE", ["b BOOLEAN"]),
    ("s = null", "s = NULL", ["s STRING"]),
    ("V:a::int = 1", "v:a::int = 1", ["v:a INT"]),
    ("v::int = 1", "v::int = 1", ["v INT"]),
    ("(v:a):b::int = 1", "v:a.b::int = 1", ["v:a.b INT"]),
    ("ST.vv:q::string = 'a'", "st.vv:q::string = 'a'", ["st.vv:q STRING"]),
    ("variant_get(v, '$.a', 'int') = v:a::int", "v:a::int = v:a::int", ["v:a INT"]),
    ("try_variant_get(v, '$.a', 'int') = v:a::int", "try_cast(v:a AS int) = v:a::int", ["v:a INT?", "v:a INT"]),
    ("v:a::variant is null", "v:a IS NULL", ["v:a VARIANT"]),
    ("(v:a::variant::variant):b::int = 1", "v:a.b::int = 1", ["v:a.b INT"]),
    ("(v::variant):b::int = 1", "v:b::int = 1", ["v:b INT"]),
    ("variant_get(s::variant, '$.a', 'int') = 1", "variant_get(s::VARIANT, '$.a')::INT = 1", ["s STRING"]),
    ("(arr::variant):[0]::int = 1", "variant_get(arr::VARIANT, '$[0]')::INT = 1", ["arr ARRAY<INT>"]),
    ("null::variant:a::int = 1", "NULL = 1", []),
    ("i in (1, 2.5, null)", "i IN (1, 2.5, NULL)", ["i INT"]),
    ("i not in (id, 1)", "NOT (i = id OR i = 1)", ["i INT", "id BIGINT"]),
    ("i between 1 and id", "i >= 1 AND i <= id", ["i INT", "id BIGINT"]),
    ("1 + 1 = i", "2 = i", ["i INT"]),
    ("b and null", "b AND NULL", ["b BOOLEAN"]),
    ("s = 'a' collate utf8_lcase", "s COLLATE UTF8_LCASE = 'a'", ["s STRING"]),
    ("s = 'a' collate system.builtin.`utf8_lcase`", "s COLLATE UTF8_LCASE = 'a'", ["s STRING"]),
]


@pytest.mark.parametrize(("text", "shown", "leaves"), BOUND)
def test_names_casts_and_constants(text: str, shown: str, leaves: list[str]) -> None:
    bound = bind(text, SCHEMA)
    assert to_sql(bound.expr) == shown
    found = [f"{leaf.name} {type_to_ddl(leaf.type)}{'' if leaf.strict else '?'}" for leaf in bound.leaves]
    assert found == leaves


@pytest.mark.parametrize("text", [text for text, _, _ in BOUND])
def test_nothing_is_open(text: str) -> None:
    bound = pickle.loads(pickle.dumps(bind(text, SCHEMA)))
    assert bound == bind(text, SCHEMA)
    assert bound.type == BOOLEAN
    assert len(set(bound.leaves)) == len(bound.leaves)
    numbers = set()
    for node in walk(bound.expr):
        assert not isinstance(node, Column | Path | Text | Collate), "a name, a path or a text is left"
        if isinstance(node, LeafRef):
            assert type_of(node) == bound.leaves[node.index].type
            numbers.add(node.index)
        sides = [node.left, node.right] if isinstance(node, Compare) else []
        sides = [node.child, *node.values] if isinstance(node, In) else sides
        assert len({_class(type_of(side)) for side in sides}) <= 1, "values of two classes are compared"
    assert numbers == set(range(len(bound.leaves))), "a leaf is asked for that nothing needs"


def _class(type_: object) -> str:
    """Integers and decimals are compared by value."""
    assert isinstance(type_, Primitive)
    return "exact" if type_ in INTEGRALS or type_.decimal is not None else type_.name


def test_a_text_that_was_bound_means_the_same_again() -> None:
    """What `explain` shows can be given back as `where`."""
    for text, shown, _ in BOUND:
        again = bind(shown, SCHEMA)
        assert (to_sql(again.expr), again.leaves) == (shown, bind(text, SCHEMA).leaves), text


def test_a_list_of_a_query_without_rows_is_never_null() -> None:
    for text, value in (("s IN (SELECT)", "FALSE"), ("s NOT IN (select)", "TRUE")):
        assert to_sql(bind(text, SCHEMA).expr) == value
    with pytest.raises(UserError, match="UNKNOWN_COLUMN"):
        bind("zz NOT IN (SELECT)", SCHEMA)


def test_constants_get_blanks_beside_a_char_column_and_values_of_a_query_none() -> None:
    schema = parse_ddl("c CHAR(3)")
    for text, shown in (
        ("c = 'a'", "c = 'a  '"),
        ("c = STRING'a'", "c = 'a'"),
        ("c IN (STRING'a', STRING'b')", "c IN ('a', 'b')"),
        ("c = cast('a' as string)", "c = 'a  '"),
        ("c IN ('a'::string, string('b'))", "c IN ('a  ', 'b  ')"),
        ("c = 'a' COLLATE UTF8_BINARY", "c = 'a  '"),
        ("c = 'a' COLLATE UTF8_LCASE", "c COLLATE UTF8_LCASE = 'a'"),
        ("c = coalesce(NULL, 'a')", "c = 'a  '"),
        ("c = if(false, 'b', 'a')", "c = 'a  '"),
        ("c = coalesce(STRING'a', 'b')", "c = 'a'"),
        # Spark replaces these only after it has given blanks to constants; elt is none to it.
        ("c = nvl('a', 'b')", "c = 'a'"),
        ("c IN (left('ab', 1), 'b')", "c IN ('a', 'b')"),
        ("c = concat(btrim(' a'), '')", "c = 'a'"),
        ("c = elt(1, 'a')", "c = 'a'"),
        ("c = split_part('a,b', ',', 1)", "c = 'a'"),
        ("c = substring('ab', 1, 1)", "c = 'a  '"),
        ("decode(c, 'a', 1) = 1", "CASE WHEN c <=> 'a  ' THEN 1 END = 1"),
    ):
        assert to_sql(bind(text, schema).expr) == shown


def test_char_columns_that_are_read_without_blanks_get_them_in_comparisons() -> None:
    """As Spark's with spark.sql.readSideCharPadding=false; the last as with charVarcharAsString."""
    for text, pads, shown in (
        ("c = 'a'", True, "rpad(c, 3) = 'a  '"),
        ("c IN ('a', 'abcd')", True, "rpad(c, 4) IN ('a   ', 'abcd')"),
        ("c < d", True, "rpad(c, 3) < rpad(d, 3)"),
        ("c LIKE 'a'", True, "c LIKE 'a'"),
        ("c = 'a'", False, "c = 'a'"),
    ):
        bound = bind(text, parse_ddl("c CHAR(3), d CHAR(2)"), pads=pads, blanks=False)
        assert (to_sql(bound.expr), {leaf.padded for leaf in bound.leaves}) == (shown, {""})


def test_leaves_name_what_a_file_must_give() -> None:
    bound = bind("v:a['x y'][0]::int = 1 and V is null and st.vv:q is not null and p = 'a' and St.K = 1", SCHEMA,
                 partition_columns=["p"])  # fmt: skip
    assert [leaf.request() for leaf in bound.leaves[:2]] == [
        Request(("v",), ("a", "x y", 0), pa.int32()),
        Request(("v",)),
    ]
    assert [leaf.column for leaf in bound.leaves] == [("v",), ("v",), ("st", "vv"), ("p",), ("st", "k")]
    assert [leaf.partition for leaf in bound.leaves] == [False, False, False, True, False]


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("zz = 1", "UNKNOWN_COLUMN"), ("st.z = 1", "UNKNOWN_COLUMN"), ("v = 1", "TYPE_MISMATCH"),
        ("v:a = 1", "TYPE_MISMATCH"), ("id:a = 1", "TYPE_MISMATCH"), ("v.a = 1", "TYPE_MISMATCH"),
        ("id", "NOT_A_PREDICATE"), ("v:a", "NOT_A_PREDICATE"), ("d and b", "TYPE_MISMATCH"), ("id = true",
        "TYPE_MISMATCH"),
        ("d = 5", "TYPE_MISMATCH"), ("id = 'x'", "INVALID_CAST"), ("arr = array('x')", "TYPE_MISMATCH"),
        ("c = p", "COLLATION_MISMATCH"), ("c in ('a', p)", "COLLATION_MISMATCH"), ("d = DATE'x'",
        "INVALID_EXPRESSION"),
    ],
)  # fmt: skip
def test_refuses_what_spark_refuses(where: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        bind(where, SCHEMA)
    assert raised.value.code == code


def test_columns_of_a_scan() -> None:
    columns = bind_columns({"did": "v:did::string", "whole": "v", "k": "ST.K"}, SCHEMA)
    assert columns is not None
    assert [type_to_ddl(column.type) for column in columns.values()] == ["STRING", "VARIANT", "INT"]
    assert bind_columns(None, SCHEMA) is None
    assert list(bind_columns(["ID"], SCHEMA) or {}) == ["ID"], "a person's own spelling is the name that comes out"
    with pytest.raises(UserError) as caught:
        bind_columns("id", SCHEMA)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_ansi_decides_which_casts_there_are() -> None:
    assert to_sql(bind("s = i", SCHEMA).expr) == "s::BIGINT = i"
    assert to_sql(bind("s = i", SCHEMA, ansi=False).expr) == "try_cast(s AS INT) = i"
    assert bind("i = 'x'", SCHEMA, ansi=False).expr == bind("i = cast(null as int)", SCHEMA).expr
    assert bind_value("v:a::int", SCHEMA, ansi=False).leaves[0].strict


def test_without_ansi_a_boolean_beside_0_or_1_is_a_boolean_and_beside_a_date_nothing() -> None:
    for text in ("b = 1", "1L = b", "b <=> 1.0", "b = 1e0"):
        assert {to_sql(side) for side in walk(bind(text, SCHEMA, ansi=False).expr)} >= {"b", "TRUE"}, text
    assert to_sql(bind("b = 2", SCHEMA, ansi=False).expr) == "try_cast(b AS INT) = 2"
    for text in ("b = DATE'1970-01-02'", "TIMESTAMP'1970-01-01' = b", "b = INTERVAL '1' MONTH", "b < 1"):
        with pytest.raises(UserError, match="cannot be compared"):
            bind(text, SCHEMA, ansi=False)


def test_errors_show_the_place() -> None:
    with pytest.raises(UserError, match=r"there is no column 'zz', at offset 6 of"):
        bind("b and zz", SCHEMA)


def test_variants_of_an_array_do_not_become_one() -> None:
    """Spark has this cast: mica leaves it to Spark, and says so before anything is read."""
    with pytest.raises(UserError, match=r"ARRAY<VARIANT> to VARIANT cannot be used here yet") as caught:
        bind_value("array(v, st.vv)::variant", SCHEMA)
    assert caught.value.code == "UNSUPPORTED_EXPRESSION"
    assert type_of(bind_value("arr::variant", SCHEMA).expr) == parse_ddl("v variant").fields[0].type


def test_rows_of_other_names_are_compared_only_in_their_own_types() -> None:
    schema = parse_ddl("i int, j int, l bigint")
    for text in ("(i, j) = (1, 2)", "(i, j) IN ((j, i))", "(i + 1, 2) = (1L, 2)"):
        assert bind(text, schema).type == BOOLEAN
    for text in ("(l, j) = (1, 2)", "(l, j) IN ((1, 2))", "(i + 1, j) = (1L, 2)"):
        with pytest.raises(UserError) as raised:
            bind(text, schema)
        assert raised.value.code == "TYPE_MISMATCH"
