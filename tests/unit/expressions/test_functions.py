"""LIKE and its relatives, and the functions of Variants."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mica.errors import CorruptDataError, UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.expressions.strings import ANY, ONE, Pattern
from mica.schema.arrow import to_arrow_type, variant_field
from mica.schema.ddl import parse_ddl
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
    found = kernel.extract(ROWS, [leaf.request() for leaf in bound.leaves])
    return evaluate(bound, found.columns, num_rows=ROWS.num_rows).to_pylist()


def hits(text: str) -> str:
    return "".join("-" if hit is None else str(int(bool(hit))) for hit in values(text))


_LETTERS = ("abcdefg" * 40)[:200]


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
        # A pattern that is not valid, in rows that are not asked for.
        ("CASE WHEN i = 1 THEN s LIKE if(i = 1, p, concat(p, '\\\\')) ELSE false END", "1000000"),
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
        ("s LIKE concat(p, '\\\\')", "INVALID_EXPRESSION"),
        ("s LIKE 'a' ESCAPE 'xy'", "INVALID_EXPRESSION"), ("s LIKE 'a' ESCAPE ''", "INVALID_EXPRESSION"),
        ("startswith(s)", "INVALID_EXPRESSION"), ("is_variant_null(i)", "TYPE_MISMATCH"),
        ("schema_of_variant('a')", "TYPE_MISMATCH"),
        ("v:a + 1", "TYPE_MISMATCH"), ("cast(i as date)", "TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        values(text)
    assert raised.value.code == code


def test_types_of_deep_values_and_of_broken_ones() -> None:
    deep = from_json(pa.array(["[" * 900 + '{"a":1}' + "]" * 900]))
    shown = kernel.type_texts(pa.record_batch([deep], names=["v"])).column(0)[0].as_py()
    assert shown == "ARRAY<" * 900 + "OBJECT<a: BIGINT>" + ">" * 900
    broken = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x02\x05"}], deep.type)
    with pytest.raises(CorruptDataError):
        kernel.type_texts(pa.record_batch([broken], names=["v"]))


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        ("[1,2.50,null]", "ARRAY<DECIMAL(21,1)>"), ("[1,1e0]", "ARRAY<DOUBLE>"), ("[1.5,1e0]", "ARRAY<DOUBLE>"),
        ("[1,0.12345678901234567890123]", "ARRAY<DOUBLE>"), ("[]", "ARRAY<VOID>"), ("{}", "OBJECT<>"),
        ('[{"b":1},{"a":1.5},{"b":"x"},null]', "ARRAY<OBJECT<a: DECIMAL(2,1), b: VARIANT>>"),
        ('[[1],["a"],[]]', "ARRAY<ARRAY<VARIANT>>"), ('[{"a":1},[1],1]', "ARRAY<VARIANT>"), ("0.001", "DECIMAL(3,3)"),
        ('{"a-b":1,"1a":1,"é":1,"_x":2,"":3,"`q":1}',
         "OBJECT<``: BIGINT, `1a`: BIGINT, _x: BIGINT, ```q`: BIGINT, `a-b`: BIGINT, `é`: BIGINT>"),
    ],
)  # fmt: skip
def test_merged_types(document: str, shown: str) -> None:
    """As Spark 4.2.1 answers."""
    variants = from_json(pa.array([document]))
    assert kernel.type_texts(pa.record_batch([variants], names=["v"])).column(0).to_pylist() == [shown]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("CASE WHEN i > 4 THEN 'big' WHEN i > 1 THEN 'small' END", [None, "big", None, "small", "small", "big", "big"]),
        ("CASE i WHEN 1 THEN 'one' ELSE s END", ["one", "a\nc", "a%c", None, "", "a😀c", "a\\c"]),
        ("coalesce(i, length(s), 0)", [1, 12, 3, 3, 4, 5, 21]),
        ("nullif(i, 12)", [1, None, None, 3, 4, 5, 21]),
        ("if(i = 1, 10 / (i - 1), i)", None),
        ("if(i <> 1, 10 % (i - 1), 0)", [0, 10, 0, 0, 1, 2, 10]),
        ("upper(s) || '!' || i", ["ABC!1", "A\nC!12", None, None, "!4", "A😀C!5", "A\\C!21"]),
        ("lower('ΟΔΟΣ ß İ')", ["οδος ß i̇"] * 7),
        ("lower('\ua7daΣ Σ\ua7da \ua7dbΣ!')", ["\ua7dbς σ\ua7db \ua7dbς!"] * 7),
        ("cast(try_to_date(if(i = 1, '2024-01-02', s)) as string)", ["2024-01-02"] + [None] * 6),
        ("try_to_timestamp(s) IS NULL AND try_to_date('x') IS NULL", [True] * 7),
        # As Spark 4.2.1, which casts here as without ANSI.
        ("unix_timestamp(try_to_timestamp(1e300D))", [9223372036854] * 7),
        ("upper('straße')", ["STRASSE"] * 7),
        ("substring(s, -2)", ["bc", "\nc", "%c", None, "", "😀c", "\\c"]),
        ("substring('abc', -2147483648)", ["ab"] * 7),  # as in Java, the sum of both ends there
        ("hour('2020-03-01T12:34:56+05:00')", [7] * 7),
        ("minute(if(i = 1, '10:15:00+00:30', '2020-03-01 12:34:56'))", [45, 34, 34, 34, 34, 34, 34]),
        ("to_json(v:b)", ['{"c":[1,2.5]}', None, None, None, None, None, None]),
        (
            "to_json(to_variant_object(named_struct('z', array(i, 1.50), 'a', s)))",
            [
                '{"a":"abc","z":[1,1.5]}',
                '{"a":"a\\nc","z":[12,1.5]}',
                '{"a":"a%c","z":[null,1.5]}',
                '{"a":null,"z":[3,1.5]}',
                '{"a":"","z":[4,1.5]}',
                '{"a":"a😀c","z":[5,1.5]}',
                '{"a":"a\\\\c","z":[21,1.5]}',
            ],
        ),
        (
            "to_json(to_variant_object(if(i > 4, array(struct(i)), NULL)))",
            [None, '[{"i":12}]', None, None, None, '[{"i":5}]', '[{"i":21}]'],
        ),
        ("greatest(i, 4, NULL)", [4, 12, 4, 4, 4, 5, 21]),
        ("least(cast('nan' as double), i) > 100", [False, False, True, False, False, False, False]),
        ("abs(-i)", [1, 12, None, 3, 4, 5, 21]),
        ("mod(i, 5)", [1, 2, None, 3, 4, 0, 1]),
        ("replace(s, 'a', '😀')", ["😀bc", "😀\nc", "😀%c", None, "", "😀😀c", "😀\\c"]),
        ("md5(bin) = md5(s)", [True, True, True, None, True, True, True]),
        ("sha2('abc', 224)", ["23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"] * 7),
        ("size(try_variant_get(v, '$.b.c', 'array<double>'))", [2, None, None, None, None, None, None]),
        ("array_contains(try_variant_get(v, '$.b.c', 'array<double>'), 2.5D)", [True] + [None] * 6),
        ("element_at(try_variant_get(v, '$.b.c', 'array<double>'), -1)", [2.5] + [None] * 6),
        ("element_at(try_variant_get(v, '$.b', 'map<string, string>'), 'c')", ["[1,2.5]"] + [None] * 6),
        ("nvl2(v:a::string, 1, 0)", [0, 1, 0, 0, 0, 1, 0]),
        ("date_add(DATE'2024-02-28', i)", None),
        ("timestamp_millis(9223372036854775807)", None),
    ],
)
def test_values_of_functions(text: str, rows: list[object] | None) -> None:
    if rows is not None:
        assert values(text) == rows
    elif "date" in text:
        assert str(values(text)[0]) == "2024-02-29"
    else:
        with pytest.raises(UserError) as raised:
            values(text)
        assert raised.value.code in ("DIVIDE_BY_ZERO", "ARITHMETIC_OVERFLOW")


def test_branches_that_no_row_takes_never_fail() -> None:
    assert values("CASE WHEN s LIKE '%b%' THEN 0 WHEN length(s) > 0 THEN 12 / length(s) END") == [
        0, 4.0, 4.0, None, None, 4.0, 4.0,
    ]  # fmt: skip
    assert values("coalesce(if(i IS NULL, 0, i), cast(s as int))") == [1, 12, 0, 3, 4, 5, 21]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("to_variant_object(i)", "TYPE_MISMATCH"), ("to_variant_object(struct(v))", "TYPE_MISMATCH"),
        ("to_variant_object(map('a', i))", "TYPE_MISMATCH"),
        ("CASE WHEN i THEN 1 END", "TYPE_MISMATCH"), ("coalesce(i, bin)", "TYPE_MISMATCH"),
        ("if(i = 1, 2)", "INVALID_EXPRESSION"), ("coalesce()", "INVALID_EXPRESSION"),
        ("date_add(DATE'2020-01-01', 1.5)", "TYPE_MISMATCH"),
        ("date_sub(DATE'2020-01-01', 1L)", "TYPE_MISMATCH"),
        ("size(s)", "TYPE_MISMATCH"), ("greatest(s, i)", "TYPE_MISMATCH"), ("md5(i)", "TYPE_MISMATCH"),
        ("greatest(i)", "TYPE_MISMATCH"), ("sha2(s, i)", "UNSUPPORTED_EXPRESSION"), ("to_date(true)", "TYPE_MISMATCH"),
        ("timestamp_millis(s)", "TYPE_MISMATCH"), ("unix_micros(i)", "TYPE_MISMATCH"),
        ("substring(s, bin)", "TYPE_MISMATCH"), ("substring(bin, 1)", "UNSUPPORTED_EXPRESSION"),
        ("rpad(bin, 4)", "UNSUPPORTED_EXPRESSION"), ("rpad(bin, 4, x'20')", "UNSUPPORTED_EXPRESSION"),
        ("CASE WHEN true THEN 1 ELSE", "INVALID_EXPRESSION"), ("coalesce(v:a, i)", "TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_what_functions_refuse(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        bind_value(text, SCHEMA)
    assert raised.value.code == code


def test_strings_of_a_collation_are_not_turned_into_others() -> None:
    schema = parse_ddl("d STRING COLLATE de, s STRING")
    for text in ("lower(d)", "d || s", "coalesce(d, s)", "replace(d, 'a', 'b')", "md5(d)", "levenshtein(d, s)"):
        with pytest.raises(UserError) as raised:
            bind_value(text, schema)
        assert raised.value.code == "UNSUPPORTED_EXPRESSION"
    assert bind_value("(d COLLATE UTF8_BINARY) || s", schema).type == bind_value("s", schema).type
    with pytest.raises(UserError) as mismatch:
        bind_value("lower(s) = d", schema)  # two columns of two collations, as in Spark
    assert mismatch.value.code == "COLLATION_MISMATCH"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("regexp_extract(s, '(.)(c)', 2)", "c"), ("regexp_replace(s, '([ab])', '<$1>')", "<a><b>c"),
        ("split(s, 'b')", ["a", "c"]), ("s RLIKE '^a.c$'", True), ("NOT s REGEXP 'x'", True),
        ("round(1.5D, 900)", 1.5), ("bround(-1.5D, -900)", 0.0), ("round(12345, -2147483648)", 0),
        ("round(1.5BD, -2147483648)", 0), ("floor(i, -2147483648)", 0),
        ("round(2.675D, 2)", 2.68), ("bround(25, -1)", 20), ("floor(-1.5D)", -2), ("ceil(1.1)", 2), ("7 DIV -2", -3),
        ("array(i, 2)[1]", 2), ("map('a', i, 'b', 5)['b']", 5), ("struct(i, s).s", "abc"),
        ("array(s, p)", ["abc", "a_c"]),
        ("named_struct('x', i, 'y', s)", {"x": 1, "y": "abc"}), ("element_at(map(1, 'x'), i)", "x"),
        ("date_format(TIMESTAMP'2020-01-02 03:04:05', 'EEE d MMM yy, h:mm a')", "Thu 2 Jan 20, 3:04 AM"),
        ("cast(to_date('1 ſep 2020', 'd MMM yyyy') AS STRING)", "2020-09-01"),
        ("from_unixtime(0)", "1970-01-01 00:00:00"), ("unix_timestamp('1970-01-02', 'yyyy-MM-dd')", 86400),
        ("unix_timestamp(TIMESTAMP'1969-12-31 23:59:58.5')", -1),
        ("to_unix_timestamp('1969-12-31 23:59:59.5', 'yyyy-MM-dd HH:mm:ss.S')", 0),
        ("cast(date_trunc('quarter', TIMESTAMP'2020-05-02 03:04:05') as string)", "2020-04-01 00:00:00"),
        ("cast(trunc(DATE'2020-05-02', 'week') as string)", "2020-04-27"),
        ("'ABC' ILIKE 'a%c'", True), ("'a_c' NOT ILIKE 'A/_C' ESCAPE '/'", False),
        ("isnan(cast('nan' as float))", True), ("isnan(i)", False), ("isnan(NULL)", False), ("isnan('NaN')", True),
        # As Spark 4.2.1 answers.
        ("xxhash64('Spark', array_size(array(1)))", -4449867541325528513),
        ("xxhash64(X'00', 1L, 1.5D, NULL)", -9161416050083430757),
        # Stripes of 32 bytes, and what is left of them.
        (f"xxhash64('{_LETTERS[:31]}')", 1346690100677588909), (f"xxhash64('{_LETTERS[:32]}')", 8329583593184110624),
        (f"xxhash64('{_LETTERS[:33]}')", -6441023473886383389), (f"xxhash64('{_LETTERS[:64]}')", -4171937500931069402),
        (f"xxhash64('{_LETTERS[:71]}')", 6723563378125047012), (f"xxhash64('{_LETTERS}')", 5565958916975279043),
        (f"xxhash64(X'{'00ff' * 20}')", -7414069193097805761),
        # Decimals of up to 18 digits are longs, others bytes.
        ("xxhash64(CAST('123.45' AS DECIMAL(10,2)))", 8791244235932249694), ("xxhash64(-1.5BD)", 5419925454361824573),
        ("xxhash64(CAST('-12345678901234567890.12' AS DECIMAL(30,2)))", 2794727827352827620),
        ("xxhash64(CAST('1.28' AS DECIMAL(19,2)))", 6715097930120473301),
        ("xxhash64(CAST('-1.28' AS DECIMAL(19,2)))", -7898411661632158123),
        ("xxhash64(CAST('0' AS DECIMAL(38,0)))", -8959994473701255385),
    ],
)  # fmt: skip
def test_daily_functions(text: str, first: object) -> None:
    assert values(text)[0] == first


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("m.a", [1, None, None]), ("m.A", [None, None, None]), ("s.m.k.z", [3, None, None]), ("s.l.p", [[1], None, []]),
        ("l.P", [[1, None], None, [4]]), ("l.q.r", [[5, None], None, [None]]),
        ("cast(m.a as string)", ["1", None, None]),
        ("l.p[0]", [1, None, 4]), ("x[NULL]", [None] * 3), ("m[NULL]", [None] * 3), ("m.b IS NULL", [True] * 3),
        ("array_contains(x, 1)", [True, None, False]), ("array_contains(array(1), 1.5D)", [False] * 3),
        ("array_contains(x, 1.0BD)", [True, None, False]),
        ("substring('abc' from 2) || substr('abc' from 1 for 1)", ["bca"] * 3),
        ("substring('abc', 2 for 1)", ["b"] * 3),
        ("map('a', NULL, 'c', NULL)", [[("a", None), ("c", None)]] * 3),
        ("coalesce(m, map('a', NULL, 'c', NULL))", [[("a", 1)], [("a", None), ("c", None)], []]),
        ("array(array(NULL, NULL), NULL)", [[[None, None], None]] * 3),
        ("array(struct(array(NULL, NULL) AS a)).a", [[[None, None]]] * 3),
        ("cast('abc' as varchar(2)) || 'abc'::char(5)", ["abcabc"] * 3), ("'true' AND true", [True] * 3),
        ("NOT t OR false", [False, None, True]),
    ],
)  # fmt: skip
def test_what_spark_takes_too(text: str, found: list[object]) -> None:
    schema = parse_ddl(
        "m MAP<STRING, INT>, l ARRAY<STRUCT<p: INT, Q: STRUCT<r: INT>>>, x ARRAY<DOUBLE>, t STRING, "
        "s STRUCT<m: MAP<STRING, STRUCT<z: INT>>, l: ARRAY<STRUCT<p: INT>>>"
    )
    rows = [
        {"m": [("a", 1)], "l": [{"p": 1, "Q": {"r": 5}}, None], "x": [1.0], "t": "true",
         "s": {"m": [("k", {"z": 3})], "l": [{"p": 1}]}},
        {}, {"m": [], "l": [{"p": 4, "Q": None}], "x": [], "t": "no", "s": {"m": [], "l": []}},
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows, pa.schema([(f.name, to_arrow_type(f.type)) for f in schema.fields]))
    bound = bind_value(text, schema)
    columns = [table[leaf.column[0]].combine_chunks() for leaf in bound.leaves]
    paths = [[*leaf.column[1:]] for leaf in bound.leaves]
    columns = [pc.struct_field(c, path) if path else c for c, path in zip(columns, paths, strict=True)]
    assert evaluate(bound, columns, num_rows=3).to_pylist() == found


def test_what_spark_refuses_too() -> None:
    schema = parse_ddl("m MAP<INT, INT>, l ARRAY<STRUCT<p: INT>>, t STRING, b BOOLEAN")
    for text, ansi in (("m.a", True), ("l.z", True), ("t AND b", False), ("NOT t", False), ("if(t, 1, 2)", True),
                       ("array_contains(array(1), '1')", True)):  # fmt: skip
        with pytest.raises(UserError, match="TYPE_MISMATCH"):
            bind_value(text, schema, ansi=ansi)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_dates_at_the_ends_of_time(zone: str) -> None:
    schema = parse_ddl("d DATE")
    days = pa.array([2**31 - 1, None, -(2**31), 106_751_991, 18_262], pa.int32()).cast(pa.date32())
    for text, found in {
        "year(d)": [5881580, None, -5877641, 294247, 2020], "month(d)": [7, None, 6, 1, 1],
        "day(d)": [11, None, 23, 10, 1], "year(try_cast(d AS TIMESTAMP_NTZ))": [None, None, None, 294247, 2020],
    }.items():  # fmt: skip
        assert evaluate(bind_value(text, schema, timezone=zone), [days]).to_pylist() == found
    assert (
        evaluate(bind_value("date_format(d, 'D M d')", schema, timezone=zone), [days[3:]]).to_pylist()[0] == "10 1 10"
    )
    for text in ("cast(d AS TIMESTAMP)", "cast(d AS TIMESTAMP_NTZ)", "d < TIMESTAMP'2020-01-01'"):
        for ansi in (True, False):
            with pytest.raises(UserError, match="INVALID_CAST"):
                evaluate(bind_value(text, schema, ansi=ansi, timezone=zone), [days])


def test_what_is_cut_into_a_gap_moves_behind_it() -> None:
    """Berlin's clocks had no 00:06 on 1893-04-01: as Spark 4.2.1, the minute is later than the time that is cut."""
    cut = bind_value(
        "date_format(date_trunc('minute', t), 'HH:mm:ss')", parse_ddl("t TIMESTAMP"), timezone="Europe/Berlin"
    )
    times = pa.array([-2422054405_000_000]).cast(pa.timestamp("us", "UTC"))
    assert evaluate(cut, [times]).to_pylist() == ["00:12:32"]


