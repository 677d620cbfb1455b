"""What Spark's grammar reads means the same here; what it drops or changes elsewhere is an error here."""

import pytest

from mica.errors import UserError
from mica.expressions.parse import parse
from mica.expressions.tree import Column, to_sql
from mica.schema import spelling


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a = 1 AND v:b.c::string IS NOT NULL", "a = 1 AND v:b.c::STRING IS NOT NULL"),
        ("v:a.b[0]['c d']::decimal(10,2) BETWEEN 1 AND 2.50",
         "v:a.b[0]['c d']::DECIMAL(10,2) >= 1 AND v:a.b[0]['c d']::DECIMAL(10,2) <= 2.50"),
        ("NOT x IN (1,2,'a') OR y", "NOT x IN (1, 2, 'a') OR y"),
        ("variant_get(v,'$.a','array<int>') is null", "v:a::ARRAY<INT> IS NULL"),
        ("try_variant_get(s.v,\"$['x y']\",'bigint') <=> null", "try_cast(s.v:['x y'] AS BIGINT) <=> NULL"),
        ("variant_get(v, '$.$type', 'string') = 'x'", "v:['$type']::STRING = 'x'"),
        ("-1 = - 1 and -9223372036854775808L < 1BD", "-1 = -1 AND -9223372036854775808 < 1"),
        ("a = 'it''s' 'x' or !b", "a = 'it\\'sx' OR NOT b"),
        ("not not a = b = true", "NOT NOT (a = b) = TRUE"),
        ("x'1F' = X'1' and r'a\\n' = 'b'", "X'1F' = X'01' AND 'a\\\\n' = 'b'"),
        ("a !> 1 and b!<2 and not a<3", "a <= 1 AND b >= 2 AND NOT a < 3"),
        ("a is not distinct from null and b is not true", "a <=> NULL AND b IS DISTINCT FROM TRUE"),
        ("v:`a b`.c::int > 1e3", "v:['a b'].c::INT > 1000.0"),
        ("1e3BD = 1.50 and .5 = 5. and 1.5f=2d", "1000 = 1.50 AND 0.5 = 5 AND 1.5 = 2.0"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("d >= DATE'2020-1-1' and t < timestamp '2020-01-01'", "d >= DATE'2020-1-1' AND t < TIMESTAMP'2020-01-01'"),
        ("v:a:b[1]::int::string = '1'", "v:a:b[1]::INT::STRING = '1'"),
        ("a /* x */ = -- y\n 1", "a = 1"), ("a /* x /* y */ = 2 */ = 1", "a = 1"),
        ("INTERVAL ' +1.5 ' SECOND", "INTERVAL '01.5' SECOND"),
        ("a = 3.4028234663852886e38F", "a = 3.4028234663852886e+38"),
        ("a = 1 -- x \\\n OR b", "a = 1"), ("a = /**/ 1 /* /*+ */", "a = 1"),
        ("a = '\\200' AND b = '\\101'", "a = '200' AND b = 'A'"),
        ("a = 1.00000017881393432617187499F", "a = 1.0000001192092896"),
        ("v:a::bigint < 10 and v:a::bigint<10", "v:a::BIGINT < 10 AND v:a::BIGINT < 10"),
        ("`weird ``name` = 1", "`weird ``name` = 1"),
        ("a + b * -c - (d - 1) % 2", "a + b * - c - (d - 1) % 2"), ("(a + b) * 2 / 3", "(a + b) * 2 / 3"),
        ("a - -1::string", "a - -1::STRING"), ("- - a", "- - a"), ("a not like 'x%' escape '/' and b",
        "NOT a LIKE 'x%' ESCAPE '/' AND b"), ("startswith(v:a[0].b, 'x') = true", "startswith(v:a[0].b, 'x')"),
        ("a + 1 between 2 and 3 + b", "a + 1 >= 2 AND a + 1 <= 3 + b"), ("-5 + +5", "-5 + positive(5)"),
        ("date(ts)", "ts::DATE"), ("cast(d as timestamp without time zone) = d", "d::TIMESTAMP_NTZ = d"),
        ("d::timestamp with local time zone = d", "d::TIMESTAMP = d"),
        ("end > start AND order = 3 OR NOT not = 1", "`end` > start AND `order` = 3 OR NOT `not` = 1"),
        ("interval - 4 < interval -'1' day + d", "`interval` - 4 < INTERVAL '-1' DAY + d"),
        ("case = 6 and in in (in) and abs(end) = 2 and t.end::int = from[0]",
         "`case` = 6 AND `in` IN (`in`) AND abs(`end`) = 2 AND t.`end`::INT = `from`[0]"),
        ("CASE end WHEN 2 THEN case ELSE order END", "CASE WHEN `end` = 2 THEN `case` ELSE `order` END"),
        ("CASE (a) WHEN -1 THEN 2 END = like and from not like like",
         "CASE WHEN a = -1 THEN 2 END = `like` AND NOT `from` LIKE `like`"),
        ("interval is null and distinct between and and exists",
         "`interval` IS NULL AND `distinct` >= `and` AND `distinct` <= `exists`"),
        ("bigint(v:x) + decimal('1')", "v:x::BIGINT + '1'::DECIMAL(10,0)"),
        ("(a, b) IN ((1, 2))", "named_struct('a', a, 'b', b) IN (named_struct('col1', 1, 'col2', 2))"),
        ("1 + 2 << 3 & 12 ^ 5 | 1 = a", "(((shiftleft(1 + 2, 3) & 12) ^ 5) | 1) = a"),
        ("~ -a + ~b >>> 2 > a >> 1", "shiftrightunsigned(~ - a + ~ b, 2) > shiftright(a, 1)"),
        ("a | b | c - d & ~e", "(a | b) | (c - d & ~ e)"),
        ("a LIKE ANY ('x', b) OR a NOT LIKE ALL ('y', c)", "a LIKE 'x' OR a LIKE b OR NOT a LIKE 'y' AND NOT a LIKE c"),
        ("a NOT ILIKE SOME ('x', 'y') AND a LIKE ALL ('z')",
         "(NOT lower(a) LIKE lower('x') OR NOT lower(a) LIKE lower('y')) AND a LIKE 'z'"),
        ("a IN ('x' 'y', (1), 2.50) AND a::decimal /* x */ (5,1) < 1", "a IN ('xy', 1, 2.50) AND a::DECIMAL(5,1) < 1"),
    ],
)  # fmt: skip
def test_reads(text: str, shown: str) -> None:
    assert to_sql(parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("to_dat(a) = b", "mica has no function to_dat", "Is to_date meant?"),
        ("nosuch(a)", "mica has no function nosuch", None),
    ],
)
def test_a_function_that_is_not_known_is_named_with_the_nearest(text: str, said: str, hint: str | None) -> None:
    with pytest.raises(UserError, match=said) as raised:
        parse(text)
    assert (raised.value.code, raised.value.hint) == ("UNSUPPORTED_EXPRESSION", hint)


