"""JSON files to tables: the same rows whatever the engine, the splits and the order."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow.compute as pc
import pytest

import mica
from mica.cli.events import lines
from mica.errors import CorruptDataError, MicaError, UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 6_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files: plain, gzip, and a JSON array; together ROWS events."""
    directory = tmp_path_factory.mktemp("events")
    found = lines(0, ROWS, seed=3).splitlines()
    (directory / "a.ndjson").write_bytes(b"\n".join(found[:2000]))
    with gzip.open(directory / "b.ndjson.gz", "wb") as file:
        file.write(b"\n".join(found[2000:4000]) + b"\n")
    (directory / "c.json").write_bytes(b"[" + b",\n ".join(found[4000:]) + b"]")
    return directory


def _documents(table: mica.Table, column: str = "v") -> list[Any]:
    texts = mica.variant.to_json(table.scan(columns=[column]).to_arrow().column(column).combine_chunks())
    return sorted(orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS) for text in texts.to_pylist())


def _expected(directory: Path) -> list[Any]:
    documents = [orjson.loads(line) for line in (directory / "a.ndjson").read_bytes().splitlines()]
    documents += [orjson.loads(line) for line in gzip.decompress((directory / "b.ndjson.gz").read_bytes()).splitlines()]
    documents += orjson.loads((directory / "c.json").read_bytes())
    return sorted(orjson.dumps(document, option=orjson.OPT_SORT_KEYS) for document in documents)


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sort_by": ["v:commit.collection::string", "v:did::string desc"], "target_file_size": 60_000},
        {"columns": {"kind": "v:kind::string"}, "partition_by": ["kind"]},
        {
            "columns": {"kind": "v:kind::string"},
            "partition_by": ["kind"],
            "sort_by": ["try_variant_get(v, '$.time_us', 'bigint')"],
        },
        {"shredding": "struct<did: string, time_us: bigint>"},
        {"properties": {"delta.enableVariantShredding": "false"}},
    ],
    ids=["plain", "sorted", "partitioned", "both", "given", "unshredded"],
)
def test_what_went_in_comes_back(
    spark: SparkSession, source: Path, tmp_path: Path, engine: str, options: dict[str, Any]
) -> None:
    report = mica.ingest_json(str(source / "*"), tmp_path / "t", spark=spark if engine == "spark" else None, **options)
    assert (report.rows, report.version, report.input_files, report.bad_lines) == (ROWS, 0, 3, 0)
    table = mica.Table.open(tmp_path / "t")
    assert table.files().num_rows == report.files
    assert _documents(table) == _expected(source)
    assert table.scan().count() == ROWS


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_sorted_files_do_not_overlap(spark: SparkSession, source: Path, tmp_path: Path, engine: str) -> None:
    key = "try_variant_get(v, '$.time_us', 'bigint')"
    mica.ingest_json(
        str(source / "*"),
        tmp_path / "t",
        spark=spark if engine == "spark" else None,
        sort_by=[key],
        target_file_size=50_000,
    )
    table = mica.Table.open(tmp_path / "t")
    assert table.files().num_rows > 4
    ranges = []
    for path in table.files().column("path").to_pylist():
        times = mica.read_parquet(tmp_path / "t" / path, columns={"t": key}).to_arrow().column("t").drop_null()
        assert times.to_pylist() == sorted(times.to_pylist())
        if len(times):
            ranges.append((pc.min(times).as_py(), pc.max(times).as_py()))
    ranges.sort()
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ranges))


