"""Which collation a comparison follows, and what becomes of it without Spark."""

import pickle

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.bind import bind, bind_value
from mica.expressions.collations import collations_of
from mica.expressions.evaluate import filter_rows
from mica.expressions.rewrite import conjuncts
from mica.expressions.tree import to_sql
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl(
    "ci string collate UNICODE_CI, de string collate de, low string collate UTF8_LCASE, p string, v variant, i int, "
    "st struct<x: string collate de>, tags array<string collate de>"
)


@pytest.mark.parametrize(
    ("where", "collations"),
    [
        ("ci = 'A'", ["icu.UNICODE_CI"]), ("'A' < ci", ["icu.UNICODE_CI"]), ("p = 'A'", []),
        ("p collate de = 'A'", ["icu.de"]), ("ci collate utf8_binary = 'A'", []), ("ci = 'A' collate de", ["icu.de"]),
        ("ci collate de = de", ["icu.de"]), ("de collate sv collate UNICODE = 'a'", ["icu.UNICODE"]),
        ("ci in ('a', 'b')", ["icu.UNICODE_CI"]), ("(ci collate de) in ('A', de)", ["icu.de"]),
        ("ci in ('A' collate de)", ["icu.de"]), ("ci = v:a::string", ["icu.UNICODE_CI"]),
        ("(v:a::string) collate de = 'x'", ["icu.de"]), ("p = ci::string", []), ("st.x <> 'x'", ["icu.de"]),
        ("ci is null", []), ("ci = null", ["icu.UNICODE_CI"]), ("try_cast(ci as int) = 5", []),
        ("ci = 'a' or low = 'b'", ["icu.UNICODE_CI", "spark.UTF8_LCASE"]),
        ("not ci between 'a' and 'b'", ["icu.UNICODE_CI"]), ("null collate de = 'a'", ["icu.de"]),
        ("trim(ci collate UTF8_BINARY) = 'A'", []), ("trim(ci collate UTF8_BINARY) = de", []),
        ("coalesce(ci::string, '') = 'A'", []), ("upper(ci::string) || '' in ('A')", []),
        ("if(i > 0, ci::string, 'x') = 'A'", []), ("greatest(ci::string, 'x') = p", []),
        ("trim('A' collate UTF8_BINARY) = ci", []), ("concat(ci collate UTF8_BINARY, de) = 'A'", []),
        ("cast('A' as string collate de) = 'a'", ["icu.de"]), ("de in (cast('A' as string collate de))", ["icu.de"]),
        ("cast(p as string collate de) = 'A' collate sv", ["icu.sv"]),
        ("trim(p) = 'A' collate de", ["icu.de"]), ("trim(v:a::string) = ci", ["icu.UNICODE_CI"]),
    ],
)  # fmt: skip
def test_precedence_is_sparks(where: str, collations: list[str]) -> None:
    bound = pickle.loads(pickle.dumps(bind(where, SCHEMA)))
    assert collations_of(bound.expr) == collations
    pushed = [name for part in conjuncts(bound.expr) for name in collations_of(part)]
    assert list(dict.fromkeys(pushed)) == collations


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("ci = p", "COLLATION_MISMATCH"), ("ci = de", "COLLATION_MISMATCH"), ("ci <=> de", "COLLATION_MISMATCH"),
        ("ci collate de = p collate sv", "COLLATION_MISMATCH"), ("ci in ('a', p)", "COLLATION_MISMATCH"),
        ("p in (ci, de)", "COLLATION_MISMATCH"), ("de::string = ci", "COLLATION_MISMATCH"),
        ("coalesce(ci::string, '') = ci", "COLLATION_MISMATCH"),
        ("ci = cast('A' as string collate de)", "COLLATION_MISMATCH"),
        ("p = cast('A' as string collate de)", "COLLATION_MISMATCH"),
        ("concat(ci::string, ci) = 'a'", "UNSUPPORTED_EXPRESSION"),
        ("locate('a', ci) = 1", "UNSUPPORTED_EXPRESSION"), ("ci LIKE ANY ('a', 'b')", "UNSUPPORTED_EXPRESSION"),
        ("hash(ci) = 1", "UNSUPPORTED_EXPRESSION"), ("trim(BOTH 'a' FROM ci) = 'a'", "UNSUPPORTED_EXPRESSION"),
        ("i collate de = 'a'", "TYPE_MISMATCH"), ("v:a collate de = 'a'", "TYPE_MISMATCH"),
        ("ci collate nowhere = 'a'", "UNKNOWN_COLLATION"), ("ci collate de", "NOT_A_PREDICATE"),
        ("v:a::string collate de = 'x'", "UNSUPPORTED_EXPRESSION"),
    ],
)  # fmt: skip
def test_what_spark_cannot_tell_is_refused(where: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        bind(where, SCHEMA)
    assert raised.value.code == code


def test_a_value_keeps_its_collation_where_it_leaves_the_scan() -> None:
    assert bind_value("de", SCHEMA).collations == (("", "icu.de"),)
    assert bind_value("tags", SCHEMA).collations == ((".element", "icu.de"),)
    assert bind_value("p collate sv", SCHEMA).collations == (("", "icu.sv"),)
    assert bind_value("de collate UTF8_BINARY", SCHEMA).collations == bind_value("de::string", SCHEMA).collations == ()


def test_what_is_made_of_collated_strings_keeps_the_collation() -> None:
    for text, kept in {
        "tags[0]": (("", "icu.de"),),
        "concat(de, 'x')": (("", "icu.de"),),
        "left(low, 1)": (("", "spark.UTF8_LCASE"),),
        "if(i > 0, 'x', ci)": (("", "icu.UNICODE_CI"),),
        "v:a::string || 'x'": (),
        "length(de)": (),
    }.items():
        assert bind_value(text, SCHEMA).collations == kept, text


@pytest.mark.parametrize(
    ("where", "collations"),
    [
        ("length(de) = 1", []), ("upper(ci) = 'A'", ["icu.UNICODE_CI"]), ("trim(de) = 'a'", ["icu.de"]),
        ("ci || 'x' = 'AX'", ["icu.UNICODE_CI"]), ("nullif(de, 'a') = 'b'", ["icu.de"]),
        ("coalesce(ci, v:a::string) = 'x'", ["icu.UNICODE_CI"]), ("reverse(de) COLLATE sv = 'a'", ["icu.sv"]),
        ("CASE WHEN i = 1 THEN low ELSE 'x' END < 'b'", ["spark.UTF8_LCASE"]), ("left(ci, 1) = ci", ["icu.UNICODE_CI"]),
    ],
)  # fmt: skip
def test_functions_that_compare_nothing_take_any_collation(where: str, collations: list[str]) -> None:
    assert collations_of(bind(where, SCHEMA).expr) == collations


def test_what_is_taken_out_of_a_value_has_the_collation_of_its_place() -> None:
    schema = parse_ddl(
        "m map<string, string collate UTF8_LCASE>, l array<struct<x: string collate UTF8_LCASE, y: string>>, "
        "k map<string collate UTF8_LCASE, string>, n map<string, struct<x: string, y: array<string collate de>>>"
    )
    for where, collations in {
        "m['a'] = 'b'": ["spark.UTF8_LCASE"],
        "m.a = 'b'": ["spark.UTF8_LCASE"],
        "try_element_at(m, 'a') = 'b'": ["spark.UTF8_LCASE"],
        "get(l, 0).x = 'b'": ["spark.UTF8_LCASE"],
        "l[0].y = 'b'": [],
        "n.a.x = 'b'": [],
        "n['a'].y[0] = 'b'": ["icu.de"],
    }.items():
        assert collations_of(bind(where, schema).expr) == collations, where
    # A key is found by the collation; Spark compares `l.x[0]` by bytes.
    for where in ("k['a'] = 'b'", "l.x[0] = 'b'", "get(l.x, 0) = 'b'", "l.x = array('b')"):
        with pytest.raises(UserError) as raised:
            bind(where, schema)
        assert raised.value.code == "UNSUPPORTED_EXPRESSION"


def test_the_text_shows_the_collation() -> None:
    assert to_sql(bind("ci = 'A'", SCHEMA).expr) == "ci COLLATE UNICODE_CI = 'A'"
    assert to_sql(bind("ci collate de not in ('A')", SCHEMA).expr) == "ci COLLATE de NOT IN ('A')"


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("low = 'STRASSE'", "01000"), ("low = 'ΣΑΣ'", "00010"), ("low <> 'straße'", "01010"), ("low < 'STRB'", "11000"),
        ("low in ('STRASSE', 'STRAẞE')", "11000"), ("low not in ('x')", "11010"), ("low <=> null", "00101"),
        ("low collate utf8_binary = 'straße'", "10000"), ("p collate UTF8_LCASE >= 'σ'", "00010"),
    ],
)  # fmt: skip
def test_lcase_is_judged_in_process(where: str, rows: str) -> None:
    bound = bind(where, SCHEMA)
    values = pa.array(["straße", "Strasse", None, "σας", None])
    mask = filter_rows(bound, [values for _ in bound.leaves], num_rows=5)
    assert "".join(str(int(hit)) for hit in mask.to_pylist()) == rows


