"""Spark and DuckDB on single files of the kernel: awkward keys, drifting types, every row kind of the null table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pytest

from mica.variant import kernel

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
    tree = reader.infer({})
    batch = reader.next_batch(tree, 1 << 20, 1 << 30)
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


def test_a_file_names_its_writer(file: str) -> None:
    reader = kernel.FileReader(path=file, name="v.parquet")
    assert reader.created_by.startswith("mica version ")
    assert reader.num_rows == len(ROWS) + 10
