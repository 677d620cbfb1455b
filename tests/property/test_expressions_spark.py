"""Every comparison and cast of plain values gives what Spark gives, ANSI on and off; a sample of the matrix per run.

The campaign profile runs the whole matrix. `KNOWN` and `UNWRAPPED` list where the answers differ, and why.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import os
import random
import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica.errors import UserError
from mica.schema.arrow import to_arrow
from mica.schema.ddl import parse_ddl
from mica.skipping.bind import bind_value
from mica.skipping.rows import evaluate

RULES = "org.apache.spark.sql.catalyst.optimizer"
ZONE = "Europe/Berlin"
SCHEMA = parse_ddl(
    "l bigint, i int, h smallint, n decimal(10,2), w decimal(38,10), x double, f float, s string, d date, "
    "t timestamp, z timestamp_ntz, b boolean, bin binary"
)
UTC = dt.UTC
ANSI_TEXTS = ["1", "-5", " 5 ", "0", "+7", "5", "1", None]
LOOSE_TEXTS = ["1", "1.5", "abc", "2020-01-01", "true", " 2020-1-1 01:00 ", None, "1e2"]
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
MATRIX = [
    *(f"{a} {op} {b}" for a, b, op in itertools.product(NAMES, NAMES, ["=", "<"])),
    *(f"{a} {op} {b}" for a, b, op in itertools.product(NAMES, LITERALS, ["=", "<=", "<=>", "<>"])),
    *(f"{a} IN ({b})" for a, b in itertools.product(NAMES, LISTS)),
    *(f"cast({a} as {b})" for a, b in itertools.product(NAMES, TYPES)),
    *(f"try_cast({a} as {b})" for a, b in itertools.product(NAMES, TYPES)),
]
#: Where Spark's answer is another one, by pattern, with the reason. `UNWRAPPED` are held against Spark all the same,
#: without the rule of its optimizer (UnwrapCastInBinaryComparison) that changes or spoils the answer.
KNOWN = {
    r"[lih] <= 99999999999999999999": "folded to TRUE for nulls too (integralAndDecimalLiteral)",
}
UNWRAPPED = {
    r"z (=|<=>|<>) TIMESTAMP'2020-03-29 02:30:00'": "the cast of a wall clock moves to the literal, into a gap",
    r"b (=|<=>|<>) -?0\.\d+": "no decimal without whole digits is TRUE: INTERNAL_ERROR, or FALSE for NULL",
}


def table(texts: list[str | None]) -> pa.Table:
    inf, nan = math.inf, math.nan
    columns: list[list[Any]] = [
        [1, -5, 2**53 + 1, 2**63 - 1, -(2**63), 0, None, 16777217],
        [1, -5, 2**31 - 1, -(2**31), 0, 5, None, 16777217],
        [1, -5, 0, 127, 32767, 5, None, 2],
        [Decimal("1.00"), Decimal("-5.50"), Decimal("0.10"), Decimal("99999999.99"), Decimal(0), Decimal(5), None,
        Decimal("2.5")],
        [Decimal(1), Decimal("-5.5"), Decimal(2**53 + 1), Decimal("9" * 28 + "." + "9" * 10), Decimal("0.1"),
        Decimal(0), None, Decimal(16777217)],
        [1.0, -5.5, 9007199254740993.0, inf, nan, -0.0, None, 16777217.0],
        [1.0, -5.5, 0.1, -inf, nan, -0.0, None, 16777216.0],
        texts,
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


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("ansi", "texts"), [(True, ANSI_TEXTS), (False, LOOSE_TEXTS)])
def test_as_spark(spark: Any, tmp_path: Path, rng: random.Random, ansi: bool, texts: list[str | None]) -> None:
    rows = table(texts)
    pq.write_table(rows, tmp_path / "rows.parquet")
    campaign = os.environ.get("MICA_PROFILE") == "campaign"
    asked = [e for e in (MATRIX if campaign else rng.sample(MATRIX, 120)) if not matches(e, KNOWN)]
    before = {key: spark.conf.get(key) for key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    try:
        spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
        spark.conf.set("spark.sql.session.timeZone", ZONE)
        frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
        theirs = ask_spark(frame, [e for e in asked if not matches(e, UNWRAPPED)])
        spark.conf.set("spark.sql.optimizer.excludedRules", f"{RULES}.UnwrapCastInBinaryComparison")
        theirs |= ask_spark(frame, [e for e in asked if matches(e, UNWRAPPED)])
    finally:
        spark.conf.unset("spark.sql.optimizer.excludedRules")
        for key, value in before.items():
            spark.conf.set(key, value)
    differences = []
    for text in asked:
        found, expected = ours(text, rows, ansi), theirs[text]
        if isinstance(found, UserError):
            if expected is not None and found.code != "UNSUPPORTED_EXPRESSION":
                differences.append((text, expected, found))
        elif repr(found) != repr(expected):
            differences.append((text, expected, found))
    assert not differences


def matches(text: str, patterns: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns)


def ask_spark(frame: Any, texts: list[str]) -> dict[str, list[Any] | None]:
    """What Spark gives for each expression; None where it refuses or fails."""
    answers: dict[str, list[Any] | None] = {}
    sound = []
    for text in texts:
        try:
            _ = frame.selectExpr(text).schema
            sound.append(text)
        except Exception:  # noqa: BLE001 — an analysis error of any kind
            answers[text] = None

    def run(part: list[str]) -> None:
        try:
            got = frame.selectExpr(*[f"({e}) AS c{i}" for i, e in enumerate(part)]).toArrow()
        except Exception:  # noqa: BLE001 — a runtime error of any kind: look for the one that fails
            if len(part) == 1:
                answers[part[0]] = None
            else:
                run(part[: len(part) // 2])
                run(part[len(part) // 2 :])
            return
        answers.update({e: values(got.column(i)) for i, e in enumerate(part)})

    for i in range(0, len(sound), 40):
        run(sound[i : i + 40])
    return answers


def values(column: pa.Array | pa.ChunkedArray) -> list[Any] | None:
    """As Python values; dates and timestamps as ints, for Python's own know no year beyond 9999."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    try:
        found: list[Any] = column.to_pylist()
    except UnicodeDecodeError:  # Spark casts any bytes to a string
        return None
    return found


def ours(text: str, rows: pa.Table, ansi: bool) -> list[Any] | UserError | None:
    try:
        bound = bind_value(text, SCHEMA, ansi=ansi, timezone=ZONE)
        leaves = [rows.column(leaf.column[0]).combine_chunks() for leaf in bound.leaves]
        return values(evaluate(bound, leaves, num_rows=rows.num_rows))
    except UserError as e:
        return e