def test_what_only_spark_can_judge_says_so() -> None:
    for where in ("ci = 'a'", "ci in ('a')", "p collate UTF8_LCASE_RTRIM = 'a'"):
        bound = bind(where, SCHEMA)
        with pytest.raises(UserError, match="Spark") as raised:
            filter_rows(bound, [pa.array(["a"])], num_rows=1)
        assert raised.value.code == "NEEDS_SPARK"


def test_strings_in_arrays_and_structs_keep_their_collations() -> None:
    schema = parse_ddl(
        "l array<string collate UTF8_LCASE>, p array<string>, s struct<x: string collate UTF8_LCASE>, "
        "w struct<x: string collate UTF8_LCASE, y: string>, m map<string collate UTF8_LCASE, string>"
    )
    lists = pa.array([["A"], ["a", "B"], None], pa.list_(pa.string()))
    for where, hits in {
        "l = array('a')": "100",
        "l < array('A', 'c')": "110",
        "l[0] = 'a'": "110",
        "l in (array('A', 'b'))": "010",
    }.items():
        assert "".join("01"[hit] for hit in filter_rows(bind(where, schema), [lists]).to_pylist()) == hits
    assert collations_of(bind("p = array('a')", schema).expr) == []
    assert collations_of(bind("s = struct('a') and element_at(l, 1) < 'b'", schema).expr) == ["spark.UTF8_LCASE"]
    for refused in (
        "w = w",
        "l = p",
        "l = array('a' collate UTF8_BINARY)",
        "l = cast(l as array<string>)",
        "m['a'] = 'b'",
        "array_contains(l, 'a')",
        "array_position(l, 'a') = 1",
        "size(array_distinct(l)) = 1",
        "sort_array(l) = l",
        "concat_ws(',', l) = 'a'",
        "w.x = array(w)[0].x",
    ):
        with pytest.raises(UserError) as raised:
            bind(refused, schema)
        assert raised.value.code == "UNSUPPORTED_EXPRESSION"
