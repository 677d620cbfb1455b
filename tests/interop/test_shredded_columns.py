"""Spark and DuckDB on single files of the kernel: awkward keys, drifting types, every row kind of the null table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pytest

import mica
from mica.schema.arrow import variant_field
from mica.variant import kernel
from mica.variant.shredding import Limits, ShreddingSchema

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

ROWS: list[Any] = [
    {"_id": 1, "value": "x", "typed_value": {"value": [1, 2]}, "list": [{"element": 1}, {"element": "a"}, {}], "": 0},
    {"_id": "two", "value": None, "list": [], "": {}, "a.b": 2, "it's": None, "extra": {"deep": [{"x": 1}]}},
    {},
    None,
    7,
    "s",
    [1, "a", None],
    {"_id": 3, "value": "y", "list": None, "typed_value": 5, "metadata": {"element": [[]]}},
    *(
        {"_id": i, "value": str(i), "a.b": i + 0.25, "list": [{"element": i}], "mixed": i if i % 2 else str(i)}
        for i in range(3000)
    ),
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("shredded")
    (folder / "rows.ndjson").write_bytes(b"\n".join(map(orjson.dumps, ROWS)))
    reader = kernel.JsonReader(column="v", path=str(folder / "rows.ndjson"))
    tree = reader.infer(Limits()).tree
    batch = reader.next_batch(tree, 1 << 20, 1 << 30).to_arrow()
    assert reader.next_batch(tree, 1 << 20, 1 << 30) is None
    nulls = pa.nulls(10, batch.schema.field(0).type)
    batch = pa.concat_batches([batch, pa.RecordBatch.from_arrays([nulls], schema=batch.schema)])
    path = folder / "v.parquet"
    writer = kernel.FileWriter(batch.schema, path=str(path), row_group_rows=1000)
    writer.write(batch)
    closed = writer.close()
    assert (closed["rows"], closed["row_groups"], closed["size"]) == (len(ROWS) + 10, 4, path.stat().st_size)
    assert closed["plain"].to_pylist() == [{"min": {}, "max": {}, "null_count": {"v": 10}}]
    return str(path)


def _expected(variant_null: Any) -> list[Any]:
    return [variant_null if row is None else row for row in ROWS] + [None] * 10


def test_spark_reads_every_row(spark: SparkSession, file: str) -> None:
    texts = [row[0] for row in spark.read.parquet(file).selectExpr("to_json(v)").collect()]
    assert [None if text is None else orjson.loads(text) for text in texts] == _expected(None)
    frame = spark.read.parquet(file)
    assert frame.where("v IS NULL").count() == 10
    assert frame.where("is_variant_null(v)").count() == 1
    found = frame.selectExpr(
        "count(try_variant_get(v, '$._id', 'int'))",
        "sum(try_variant_get(v, '$[\"a.b\"]', 'decimal(20,2)'))",
        "count(try_variant_get(v, '$.list[0].element', 'int'))",
        "count(variant_get(v, '$.mixed', 'string'))",
    ).first()
    assert found is not None
    assert [str(value) for value in found] == ["3002", "4499252.00", "3001", "3000"]


def test_duckdb_reads_every_row(duck: duckdb.DuckDBPyConnection, file: str) -> None:
    texts = [row[0] for row in duck.execute("SELECT v::JSON::VARCHAR FROM read_parquet(?)", [file]).fetchall()]
    # DuckDB shows a Variant null as SQL NULL.
    assert [None if text is None else orjson.loads(text) for text in texts] == _expected(None)


@pytest.fixture
def nested(tmp_path: Path) -> str:
    """A file whose list and map hold shredded Variants. mica writes none such, and the standard allows them."""
    texts = ['{"a":1,"b":"x"}', '{"a":"odd"}', "null", None]
    field = variant_field("v")
    plain = pa.record_batch([mica.variant.from_json(texts)], schema=pa.schema([field]))
    group = kernel.shred(plain, {("v",): ShreddingSchema.of("struct<a: bigint>").tree}).column(0)
    element, value = (pa.field(name, group.type, True, field.metadata) for name in ("element", "value"))
    offsets = pa.array([0, 2, 2, 4], pa.int32())
    keys = pa.array(["p", "q", "r", "s"])
    arrays = [
        pa.ListArray.from_arrays(offsets, group, type=pa.list_(element)),
        pa.MapArray.from_arrays(offsets, keys, group, type=pa.map_(pa.field("key", pa.string(), False), value)),
    ]
    batch = pa.record_batch(arrays, ["l", "m"])
    writer = kernel.FileWriter(batch.schema, path=str(tmp_path / "n.parquet"))
    writer.write(batch)
    writer.close()
    return str(tmp_path / "n.parquet")


def test_variants_shredded_inside_lists_and_maps_are_read(nested: str) -> None:
    x, odd = {"a": 1, "b": "x"}, {"a": "odd"}
    found = mica.read_parquet(nested).to_pandas().to_dict("list")
    assert found["l"] == [[x, odd], [], [None, None]]
    assert found["m"] == [[("p", x), ("q", odd)], [], [("r", None), ("s", None)]]


def test_spark_reads_variants_shredded_inside_lists_and_maps_as_we_do(spark: SparkSession, nested: str) -> None:
    shown = ["to_json(l)", "to_json(m)"]
    ours = mica.read_parquet(nested).to_df(spark).selectExpr(*shown).collect()
    assert spark.read.parquet(nested).selectExpr(*shown).collect() == ours


def test_what_spark_writes_inside_lists_and_maps_is_read(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(200).selectExpr(
        "id", "array(parse_json(concat('{\"a\":', id, '}')), NULL) AS l",
        "map('k', parse_json(concat('{\"a\":', id, '}'))) AS m",
        "named_struct('l', array(named_struct('v', parse_json(concat('{\"a\":', id, '}'))))) AS s",
    )  # fmt: skip
    frame.coalesce(1).write.parquet(str(tmp_path / "t"))
    found = mica.read_parquet(tmp_path / "t").to_pandas().sort_values("id")
    assert found["l"].tolist() == [[{"a": i}, None] for i in range(200)]
    assert found["m"].tolist() == [[("k", {"a": i})] for i in range(200)]
    assert found["s"].tolist() == [{"l": [{"v": {"a": i}}]} for i in range(200)]


def test_a_file_names_its_writer(file: str) -> None:
    reader = kernel.FileReader(path=file, name="v.parquet")
    assert reader.created_by.startswith("mica version ")
    assert reader.num_rows == len(ROWS) + 10
