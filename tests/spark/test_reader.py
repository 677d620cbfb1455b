"""Which reader a DataFrame has, Spark's own or the kernel's, and that both give the same rows."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

import mica
from mica.engines.spark import directories
from mica.schema.types import DATE, INTEGER, StructField, StructType
from tests.oracle import conf
from tests.spark.readers import is_native

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NULL = "__HIVE_DEFAULT_PARTITION__"

#: The arguments of the scan, and whether Spark's own reader answers it.
ASKED: dict[str, tuple[dict[str, Any], bool]] = {
    "everything": ({}, True),
    "plain columns": ({"columns": ["id", "p"]}, True),
    "whole Variants by name": ({"columns": ["id", "v"]}, False),
    "an expression": ({"columns": {"id": "id", "a": "v:a::int"}}, False),
    "a predicate": ({"where": "id >= 0"}, False),
    "a limit": ({"limit": 100}, False),
}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    """Two partitions, at a place whose name Hadoop would take for a pattern."""
    path = tmp_path_factory.mktemp("reader") / "t {a,b}[1]*? ü"
    rows = spark.range(40).selectExpr(
        "id", "CAST(id % 2 AS STRING) AS p", "parse_json(concat('{\"a\":', id, '}')) AS v"
    )
    found = mica.Table.create(path, "id BIGINT, p STRING, v VARIANT", partition_by=["p"])
    found.append(rows)
    return found


def test_a_scan_is_not_refused_by_ansi_before_a_session_says_whether_it_counts(
    spark: SparkSession, table: mica.Table
) -> None:
    scan = table.scan(where="id = 'x' OR id = '7'", columns=["id"])
    with conf(spark, {"spark.sql.ansi.enabled": "false"}):
        assert [row.id for row in scan.to_df(spark).collect()] == [7]
    with conf(spark, {"spark.sql.ansi.enabled": "true"}), pytest.raises(mica.UserError, match="cannot be cast"):
        scan.to_df(spark)


@pytest.mark.parametrize("name", ASKED)
def test_the_reader_and_its_rows(spark: SparkSession, table: mica.Table, name: str) -> None:
    arguments, native = ASKED[name]
    scan = table.scan(**arguments)
    frame = scan.to_df(spark)
    assert is_native(frame) is native
    shown = [f"to_json({n})" if n == "v" else n for n in frame.columns]
    here = scan.to_arrow()
    found = [mica.variant.to_json(here[n].combine_chunks()) if n == "v" else here[n] for n in here.column_names]
    expected = sorted(zip(*(column.to_pylist() for column in found), strict=True))
    assert sorted(map(tuple, frame.selectExpr(*shown).collect())) == expected
    assert len(expected) == 40


@pytest.mark.parametrize("name", ["10:30.parquet", "?:{1}.parquet"])
def test_a_name_with_a_colon_is_read_by_the_kernel(spark: SparkSession, tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / name)
    frame = mica.Table.convert_to_delta(tmp_path).to_df(spark)
    assert not is_native(frame)
    assert sorted(row.id for row in frame.collect()) == [1, 2]


@pytest.mark.parametrize(
    ("name", "native"),
    [("_data.parquet", False), (".data.parquet", False), ("data._COPYING_", False), ("_d/.e/data.parquet", True)],
)
def test_files_that_spark_takes_for_hidden_are_read(
    spark: SparkSession, tmp_path: Path, name: str, native: bool
) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT")
    table.append([{"id": 1}])
    (written,) = table.files().column("path").to_pylist()
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / written).rename(tmp_path / name)
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    log.write_text(log.read_text().replace(written, name))
    mica.Table.open(tmp_path).append([{"id": 2}])
    frame = mica.Table.open(tmp_path).to_df(spark)
    assert is_native(frame) is native
    assert sorted(row.id for row in frame.collect()) == [1, 2]


def test_many_partitions_bare_files_and_none(spark: SparkSession, table: mica.Table, tmp_path: Path) -> None:
    rows = spark.range(17).selectExpr("id", "CAST(id AS STRING) || ' %' AS p", "parse_json('1') AS v")
    many = mica.Table.create(tmp_path / "many", "id BIGINT, p STRING, v VARIANT", partition_by=["p"])
    many.append(rows)
    assert many.to_df(spark).count() == 17
    assert not is_native(many.to_df(spark))
    assert not is_native(mica.read_parquet(table.file_uris()).to_df(spark))
    empty = mica.Table.create(tmp_path / "empty", "v VARIANT").to_df(spark)
    assert (empty.count(), empty.columns) == (0, ["v"])


def test_directories_tell_spark_the_partitions(spark: SparkSession, table: mica.Table, tmp_path: Path) -> None:
    days = "date'2026-01-01' + CAST(id % 3 AS INT) AS day"
    rows = spark.range(60).selectExpr(
        "CAST(IF(id % 20 > 0, id % 20, NULL) AS INT) AS n", "id", days, "concat('0', id % 2) AS s"
    )
    many = mica.Table.create(
        tmp_path / "many", rows.schema.simpleString()[7:-1].replace(":", " "), partition_by=["day", "n", "s"]
    )
    many.append(rows)
    many.alter_column("day", comment="of the event")
    frame = many.to_df(spark)
    assert is_native(frame)
    assert frame.schema["day"].metadata == {"comment": "of the event"}
    assert frame.columns == ["n", "id", "day", "s"]
    assert frame.exceptAll(rows).count() == rows.exceptAll(frame).count() == 0
    assert many.scan(columns=["s", "id"]).to_df(spark).exceptAll(rows.select("s", "id")).count() == 0
    found = frame.where("day = date'2026-01-02' AND n IS NULL")
    assert [row.id for row in found.collect()] == [40]
    assert "PartitionFilters: [isnotnull(day" in found._jdf.queryExecution().toString()


def test_a_directory_of_another_spelling_tells_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own reader has another error for such a value, or null."""
    plain = StructType((StructField("n", INTEGER), StructField("day", DATE)))
    told = {("1", "2024-02-29"): ["n=1/day=2024-02-29/a"], (None, None): [f"n={NULL}/day={NULL}/b"]}
    assert directories.told(plain, plain.names, told)
    for number, day in [
        ("01", "2024-02-29"),
        ("99999999999", "2024-02-29"),
        ("-0", None),
        ("1", "2024-02-30"),
        ("", None),
    ]:
        shown = f"n={number}/day={NULL if day is None else day}/c"
        assert not directories.told(plain, plain.names, {**told, (number, day): [shown]}), (number, day)
    dotted = mica.Table.create(tmp_path, "id INT, `a.b` STRING COMMENT 'x'", partition_by=["a.b"])
    dotted.append([{"id": 1, "a.b": "z"}])
    frame = dotted.to_df(spark)
    assert is_native(frame)
    assert (frame.collect(), frame.schema["a.b"].metadata) == ([(1, "z")], {"comment": "x"})


