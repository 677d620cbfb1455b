"""Real input: 7,240 package records with arrays of objects, maps with unbounded keys and fields that come and go.

What goes in comes out of each engine, row for row; a map's rare keys do not become columns; arrays of objects do.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import mica
from mica.checking.inspect import inspect_file

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

ROWS = 7_240


@pytest.fixture(scope="module")
def packages(shared: Path) -> Path:
    return shared / "data" / "packages.ndjson.gz"


@pytest.fixture(scope="module")
def records(packages: Path) -> list[Any]:
    return [orjson.loads(line) for line in gzip.decompress(packages.read_bytes()).splitlines()]


@pytest.fixture(scope="module")
def table(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    home = tmp_path_factory.mktemp("packages") / "t"
    assert mica.ingest_json(packages, home).rows == ROWS
    return mica.Table.open(home)


def _sorted(documents: list[Any]) -> list[bytes]:
    return sorted(orjson.dumps(document, option=orjson.OPT_SORT_KEYS) for document in documents)


def _documents(texts: list[str]) -> list[bytes]:
    return _sorted([orjson.loads(text) for text in texts])


@pytest.mark.slow
def test_every_record_comes_back_in_process(table: mica.Table, records: list[Any]) -> None:
    assert len(records) == ROWS
    texts = mica.variant.to_json(table.scan().to_arrow()["v"]).to_pylist()
    assert [orjson.loads(text) for text in texts] == records, "in the order of the input"
    assert table.scan().to_pandas()["v"].tolist() == records


@pytest.mark.slow
def test_every_record_comes_back_on_spark(
    spark: SparkSession, packages: Path, tmp_path: Path, records: list[Any]
) -> None:
    assert mica.ingest_json(packages, tmp_path / "t", spark=spark).rows == ROWS
    table = mica.Table.open(tmp_path / "t")
    for frame in (table.to_df(spark), table.scan("v:name IS NOT NULL").to_df(spark)):
        assert _documents([row[0] for row in frame.selectExpr("to_json(v)").collect()]) == _sorted(records)


@pytest.mark.slow
def test_delta_spark_and_duckdb_read_every_record(
    delta_session: SparkSession, duck: duckdb.DuckDBPyConnection, table: mica.Table, records: list[Any]
) -> None:
    frame = delta_session.read.format("delta").load(table.path).selectExpr("to_json(v)")
    assert _documents([row[0] for row in frame.collect()]) == _sorted(records)
    texts = duck.execute("SELECT v::JSON::VARCHAR FROM read_parquet(?)", [f"{table.path}/*.parquet"]).fetchall()
    assert _documents([text for (text,) in texts]) == _sorted(records)


def test_rare_keys_of_a_map_do_not_become_columns(table: mica.Table, records: list[Any]) -> None:
    keys = Counter(key for record in records for key in record["features"])
    assert len(keys) == 384, "the input has a map with hundreds of keys, most of them rare"
    sample = Counter(key for record in records[:4096] for key in record["features"])
    for name in table.files()["path"].to_pylist():
        rows = {row["path"]: row for row in inspect_file(f"{table.path}/{name}")}
        typed = {path.split("'")[3] for path in rows if path.startswith("$['features']['")}
        assert typed <= {key for key, count in sample.items() if count >= 40}, "in a hundredth of the sample at least"
        assert len(typed) < len(keys) // 3
        assert rows["$['deps'][*]['name']"]["type"] == "string", "arrays of objects are shredded"
        assert rows["$['name']"]["residual_rows"] == 0


def test_paths_are_found_by_their_bounds(table: mica.Table, records: list[Any]) -> None:
    for where, wanted in (
        ("v:name::string = 'log'", lambda r: r["name"] == "log"),
        ("v:yanked::boolean", lambda r: r["yanked"]),
        ("v:rust_version::string >= '1.6'", lambda r: (r.get("rust_version") or "") >= "1.6"),
        ("v:pubtime::timestamp < '2015-01-01'", lambda r: (r.get("pubtime") or "9") < "2015"),
    ):
        expected = sum(map(wanted, records))
        assert 0 < expected < ROWS
        assert table.scan(where).count() == expected
    nothing = table.scan("v:name::string < 'A'").explain().to_dict()["files"]
    assert (nothing["kept"], len(nothing["dropped"])) == (0, nothing["total"])