def test_a_key_that_cannot_stand_in_backticks_is_written_out() -> None:
    with pytest.raises(UserError) as raised:
        parse("v:a.`b.c`::int = 1")
    assert raised.value.hint == "Write it as ['b.c']."


def test_an_error_has_one_place() -> None:
    with pytest.raises(UserError) as raised:
        parse("a > INTERVAL b")
    assert raised.value.message.startswith("a number or a text is expected, 'b' is found, at offset 13 of\n")
    assert raised.value.message.count("at offset") == 1


def test_long_lists_are_cut_for_people_only() -> None:
    text = f"NOT a IN ({', '.join(map(str, range(12)))}) OR b"
    assert to_sql(parse(text)) == "NOT a IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …) OR b"
    assert to_sql(parse(text), most=None) == text


@pytest.mark.parametrize(
    ("text", "code", "offset"),
    [
        ("", "INVALID_EXPRESSION", 0), ("a = '\ud800'", "INVALID_EXPRESSION", 5),
        ("a =", "INVALID_EXPRESSION", 3), ("a = 1 b", "INVALID_EXPRESSION", 6),
        ("v:$type = 1", "INVALID_EXPRESSION", 2), ("v:a.$type", "INVALID_EXPRESSION", 4),
        ("v:`a.b` is null", "INVALID_EXPRESSION", 2), ("v:0", "INVALID_EXPRESSION", 2), ("v:a[x]",
        "INVALID_EXPRESSION", 4),
        ("1 is null is null", "INVALID_EXPRESSION", 10), ("a = 'x", "INVALID_EXPRESSION", 4),
        ("128Y = a", "INVALID_EXPRESSION", 0), ("1e400 = a", "INVALID_EXPRESSION", 0), ("a ; b",
        "INVALID_EXPRESSION", 2),
        ("a in ()", "INVALID_EXPRESSION", 6), ("v:a::foo = 1", "INVALID_EXPRESSION", 5),
        ("variant_get(v,'a') is null", "INVALID_EXPRESSION", 14), ("x'zz' = b", "INVALID_EXPRESSION", 0),
        ("99999999999999999999999999999999999999999 = a", "INVALID_EXPRESSION", 0),
        ("a like any ()", "INVALID_EXPRESSION", 12), ("a[0", "INVALID_EXPRESSION", 3),
        ("a in (select 1)", "UNSUPPORTED_EXPRESSION", 6), ("case when a then b", "INVALID_EXPRESSION", 18),
        ("soundex(a) = 'x'", "UNSUPPORTED_EXPRESSION", 0), ("(a, b = 1", "INVALID_EXPRESSION", 9),
        ("a = b::string collate de", "UNSUPPORTED_EXPRESSION", 14),
        ("1 < < a = 2", "INVALID_EXPRESSION", 4), ("a >>>> 1", "INVALID_EXPRESSION", 5),
        ("extract(fortnight from d)", "UNSUPPORTED_EXPRESSION", 8), ("trim(both 'x' s)", "INVALID_EXPRESSION", 10),
        ("overlay(a placing b)", "INVALID_EXPRESSION", 19), ("date_part(a, d)", "INVALID_EXPRESSION", 0),
        ("a collate xx = b", "UNKNOWN_COLLATION", 2),
    ],
)  # fmt: skip
def test_refuses_and_shows_the_place(text: str, code: str, offset: int) -> None:
    with pytest.raises(UserError) as raised:
        parse(text)
    assert (raised.value.code, raised.value.context["offset"]) == (code, offset)


def test_depth_is_limited() -> None:
    with pytest.raises(UserError):
        parse("(" * 5000 + "a" + ")" * 5000)
    assert parse(" OR ".join(f"a = {i}" for i in range(5000)))


def test_what_nests_too_deeply_is_refused_and_long_conjunctions_are_not() -> None:
    for text in ("a" + " + 1" * 5000, "- " * 5000 + "a", "a" + "::int" * 5000, "a = 1" + " = true" * 5000, "(" * 60):
        with pytest.raises(UserError, match="levels"):
            parse(text)
    assert len(parse(" OR ".join(["a + 1 = 2"] * 5000)).children) == 5000


def test_each_name_is_read_as_the_column_that_it_was_printed_for() -> None:
    for word in [*sorted(spelling.RESERVED), "a", "date", "1x", "a.b", "a`b", "é", "if", "div"]:
        for name in (word, word.lower()):
            assert parse(spelling.quote_if_needed(name)) == Column((name,)), name
            assert parse(f"x.{spelling.quote_if_needed(name)} + 1") == parse(f"x.`{name.replace('`', '``')}` + 1")
