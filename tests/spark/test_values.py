"""JSON and casts, value by value beside the real Spark: recorded nasty ones, and random texts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from mica.errors import CorruptDataError
from mica.schema.arrow import variant_field
from mica.variant import kernel
from mica.variant.kernel import Request
from tests.spark import recordings
from tests.support import spark_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PIECES = [
    *"0123456789",
    *["2024", "1999", "-", "-", ":", ":", ".", " ", "T", "Z", "+", "e", "E", "d", "f", "0x", "p", "NaN", "inf", "true"],
    *["2024-01-31", "2024-02-30", "1582-10-10", "10:11:12", "23:59:60", "24:00", "+01:00", "-7", "UTC", "GMT+2", "\t"],
    *["America/New_York", "Europe/Paris", "PST", "12345678901234567890", "0.5", ".999999", "é", "\u00a0"],
]
UTF_16 = '{"\U0001f600":1,"\ufffd":2}'.encode()
"""Spark sorts these keys by their UTF-16 units, where the encoding demands the order of their bytes."""


@pytest.fixture
def far(spark: SparkSession) -> Iterator[SparkSession]:
    """The session in a zone with summer time."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", recordings.ZONE)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", str(before))


def batch_of(frame: DataFrame) -> pa.RecordBatch:
    """The variants of `v` as the kernel takes them."""
    rows = [row.v for row in frame.orderBy("i").collect()]
    field = variant_field("v")
    array = pa.array([{"metadata": v.metadata, "value": v.value} for v in rows], field.type)
    return pa.RecordBatch.from_arrays([array], schema=pa.schema([field]))


def java_17(ours: str, theirs: str) -> bool:
    """Whether both texts are one number, of which Java before 19 prints more digits than it needs."""
    try:
        ours, theirs = (bytes.fromhex(text.removeprefix("=")).decode() for text in (ours, theirs))
        doubles = float(ours) == float(theirs)
        floats = pa.scalar(float(ours), pa.float32()) == pa.scalar(float(theirs), pa.float32())
        return len(ours) < len(theirs) and "E" in theirs and (doubles or floats)
    except ValueError:
        return False


def differences(frame: DataFrame) -> list[str]:
    """Every pair of value and type on which the kernel and Spark disagree."""
    expected = recordings.casts(frame)
    batch = batch_of(frame)
    texts = expected["json"]
    found = []
    for name, kind in recordings.TYPES.items():
        item = Request(("v",), (), kind)
        values, failed = kernel.extract(batch, [item], timezone=recordings.ZONE).columns
        ours = recordings.spell(pa.chunked_array([values]))
        for text, mine, theirs, fails in zip(texts, ours, expected[name], failed.to_pylist(), strict=True):
            assert not (fails and mine != "-")
            if mine != theirs and not (name == "string" and (java_17(mine, theirs) or not utf8(theirs))):
                found.append(f"{bytes.fromhex(text[1:]).decode()} as {name}: mica {mine}, Spark {theirs}")
    return found


def utf8(text: str) -> bool:
    """Whether Spark's string has a place in Arrow: it makes strings of any bytes, where our cast fails."""
    try:
        bytes.fromhex(text.removeprefix("=").removeprefix("-")).decode()
    except UnicodeDecodeError:
        return False
    return True


def test_every_value_casts_to_every_type_as_in_spark(far: SparkSession) -> None:
    assert differences(recordings.variants(far).cache()) == []


@pytest.mark.slow
def test_random_texts_cast_as_in_spark(far: SparkSession, rng: random.Random) -> None:
    texts = ["".join(rng.choices(PIECES, k=rng.randint(1, 7))) for _ in range(5_000)]
    frame = far.createDataFrame(list(enumerate(texts)), "i int, s string").repartition(1)
    # A time alone means today, which two clocks may see differently.
    timeless = [text for text in differences(frame.selectExpr("i", "cast(s as variant) v").cache()) if not today(text)]
    assert timeless == []


def today(difference: str) -> bool:
    return " as timestamp: mica =" in difference and "Spark =" in difference and difference[1:3].strip(":T").isdigit()


def test_texts_become_what_spark_makes_of_them(spark: SparkSession) -> None:
    for text, row in zip(recordings.TEXTS, recordings.parsed(spark), strict=True):
        batch = pa.RecordBatch.from_arrays([pa.array([text])], ["t"])
        if row.v is None or (spark_version() < (4, 2) and lacks_a_partner(text)):
            with pytest.raises(CorruptDataError):
                kernel.json_to_variant(batch)
        elif follows(text):
            with pytest.raises(CorruptDataError, match="after the end of the document"):
                kernel.json_to_variant(batch)
        else:
            ours = kernel.variant_to_json(kernel.json_to_variant(batch)).column(0)[0].as_py()
            if text == UTF_16:
                assert json.loads(ours) == json.loads(row.j)
                assert ours != row.j
                continue
            assert ours == row.j or java_17(ours.encode().hex(), row.j.encode().hex()), text


def lacks_a_partner(text: bytes) -> bool:
    """Whether the JSON has a surrogate alone, which Spark 4.1 takes."""
    try:
        chars = json.dumps(json.loads(text.decode(errors="replace")), ensure_ascii=False)
    except ValueError:
        return False
    return any("\ud800" <= char <= "\udfff" for char in chars)


def follows(text: bytes) -> bool:
    """Whether something stands behind the first document: Spark ignores it, mica refuses it."""
    readable = text.decode(errors="replace").strip()
    return json.JSONDecoder().raw_decode(readable)[1] < len(readable)