@pytest.mark.usefixtures("by_tasks", "compiled")
def test_a_deleted_row_cannot_fail(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own reader casts a path as it reads, also of rows that a filter right above it drops."""
    table = mica.Table.create(tmp_path, "v VARIANT", properties={"delta.enableDeletionVectors": "true"})
    table.append([{"v": {"a": "no number" if n == 5 else n}} for n in range(20)])
    table.delete("v:a::string = 'no number'")
    assert table.files().column("deletion_vector").null_count == 0
    found = table.to_df(spark).selectExpr("variant_get(v, '$.a', 'int') AS a").where("a > 3")
    assert sorted(row.a for row in found.collect()) == [4, *range(6, 20)]


def test_no_statement_writes_to_the_files_of_a_frame(spark: SparkSession, tmp_path: Path) -> None:
    """Of a view over bare files Spark's INSERT would replace these."""
    table = mica.Table.create(tmp_path / "t", "a INT, p STRING", partition_by=["p"])
    table.append([{"a": 1, "p": "x"}, {"a": 2, "p": "y"}])
    plain = mica.Table.create(tmp_path / "p", "a INT, p STRING")
    plain.append([{"a": 1, "p": "x"}])
    for one in (table, plain):
        one.to_df(spark).createOrReplaceTempView("bare_files")
        for mode in ("INTO", "OVERWRITE"):
            with pytest.raises(AnalysisException, match="UNSUPPORTED_INSERT"):
                spark.sql(f"INSERT {mode} bare_files VALUES (3, 'z')")
        spark.catalog.dropTempView("bare_files")
        assert one.refresh().count() == len(one.to_df(spark).collect())
        assert mica.check(one.path).ok


def test_files_of_renamed_columns(spark: SparkSession, tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path / "t", "a BIGINT COMMENT 'one', s STRUCT<x: INT>", properties=mapped)
    table.append([{"a": 1, "s": {"x": 2}}])
    assert not is_native(table.to_df(spark))
    plain = mica.Table.create(tmp_path / "p", "a BIGINT COMMENT 'one', b STRING, c INT", properties=mapped)
    plain.append([{"a": 1, "b": "x", "c": 7}])
    plain.rename_column("a", "c 2").drop_columns(["b"]).add_columns("a STRING, `B` INT")
    plain.append([{"c 2": 2, "a": "y", "B": 3, "c": 8}])
    frame = plain.to_df(spark)
    assert is_native(frame)
    assert frame.schema == plain.scan(where="true").to_df(spark).schema
    assert sorted(map(tuple, frame.collect())) == [(1, 7, None, None), (2, 8, "y", 3)]
    assert plain.scan(columns=["B", "c 2"]).to_df(spark).where("B = 3").collect() == [(3, 2)]
    by_id = mica.Table.create(tmp_path / "i", "a BIGINT", properties={"delta.columnMapping.mode": "id"})
    by_id.append([{"a": 1}])
    assert not is_native(by_id.to_df(spark))  # a file may call its column as it likes


def test_collations_of_renamed_columns(spark: SparkSession, tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    ddl = "s STRING COLLATE UTF8_LCASE, a ARRAY<STRING COLLATE de_CI>"
    table = mica.Table.create(tmp_path / "t", ddl, properties=mapped)
    table.append([{"s": "Ab", "a": ["Ä"]}])
    table.rename_column("s", "t")
    frame = table.to_df(spark)
    assert is_native(frame)
    assert frame.schema == table.scan(limit=9).to_df(spark).schema
    assert table.scan(where="t = 'aB'").to_df(spark).collect() == [("Ab", ["Ä"])]  # Spark compares the same frame


@pytest.mark.usefixtures("compiled")
def test_a_partitioned_folder_is_the_same_for_spark(spark: SparkSession, tmp_path: Path) -> None:
    def shown(frame: DataFrame) -> str:
        return str(frame.selectExpr("id", "to_json(v)", "k", "d", "s").sort("id").collect())

    rows = spark.sql(
        "SELECT parse_json(concat('{\"a\":', id, '}')) AS v, id, CAST(id % 3 AS INT) AS k, "
        "date'2026-01-01' + CAST(id % 2 AS INT) AS d, IF(id < 5, NULL, concat('x/', id % 2, '=ü')) AS s FROM range(20)"
    )
    mica.write_parquet(rows, tmp_path / "t", partition_by=["k", "d", "s"])
    ours, theirs = mica.read_parquet(tmp_path / "t"), spark.read.parquet(str(tmp_path / "t"))
    assert ours.to_df(spark).schema == theirs.schema
    assert shown(ours.to_df(spark)) == shown(theirs) == shown(rows)
    where = "s = 'x/1=ü' AND d > date'2026-01-01'"
    found = mica.read_parquet(tmp_path / "t", where=f"{where} AND v:a::int > 7").to_df(spark)
    assert shown(found) == shown(theirs.where(f"{where} AND variant_get(v, '$.a', 'int') > 7"))


@pytest.mark.parametrize("chunk", [1 << 12, 1 << 18])
def test_pages_of_hadoops_lz4_have_any_number_of_blocks_and_chunks(
    spark: SparkSession, tmp_path: Path, chunk: int
) -> None:
    """Blocks are as long as Hadoop's buffer; the library reads one of a chunk each, and no last one that is shorter."""
    wanted = spark.range(100_000).coalesce(1).selectExpr("id * 7919 x", "sha2(cast(id AS STRING), 256) u", "id % 7 k")
    written = wanted.write.option("compression", "lz4").option("io.compression.codec.lz4.buffersize", chunk)
    written.parquet(str(tmp_path / "t"))
    found = mica.read_parquet(tmp_path / "t").to_arrow()
    assert found.equals(wanted.toArrow().cast(found.schema))


@pytest.mark.parametrize(("codec", "native"), [("brotli", False), ("lz4_raw", True)])
def test_what_spark_cannot_decompress_is_read_by_the_kernel(
    spark: SparkSession, tmp_path: Path, codec: str, native: bool
) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT", properties={"delta.parquet.compression.codec": codec})
    table.append([{"id": 1}, {"id": 2}])
    frame = mica.Table.open(tmp_path).to_df(spark)
    assert is_native(frame) is native
    assert sorted(row.id for row in frame.collect()) == [1, 2]


#: Values of a file each: Spark's reader takes equal bounds of a row group for true, whatever order they are in.
WITH_NAN: tuple[list[float | None], ...] = (
    [math.nan, 0.5, 0.5], [0.5, None, math.nan], [math.nan], [math.nan, 0.5, 0.75], [-math.inf, math.nan],
    [math.inf, math.nan], [*[0.5] * 20_000, math.nan], [*[0.5] * 20_000, math.nan, 0.75], [0.5, 0.5], [2.0, 2.0],
)  # fmt: skip


@pytest.mark.slow
def test_rows_with_nan_are_found_by_sparks_own_reader(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "file INT, x DOUBLE, s STRUCT<f: FLOAT>")
    for number, values in enumerate(WITH_NAN):
        floats = pa.array([{"f": value} for value in values], pa.struct([("f", pa.float32())]))
        table.append(pa.table({"file": pa.array([number] * len(values), pa.int32()), "x": values, "s": floats}))
    rows = spark.createDataFrame(table.to_arrow()).cache()
    read = spark.read.parquet(*table.scan().file_uris())
    mica.register("with_nan", tmp_path)
    for column in ("x", "s.f"):
        for test in ("> 1", "= double('NaN')", "<> 0.5", "IN (double('NaN'), 7D)", ">= 0.6 OR file = 77", "<= 1"):
            where = f"{column} {test}"
            counts = [
                sorted(found.groupBy("file").count().collect())
                for found in (
                    rows.where(f"coalesce({where}, false)"),
                    read.where(where),
                    mica.sql(f"SELECT file FROM with_nan WHERE {where}", spark),
                )
            ]
            assert counts[0] == counts[1] == counts[2], where
    rows.unpersist()


@pytest.mark.slow
def test_rows_with_minus_zero_are_found_by_sparks_own_reader(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "x DOUBLE, s STRUCT<f: FLOAT>")
    for values in ([-0.0] * 3, [-0.0, 1.0, 1.0], [0.0, -0.0], [0.0], [1.0, None]):
        floats = pa.array([{"f": value} for value in values], pa.struct([("f", pa.float32())]))
        table.append(pa.table({"x": pa.array(values, pa.float64()), "s": floats}))
    mica.register("with_zero", tmp_path)
    for column in ("x", "s.f"):
        for test, count in {"= 0": 7, "= -0.0F": 7, "IN (0, 7)": 7, "IN (1, -0.0D)": 10, "<> 0": 3, "<= 0": 7}.items():
            whole = table.to_df(spark)
            assert is_native(whole)
            assert whole.where(f"{column} {test}").count() == count, test
            assert mica.sql(f"SELECT x FROM with_zero WHERE {column} {test}", spark).count() == count, test
            assert table.scan(where=f"{column} {test}").count() == count, test


def test_a_field_that_a_file_lacks_beside_a_shredded_variant(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, s STRUCT<v: VARIANT>")
    table.append([{"id": 1, "s": {"v": {"t": True}}}])
    table.add_columns("s.e INT")
    assert [row.e for row in table.to_df(spark).selectExpr("s.e").collect()] == [None]


def test_a_session_whose_parquet_files_have_sparks_second_reader(spark: SparkSession, table: mica.Table) -> None:
    expected = sorted(map(str, table.to_df(spark).collect()))
    with conf(spark, {"spark.sql.sources.useV1SourceList": ""}):
        frame = table.to_df(spark)
        assert is_native(frame)
        assert sorted(map(str, frame.collect())) == expected


@pytest.mark.parametrize("mode", ["LEGACY", "EXCEPTION"])
def test_a_session_that_takes_files_for_old_ones(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """Of files that do not name Spark's version."""
    row = {"d": dt.date(2, 1, 2), "ts": dt.datetime(1582, 10, 10, 12, tzinfo=dt.UTC)}
    table = mica.Table.create(tmp_path, "d DATE, ts TIMESTAMP")
    table.append([row])
    with conf(spark, {f"spark.sql.parquet.{kind}RebaseModeInRead": mode for kind in ("datetime", "int96")}):
        frame = table.to_df(spark)
        assert is_native(frame)
        assert frame.toArrow().to_pylist() == table.to_arrow().to_pylist() == [row]
        found = mica.sql(f"SELECT count(*), d FROM delta.`{tmp_path}` WHERE d < '1000-01-01' GROUP BY d", spark)
        assert found.toArrow().to_pylist() == [{"count(1)": 1, "d": row["d"]}]


def test_files_of_a_disk_are_found_without_a_job(spark: SparkSession, tmp_path: Path) -> None:
    made, context = mica.Table.create(tmp_path / "t", "id INT"), spark.sparkContext
    for number in range(3):
        made.append([{"id": number}])
    with conf(spark, {(setting := "spark.sql.sources.parallelPartitionDiscovery.threshold"): "2"}):
        context.setJobGroup("listing", "")
        try:
            frame = made.to_df(spark)
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
        assert spark.conf.get(setting) == "2"
    assert not context.statusTracker().getJobIdsForGroup("listing")
    assert frame.count() == 3