LEAST, LAST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("text", "zone", "found"),
    [
        ("unix_micros(date_trunc('hour', t))", "Europe/Berlin", [None, 9223372036800000000]),
        ("unix_micros(date_trunc('month', t))", "Europe/Berlin", [None, 9223371244800000000 - 3_600_000_000]),
        ("date_format(t, 'yyyy-MM-dd HH:mm:ss.SSSSSS EEE D')", "Europe/Berlin",
         ["-290308-12-21 20:52:33.224192 Sun 356", "+294247-01-10 05:00:54.775807 Sun 10"]),
        ("date_format(t, 'yyyy-MM-dd HH:mm:ss.SSSSSS EEE D')", "America/St_Johns",
         ["-290308-12-21 16:28:13.224192 Sun 356", "+294247-01-10 00:30:54.775807 Sun 10"]),
        ("date_format(t, 'yyyy')", "UTC", ["-290308", "+294247"]),
        ("cast(t - INTERVAL 1 MONTH AS STRING)", "Europe/Berlin", [None, "+294246-12-10 05:00:54.775807"]),
        ("t - INTERVAL 6 MONTHS + INTERVAL 6 MONTHS = t", "Europe/Berlin", [None, True]),
        ("cast(t - TIMESTAMP'1970-01-01 00:00:00Z' AS STRING)", "Europe/Berlin",
         [None, "INTERVAL '106751991 04:00:54.775807' DAY TO SECOND"]),
        ("hour(t)", "America/St_Johns", [None, 0]), ("cast(t AS TIMESTAMP_NTZ) IS NULL", "Asia/Tokyo", [False, None]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ansi", [True, False])
def test_times_at_the_ends_of_time(text: str, zone: str, found: list[object], ansi: bool) -> None:
    """As Spark 4.2.1 answers, with ANSI and without (hour of the very ends alone is an error only here)."""
    bound = bind_value(text, parse_ddl("t TIMESTAMP"), timezone=zone, ansi=ansi)
    for value, shown in zip((LEAST, LAST), found, strict=True):
        times = pa.array([value, None]).cast(pa.timestamp("us", "UTC"))
        if shown is None:
            with pytest.raises(UserError) as raised:
                evaluate(bound, [times])
            assert raised.value.code in ("ARITHMETIC_OVERFLOW", "INVALID_CAST")
        else:
            assert evaluate(bound, [times])[0].as_py() == shown


@pytest.mark.parametrize(
    ("text", "zone", "found"),
    [
        ("-294000-01-01", "UTC", None), ("-0000-01-01", "UTC", None), ("-00001-01-01", "UTC", -62198755200000000),
        ("+294247-01-05", "UTC", LAST - 446454775807), ("+9999999999-01-01", "UTC", None),
        ("+294247-01-10 05:00:54.775807", "Europe/Berlin", LAST),
        ("+294247-01-10 05:00:54.775808", "Europe/Berlin", None),
        ("+294247-01-10 03:00:54.775807-01:00", "Europe/Berlin", LAST),
        ("-290308-12-21 19:59:05.224192", "UTC", LEAST), ("-290308-12-21 19:59:05.224191", "UTC", None),
    ],
)  # fmt: skip
def test_patterns_of_times_end_where_time_does(text: str, zone: str, found: int | None) -> None:
    pattern = "yyyy-MM-dd" + " HH:mm:ss.SSSSSS" * (" " in text) + "XXX" * (text.count(":") == 3)
    for name in ("try_to_timestamp", "to_timestamp"):
        bound = bind_value(f"unix_micros({name}(s, '{pattern}'))", parse_ddl("s STRING"), timezone=zone)
        if found is None and name == "to_timestamp":
            with pytest.raises(UserError, match="INVALID_CAST"):
                evaluate(bound, [pa.array([text])])
        else:
            assert evaluate(bound, [pa.array([text, None])]).to_pylist() == [found, None]


def test_a_date_has_its_first_hour() -> None:
    days = pa.array([17_839, 17_840], pa.int32()).cast(pa.date32())  # of 2018-11-04, that begins at one o'clock there
    for text, hours in {"hour(d)": [1, 0], "hour(cast(d AS TIMESTAMP_NTZ))": [0, 0]}.items():
        bound = bind_value(text, parse_ddl("d DATE"), timezone="America/Sao_Paulo")
        assert evaluate(bound, [days]).to_pylist() == hours


def test_a_wider_key_is_cast() -> None:
    maps, keys = pa.array([[(7, "x")]] * 2, pa.map_(pa.int32(), pa.string())), pa.array([7, (1 << 32) + 7])
    schema = parse_ddl("m MAP<INT, STRING>, l BIGINT")
    assert evaluate(bind_value("m[l]", schema, ansi=False), [maps, keys]).to_pylist() == ["x", "x"]
    with pytest.raises(UserError, match="INVALID_CAST"):
        evaluate(bind_value("m[l]", schema), [maps, keys])


def test_a_failing_time_beyond_the_years_of_python_is_shown() -> None:
    times = pa.array([253_402_300_800_000_000], pa.int64()).cast(pa.timestamp("us", "UTC"))
    with pytest.raises(UserError, match="INVALID_CAST") as raised:
        evaluate(bind_value("cast(t AS INT)", parse_ddl("t TIMESTAMP")), [times])
    assert raised.value.value == "10000-01-01 00:00:00"


def test_the_first_of_equal_keys_counts() -> None:
    maps = pa.MapArray.from_arrays([0, 3], pa.array(["a", "b", "a"]), pa.array([1, 2, 3], pa.int32()))
    for text in ("m['a']", "element_at(m, 'a')"):
        assert evaluate(bind_value(text, parse_ddl("m MAP<STRING, INT>")), [maps]).to_pylist() == [1]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("round(i, double('inf'))", "INVALID_CAST"),
        ("array(i)[1]", "INVALID_ARRAY_INDEX"), ("array(i)[-1]", "INVALID_ARRAY_INDEX"),
        ("to_date(s, 'yyyy-MM-dd')", "INVALID_CAST"), ("i DIV 0", "DIVIDE_BY_ZERO"),
        ("s RLIKE '(?=a)'", "UNSUPPORTED_EXPRESSION"), ("s RLIKE p", "UNSUPPORTED_EXPRESSION"),
        ("regexp_extract(s, 'a')", "INVALID_EXPRESSION"), ("regexp_replace(s, 'a', '$1')", "INVALID_EXPRESSION"),
        ("regexp_replace(s, 'a*', 'x')", "UNSUPPORTED_EXPRESSION"), ("split(s, '')", "UNSUPPORTED_EXPRESSION"),
        ("date_format(current_timestamp(), 'YYYY')", "UNSUPPORTED_EXPRESSION"), ("v['a']", "TYPE_MISMATCH"),
        ("map(1, 2, 1, 3)", "INVALID_EXPRESSION"), ("map(i, 2)", "UNSUPPORTED_EXPRESSION"),
        ("map(double('NaN'), 2, double('NaN'), 3)", "INVALID_EXPRESSION"), ("to_timestamp(i, 'yyyy')", "TYPE_MISMATCH"),
        ("try_to_timestamp(DATE'300000-01-01')", "INVALID_CAST"),
        ("1.5 DIV 0", "DIVIDE_BY_ZERO"), ("1.5 DIV 2D", "TYPE_MISMATCH"), ("floor(1.5, 1L)", "TYPE_MISMATCH"),
        ("xxhash64(v)", "TYPE_MISMATCH"), ("struct(i).x", "TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_refuses_of_daily_functions(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        values(text)
    assert raised.value.code == code