def test_plain_files_are_split_by_bytes_and_no_line_is_lost(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mica.write.inputs.LEAST_BYTES", 1)
    monkeypatch.setattr("mica.write.inputs.TASK_BYTES", 100_000)
    report = mica.ingest_json(source / "a.ndjson", tmp_path / "t", spark=spark)
    assert report.files > 3
    texts = [orjson.loads(line) for line in (source / "a.ndjson").read_bytes().splitlines()]
    assert _documents(mica.Table.open(tmp_path / "t")) == sorted(
        orjson.dumps(d, option=orjson.OPT_SORT_KEYS) for d in texts
    )


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_broken_line_stops_everything(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n{"a": 2}\n{"a": \n{"a": 4}\n')
    with pytest.raises(CorruptDataError) as raised:
        mica.ingest_json(tmp_path / "a.ndjson", tmp_path / "t", spark=spark if engine == "spark" else None)
    text = str(raised.value)
    assert "a.ndjson" in text
    assert "line 3" in text or raised.value.context.get("line") == 3
    assert not list((tmp_path / "t").rglob("*.parquet"))
    with pytest.raises(UserError, match="not a Delta table"):
        mica.Table.open(tmp_path / "t")


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_bad_lines_are_kept_aside_where_that_is_asked_for(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    (tmp_path / "a.ndjson").write_bytes(b'{"a": 1}\n{"a": \n\n{"a": 3, "a": 4}\nnull\n\xff\xfe{\n')
    report = mica.ingest_json(
        tmp_path / "a.ndjson", tmp_path / "t", spark=spark if engine == "spark" else None, on_error="quarantine"
    )
    assert (report.rows, report.bad_lines) == (2, 3)
    assert report.quarantine is not None
    kept = [orjson.loads(line) for f in Path(report.quarantine).iterdir() for line in f.read_bytes().splitlines()]
    assert [row["line"] for row in kept] == [2, 4, 6]
    assert all(row["file"].endswith("a.ndjson") and row["reason"] and "text" in row for row in kept)
    assert mica.Table.open(tmp_path / "t").scan().count() == 2


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize(
    "options", [{"sort_by": ["v:a::int"]}, {"columns": {"a": "v:a::int"}, "partition_by": ["a"]}], ids=["sort", "parts"]
)
def test_bad_lines_are_kept_aside_once_whoever_reads_them(
    spark: SparkSession, tmp_path: Path, engine: str, options: dict[str, Any]
) -> None:
    # Spark reads the input of a sort twice, and the tasks that read are not those that write.
    (tmp_path / "a.ndjson").write_text('{"a":1}\n{"a":,}\n{"a":2}\nno\n{"a":"x"}\n')
    aside = tmp_path / "aside"
    report = mica.ingest_json(
        tmp_path / "a.ndjson", tmp_path / "t", spark=spark if engine == "spark" else None,
        on_error="quarantine", quarantine=aside, **options,
    )  # fmt: skip
    assert (report.rows, report.bad_lines) == (2, 3)
    kept = [orjson.loads(line) for f in aside.rglob("*.ndjson") for line in f.read_bytes().splitlines()]
    assert [(row["line"], row["text"]) for row in kept] == [(2, '{"a":,}'), (4, "no"), (None, '{"a":"x"}')]
    assert not (tmp_path / "t" / "_quarantine").exists()


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_names_match_without_regard_to_case(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    session = spark if engine == "spark" else None
    (tmp_path / "a.ndjson").write_text('{"a":"x"}\n')
    for options in (
        {"columns": {"Day": "v:a::string"}, "partition_by": ["Day"]},
        {"columns": {"day": "V:a::string"}, "partition_by": ["DAY"]},
        {"column": "V", "columns": {"DAY": "v:a::string"}, "sort_by": ["dAy"]},
    ):
        mica.ingest_json(tmp_path / "a.ndjson", tmp_path / "t", spark=session, **options)  # type: ignore[arg-type]
    table = mica.Table.open(tmp_path / "t")
    assert table.schema.names == ["v", "Day"]
    assert table.scan(columns=["DAY"]).to_arrow().to_pydict() == {"DAY": ["x"] * 3}, "as Spark spells it"
    assert [row.day for row in table.scan("dAY = 'x'", ["day"]).to_df(spark).collect()] == ["x"] * 3


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_table_that_exists_is_respected(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    session = spark if engine == "spark" else None
    (tmp_path / "a.json").write_text('{"a": 1}')
    table = mica.Table.create(tmp_path / "t", "v VARIANT, n INT, other STRING")
    mica.ingest_json(tmp_path / "a.json", table.path, spark=session, columns={"n": "v:a::int"})
    assert table.refresh().scan().to_pandas()["v"].tolist() == [{"a": 1}]
    assert table.scan(columns=["n", "other"]).to_arrow().to_pylist() == [{"n": 1, "other": None}]
    for options, code in (
        ({"columns": {"n": "v:a::string"}}, "INCOMPATIBLE_TYPE"),
        ({"columns": {"x": "v:a::string"}}, "UNKNOWN_COLUMN"),
        ({"column": "n"}, "INCOMPATIBLE_TYPE"),
        ({"mode": "error"}, "TABLE_EXISTS"),
    ):
        with pytest.raises(MicaError) as raised:
            mica.ingest_json(tmp_path / "a.json", table.path, spark=session, **options)  # type: ignore[arg-type]
        assert raised.value.code == code
    assert mica.Table.open(table.path).version == 1


def test_a_table_that_does_not_allow_shredding_is_written_unshredded(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    table = mica.Table.create(tmp_path / "t", "v VARIANT", properties={"delta.enableVariantShredding": "false"})
    report = mica.ingest_json(tmp_path / "a.json", table.path)
    assert len(report.notes) == 1
    assert "unshredded" in report.notes[0]
    (file,) = (tmp_path / "t").glob("*.parquet")
    import pyarrow.parquet as pq

    assert [f.name for f in pq.read_schema(file).field("v").type] == ["metadata", "value"]
    assert mica.Table.open(table.path).properties["delta.enableVariantShredding"] == "false"


def test_empty_input_makes_an_empty_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("")
    for name, session in (("local", None), ("spark", spark)):
        report = mica.ingest_json(tmp_path / "a.json", tmp_path / name, spark=session)
        assert (report.rows, report.files, report.version) == (0, 0, 0)
        assert mica.Table.open(tmp_path / name).scan().to_arrow().num_rows == 0


def test_paths_may_come_in_a_dataframe_and_an_overwrite_replaces_all(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    paths = spark.createDataFrame([(str(source / "a.ndjson"),), (str(source / "c.json"),)], "path string")
    report = mica.ingest_json(paths, tmp_path / "t", spark=spark)
    assert (report.rows, report.input_files) == (4_000, 2)
    again = mica.ingest_json(source / "b.ndjson.gz", tmp_path / "t", spark=spark, mode="overwrite")
    assert (again.rows, again.version) == (2_000, 1)
    assert mica.Table.open(tmp_path / "t").scan().count() == 2_000
    assert mica.Table.open(tmp_path / "t", version=0).scan().count() == 4_000


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_one_large_gzip_becomes_several_files(spark: SparkSession, source: Path, tmp_path: Path, engine: str) -> None:
    report = mica.ingest_json(
        source / "b.ndjson.gz", tmp_path / "t", spark=spark if engine == "spark" else None, target_file_size="60KB"
    )
    assert report.files > 2
    sizes = mica.Table.open(tmp_path / "t").files().column("size").to_pylist()
    assert max(sizes) < 200_000
    assert report.bytes == sum(sizes)
