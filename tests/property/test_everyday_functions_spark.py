"""The everyday functions and spellings give what Spark gives, of random texts, numbers, dates and lists.

Every expression is a spelling with columns and constants in its places; the columns have random values, nulls, empty
and negative ones and letters beyond ASCII. The campaign profile asks each of them.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.expressions.parse import parse
from mica.expressions.tree import to_sql
from mica.schema.arrow import to_arrow
from mica.schema.ddl import parse_ddl
from tests.oracle import FAILED, REFUSED, ask, bound_and_judged, conf, same
from tests.support import CAMPAIGN

ZONE = "Europe/Berlin"
SCHEMA = parse_ddl(
    "s string, p string, c string, l bigint, i int, k int, h smallint, y tinyint, b boolean, x double, f float, "
    "n decimal(12,4), bin binary, d date, e date, t timestamp, u timestamp, z timestamp_ntz, "
    "a array<int>, g array<bigint>, w array<string>, r array<double>, m map<string, int>, aa array<array<int>>"
)
ROWS = 24
PIECES = ["a", "b", "ab", "A", "B", " ", "  ", ",", ".", "é", "ß", "😀", "İ", "1", "%", "_", "\n", "Zz", "", "ﬁ", "~*-"]
#: Where a text is expected: columns, constants, and what is cast to one.
TEXTS = ["s", "p", "c", "'ab'", "''", "' a b '", "'é'", "NULL", "i", "d", "n", "b"]
SIZES = ["k", "0", "1", "-1", "3", "NULL", "'2'", "k + 0L"]
NUMBERS = ["k", "i % 50", "0", "1", "-1", "2", "-2", "3", "NULL", "h", "'2'"]
INTEGERS = ["l", "i", "k", "h", "y", "0", "-1", "6", "5L", "NULL"]
DATES = ["d", "e", "t", "z", "DATE'2020-02-29'", "'2021-12-31'", "NULL"]
TIMES = ["t", "u", "z", "d", "TIMESTAMP'2020-10-25 02:30:00'", "'2020-03-29 01:59:59.5'"]
UNITS = "YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND".split()
PARTS = "YEAR y QUARTER MONTH mons WEEK DAY d DAYOFWEEK DOW DAYOFWEEK_ISO DOY HOUR MIN SECOND YEAROFWEEK".split()
LISTS = ["a", "g", "w", "r", "array(i, k, NULL)", "array(s, p)", "array(d, e)"]
REALS = ["x", "f", "n", "l", "i", "s", "0.5D", "-1", "NULL"]


def spelled(*parts: str | Iterable[str]) -> Iterator[str]:
    """Every text of these parts, of which one may be chosen among several."""
    return map("".join, itertools.product(*([one] if isinstance(one, str) else one for one in parts)))


BINARY_OPERATORS = [" & ", " | ", " ^ ", " + 1 & 3 * ", " | 8 ^ 4 & "]
EXPRESSIONS = [
    *spelled(
        TEXTS,
        [" ", " NOT "],
        ["LIKE", "ILIKE"],
        [" ANY", " ALL", " SOME"],
        [
            " ('a%', '%é%')",
            " ('%b', NULL, 'A_')",
            " (p, '')",
            " ('ab')",
        ],
    ),
    *spelled(INTEGERS, BINARY_OPERATORS, INTEGERS),
    *spelled("~ ", INTEGERS),
    "~ - i",
    "- ~ k + 1",
    "~ x",
    *spelled(INTEGERS, [" << ", " >> ", " >>> "], ["0", "1", "k", "33", "-1", "NULL", "y", "70"]),
    "i << 1 + 1 >> 2 > 3",
    "l >> 1 & 3 = 1 AND i | 1 > 0",
    "1 + 2 << 3 & 12 ^ 5 | 1",
    *spelled(["bit_count(", "bin(", "hex(", "char(", "chr(", "date_from_unix_date("], INTEGERS, ")"),
    *spelled("space(", SIZES, ")"),
    *spelled("bit_get(", ["l", "i", "h", "y"], ", ", ["0", "k", "7", "31", "NULL"], ")"),
    "bit_count(b)",
    *spelled(["isnull(", "isnotnull(", "equal_null(i, "], ["i", "k", "NULL", "l"], ")"),
    *spelled(["nullifzero(", "zeroifnull(", "negative(", "positive("], ["i", "x", "n", "NULL"], ")"),
    *spelled("decode(", ["i", "s"], ", ", ["k, 'x', 0, 'y'", "1, 'x', NULL, 'y', 'z'", "'ab', 1, '1', 2"], ")"),
    *spelled(
        [
            "ascii(",
            "initcap(",
            "reverse(",
            "octet_length(",
            "bit_length(",
            "sha1(",
            "crc32(",
            "base64(",
            "unhex(",
            "url_encode(",
            "unbase64(",
            "hex(",
            "btrim(",
            "trim(",
            "ltrim(",
            "rtrim(",
        ],
        [*TEXTS, "bin"],
        ")",
    ),
    *spelled(["locate(", "position("], TEXTS[:6], ", ", TEXTS, ["", ", 1", ", k", ", NULL"], ")"),
    *spelled("position(", TEXTS[:5], " IN ", ["s", "p", "'abab'"], ")"),
    *spelled(["instr(", "find_in_set(", "levenshtein("], TEXTS, ", ", TEXTS, ")"),
    *spelled(
        "trim(", ["BOTH ", "LEADING ", "TRAILING ", ""], ["'ab'", "p", "' '", "''", "NULL"], " FROM ", ["s", "i"], ")"
    ),
    *spelled("trim(", ["BOTH", "LEADING", "TRAILING"], " FROM ", ["s", "'  a '"], ")"),
    *spelled(["trim(", "ltrim(", "rtrim(", "btrim("], ["p", "'a'"], ", ", ["s", "c"], ")"),
    *spelled(["lpad(", "rpad("], ["s", "i"], ", ", SIZES, ["", ", '*'", ", p", ", ''", ", 'xé'"], ")"),
    *spelled("repeat(", ["s", "d"], ", ", SIZES, ")"),
    *spelled(["left(", "right(", "substring("], ["s", "d", "n"], ", ", NUMBERS, ")"),
    *spelled("substr(", ["s", "'aébc'"], ", ", NUMBERS, ", ", NUMBERS, ")"),
    *spelled(
        "overlay(", ["s", "i"], " PLACING ", ["p", "'_'"], " FROM ", NUMBERS, ["", " FOR 1", " FOR k", " FOR 0"], ")"
    ),
    "overlay(s, '-', 2, 1)",
    "overlay(s, p, 3)",
    *spelled(
        "substring_index(",
        ["s", "'a.b.c'", "'aaaa'"],
        ", ",
        ["'a'", "'aa'", "''", "p", "'.'", "NULL"],
        ", ",
        NUMBERS,
        ")",
    ),
    *spelled("split_part(", ["s", "'a.b.c'"], ", ", ["'a'", "''", "p", "'.'"], ", ", NUMBERS, ")"),
    *spelled("translate(", ["s", "i"], ", ", ["'abé'", "p", "'aab'", "''"], ", ", ["'12'", "''", "c", "NULL"], ")"),
    *spelled("replace(", ["s", "c"], ", ", ["p", "'a'"], ["", ", c", ", ''"], ")"),
    *spelled("elt(", NUMBERS, ", ", ["s, p", "s, i", "bin, bin", "s"], ")"),
    *spelled(
        "concat_ws(",
        ["','", "p", "NULL"],
        ["", ", s, p", ", s, NULL, i", ", split(s, 'a'), c", ", array(s, NULL)"],
        ")",
    ),
    *spelled("encode(", ["s", "i"], ", 'utf-8')"),
    *spelled("decode(", ["bin", "s"], ", 'UTF-8')"),
    *spelled(
        [
            "quarter(",
            "weekday(",
            "dayofweek(",
            "dayofyear(",
            "weekofyear(",
            "dayname(",
            "monthname(",
            "last_day(",
            "unix_date(",
        ],
        DATES,
        ")",
    ),
    *spelled("next_day(", DATES, ", ", ["'MON'", "'tu'", "'Sunday'", "'x'", "NULL"], ")"),
    *spelled("extract(", PARTS, " FROM ", [*DATES, "u"], ")"),
    *spelled("date_part('", PARTS, "', ", TIMES, ")"),
    *spelled(["dateadd(", "timestampadd("], UNITS, ", ", ["i", "k", "-3", "NULL", "l"], ", ", TIMES, ")"),
    *spelled(["datediff(", "timestampdiff("], UNITS, ", ", TIMES, ", ", TIMES, ")"),
    *spelled("months_between(", TIMES, ", ", TIMES, ["", ", false", ", true"], ")"),
    *spelled(
        ["from_utc_timestamp(", "to_utc_timestamp("],
        TIMES,
        ", ",
        ["'Asia/Tokyo'", "'America/New_York'", "'+05:30'"],
        ")",
    ),
    *spelled("make_date(", ["2020", "k", "i"], ", ", ["k", "2", "13"], ", ", ["29", "k", "31", "NULL"], ")"),
    *spelled("timestamp_seconds(", ["i", "h", "x", "f", "n", "l", "1.5", "NULL", "s"], ")"),
    "e()",
    "pi() * k",
    *spelled(
        ["regexp_count(", "regexp_substr(", "regexp_instr("],
        ["s", "i", "c"],
        ", ",
        ["'a'", "'[a-zé]+'", "'(a|b) *'"],
        ")",
    ),
    *spelled(
        "typeof(", [*TEXTS, "l", "x", "f", "h", "y", "bin", "t", "z", "a", "aa", "array(n)", "INTERVAL 1 DAY"], ")"
    ),
    *spelled("levenshtein(s, ", ["p", "''", "'ab'"], ", ", SIZES, ")"),
    *spelled("to_timestamp_ntz(", ["d", "t", "z", "'2020-01-01 01:02:03.5'", "NULL"], ")"),
    *spelled("try_element_at(m, ", ["'a'", "s", "'é'"], ")"),
    *spelled("(i, s) ", ["= (k, p)", "IN ((1, 'a'), (k, s))", "< (k, NULL)", "<=> (NULL, s)", "NOT IN ((i, s))"]),
    *spelled(
        ["sqrt(", "rint(", "sign(", "signum(", "degrees(", "radians(", "exp(", "ln(", "log(", "log10(", "log2("],
        REALS,
        ")",
    ),
    *spelled("log(", REALS, ", ", ["x", "2", "k"], ")"),
    *spelled("power(", REALS, ", ", ["2", "-1", "0", "NULL"], ")"),
    *spelled("nanvl(", ["x", "f", "n", "k"], ", ", ["0", "f", "x", "NULL"], ")"),
    *spelled("factorial(", SIZES, ")"),
    *spelled(
        ["try_add(", "try_subtract(", "try_multiply(", "try_divide(", "try_mod("],
        ["i", "l", "n", "x", "s"],
        ", ",
        ["l", "k", "0", "n", "f", "9223372036854775807", "NULL"],
        ")",
    ),
    *spelled("hash(", [*TEXTS, *REALS[:5], "bin", "t", "z"], ["", ", s", ", 1, k"], ")"),
    *spelled(
        ["array_distinct(", "array_compact(", "array_max(", "array_min(", "array_sort(", "sort_array(", "reverse("],
        LISTS,
        ")",
    ),
    *spelled("sort_array(", LISTS, [", true)", ", false)"]),
    *spelled(
        ["array_position(", "array_remove(", "array_append(", "array_prepend("],
        LISTS,
        ", ",
        ["i", "k", "2", "x", "s", "'a'", "l", "n"],
        ")",
    ),
    *spelled(
        ["array_union(", "array_intersect(", "array_except(", "arrays_overlap("],
        LISTS,
        ", ",
        ["a", "g", "w", "r", "array(1, NULL)", "array(0.0D, -0.0D)"],
        ")",
    ),
    *spelled("array_repeat(", ["i", "s", "x", "1", "d"], ", ", SIZES, ")"),
    *spelled("slice(", LISTS, ", ", NUMBERS[:8], ", ", NUMBERS[:8], ")"),
    *spelled(
        "array_join(", ["w", "split(s, 'a')"], ", ", ["','", "s", "''", "NULL"], ["", ", '?'", ", p", ", NULL"], ")"
    ),
    *spelled(["get(", "try_element_at("], [*LISTS, "aa"], ", ", NUMBERS[:8], ")"),
    "flatten(aa)",
    "flatten(array(a, a))",
    *spelled(["map_keys(", "map_values(", "map_entries("], ["m", "map('k', i)"], ")"),
    *spelled("map_contains_key(", ["m", "map(1, s)"], ", ", ["'a'", "s", "1", "k"], ")"),
]

#: Where Spark's answer is another one, or what mica says it has not, by the beginning of the expression.
UNSUPPORTED = ("lpad(", "rpad(", "elt(", "try_")


def texts(rng: random.Random) -> list[str | None]:
    return [None, "", *("".join(rng.choices(PIECES, k=rng.randint(1, 5))) for _ in range(ROWS - 2))]


def numbers(rng: random.Random, bits: int, near: int) -> list[int | None]:
    ends = [None, 0, -1, (1 << bits) - 1, -(1 << bits)]
    return ends + [rng.choice([rng.randint(-near, near), rng.getrandbits(bits)]) for _ in range(ROWS - len(ends))]


def lists(rng: random.Random, one: Callable[[], Any]) -> list[list[Any] | None]:
    return [None, [], [None], *([one() for _ in range(rng.randint(0, 6))] for _ in range(ROWS - 3))]


def table(rng: random.Random) -> pa.Table:
    days = [None, 0, -1, 11_016, 18_321, *(rng.randint(-25_000, 30_000) for _ in range(ROWS - 5))]
    dates = [None if n is None else dt.date(1970, 1, 1) + dt.timedelta(n) for n in days]
    moments = [
        None
        if d is None
        else dt.datetime(d.year, d.month, d.day, 0, 0, 0, 0, dt.UTC)
        + dt.timedelta(microseconds=rng.choice([0, 1, rng.randrange(86_400_000_000)]))
        for d in dates
    ]
    later = [
        m
        if m is None or rng.random() < 0.1
        else m + dt.timedelta(rng.choice([1, -1, 29, 31, 366]), rng.randint(-90_000, 90_000))
        for m in moments
    ]
    reals = [None, 0.0, -0.0, float("nan"), float("inf"), -1.5, 1e300, *(rng.uniform(-9, 9) for _ in range(ROWS - 7))]
    columns: list[list[Any]] = [
        texts(rng), texts(rng)[::-1], texts(rng),
        numbers(rng, 63, 9), numbers(rng, 31, 3_000), [None, *(rng.randint(-4, 14) for _ in range(ROWS - 1))],
        numbers(rng, 15, 300), numbers(rng, 7, 9), [rng.choice([True, False, None]) for _ in range(ROWS)],
        reals, reals[::-1], [None if n is None else Decimal(n).scaleb(-4) for n in numbers(rng, 24, 30_000)],
        [None, b"", b"\xff\x00", b"ab", *(rng.randbytes(rng.randint(1, 9)) for _ in range(ROWS - 4))],
        dates, dates[::-1], moments, later, [None if m is None else m.replace(tzinfo=None) for m in later],
        *(lists(rng, lambda: rng.choice([None, 0, 1, 2, 3, -7, 2**31 - 1])) for _ in "ag"),
        lists(rng, lambda: rng.choice([None, "", "a", "b", "é", "B"])),
        lists(rng, lambda: rng.choice([None, 0.0, -0.0, float("nan"), 1.5, -2.0, float("inf")])),
        [pairs if pairs is None else list({rng.choice("abcé"): rng.randint(0, 9) for _ in pairs}.items())
         for pairs in lists(rng, lambda: 0)],
        lists(rng, lambda: rng.choice([None, [], [1], [2, None], [1, 2]])),
    ]  # fmt: skip
    return pa.table(columns, schema=to_arrow(SCHEMA))


def ours(text: str, rows: pa.Table, ansi: bool) -> list[Any] | str:
    return bound_and_judged(text, SCHEMA, rows, ansi=ansi, timezone=ZONE)


def agrees(text: str, found: list[Any] | str, expected: list[Any] | str) -> bool:
    if found == "UNSUPPORTED_EXPRESSION":
        return expected == REFUSED or text.startswith(UNSUPPORTED)
    if found == "INVALID_CAST":  # a constant that has no cast is refused before any row is looked at
        return FAILED in expected
    if isinstance(found, str) or isinstance(expected, str):
        return isinstance(found, str) and expected == REFUSED
    # Bytes that are no UTF-8 are a string to Spark and cannot be one here (docs/decisions.md).
    of_bytes = re.search(r"\bbin\b(?!\()", text) is not None
    return all(same(f, e) or (of_bytes and f in (None, FAILED)) for f, e in zip(found, expected, strict=True))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ansi", [True, False])
def test_as_spark(spark: Any, tmp_path: Path, rng: random.Random, ansi: bool) -> None:
    rows = table(rng)
    pq.write_table(rows.append_column("row", pa.array(range(rows.num_rows))), tmp_path / "rows.parquet")
    asked = EXPRESSIONS if CAMPAIGN else rng.sample(EXPRESSIONS, 125)
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    with conf(spark, {"spark.sql.ansi.enabled": str(ansi).lower(), "spark.sql.session.timeZone": ZONE}):
        theirs = ask(frame, asked)
    differences = [
        (text, shown(found, theirs[text]))
        for text in asked
        if not agrees(text, found := ours(text, rows, ansi), theirs[text])
    ]
    assert not differences, "\n".join(map(str, differences))


def reals(rng: random.Random) -> Iterator[float]:
    """Doubles of all sizes, near 1, small integers, and powers of 2 and 10."""
    yield from (0.0, -0.0, 5e-324, 2.0**-1022, float("inf"), -float("inf"), float("nan"))
    for _ in range(2_000):
        yield from np.frombuffer(rng.randbytes(8), np.float64).tolist()
        yield from (rng.uniform(-750, 720), rng.uniform(-20, 20), 1 + rng.uniform(-1e-5, 1e-5) * rng.random() ** 8)
        yield from (float(rng.randint(-9, 9999)), 10.0 ** rng.randint(-320, 308), 2.0 ** rng.randint(-1074, 1023))


def test_logarithms_and_powers_are_java_s_to_the_last_bit(spark: Any, tmp_path: Path, rng: random.Random) -> None:
    rows = pa.table({"x": pa.array(list(reals(rng)))})
    pq.write_table(rows, tmp_path / "rows.parquet")
    texts = ["ln(x)", "log(x)", "log2(x)", "log10(x)", "log(3, x)", "exp(x)", "power(x, 2)", "power(x, -1)", "sqrt(x)"]
    frame = spark.read.parquet(str(tmp_path / "rows.parquet")).coalesce(1)
    theirs = frame.selectExpr("x", *(f"{text} AS `{text}`" for text in texts)).toArrow()
    given = theirs.column("x").combine_chunks()
    for text in texts:
        mine = evaluate(bind_value(text, parse_ddl("x double")), [given]).to_pylist()
        pairs = zip(given.to_pylist(), mine, theirs.column(text).to_pylist(), strict=True)
        assert [(text, *one) for one in pairs if not same(one[1], one[2])] == []


def shown(found: list[Any] | str, expected: list[Any] | str) -> Any:
    """The rows that differ: what mica and what Spark gives."""
    if isinstance(found, str) or isinstance(expected, str):
        return found, expected
    return [(n, f, e) for n, (f, e) in enumerate(zip(found, expected, strict=True)) if not same(f, e)]


@pytest.mark.parametrize("text", EXPRESSIONS[:: 1 if CAMPAIGN else 20])
def test_what_is_shown_means_the_same(text: str) -> None:
    parsed = parse(text)
    assert to_sql(parse(to_sql(parsed, most=None)), most=None) == to_sql(parsed, most=None)
