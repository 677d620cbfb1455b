"""The laws of an engine, held by threads and by Spark alike: the same batches, the same ends, the same errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import mica
from mica import engines
from mica.engines.base import Ends, Engine, MadeRows, Order
from mica.engines.local import IN_PROCESS
from mica.errors import UserError
from mica.schema.ddl import parse_ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Every kind of column that facts have.
SCHEMA = pa.schema(
    [
        pa.field("n", pa.int32(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("bytes", pa.binary()),
        pa.field("values", pa.map_(pa.string(), pa.string())),
        pa.field("strings", pa.list_(pa.string())),
    ]
)


def described(n: int) -> Iterator[pa.RecordBatch]:
    row = {"n": n % 2, "text": None if n == 1 else f"t{n}", "bytes": bytes([n]), "values": {"a": None, "b": str(n)}}
    for strings in ([f"B{n}", "a", "C"], None):
        yield pa.RecordBatch.from_pylist([{**row, "strings": strings}], schema=SCHEMA)


def refuse(n: int) -> Iterator[pa.RecordBatch]:
    raise UserError("INVALID_VALUE", f"task {n} does not want to", hint="Ask tomorrow.", path="a/b")


def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task is given: the first and the last key of each partition value, in the order in which they come."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    found = [{"n": row["x"], "text": row["p"]} for row in rows]
    if found:
        assert set(rows[0]) == {"p", "x"}
        yield pa.RecordBatch.from_pylist(found, schema=COUNTED)


COUNTED = pa.schema([pa.field("n", pa.int64()), pa.field("text", pa.string())])


def rows(n: int) -> Iterator[pa.RecordBatch]:
    numbers = [(i * 7 + n) % 50 for i in range(50)]
    yield pa.record_batch(
        {"p": [f"p{x % 3}" for x in numbers], "x": pa.array(numbers, pa.int64()), "k": pa.array(numbers, pa.int64())}
    )


def every(spark: SparkSession) -> list[Engine]:
    return [engines.of(None), engines.of(spark)]


def test_what_runs_is_decided_in_one_place(spark: SparkSession) -> None:
    from pyspark.sql import functions

    assert engines.of(None) is engines.of(pa.table({})) is engines.of([{"a": 1}]) is IN_PROCESS
    assert {type(engines.of(given)).__name__ for given in (spark, spark.range(1))} == {"Spark"}
    assert engines.of(functions.col("x")) is IN_PROCESS  # it has every attribute


def test_what_is_no_session_is_refused_by_name(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "n INT")
    calls = [
        lambda: mica.check(table, spark=True), lambda: table.scan(spark="local"), lambda: table.restats(spark=1),
        lambda: mica.convert_files(table, tmp_path / "u", spark={}),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(UserError, match="SparkSession") as refused:
            call()
        assert refused.value.code == "INVALID_ARGUMENT"


def test_batches_are_the_same_on_both(spark: SparkSession) -> None:
    found = []
    for engine in every(spark):
        table = pa.Table.from_batches(engine.run(described, range(4), SCHEMA), SCHEMA)
        found.append(sorted(table.to_pylist(), key=str))
    assert found[0] == found[1]
    assert len(found[0]) == 8


@pytest.mark.parametrize("by", [None, "n"])
def test_ends_of_strings_are_the_same_on_both(spark: SparkSession, by: str | None) -> None:
    ends = Ends({"strings": "UTF8_LCASE"}, by)
    found = []
    for engine in every(spark):
        table = pa.Table.from_batches(engine.run(described, range(4), SCHEMA, ends=ends), ends.schema(SCHEMA))
        found.append(sorted(table.to_pylist(), key=str))
    assert found[0] == found[1]
    if by == "n":
        assert found[0] == [{"n": n, "strings_min": "a", "strings_max": "C"} for n in (0, 1)]


def test_no_inputs_give_nothing(spark: SparkSession) -> None:
    for engine in every(spark):
        assert list(engine.run(described, [], SCHEMA)) == []


def test_an_error_of_a_task_comes_out_as_it_was_raised(spark: SparkSession) -> None:
    for engine in every(spark):
        with pytest.raises(UserError) as raised:
            list(engine.run(refuse, [7], SCHEMA))
        assert (raised.value.code, raised.value.hint, raised.value.context) == (
            "INVALID_VALUE",
            "Ask tomorrow.",
            {"path": "a/b"},
        )


def test_rows_are_sorted_and_their_keys_are_gone(spark: SparkSession) -> None:
    made = MadeRows(rows, range(3), parse_ddl("p STRING, x BIGINT, k BIGINT"), size=1 << 20)
    for engine in every(spark):
        batches = engine.write(made, counted, COUNTED, order=Order(("p",), (("k", True),)))
        found = pa.Table.from_batches(batches, COUNTED).to_pylist()
        assert found == sorted(found, key=lambda row: (row["text"], -row["n"]))
        assert len(found) == 150


def test_an_engines_own_rows_go_through_a_task(spark: SparkSession) -> None:
    table = pa.Table.from_batches(rows(0)).drop_columns(["k"])
    for engine, own in ((IN_PROCESS, table), (IN_PROCESS, table.to_reader()), (engines.of(spark), table)):
        given = spark.createDataFrame(table) if engine is not IN_PROCESS else own
        assert engine.owns(given) == (engine is not IN_PROCESS)
        assert engine.schema(given).names == ["p", "x"]
        found = pa.Table.from_batches(engine.write(given, counted, COUNTED, order=Order(("p",))), COUNTED)
        assert sorted(found.column("n").to_pylist()) == list(range(50))


def test_strings_compare_alike_where_both_can(spark: SparkSession) -> None:
    words = pa.array(["a", "B", "b", "ß", "SS", "Σ", "ς", "İ"])
    left, right = (pa.array([pair[i] for pair in [(a, b) for a in words for b in words]]) for i in (0, 1))
    found = [e.comparator.compared(left, right, ["UTF8_LCASE"] * len(left)).tolist() for e in every(spark)]
    assert found[0] == found[1]
    assert [engine.comparator.judges("icu.de") for engine in every(spark)] == [False, True]
