"""What the sieve before Spark's comparator takes for certain, asked of ICU4J and of Spark for every base."""

from __future__ import annotations

import itertools
import random
import unicodedata
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from mica.collation.names import BASES
from mica.collation.narrow import Signs, changed, groups, narrowed, plain_bases
from mica.engines.spark.comparator import SparkComparator
from tests.support import CAMPAIGN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASCII = [chr(point) for point in range(0x20, 0x7F)]
LETTERS = [char for group in groups() for char in group if char not in ASCII]
SUFFIXES = ("", "_CI", "_AI", "_CI_AI", "_RTRIM", "_CI_AI_RTRIM")
#: What joins with ASCII letters, or has no weight, or many.
ODD = "\u00b7 \u0301 \u0327 \u030c \u0338 é ǆ Å å ñ ñ æ ﬁ \x00 \t \u00ad \u200d я 中 ก เ \u02bc Ħ ħ ʻ".split(" ")


def _texts(java: Any, strings: Any) -> list[str]:
    joined: str = java.join("\ue000", strings)
    return joined.split("\ue000")


@pytest.mark.slow
def test_the_table_says_what_icu_says(spark: SparkSession) -> None:
    """Tailored characters, expansions, and what joins with ASCII behind it, by the rules as ICU4J has loaded them."""
    jvm: Any = spark._jvm  # ICU4J's tables are to be had nowhere else
    # Each part of a name that py4j looks up is sought in all jars.
    java, locale, icu = jvm.java.lang.String, jvm.com.ibm.icu.util.ULocale, jvm.com.ibm.icu.text
    instance, characters = icu.Collator.getInstance, icu.UnicodeSet
    for base in BASES:
        collator = instance(locale("" if base == "UNICODE" else base))
        joins, expansions = characters(), characters()
        collator.getContractionsAndExpansions(joins, expansions, True)
        unsafe = set()
        for text in _texts(java, joins.strings()):
            for form in (text, unicodedata.normalize("NFD", text)):
                unsafe |= {a for a, b in itertools.pairwise(form) if a in ASCII and b in ASCII}
        tailored = characters(expansions).addAll(collator.getTailoredSet())
        unsafe |= {char for char in _texts(java, tailored.retainAll(characters("[\\u0020-\\u007E]"))) if char}
        if collator.isAlternateHandlingShifted():
            # Of what is ignored, blanks and punctuation, nothing is certain.
            unsafe |= set(_texts(java, characters("[[[:Z:][:P:]] & [\\u0020-\\u007E]]")))
        assert set(changed(base)) == unsafe, base
        table = {*ASCII, *LETTERS}
        moved = bool(len(collator.getReorderCodes())) or collator.isAlternateHandlingShifted()
        joined = any(
            a in table and b in table
            for text in _texts(java, joins.strings())
            for form in (text, unicodedata.normalize("NFD", text))
            for a, b in itertools.pairwise(form)
        )
        plain = not moved and not joined and not table & set(_texts(java, collator.getTailoredSet()))
        assert plain or base not in plain_bases(), base


def words(rng: random.Random) -> list[str]:
    """Strings of few and of many characters, most of them ASCII, some behind a long common beginning."""
    alphabet = rng.choice([ASCII, list("abcdhlnszCHDZ' "), list("aAbB -"), [*ASCII, *LETTERS], LETTERS])
    odd = rng.choice([0.0, 0.02, 0.2])
    prefix = rng.choice(["", "", "id-", "https://a.b/c?d=e&f=g/"])

    def word() -> str:
        return "".join(
            rng.choice(ODD) if rng.random() < odd else rng.choice(alphabet) for _ in range(rng.randint(0, 14))
        )

    return [(prefix if rng.random() < 0.95 else "") + word() for _ in range(rng.randint(2, 60))]


@pytest.mark.parametrize("part", range(4))
def test_the_ends_by_spark_are_among_those_that_stay(spark: SparkSession, rng: random.Random, part: int) -> None:
    names = [base + suffix for base in BASES[part::4] for suffix in (SUFFIXES if CAMPAIGN else rng.sample(SUFFIXES, 1))]
    names += ["UTF8_LCASE", "UTF8_LCASE_RTRIM", "UTF8_BINARY_RTRIM"] if part == 0 else []
    trials = []
    dropped = 0
    for name in names:
        for _ in range(40 if CAMPAIGN else 12):
            every = words(rng)
            left = narrowed(pa.array(every), name, "78.3").to_pylist()
            dropped += len(set(every)) - len(left)
            trials.append({"name": name, "every": every, "left": left})
    assert dropped > 0
    frame = spark.createDataFrame(pa.table({"trials": [trials]})).coalesce(1)
    asked = []
    for name in names:
        kind = f"array<string collate {name}>"
        ends = (f"array_{end}(CAST(t.{{}} AS {kind}))" for end in ("min", "max"))
        differ = " OR ".join(f"{end.format('every')} <> {end.format('left')}" for end in ends)
        asked.append(f"filter(trials, t -> t.name = '{name}' AND ({differ})) AS {name}")
    found = frame.selectExpr(*asked).first()
    assert found is not None
    assert {name: found[name] for name in names if found[name]} == {}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_signs_are_those_of_spark(spark: SparkSession, rng: random.Random, part: int) -> None:
    """Of pairs of random strings: what is certain is what Spark says, and what Comparator says is in any case."""
    comparator = SparkComparator(spark)
    names = [base + rng.choice(SUFFIXES) for base in BASES[part::2]] + ["UTF8_LCASE", "UTF8_LCASE_RTRIM"]
    columns, asked, certain = [], [], 0
    for _ in range(8 if CAMPAIGN else 1):
        for name in names:
            every = [*words(rng), None]
            constant = rng.choice([word for word in every if word is not None])
            asked.append((len(columns), name, constant))
            columns.append(pa.array(rng.choices(every, k=40), pa.string()))
            certain += len(columns[-1]) - Signs(columns[-1], name, "78.3").to(constant).null_count
    assert certain > len(columns) * 10
    found = comparator.signs(columns, asked)
    rows = [
        {"name": name, "s": s, "c": constant, "sign": sign}
        for (column, name, constant), signs in zip(asked, found, strict=True)
        for s, sign in zip(columns[column].to_pylist(), signs.to_pylist(), strict=True)
    ]
    frame = spark.createDataFrame(pa.table({"rows": [rows]})).coalesce(1)
    texts = []
    for name in dict.fromkeys(names):
        s, c = (f"r.{side} COLLATE {name}" for side in "sc")
        spark_says = f"CASE WHEN {s} < {c} THEN -1 WHEN {s} = {c} THEN 0 WHEN {s} > {c} THEN 1 END"
        texts.append(f"filter(rows, r -> r.name = '{name}' AND NOT r.sign <=> {spark_says}) AS {name}")
    wrong = frame.selectExpr(*texts).first()
    assert wrong is not None
    assert {name: wrong[name] for name in names if wrong[name]} == {}


def test_the_order_of_the_letters_is_sparks(spark: SparkSession) -> None:
    """Letters of one group are of one weight; those of the next stand above them, whatever comes behind them."""
    last = groups()[-1][0] * 4
    same = [(group[0], char) for group in groups() for char in group]
    above = [(low[0] + behind, high[0]) for low, high in itertools.pairwise(groups()) for behind in ("", last)]
    for pairs, relation in ((same, "="), (above, "<")):
        frame = spark.createDataFrame(pairs, "a string, b string")
        assert frame.where(f"NOT a COLLATE UNICODE_CI_AI {relation} b COLLATE UNICODE_CI_AI").collect() == []
