"""Predicates over paths of Variants give what Spark gives: every kind of value against every type asked for.

The campaign profile runs the whole matrix (of strict casts a part), otherwise a sample. Casts to text of doubles and of
times are the kernel's subject and compared in its own tests.
"""

from __future__ import annotations

import itertools
import os
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.schema.arrow import variant_field
from mica.schema.ddl import parse_ddl
from mica.skipping.bind import bind_value
from mica.skipping.rows import evaluate
from mica.variant import from_json, kernel

SCHEMA = parse_ddl("v VARIANT")
VALUES = [
    "null", "true", "false", "0", "1", "-1", "5", "128", "32768", "2147483648", "9007199254740993",
    "9223372036854775807",
    "9223372036854775808", "1.5", "-0.5", "2.50", "0.1", "99999999.99", "1e0", "1e300", "-0.0e0",
    "1.5e0", '"5"', '" 5 "',
    '"1.5"', '""', '"true"', '"abc"', '"2020-01-01"', '"2020-01-01T10:00:00Z"', '"2020-01-01 10:00:00"',
    "{}", '{"a":1}',
    "[]", "[5]", '"NaN"', "12345678901234567890123456789012345678",
]  # fmt: skip
DOCUMENTS = [None, "{}", "7", "null", *(f'{{"a":{v},"b":{{"c d":[{v}]}}}}' for v in VALUES)]
PATHS = ["a", "b['c d'][0]", "missing", "a.a", "b"]
TYPES = [
    "tinyint", "int", "bigint", "decimal(10,2)", "decimal(38,0)", "float", "double", "boolean", "string", "date",
    "timestamp", "timestamp_ntz",
]  # fmt: skip
LITERALS = {
    "string": ["'5'", "''", "'abc'", "'true'"], "boolean": ["true", "false"], "date": ["DATE'2020-01-01'"],
    "timestamp": ["TIMESTAMP'2020-01-01 10:00:00Z'", "'2020-01-01'"],
    "timestamp_ntz": ["TIMESTAMP_NTZ'2020-01-01 10:00:00'"],
}  # fmt: skip
NUMBERS = ["5", "1.5", "0", "1e0", "-0.5", "9007199254740993", "128"]
#: Doubles as texts, and texts of objects, are the kernel's own subject.
TEXT_FREE = ["=", "<>", "<", ">=", "<=>"]

#: Spark's optimizer knows that no integer is 1.5, nor any tinyint 128, and does not look at the value, whose strict
#: cast would fail.
KNOWN = re.compile(r"::(tinyint|int|bigint) <=> -?\d+\.\d|::(tinyint|int) <=> 9007199254740993|::tinyint <=> 128")


def matrix() -> list[str]:
    found = [f"v:{path} IS {no}NULL" for path in PATHS for no in ("", "NOT ")]
    for path, kind in itertools.product(PATHS, TYPES):
        strict = f"v:{path}::{kind}"
        spelled = f"$.{path}".replace("'", "\\'")
        tried = f"try_variant_get(v, '{spelled}', '{kind}')"
        found += [f"{get} IS NULL" for get in (strict, tried)]
        for literal, op in itertools.product(LITERALS.get(kind, NUMBERS), TEXT_FREE):
            found += [f"{get} {op} {literal}" for get in (strict, tried)]
    for kind in ("bigint", "double", "string"):
        get = f"try_variant_get(v, '$.a', '{kind}')"
        literals = LITERALS.get(kind, NUMBERS)
        values = ", ".join(literals)
        found += [f"{get} IN ({values})", f"{get} NOT IN ({values}, NULL)", f"NOT ({get} > {literals[0]})"]
        found += [f"{get} IS NOT NULL AND v:a::{kind} IS NOT NULL", f"{get} IS NULL OR v:a::{kind} IS NOT NULL"]
    return found


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ansi", [True, False])
def test_as_spark(spark: Any, tmp_path: Path, rng: random.Random, ansi: bool) -> None:
    asked = matrix()
    if os.environ.get("MICA_PROFILE") != "campaign":
        asked = rng.sample(asked, 150)
    else:  # strict casts go one by one, since most fail on some row
        strict = [t for t in asked if "::" in t]
        asked = [t for t in asked if "::" not in t] + rng.sample(strict, 400)
    variants = from_json(pa.array(DOCUMENTS, pa.string()))
    batch = pa.record_batch([variants], schema=pa.schema([variant_field("v")]))
    frame = spark.createDataFrame([(i, d) for i, d in enumerate(DOCUMENTS)], "i INT, j STRING").coalesce(1)
    before = {key: spark.conf.get(key) for key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    try:
        spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        theirs = ask_spark(frame.selectExpr("i", "parse_json(j) AS v"), asked)
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    differences = []
    for text in asked:
        if KNOWN.search(text):
            continue
        found, expected = ours(text, batch, ansi), theirs[text]
        if found != expected:
            rows = "fails" if expected is None or found is None else [
                (d, e, f) for d, e, f in zip(DOCUMENTS, expected, found, strict=True) if e != f
            ]  # fmt: skip
            differences.append((text, f"spark {expected is not None}, mica {found is not None}", rows))
    assert not differences


def ask_spark(frame: Any, texts: list[str]) -> dict[str, list[Any] | None]:
    """What Spark gives for each predicate; None where it fails."""
    answers: dict[str, list[Any] | None] = {}

    def run(part: list[str]) -> None:
        try:
            got = frame.selectExpr("i", *[f"({e}) AS c{i}" for i, e in enumerate(part)]).toArrow().sort_by("i")
        except Exception:  # noqa: BLE001 — a cast error of any kind: look for the predicates that fail
            if len(part) == 1:
                answers[part[0]] = None
            else:
                run(part[: len(part) // 2])
                run(part[len(part) // 2 :])
            return
        answers.update({e: got.column(f"c{i}").to_pylist() for i, e in enumerate(part)})

    tried = [t for t in texts if "::" not in t]
    for part in (tried[i : i + 50] for i in range(0, len(tried), 50)):
        run(part)
    for text in texts:
        if "::" in text:  # most strict casts fail on some row
            run([text])
    return answers


def ours(text: str, batch: pa.RecordBatch, ansi: bool) -> list[Any] | None:
    bound = bind_value(text, SCHEMA, ansi=ansi, timezone="Europe/Berlin")
    items = [leaf.item for leaf in bound.leaves]
    try:
        leaves = kernel.extract(batch, items, timezone="Europe/Berlin").columns
        values: list[Any] = evaluate(bound, leaves, num_rows=batch.num_rows).to_pylist()
    except UserError as e:
        if e.code != "INVALID_CAST":
            raise
        return None
    return values
