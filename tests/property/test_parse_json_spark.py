"""`mica.parse_json` gives what Spark's `parse_json` gives, for texts of all kinds, in batches and in streams."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import mica
from tests.campaign.documents import documents
from tests.support import CAMPAIGN

ROUNDS = 200 if CAMPAIGN else 1

ODD = [
    "", " ", "{}", "[]", "null", "true", "tru", '"a', '"\\u00e9\\ud83d\\ude00"', '{"a":1}{"b":2}', '{"a":1} x', "[1,]",
    "{'a':1}", '{"a":1,"a":2}', "1e400", "-0", "-0.0", "01", "1.", ".5", "NaN", "9" * 38, "9" * 39, "1.00", "1e2",
    "12345678901234567890.123456789", '"\\x"', "\ufeff{}", '{"":""}', "[" * 1001 + "]" * 1001, "[" * 999 + "]" * 999,
    '{"a":"\t"}', "/* c */ 1", '"\u0000"', '"\\u0000"', "\u00a01", "[1 2]",
]  # fmt: skip


def texts(rng: random.Random) -> list[str | None]:
    """Documents, some of them damaged."""
    found: list[str | None] = [*ODD, None]
    for text in documents(rng.randrange(1 << 30), 300):
        at = rng.randrange(len(text))
        found += [text, text[:at] + rng.choice(['"', "{", "]", ",", "1", "é", ""]) + text[at + 1 :]]
    return found


def test_texts_and_bytes_are_parsed_as_spark_does(spark: SparkSession, rng: random.Random) -> None:
    for _ in range(ROUNDS):
        given = texts(rng)
        raw = [None if t is None else t.encode("utf-8", "replace") for t in given]
        raw += [b'{"a":"\xff"}', b'"\xc3"', b'"\xe2\x82"', b'"\xf0\x9f\x98 \xed\xa0\x80"', b"\xff", b'{"\xfe":1}']
        rows = [(None if b is None else bytearray(b),) for b in raw]
        frame = spark.createDataFrame(rows, "b BINARY").withColumn("s", f.col("b").cast("string"))
        parsed = [f.try_parse_json("s"), mica.try_parse_json("s"), mica.try_parse_json(f.col("b"))]
        for text, row in zip(raw, frame.select(*map(f.to_json, parsed)).collect(), strict=True):
            assert len(set(row)) == 1 or len({value(one) for one in row}) == 1, (text, row)


def value(text: str | None) -> str:
    """What a JSON text says, numbers as they are spelled: the order of keys is not Spark's (docs/decisions.md)."""
    return "" if text is None else json.dumps(json.loads(text, parse_float=str, parse_int=str), sort_keys=True)


def test_a_text_that_is_no_json_fails_the_query(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("{}",), (None,), ('{"a":1,"a":2}',)], "s STRING")
    with pytest.raises(Exception, match=r"occurs twice.*\nUse mica.try_parse_json"):
        frame.select(mica.parse_json("s")).collect()
    assert frame.select(mica.parse_json("s"), mica.try_parse_json("s")).columns == [
        "parse_json(s)",
        "try_parse_json(s)",
    ]
    found = frame.where("s IS NULL OR s = '{}'").select(f.to_json(mica.parse_json("s"))).collect()
    assert [row[0] for row in found] == ["{}", None]


def test_the_value_column_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("".join(json.dumps({"k": i}) + "\n" for i in range(100)))
    mica.Table.create(tmp_path / "t", "v VARIANT")
    values = spark.readStream.text(str(tmp_path / "in")).select(f.encode("value", "UTF-8").alias("value"))
    rows = values.select(mica.parse_json("value").alias("v"))
    query = rows.writeStream.foreachBatch(mica.Table.open(tmp_path / "t").foreach_batch("kafka"))
    query.option("checkpointLocation", str(tmp_path / "s")).trigger(availableNow=True).start().awaitTermination()
    assert mica.Table.open(tmp_path / "t").scan("v:k::int >= 40").count() == 60
