"""Collated skipping is sound: no file that is dropped holds a row for which Spark finds the predicate true.

Random strings of many scripts, those among them that other libraries order otherwise; one column per collation, files
of ranges. `MICA_PROFILE=campaign` asks thousands of predicates.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import mica
from mica.collation.trust import decides_ties
from mica.expressions.tree import Or
from mica.skipping.judge import judge
from tests.support import CAMPAIGN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLLATIONS = (
    "UNICODE", "UNICODE_CI", "UNICODE_CI_AI", "UNICODE_AI_RTRIM", "UTF8_LCASE", "UTF8_BINARY_RTRIM", "de", "de_CI_AI",
    "cs", "hu_CI", "da", "th", "lo_CI", "tr_CI", "sv_AI", "el_CI", "fr_CAN", "zh", "ja_CI_RTRIM",
)  # fmt: skip
#: What orders oddly: expansions, contractions, vowels before their consonants, ignored characters, endings, blanks.
PIECES = (
    *"a A ä Ä ß ẞ s S ss c h ch CH cs ccs aa Å æ Œ ĳ ö ü é İ i ı I ς σ Σ ก เ แ า ກ ເ ນ カ か ｶ ガ ー 中 国 한".split(),
    *("Я", "й", "א", "ب", "z", "Z", "0", "1", " ", "  ", "", "\u0301", "\u0308", "\u0307", "\u00ad", "\u200d", "-"),
    *("\x00", "\t", "\U0001f600"),
)


def word(rng: random.Random) -> str:
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 4)))


def sql(text: str) -> str:
    return "'" + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in text) + "'"


def predicate(rng: random.Random, column: str, words: list[str | None]) -> str:
    known = [w for w in words if w is not None]
    a, b, c = (sql(rng.choice(known) if rng.random() < 0.6 else word(rng)) for _ in range(3))
    return rng.choice(
        [f"{column} = {a}", f"{column} = {a}", f"{a} < {column}", f"{column} <= {a}", f"{column} >= {a}",
         f"{column} < {a}", f"{column} <> {a}", f"{column} IN ({a}, {b}, {c})", f"NOT {column} = {a}",
         f"{column} NOT IN ({a}, {b})", f"{column} BETWEEN {a} AND {b}", f"{column} <=> {a}", f"{column} <=> NULL",
         f"NOT ({column} < {a} OR {column} > {b})", f"{column} = {a} AND {column} >= {b}",
         f"{column} IS DISTINCT FROM {a}"]
    )  # fmt: skip


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int) -> mica.Table:
    """One column per collation, of the same strings in an order of its own, in twelve files (f)."""
    rng = random.Random(f"collations {seed}")
    words = [word(rng) for _ in range(400)]
    arrays = [f"array_sort(CAST(w AS ARRAY<STRING COLLATE {name}>)) AS c{i}" for i, name in enumerate(COLLATIONS)]
    ordered = spark.createDataFrame(pa.table({"w": [words]})).selectExpr(*arrays).toArrow()
    columns = {name: [*ordered.column(name)[0].as_py(), *[None] * 8] for name in ordered.column_names}
    made = mica.Table.create(
        tmp_path_factory.mktemp("collated") / "t",
        "f INT, " + ", ".join(f"c{i} STRING COLLATE {name}" for i, name in enumerate(COLLATIONS)),
        ["f"],
    )
    numbers = pa.array([i * 12 // 408 for i in range(408)], pa.int32())
    made.append(spark.createDataFrame(pa.table({"f": numbers, **columns})).coalesce(1))
    return made


def test_no_file_that_holds_a_match_is_dropped(spark: SparkSession, table: mica.Table, rng: random.Random) -> None:
    rows = table.to_df(spark).coalesce(1).cache()
    words = rows.toArrow()
    files = [int(dict(values)["f"]) for values in table.files().column("partition_values").to_pylist()]
    dropped = np.zeros(len(COLLATIONS), np.int64)
    for _ in range(200 if CAMPAIGN else 1):
        asked = [
            (i, predicate(rng, f"c{i}", words.column(f"c{i}").to_pylist()))
            for i in range(len(COLLATIONS))
            for _ in "ab"
        ]
        texts = [f"coalesce(max({where}), false) AS p{n}" for n, (_, where) in enumerate(asked)]
        true = {row["f"]: row for row in rows.groupBy("f").agg(*map(_expr, texts)).collect()}
        assert sorted(true) == sorted(files) == list(range(12))
        # One plan compares all bounds with all constants; each predicate is then judged by itself.
        plan = table.scan(" OR ".join(f"({where})" for _, where in asked), spark=spark).plan
        ((_, intervals),), ((_, collated),) = plan.stages, plan.collated
        (whole,) = plan.parts
        assert isinstance(whole, Or)
        for n, ((i, where), part) in enumerate(zip(asked, whole.parts, strict=True)):
            might = judge(part, intervals, len(files), collated=collated).to_pylist()
            held = [f for f, kept in zip(files, might, strict=True) if not kept and true[f][f"p{n}"]]
            assert held == [], f"{where} under {COLLATIONS[i]}"
            dropped[i] += might.count(False)
    rows.unpersist()
    if CAMPAIGN:
        assert all(dropped[i] > 0 for i, _ in enumerate(COLLATIONS))
    assert dropped.sum() > 0


def _expr(text: str) -> object:
    from pyspark.sql import functions as f

    return f.expr(text)


def test_a_scan_with_skipping_gives_the_rows_of_one_without(
    spark: SparkSession, table: mica.Table, rng: random.Random
) -> None:
    for i in range(len(COLLATIONS)) if CAMPAIGN else (1, 4):
        word_there = table.to_df(spark).where(f"c{i} > 'b' AND c{i} < 't'").first()
        assert word_there is not None
        constant = word_there[f"c{i}"]
        where = f"c{i} = {sql(constant)}"
        scan = table.scan(where, columns=["f", f"c{i}"], spark=spark)
        expected = table.to_df(spark).where(where).select("f", f"c{i}").collect()
        assert sorted(scan.to_df(spark).collect()) == sorted(expected)
        assert len(expected) > 0
        if decides_ties(COLLATIONS[i], constant):
            assert len(scan.plan.dropped) > 0
