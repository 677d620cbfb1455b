"""What `collation/trust.py` says of Spark's comparator: where it contradicts itself, and where it does not.

Where the first test fails, the comparator was mended, and `sound` may be asked for less. `MICA_PROFILE=campaign` tries
the law over every base, at length.
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import mica
from mica.collation.names import BASES
from mica.collation.trust import decides_ties, primary
from tests.support import CAMPAIGN

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SOFT = "\u00ad"
CYCLES = [
    *((name, ("aß", "aẞ", f"{SOFT}Äss")) for name in ("UNICODE", "UNICODE_CI", "de_CI", "tr_CI", "ja_CI_RTRIM")),
    ("fr_CAN", ("ê", f"ê{SOFT}\u0301", "è")),
]
#: Parts of words whose letters are often the same: s in its many forms, accents, case, what is ignored, what ends ICU's
#: short way (quotes, a dot, fractions, marks by themselves), digraphs.
PIECES = (
    *"a A ä Ä ß ẞ s S ss SS ſ ś ş ſs Ꞅ ₧ ẛ ʦ ﬆ ⓢ ｓ ƾ c h ch cs aa Å æ é ê è i I İ ı „ “ – ’ · µ ½ ก เ カ 中 Я".split(),
    *(SOFT, "\u200d", "\u2060", "\u0301", "\u0308", "\u0307", "\u0327", " ", "-"),
)


def signs(spark: SparkSession, names: list[str], words: list[str]) -> dict[str, NDArray[np.int8]]:
    """Per collation: how each word compares with each other one, in one job."""
    pairs = list(itertools.product(words, words))
    table = pa.table({"n": range(len(pairs)), "a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    sign = "CASE WHEN a COLLATE {0} < b COLLATE {0} THEN -1 WHEN a COLLATE {0} = b COLLATE {0} THEN 0 ELSE 1 END AS {0}"
    found = spark.createDataFrame(table).coalesce(1).selectExpr("n", *map(sign.format, names)).toArrow().sort_by("n")
    size = len(words), len(words)
    return {name: np.asarray(found.column(name), np.int8).reshape(size) for name in names}


def contradictions(order: NDArray[np.int8]) -> list[tuple[int, int, int]]:
    """Triples a, b, c of which a <= b and b <= c, but not a <= c."""
    below = order <= 0
    found = below[:, :, None] & below[None, :, :] & ~below[:, None, :]
    return [(a, b, c) for a, b, c in np.argwhere(found).tolist()]


@pytest.mark.parametrize(("name", "strings"), CYCLES)
def test_the_comparator_contradicts_itself(spark: SparkSession, name: str, strings: tuple[str, ...]) -> None:
    assert contradictions(signs(spark, [name], list(strings))[name])
    assert not all(decides_ties(name, text) for text in strings)


@pytest.mark.parametrize("part", range(4))
def test_primary_weights_are_one_order_which_every_collation_keeps(
    spark: SparkSession, rng: random.Random, part: int
) -> None:
    """And of strings that decide ties, each collation has one order too."""
    bases = BASES[part::4] if CAMPAIGN else rng.sample(BASES[part::4], 4)
    for _ in range(25 if CAMPAIGN else 1):
        for some in _sixes(bases):
            stem = "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 2)))
            pieces = PIECES if rng.random() < 0.5 else ("s", "S", "ß", "ẞ", "ss", "a", "A", "ä", "Ä", SOFT, "\u0308")
            words = [stem + "".join(rng.choice(pieces) for _ in range(rng.randint(0, 4))) for _ in range(30)]
            names = [base + suffix for base in some for suffix in ("", "_CI", "_AI", "_CI_AI")]
            found = signs(spark, names, words)
            for name in names:
                weights = found[primary(name)]
                assert contradictions(weights) == [], (name, words)
                assert np.all((weights == 0) | (found[name] == weights)), (name, words)
                # One word of a class that decides ties speaks for all of it.
                sure = np.array([decides_ties(name, word) for word in words])
                sure = np.array([any(sure[weights[i] == 0]) for i in range(len(words))])
                assert contradictions(found[name][np.ix_(sure, sure)]) == [], (name, words)


def _sixes(bases: list[str]) -> list[list[str]]:
    return [bases[i : i + 6] for i in range(0, len(bases), 6)]


def test_letters_up_to_the_last_latin_one_show_their_s(spark: SparkSession) -> None:
    """In no base does another character up to U+017F have the weight of an s, so `ß` can hide behind none."""
    jvm: Any = spark._jvm  # ICU4J's weights are to be had nowhere else
    icu, locale = jvm.com.ibm.icu.text, jvm.com.ibm.icu.util.ULocale
    order = icu.CollationElementIterator.primaryOrder
    latin = [chr(point) for point in range(0x20, 0x180)]
    for base in BASES if CAMPAIGN else ["UNICODE", "de", "hu", "tr", "th"]:
        collator = icu.Collator.getInstance(locale("" if base == "UNICODE" else base))
        weight = order(collator.getCollationElementIterator("s").next())
        for char in latin:
            elements = collator.getCollationElementIterator(char)
            mine = [order(e) for e in iter(elements.next, -1)]
            assert mine.count(weight) < 2 or not decides_ties(base, char), (base, char)
            assert mine.count(weight) == 0 or not decides_ties(base, char * 2), (base, char)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["de", "de_CI"])
def test_an_ordinary_german_column_skips(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Whatever is in it: `ß`, quotes, another script. A constant of the same letters as a bound keeps its file."""
    table = mica.Table.create(tmp_path / "t", f"street STRING COLLATE {name}")
    files = (
        ["Ahornweg", "Bahnstraße", "Bäckergasse"],
        ["Königstraße", "Lange „Straße“", "Lindenstrasse", "Mühlweg 中"],
        ["Schloßallee", "STRASSE", "Straße", "Zaunstraẞe"],
    )
    for streets in files:
        table.append(spark.createDataFrame([(street,) for street in streets], "street string").coalesce(1))
    rows = table.to_df(spark)
    for where, kept in (
        ("street = 'Bahnstraße'", 1), ("street = 'Königstraße'", 1), ("street = 'Bahnstrasse'", 1),
        ("street IN ('Ahornweg', 'Bäckergasse')", 1), ("street > 'Straße'", 1), ("street >= 'Zaunstrasse'", 1),
        ("street < 'Bahnstraße'", 1), ("street = 'Marktstraße'", 1), ("street = 'Aalstraße'", 0), ("street > 'Zz'", 0),
    ):  # fmt: skip
        scan = table.scan(where, spark=spark)
        assert len(scan.plan.kept) == kept, where
        assert sorted(scan.to_df(spark).collect()) == sorted(rows.where(where).collect()), where
