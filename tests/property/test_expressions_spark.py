"""Every comparison and cast of plain values gives what Spark gives, ANSI on and off; a sample of the matrix per run.

The campaign profile runs the whole matrix. `KNOWN` and `UNWRAPPED` list where the answers differ, and why.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.schema.arrow import to_arrow
from mica.schema.ddl import parse_ddl
from mica.schema.interval_types import is_interval
from tests.oracle import FAILED, REFUSED, ask, conf, judged, same
from tests.support import CAMPAIGN, dealt

RULES = "org.apache.spark.sql.catalyst.optimizer"
ZONE = "Europe/Berlin"
SCHEMA = parse_ddl(
    "l bigint, i int, h smallint, n decimal(10,2), w decimal(38,10), e decimal(20,0), x double, f float, s string, "
    "d date, t timestamp, z timestamp_ntz, b boolean, bin binary"
)
UTC = dt.UTC
LITERALS = [
    "1", "-5L", "2S", "1.0", "0.10", "1e0", "16777217", "1.5F", "9007199254740993", "99999999999999999999", "'1'",
    "'1.0'",
    "' 5 '", "'a'", "''", "'2020-01-01'", "'2020-01-01 01:00:00'", "'true'", "DATE'2020-01-01'",
    "TIMESTAMP'2020-01-01 01:00:00'", "TIMESTAMP_NTZ'2020-10-25 02:30:00'", "TIMESTAMP'2020-10-25 02:30:00'",
    "TIMESTAMP'2020-03-29 02:30:00'", "true", "X'61'", "NULL", "cast('nan' as double)", "-0.0", "0.0D",
]  # fmt: skip
LISTS = [
    "1, 2", "1, '1'", "1.0, -5", "'a', '1'", "NULL, 1", "1e0, 0", "DATE'2020-01-01', NULL",
    "'2020-01-01', '1970-01-01'",
    "0.0D, cast('nan' as double)", "TIMESTAMP'2020-01-01 01:00:00', DATE'2020-01-01'", "16777217, 1.5F", "0.1, 1.00",
]  # fmt: skip
TYPES = [
    "bigint", "int", "smallint", "tinyint", "decimal(10,2)", "decimal(5,1)", "decimal(38,0)", "double", "float",
    "string",
    "date", "timestamp", "timestamp_ntz", "boolean", "binary",
]  # fmt: skip
NAMES = SCHEMA.names
OPERATORS = ["+", "-", "*", "/", "%"]
OPERANDS = [
    "0", "1", "-1", "7S", "3Y", "9223372036854775807", "1.5", "0.00", "-3.25", "0.0D", "2.5e0", "1.5F", "'2'", "'x'",
    "NULL", "99999999999999999999", "cast('nan' as double)", "1e-30", "cast(7 as decimal(38,18))",
]  # fmt: skip
PATTERNS = [
    "'%'", "''", "'1%'", "'%1'", "'%0%'", "'1_5'", "'_'", "'%-__-%'", "'a%c'", "'1\\\\%'", "s", "NULL", "1", "'%.%e%'",
    "'/%1' ESCAPE '/'", "'____'", "X'61'",
]  # fmt: skip
UNARY = [
    "lower", "upper", "trim", "ltrim", "rtrim", "length", "char_length", "year", "month", "day", "dayofmonth", "hour",
    "minute", "second", "timestamp_micros", "timestamp_millis", "unix_micros", "unix_millis", "unix_seconds",
]  # fmt: skip
#: Letters whose other case is more than one letter, or depends on what is around.
CASES = ["ΟΔΟΣ Σ ΑΣ.Σ", "straße", "İıIi", "ŉ ﬁ ﬀ", "ǅ ǆ", "ΐ ᾳ ᾼ", "Ꭰ ꭰ", "𐐀𐐨", "ა Ა"]
TIMES = ["d", "t", "z", "s", "DATE'2020-01-01'"]
PLACES = [
    "1",
    "2, 2",
    "0, 3",
    "-3",
    "-3, 2",
    "-100, 99",
    "2, 0",
    "1, -1",
    "NULL",
    "2, NULL",
    "'2'",
    "100",
    "-1, 2147483647",
]
UNITS = "year quarter MONTH mm week day dd hour minute second millisecond microsecond yy foo".split()
PRINTED = [
    "yyyy-MM-dd HH:mm:ss.SSSSSS", "yy/M/d H:m:s.S", "EEE, dd MMM yyyy hh:mm a", "EEEE MMMM D DDD h", "\\'T\\' yyyyMMdd",
    "yyyy G", "SSSSSSSSS",
]  # fmt: skip
PLACED = ["", ", 1", ", -1", ", -3", ", NULL"]
MORE_UNARY = ["isnan", "floor", "ceil", "xxhash64", "from_unixtime", "unix_timestamp"]
#: INTERVAL literals: months, days, shorter, mixed units, texts, and what the grammar makes of signs.
INTERVALS = [
    "INTERVAL 3 DAYS", "INTERVAL -1 DAY", "INTERVAL '2' WEEKS", "INTERVAL 1 MONTH", "INTERVAL -13 MONTHS",
    "INTERVAL '1-2' YEAR TO MONTH", "INTERVAL 90 MINUTES", "INTERVAL 1 DAY 2 HOURS 3 SECONDS", "INTERVAL '1.5' SECOND",
    "INTERVAL '1 02:03:04.000005' DAY TO SECOND", "INTERVAL '-1 12' DAY TO HOUR", "INTERVAL '1 day -3 hours'",
    "INTERVAL '2 weeks 1 day'", "INTERVAL 1 YEAR 1 MONTH", "INTERVAL '25:00' HOUR TO MINUTE", "- INTERVAL 36 HOURS",
    "INTERVAL 24 HOURS", "INTERVAL -5 MICROSECONDS", "INTERVAL 7 MILLISECONDS", "INTERVAL 1 MONTH 1 DAY",
    "INTERVAL 3 FORTNIGHTS", "INTERVAL '1:2' YEAR TO MONTH", "INTERVAL '3' DAY TO MONTH", "INTERVAL 120000 MONTHS",
    "INTERVAL '1 13:60' DAY TO MINUTE", "INTERVAL 1.5 DAYS", "INTERVAL 106751991 DAYS",
    "INTERVAL '59:59.9' MINUTE TO SECOND",
]  # fmt: skip
DIFFERENCES = [f"({a} - {b})" for a, b in itertools.product([*TIMES, "NULL"], repeat=2) if {a, b} - {"s", "NULL"}]
AGES = ["INTERVAL 1 DAY", "INTERVAL -36 HOURS", "INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL 14 MONTHS"]
KINDS = ["interval day", "interval day to second", "interval hour", "interval minute to second", "interval year",
         "interval year to month", "interval second"]  # fmt: skip
AGE_TEXTS = [
    "'1'",
    "' -1.5 '",
    "'1 02:03:04.1234567'",
    "'1-2'",
    "'1 25'",
    "'interval -\\'5:06.7\\' minute to second'",
    "'|3'",
]
DIVISORS = ["2", "-3", "0", "l", "i", "NULL", "1.5", "'2'", "w"]
SCALES = ["0", "1", "3", "-1", "-3", "-30", "-40", "1L", "NULL"]
SOUND = [name for name in NAMES if name != "bin"]
AGREE = [(a, c) for a, c in itertools.combinations(SOUND, 2)][::5]
#: Casts of nested values, part by part, and values without a type of their own.
NESTED = [
    *(f"cast(array({a}, NULL) as array<{b}>)" for a, b in itertools.product(SOUND, TYPES)),
    *(f"cast(map('k', {a}) as map<string, {b}>)" for a, b in itertools.product(SOUND, TYPES)),
    *(f"cast(if(b, array(array({a})), NULL) as array<array<{b}>>)" for a, b in itertools.product(SOUND, TYPES)),
    *(f"try_cast(array({a}, NULL) as array<{b}>)" for a, b in itertools.product(["s", "x", "w"], TYPES[:-1])),
    *(
        f"cast(named_struct('p', {a}, 'q', array({c})) as struct<q: {b}, p: array<{b}>>)"
        for a, b, c in itertools.product(SOUND[:-2], TYPES[:10], ["1", "NULL"])
    ),
    *(f"cast(if(b, {a}, NULL) as array<bigint>)[0]" for a in ("array()", "array(NULL)", "array(i)")),
    *(f"cast(struct({a}) as struct<a: int, b: int>)" for a in SOUND),
    "struct(i AS `a b`, l, i + 1).`a b`", "struct(i AS p, struct(s AS col1) AS q).q.col1", "struct(i p)",
    *(f"if(b, array({a}), array({c}))" for a, c in itertools.product(SOUND, [*SOUND, "NULL", "1"])),
    *(f"coalesce(if(b, struct({a} AS p, 1 AS q), NULL), struct({c} AS P, NULL AS q))" for a, c in AGREE),
    *(f"if(b, map(1, {a}), map(2L, {c}))[i]" for a, c in AGREE),
    *(f"array(array({a}), array(), array({c}))" for a, c in AGREE),
    "if(b, array(), array(array(1L)))", "if(b, struct(1 AS a), struct(1 AS b))", "cast(array() as array<string>)",
    "array(NULL)", "map('k', NULL)", "struct(NULL, 1)", "named_struct('a', NULL).a", "size(array())", "size(map())",
    "array(NULL)[0]", "element_at(array(NULL), 1)", "array(NULL, 1)", "cast(map() as map<string, int>)",
    "cast(map(1, i) as map<bigint, string>)",
]  # fmt: skip
MATRIX = [
    *NESTED,
    *(f"{f}({a}, {c})" for f, a, c in itertools.product(["greatest", "least"], NAMES, [*NAMES, "1", "'x'", "NULL"])),
    *(f"{f}({a})" for f, a in itertools.product(["abs", "md5"], NAMES)),
    *(f"{f}({a}{c})" for f, a, c in itertools.product(["round", "bround"], NAMES, PLACED)),
    *(f"{f}({a})" for f, a in itertools.product(MORE_UNARY, NAMES)),
    *(f"{a} DIV {b}" for a, b in itertools.product(NAMES, [*DIVISORS, "-1", "e"])),
    *(f"pmod({a}, {b})" for a, b in itertools.product(NAMES, [*DIVISORS, "x", "h"])),
    *(f"{f}({a}, {c})" for f, a, c in itertools.product(["floor", "ceil"], NAMES, SCALES)),
    *(f"xxhash64({a}, s, {b})" for a, b in itertools.product(NAMES, ["NULL", "1", "'x'", "w"])),
    *(f"date_trunc('{u}', {a})" for u, a in itertools.product(UNITS, ["d", "t", "z", "s", "i", "NULL"])),
    *(f"trunc({a}, '{u}')" for u, a in itertools.product(UNITS, ["d", "t", "z", "s", "i", "NULL"])),
    *(f"date_format({a}, '{p}')" for p, a in itertools.product(PRINTED, ["d", "t", "z", "s", "i"])),
    *(f"from_unixtime({a}, 'yyyy-MM-dd')" for a in NAMES),
    *(f"{a} RLIKE {b}" for a, b in itertools.product(NAMES, ["'1'", "'^-?[0-9]+$'", "NULL", "s", "'(?i)TRUE'"])),
    *(f"regexp_replace({a}, '[0-9]+', 'n')" for a in NAMES),
    *(f"split({a}, '[.-]')" for a in NAMES),
    *(f"array({a}, {b})[{c}]" for a, b, c in itertools.product(NAMES, ["s", "1", "NULL", "x"], ["0", "i"])),
    *(f"element_at(array({a}, {a}), h)" for a in NAMES),
    *(f"map(1, {a}, 2, {b})[i]" for a, b in itertools.product(NAMES, ["s", "1", "x"])),
    *(f"struct({a}, l + 1).{b}" for a, b in itertools.product(NAMES, ["col2", "nope"])),
    *(f"{f}({a}, {b})" for a, (f, b) in itertools.product(NAMES, [("array", "s"), ("array", "1"), ("struct", "1")])),
    *(f"try_to_date({a}, 'yyyy-MM-dd')" for a in ("s", "d", "t")),
    "xxhash64('Spark', array_size(array(1)))",
    "xxhash64(X'00', 1L, 1.5D, NULL)",
    *(f"map('k', {a}, s, 1)" for a in NAMES[:4]),
    *(f"to_date({a})" for a in ("s", "d", "t", "z")),
    *(f"to_timestamp({a})" for a in ("s", "d", "t", "z", "l", "i", "h", "n", "x", "f")),
    *(f"mod({a}, {c})" for a, c in itertools.product(NAMES, ["0", "3", "-2", "NULL", "1.5", "i"])),
    *(f"sha2({a}, {c})" for a, c in itertools.product(["s", "bin", "i"], ["0", "224", "256", "384", "512", "1"])),
    *(
        f"replace({a}, {c})"
        for a, c in itertools.product(["s", "i", "d"], ["'1', '22'", "'', 'x'", "'0'", "NULL, 'x'"])
    ),
    *(f"greatest({a}, {b}, {c})" for a, b, c in itertools.product(["l", "i", "x"], ["h", "n", "f"], ["1", "NULL"])),
    *(f"{a} {op} {b}" for a, b, op in itertools.product(["d", "t", "z", "NULL"], INTERVALS, ["+", "-"])),
    *(f"{b} + {a}" for a, b in itertools.product(["d", "t", "z", "i"], INTERVALS)),
    *(f"{a} {op} INTERVAL 1 DAY" for a, op in itertools.product(NAMES, ["+", "-", "*"])),
    *DIFFERENCES,
    *(f"{a} {op} {b}" for a, op, b in itertools.product(DIFFERENCES, ["+", "-", "=", "<", "<=>", "DIV"], AGES)),
    *(f"({a}) {op} {b}" for a, op, b in itertools.product([*DIFFERENCES[::4], *AGES], ["*", "/"], [*NAMES, *OPERANDS])),
    *(f"{b} * ({a})" for a, b in itertools.product(AGES, [*NAMES, *OPERANDS])),
    *(f"{a} {op} ({b})" for a, op, b in itertools.product(["d", "t", "z", "s", "i"], ["+", "-"], DIFFERENCES)),
    *(
        f"{f}cast({a} as {b})"
        for f, a, b in itertools.product(["", "try_"], [*DIFFERENCES[::4], *AGES], [*TYPES, *KINDS])
    ),
    *(f"{f}cast({a} as {b})" for f, a, b in itertools.product(["", "try_"], [*NAMES, *AGE_TEXTS], KINDS)),
    *(f"{f}({a})" for f, a in itertools.product(["-", "+", "abs", "length", "md5", "size"], DIFFERENCES)),
    *(f"{a} IN ({b}, NULL)" for a, b in itertools.product(DIFFERENCES, AGES)),
    *(f"{f}({a}, {b})" for f, a, b in itertools.product(["coalesce", "greatest"], DIFFERENCES, [*AGES, "'x'"])),
    *(f"CASE WHEN b THEN {a} ELSE {c} END" for a, c in itertools.product(DIFFERENCES, [*AGES, "NULL", "i"])),
    *(f"d + {a} * i" for a in AGES),
    *(
        f"add_months({a}, {c})"
        for a, c in itertools.product(["d", "t", "z", "s"], ["i", "1", "h", "NULL", "-13", "'2'"])
    ),
    *(f"{a} {op} {b}" for a, b, op in itertools.product(NAMES, NAMES, ["=", "<"])),
    *(f"{a} {op} {b}" for a, b, op in itertools.product(NAMES, LITERALS, ["=", "<=", "<=>", "<>"])),
    *(f"{a} IN ({b})" for a, b in itertools.product(NAMES, LISTS)),
    *(f"cast({a} as {b})" for a, b in itertools.product(NAMES, TYPES)),
    *(f"try_cast({a} as {b})" for a, b in itertools.product(NAMES, TYPES)),
    *(f"{a} {op} {b}" for a, b, op in itertools.product(NAMES, NAMES, OPERATORS)),
    *(f"{a} {op} {b}" for a, b, op in itertools.product(NAMES, OPERANDS, OPERATORS)),
    *(f"{b} {op} {a}" for a, b, op in itertools.product(NAMES, OPERANDS, OPERATORS)),
    *(f"{sign} {a}" for a, sign in itertools.product(NAMES, ["-", "+", "- -"])),
    *(f"{a} {op} {b}" for a, op, b in itertools.product(NAMES, ["LIKE", "NOT ILIKE"], PATTERNS)),
    *(
        f"{f}({a}, {b})"
        for a, b, f in itertools.product(
            NAMES, ["'1'", "''", "s", "X'61'", "bin", "NULL", "0"], ["startswith", "endswith", "contains"]
        )
    ),
    *(f"CASE WHEN b THEN {a} ELSE {c} END" for a, c in itertools.product(NAMES, [*NAMES, "1", "'x'", "NULL"])),
    *(f"{f}('{text}')" for f, text in itertools.product(["lower", "upper"], CASES)),
    *(f"coalesce({a}, {c})" for a, c in itertools.product(NAMES, [*NAMES, "1", "1.5", "'x'", "NULL"])),
    *(f"nullif({a}, {c})" for a, c in itertools.product(NAMES, LITERALS)),
    *(f"if({a} > i, {a}, i / 0)" for a in NAMES[:8]),
    *(f"CASE s WHEN '1' THEN {a} WHEN 'abc' THEN {a} END" for a in NAMES),
    *(f"CASE WHEN s = 'abc' THEN 0 ELSE cast(s as {a}) END" for a in ("int", "double", "date")),
    *(f"{a} || {c}" for a, c in itertools.product(NAMES, [*NAMES, "'x'", "NULL", "1", "X'61'"])),
    *(f"concat({a}, s, {a})" for a in NAMES),
    *(f"{f}({a})" for a, f in itertools.product(NAMES, UNARY)),
    *(f"substring({a}, {c})" for a, c in itertools.product(NAMES, PLACES)),
    *(
        f"{f}({a}, {c})"
        for f, a, c in itertools.product(
            ["date_add", "date_sub"], ["d", "t", "z", "s"], ["i", "1", "h", "NULL", "'2'", "-400"]
        )
    ),
    *(
        f"datediff({a}, {c})"
        for a, c in itertools.product(["d", "t", "z", "s", "DATE'2020-01-01'"], ["d", "t", "z", "'2020-01-01'", "NULL"])
    ),
]
#: Where Spark's answer is another one, by pattern, with the reason. `UNWRAPPED` are held against Spark all the same,
#: without the rule of its optimizer (UnwrapCastInBinaryComparison) that changes or spoils the answer.
KNOWN = {
    r"date_trunc\('foo', s\)|trunc\(s, '(day|dd|hour|minute|(milli|micro)?second|foo)'\)": (
        "a text is not cast where the unit is none, so one that is no date is no error"
    ),
    r"(- )+w": "Spark's minus rounds a decimal to 34 digits",
    r"[lih] <= 99999999999999999999": "folded to TRUE for nulls too (integralAndDecimalLiteral)",
}
UNWRAPPED = {
    r"(nullif\()?z(,| =| <=>| <>) TIMESTAMP'2020-03-29 02:30:00'\)?": "the cast of a clock moves into a gap",
    r"b (=|<=>|<>) 0\.10|nullif\(b, 0\.10\)": "INTERNAL_ERROR, for no decimal(2,2) is TRUE",
}
#: The row where `bin` is no UTF-8.
NO_TEXT = 2

#: What Spark has and mica says it has not yet.
UNSUPPORTED = {
    r".* RLIKE s": "a pattern that is not a constant",
    r".* RLIKE NULL": "of a binary value",
    r"date_format\(., 'yyyy G'\)": "letters that are not certain",
    r"map\('k', .*": "keys that are not constants",
    r"substring\(bin, .*": "a part of a binary value",
}


def table() -> pa.Table:
    inf, nan = math.inf, math.nan
    columns: list[list[Any]] = [
        [1, -5, 2**53 + 1, 2**63 - 1, -(2**63), 0, None, 16777217],
        [1, -5, 2**31 - 1, -(2**31), 0, 5, None, 16777217],
        [1, -5, 0, 127, 32767, 5, None, 2],
        [Decimal("1.00"), Decimal("-5.50"), Decimal("0.10"), Decimal("99999999.99"), Decimal(0), Decimal(5), None,
        Decimal("2.5")],
        [Decimal(1), Decimal("-5.5"), Decimal(2**53 + 1), Decimal("9" * 28 + "." + "9" * 10), Decimal("0.1"),
        Decimal(0), None, Decimal(16777217)],
        [Decimal(1), Decimal(-6), Decimal(2**53 + 1), Decimal("9" * 20), Decimal(0), Decimal(2), None, Decimal(100)],
        [1.0, -5.5, 9007199254740993.0, inf, nan, -0.0, None, 16777217.0],
        [1.0, -5.5, 0.1, -inf, nan, -0.0, None, 16777216.0],
        ["1", "1.5", "abc", "2020-01-01", "true", " 2020-1-1 01:00 ", None, "1e2"],
        [dt.date(2020, 1, 1), dt.date(1970, 1, 1), dt.date(2020, 3, 29), dt.date(9999, 12, 31), dt.date(2, 1, 1),
         dt.date(2020, 10, 25), None, dt.date(1900, 1, 1)],
        [dt.datetime(2020, 1, 1, tzinfo=UTC), dt.datetime(2019, 12, 31, 23, tzinfo=UTC),
         dt.datetime(2020, 3, 29, 1, 0, 0, 1, UTC), dt.datetime(9999, 12, 30, tzinfo=UTC),
         dt.datetime(1, 1, 2, tzinfo=UTC), dt.datetime(2020, 10, 25, 0, 30, tzinfo=UTC), None,
         dt.datetime(2020, 10, 25, 1, 30, tzinfo=UTC)],
        [None if v is None else dt.datetime.fromisoformat(v) for v in (
            "2020-01-01", "2020-01-01T01:00", "2020-03-29T02:30", "9999-12-30", "0001-01-02", "2020-10-25T02:30",
            None,
            "2020-10-25T01:30")],
        [True, False, True, False, None, True, False, None],
        [b"a", b"", b"\xff", b"ab", None, b"1", b"a", b"5"],
    ]  # fmt: skip
    return pa.table(columns, schema=to_arrow(SCHEMA))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ansi", [True, False])
def test_as_spark(spark: Any, tmp_path: Path, rng: random.Random, ansi: bool) -> None:
    rows = table()
    pq.write_table(rows.append_column("row", pa.array(range(rows.num_rows))), tmp_path / "rows.parquet")
    asked = MATRIX if CAMPAIGN else rng.sample(MATRIX, 100)
    asked = [e for e in asked if not matches(e, KNOWN)]
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    settings = {"spark.sql.ansi.enabled": str(ansi).lower(), "spark.sql.session.timeZone": ZONE}
    with conf(spark, settings):
        theirs = ask(frame, [e for e in asked if not matches(e, UNWRAPPED)])
    with conf(spark, {**settings, "spark.sql.optimizer.excludedRules": f"{RULES}.UnwrapCastInBinaryComparison"}):
        theirs |= ask(frame, [e for e in asked if matches(e, UNWRAPPED)])
    differences = [
        (text, theirs[text], found) for text in asked if not agrees(text, found := ours(text, rows, ansi), theirs[text])
    ]
    assert not differences, "\n".join(map(str, differences))


def matches(text: str, patterns: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns)


def ours(text: str, rows: pa.Table, ansi: bool) -> list[Any] | str:
    try:
        bound = bind_value(text, SCHEMA, ansi=ansi, timezone=ZONE)
        if is_interval(bound.type):  # its text tells the units, as in the oracle
            bound = bind_value(f"cast(({text}) as string)", SCHEMA, ansi=ansi, timezone=ZONE)
    except UserError as e:
        return e.code
    return judged(bound, [rows.column(leaf.column[0]).combine_chunks() for leaf in bound.leaves], rows.num_rows)


def agrees(text: str, found: list[Any] | str, expected: list[Any] | str) -> bool:
    if found == "UNSUPPORTED_EXPRESSION":
        return expected == REFUSED or matches(text, UNSUPPORTED)
    if found == "INVALID_CAST":  # a constant that has no cast is refused before any row is looked at
        return FAILED in expected
    if isinstance(found, str) or isinstance(expected, str):
        return isinstance(found, str) and expected == REFUSED
    # Bytes that are no UTF-8 are a string to Spark and cannot be one here (docs/decisions.md).
    return all(
        same(f, e) or ("bin" in text and row == NO_TEXT and f in (None, FAILED))
        for row, (f, e) in enumerate(zip(found, expected, strict=True))
    )


@pytest.mark.slow
def test_case_of_every_letter_is_spark_s(spark: Any) -> None:
    letters = pa.array(map(chr, dealt([n for n in range(0x110000) if not 0xD800 <= n < 0xE000], 0, 8)))
    frame = spark.createDataFrame(pa.table({"n": pa.array(range(len(letters))), "s": letters}))
    theirs = frame.selectExpr("n", "lower(s) AS lower", "upper(s) AS upper").toArrow().sort_by("n")
    for name in ("lower", "upper"):
        found = evaluate(bind_value(f"{name}(s)", SCHEMA), [letters])
        differs = pc.filter(letters, pc.not_equal(found, theirs[name].combine_chunks()))
        assert [hex(ord(letter)) for letter in differs.to_pylist()] == []
