"""DuckDB, Spark's own reader and deltalake on what mica writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import orjson
import pyarrow as pa
import pytest

import mica
from mica.cli.events import lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def ingested(tmp_path: Path) -> mica.Table:
    (tmp_path / "events.ndjson").write_bytes(lines(0, 2_000, seed=9))
    mica.ingest_json(tmp_path / "events.ndjson", tmp_path / "t", target_file_size="100KB")
    return mica.Table.open(tmp_path / "t")


def _documents(table: mica.Table) -> list[Any]:
    texts = mica.variant.to_json(table.scan().to_arrow().column("v").combine_chunks()).to_pylist()
    return sorted(map(_canonical, texts))


def _canonical(text: str) -> bytes:
    return orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS)


def _paths(table: mica.Table) -> list[str]:
    return [f"{table.path}/{path}" for path in table.files().column("path").to_pylist()]


def test_spark_s_own_reader_agrees(spark: SparkSession, ingested: mica.Table) -> None:
    rows = spark.read.parquet(*_paths(ingested)).selectExpr("to_json(v) AS t").collect()
    assert sorted(_canonical(row.t) for row in rows) == _documents(ingested)


def test_duckdb_agrees(duck: duckdb.DuckDBPyConnection, ingested: mica.Table) -> None:
    rows = duck.execute("SELECT v::JSON::VARCHAR FROM read_parquet(?)", [_paths(ingested)]).fetchall()
    assert sorted(_canonical(row[0]) for row in rows) == _documents(ingested)


def test_deltalake_refuses_a_variant_table_and_reads_others(tmp_path: Path, ingested: mica.Table) -> None:
    deltalake = pytest.importorskip("deltalake")
    with pytest.raises(Exception, match=r"(?i)variant"):
        deltalake.DeltaTable(ingested.path).to_pyarrow_table()
    table = mica.Table.create(tmp_path / "plain", "id BIGINT, s STRING, p STRING", partition_by=["p"])
    rows = {"id": [1, 2, 3], "s": ["a", None, "ü"], "p": ["x/y", "50%", None]}
    table.append(pa.table(rows))
    table.append(pa.table(rows))
    found = deltalake.DeltaTable(str(tmp_path / "plain")).to_pyarrow_table().sort_by([("id", "ascending")])
    assert found.select(["id", "s", "p"]).to_pydict() == {
        name: [v for v in values for _ in (0, 1)] for name, values in rows.items()
    }
    deltalake.write_deltalake(str(tmp_path / "plain"), pa.table(rows), mode="append")
    assert mica.Table.open(tmp_path / "plain").scan().count() == 9


def test_deltalake_skips_no_file_of_negative_zeros(tmp_path: Path) -> None:
    """Its kernel tells -0.0 from 0.0 in bounds of the log, and its queries do not."""
    deltalake = pytest.importorskip("deltalake")
    table = mica.Table.create(tmp_path / "t", "d DOUBLE, f FLOAT")
    for number in (-0.0, 0.0, -1.0):
        reals = pa.array([number, -0.0], pa.float64())
        table.append(pa.table({"d": reals, "f": reals.cast(pa.float32())}))
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(tmp_path / "t")))
    for column in ("d", "f"):
        found = pa.table(query.execute(f"SELECT {column} FROM t WHERE {column} >= 0.0").read_all())
        assert found.num_rows == table.scan(where=f"{column} >= 0").count() == 5


def test_the_readmes_example_is_right_after_an_overwrite(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (example,) = [block.partition("```")[0] for block in text.split("```python\n")[1:] if "to_duckdb" in block]
    t = mica.Table.create(tmp_path / "t", "v VARIANT")
    for did in ("old", "new"):
        t.overwrite(pa.table({"v": mica.variant.from_json([f'{{"did":"{did}"}}'] * 3)}))
    names = {"t": t}
    setting_up, _, queries = example.strip().partition("\n\n")
    exec(setting_up, names)
    for line in queries.splitlines():
        found = eval(line.removesuffix(".show()"), names)
        assert found.fetchall() == [("new", 3)]


def test_a_variant_that_deltalake_made_a_struct_comes_back_by_a_restore(tmp_path: Path) -> None:
    """Its appends by schema_mode="merge" write the schema that they read."""
    deltalake = pytest.importorskip("deltalake")
    table = mica.Table.create(tmp_path, "id BIGINT, v VARIANT", properties={"delta.enableVariantShredding": "false"})
    with pytest.warns(UserWarning, match="unshredded"):
        table.append([{"id": 1, "v": {"a": 1}}])
    deltalake.DeltaTable(str(tmp_path)).update({"id": "2"})
    deltalake.write_deltalake(str(tmp_path), pa.table({"id": [3]}), mode="append", schema_mode="merge")
    table.refresh()
    with pytest.raises(mica.MicaError, match=r"(?s)INCOMPATIBLE_TYPE|TYPE_MISMATCH"):
        table.scan(where="v:a::int = 1").to_arrow()
    table.restore(2)
    assert {one.kind for one in mica.check(tmp_path)} == {"missing_annotation"}
    mica.repair(tmp_path)
    assert not list(mica.check(tmp_path))
    assert table.refresh().scan("v:a::int = 1", ["id"]).to_arrow().to_pylist() == [{"id": 2}]
    with pytest.warns(UserWarning, match="unshredded"):
        table.append([{"id": 4, "v": {"a": 4}}])
    deltalake.write_deltalake(str(tmp_path), pa.table({"id": [5]}), mode="append", schema_mode="merge")
    with pytest.raises(mica.MicaError, match=r"(?s)holds VARIANT in the column v, which is STRUCT.*restore"):
        table.refresh().to_arrow()
