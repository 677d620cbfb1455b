"""Tables through Spark: appended from DataFrames, scanned, and equal to the same scan in process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pytest
from pyspark.sql import Row

import mica
from mica.errors import MicaError, UserError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("by_tasks")

ODD_VALUES = ["a", "", None, "a/b", "x=y", "50% {off}", "ü 🙂", "a b", "[1]*?", "d'e\"f", "\\n"]


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    rows = spark.range(2_000).selectExpr(
        "id",
        "CAST(id % 7 AS STRING) AS kind",
        """parse_json(concat('{"n":', id, ',"s":"t', id % 10, '"',
           CASE WHEN id % 5 = 0 THEN ',"o":{"x":null}' ELSE '' END, '}')) AS v""",
    )
    return rows.repartition(3)


def _json(frame: DataFrame) -> list[Any]:
    return sorted(tuple(row) for row in frame.selectExpr("id", "to_json(v)").collect())


def test_rows_appended_from_a_dataframe_come_back(spark: SparkSession, tmp_path: Path, events: DataFrame) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, kind STRING, v VARIANT")
    commit = table.append(events)
    assert (commit.version, commit.rows, table.version) == (1, 2_000, 1)
    assert commit.files == 3
    assert _json(table.to_df(spark)) == _json(events)
    assert _json(table.scan(where="id >= 0").to_df(spark)) == _json(events)
    found = table.scan().to_arrow().sort_by("id")
    texts = mica.variant.to_json(found.column("v").combine_chunks()).to_pylist()
    assert list(zip(found.column("id").to_pylist(), texts, strict=True)) == _json(events)


def test_columns_whose_names_have_dots_and_quotes_are_written_by_a_job(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, `p.q` BIGINT, `r``s` STRING")
    rows = spark.range(40).selectExpr("id", "id * 2 AS `p.q`", "concat('x', id) AS `r``s`")
    table.append(rows.repartition(2))
    table.overwrite(table.to_df(spark).where("`p.q` < 20").repartition(2))
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": n, "p.q": 2 * n, "r`s": f"x{n}"} for n in range(10)
    ]
    star = mica.Table.create(tmp_path / "star", "`*` BIGINT, id INT")
    star.append(spark.range(3).selectExpr("id AS `*`", "1 AS id").repartition(2))
    assert sorted(map(tuple, star.to_df(spark).collect())) == [(0, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize(
    "where",
    [
        "v:n::bigint BETWEEN 10 AND 20",
        "v:s::string = 't3' AND id < 1000",
        "v:o IS NOT NULL",
        "v:o.x::string IS NULL AND kind IN ('1', '2')",
        "NOT (v:n::int > 5)",
        "try_variant_get(v, '$.s', 'int') IS NULL",
    ],
)
def test_both_engines_give_what_spark_gives(spark: SparkSession, tmp_path: Path, events: DataFrame, where: str) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, kind STRING, v VARIANT")
    table.append(events)
    expected = sorted(row.id for row in events.where(where).collect())
    scan = table.scan(where=where, columns=["id"])
    assert sorted(scan.to_arrow().column("id").to_pylist()) == expected
    assert sorted(row.id for row in scan.to_df(spark).collect()) == expected
    assert scan.count() == len(expected)


def test_columns_are_expressions_with_the_session_s_casts(
    spark: SparkSession, tmp_path: Path, events: DataFrame
) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, kind STRING, v VARIANT")
    table.append(events)
    scan = table.scan(where="id = 15", columns={"n": "v:n::decimal(10,2)", "s": "v:s::string", "o": "v:o", "id": "id"})
    row = scan.to_df(spark).selectExpr("n", "s", "to_json(o) AS o", "id").collect()[0]
    assert tuple(row) == (Decimal("15.00"), "t5", '{"x":null}', 15)
    assert scan.to_pandas().to_dict("records") == [{"n": Decimal("15.00"), "s": "t5", "o": {"x": None}, "id": 15}]


def test_columns_keep_their_comments(delta_session: SparkSession, tmp_path: Path) -> None:
    ddl = "n INT COMMENT 'c', v VARIANT COMMENT 'd', s STRUCT<a: INT COMMENT 'e'> COMMENT 'f', p INT COMMENT 'g'"
    table = mica.Table.create(tmp_path / "t", ddl, ["p"])
    table.append([{"n": 1, "v": 1, "p": 2}])
    theirs = delta_session.read.format("delta").load(table.path)
    assert table.to_df(delta_session).schema == theirs.schema
    columns = {"m": "n", "a": "s.a", "b": "n + 1"}
    ours = table.scan(columns=columns).to_df(delta_session)
    shown = theirs.selectExpr(*(f"{text} AS {name}" for name, text in columns.items()))
    kept = [{"comment": "c"}, {"comment": "e"}, {}]
    assert [f.metadata for f in ours.schema] == [f.metadata for f in shown.schema] == kept


def test_partition_values_may_hold_any_characters(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(i, value) for i, value in enumerate(ODD_VALUES)], "id int, `p q/=` string")
    table = mica.Table.create(tmp_path / "t ü", "id INT, `p q/=` STRING", partition_by=["p q/="])
    table.append(rows)
    expected = sorted((i, value or None) for i, value in enumerate(ODD_VALUES))
    assert sorted((r[0], r[1]) for r in table.to_df(spark).collect()) == expected
    again = mica.Table.open(tmp_path / "t ü")
    assert sorted(map(tuple, again.scan(where="id >= 0").to_df(spark).collect())) == expected
    found = again.scan(where="`p q/=` = '50% {off}'")
    assert found.to_arrow().column("id").to_pylist() == [5]
    assert found.explain().to_dict()["files"]["kept"] == 1


@pytest.mark.slow
def test_rows_of_many_partitions_that_come_mixed_are_a_file_of_each(spark: SparkSession, tmp_path: Path) -> None:
    """More partitions than may be open at once, and more bytes than wait for one that is."""
    rows = spark.range(0, 40_000, 1, 4).selectExpr("id", "id % 100 AS p", "repeat('x', 3000) AS s")
    table = mica.Table.create(tmp_path / "t", "id BIGINT, p BIGINT, s STRING", partition_by=["p"])
    assert table.append(rows).files == 100
    assert table.scan(where="p = 7").count() == 400


def test_an_empty_partition_value_is_null_in_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    """As another writer leaves it; and a time in any form is the same time (PROTOCOL.md, "Partition Value
    Serialization").
    """
    ddl = "id BIGINT, s STRING, i INT, d DATE, t TIMESTAMP, b BOOLEAN"
    names = ["s", "i", "d", "t", "b"]
    table = mica.Table.create(tmp_path / "t", ddl, partition_by=names)
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    table.append(pa.table({"id": pa.array([2], pa.int64())}))
    forms = [
        dict.fromkeys(names, ""),
        dict(zip(names, ["x", "7", "2024-2-3", "2024-01-01T08:09:10.001Z", "TRUE"], strict=True)),
    ]
    for version, values in enumerate(forms, 1):
        path = tmp_path / "t" / "_delta_log" / f"{version:020}.json"
        lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        for line in lines:
            if "add" in line:
                line["add"]["partitionValues"] = values
        path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    table = mica.Table.open(tmp_path / "t")
    expected = table.scan().to_arrow().to_pylist()
    assert {None} == {value for row in expected if row["id"] == 1 for name, value in row.items() if name != "id"}
    for frame in (table.to_df(spark), table.scan(where="id > 0").to_df(spark)):
        assert frame.orderBy("id").toArrow().to_pylist() == sorted(expected, key=lambda row: row["id"])


def test_variants_nested_in_structs_arrays_and_maps_come_back(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(50).selectExpr(
        "id",
        "named_struct('v', parse_json(concat('{\"a\":', id, '}')), 'n', id) AS s",
        "array(parse_json('1'), CAST(NULL AS VARIANT), parse_json(CAST(id AS STRING))) AS a",
        "map('k', parse_json(concat('[', id, ']'))) AS m",
    )
    table = mica.Table.create(
        tmp_path / "t", "id BIGINT, s STRUCT<v: VARIANT, n: BIGINT>, a ARRAY<VARIANT>, m MAP<STRING, VARIANT>"
    )
    table.append(frame)
    shown = ["id", "to_json(s)", "to_json(a)", "to_json(m)"]
    expected = sorted(map(tuple, frame.selectExpr(*shown).collect()))
    assert sorted(map(tuple, table.to_df(spark).selectExpr(*shown).collect())) == expected
    assert sorted(map(tuple, table.scan(where="id >= 0").to_df(spark).selectExpr(*shown).collect())) == expected
    assert table.scan(where="s.v:a::int = 7", columns=["id"]).to_arrow().column("id").to_pylist() == [7]
    row = table.scan(where="id = 7").to_pandas().iloc[0]
    assert (row["s"], row["a"], row["m"]) == ({"v": {"a": 7}, "n": 7}, [1, None, 7], [("k", [7])])


def test_a_limit_ends_the_work(spark: SparkSession, tmp_path: Path, events: DataFrame) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, kind STRING, v VARIANT")
    table.append(events)
    assert table.scan(limit=7).to_df(spark).count() == 7
    assert table.scan(limit=7).to_arrow().num_rows == 7
    assert table.scan(limit=0).to_arrow().num_rows == 0


def test_a_large_table_is_not_broadcast_in_a_join(spark: SparkSession, tmp_path: Path, events: DataFrame) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, kind STRING, v VARIANT")
    table.append(events)
    frame = table.scan(where="id > 5").to_df(spark)
    size = frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    assert size >= sum(table.files().column("size").to_pylist())


def test_rows_that_do_not_fit_are_refused_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, v VARIANT")
    for rows, code in (
        (spark.range(1).selectExpr("id", "id AS v"), "INCOMPATIBLE_TYPE"),
        (spark.range(1).selectExpr("id", "id AS other"), "UNKNOWN_COLUMN"),
    ):
        with pytest.raises(UserError) as raised:
            table.append(rows)
        assert raised.value.code == code
    assert [p.name for p in (tmp_path / "t").iterdir()] == ["_delta_log"]


def test_texts_and_structs_of_a_frame_become_variants(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, v VARIANT")
    table.append(spark.range(1).selectExpr("id", """'{"a":[1]}' AS v"""))
    table.append(spark.range(1, 2).selectExpr("id", "named_struct('a', array(id, NULL)) AS v"))
    rows = table.to_df(spark).selectExpr("id", "to_json(v)").orderBy("id").collect()
    assert list(map(tuple, rows)) == [(0, '{"a":[1]}'), (1, '{"a":[1,null]}')]
    with pytest.raises(mica.MicaError) as raised:
        table.append(spark.range(1).selectExpr("id", "'{' AS v"))
    assert raised.value.code == "INVALID_JSON"
    assert (table.refresh().version, len(list((tmp_path / "t").glob("*.parquet")))) == (2, 2)


def test_an_empty_table_and_an_empty_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, v VARIANT")
    assert table.to_df(spark).count() == 0
    assert table.to_df(spark).schema.simpleString() == "struct<id:bigint,v:variant>"
    commit = table.append(spark.range(0).selectExpr("id", "parse_json('1') AS v"))
    assert (commit.files, commit.rows) == (0, 0)
    assert table.scan().to_arrow().num_rows == 0


def test_overwriting_partitions_replaces_them_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, p INT", partition_by=["p"])
    table.append(spark.range(10).selectExpr("id", "CAST(id % 2 AS INT) AS p"))
    table.overwrite(pa.table({"id": pa.array([100], pa.int64()), "p": pa.array([1], pa.int32())}), where="p = 1")
    assert sorted(map(tuple, table.to_df(spark).collect())) == [(0, 0), (2, 0), (4, 0), (6, 0), (8, 0), (100, 1)]
    with pytest.raises(UserError) as raised:
        table.overwrite(spark.range(1).selectExpr("id", "0 AS p"), where="p = 1")
    assert raised.value.code == "ROWS_OUTSIDE_OVERWRITE"
    assert table.version == 2
    assert mica.Table.open(tmp_path / "t", version=1).scan().count() == 10


def test_rows_that_the_driver_has_are_written_without_a_job_of_workers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = """n INT, s STRING, d DECIMAL(3,2), b BINARY, day DATE, t TIMESTAMP, local TIMESTAMP_NTZ, yes BOOLEAN,
        x DOUBLE, v VARIANT, w VARIANT, m MAP<STRING, INT>, l ARRAY<BINARY>, o STRUCT<x: TIMESTAMP, y: STRING>,
        u STRING"""
    given = spark.sql("""
        SELECT *, map(coalesce(s, ''), n) AS m, array(b, NULL) AS l, named_struct('x', t, 'y', s) AS o, upper(s) AS u,
            parse_json(v) AS w
        FROM VALUES
        (1, 'a', 1.50BD, X'00FF', DATE'0001-01-01', TIMESTAMP'2024-07-01 12:00:00.000001',
            TIMESTAMP_NTZ'1900-01-01 00:00:00', TRUE, DOUBLE('NaN'), '{"a":1,"b":[{"c":"x"}]}'),
        (2, NULL, -0.01BD, X'', NULL, NULL, NULL, NULL, -0.0D, NULL),
        (NULL, 'ß', NULL, NULL, DATE'9999-12-31', TIMESTAMP'1500-01-01 00:00:00',
            TIMESTAMP_NTZ'2024-02-29 23:59:59.999999', FALSE, 1e300D, '[1,"2",null]')
        AS t(n, s, d, b, day, t, local, yes, x, v)""")
    one = spark.sql("SELECT 3 AS n, TRUE AS yes, parse_json('[1]') AS w")
    files, rows = [], []
    for table in _written_by_both(tmp_path, monkeypatch, columns, [given, one], partition_by=["yes"]):
        rows.append(table.to_df(spark).selectExpr("* EXCEPT (v, w)", "to_json(v)", "to_json(w)").orderBy("n").toArrow())
        files.append(sorted(table.files().select(["partition_values", "stats"]).to_pylist(), key=str))
    assert rows[0].num_rows == 4
    assert str(rows[0].to_pylist()) == str(rows[1].to_pylist())  # NaN is NaN
    assert files[0] == files[1]


@pytest.mark.slow
def test_rows_of_which_a_plan_says_that_they_are_few_are_written_without_workers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.udf.register("one_more", lambda n: n + 1, "BIGINT")
    many = spark.range(0, 1_000_000, 1, 4)
    text = "parse_json(if(n % 3 = 0, NULL, concat('{\"a\":', n, '}')))"
    frames = [
        frame.selectExpr("n", f"{text} AS v", f"{text} AS w")
        for frame in (
            spark.range(0, 9, 1, 3).selectExpr("one_more(id) AS n"),
            many.filter("id > 999990").sort("id").limit(5).selectExpr("id AS n"),
            many.selectExpr("sum(id) AS n").union(spark.range(4).selectExpr("-id AS n")),
            spark.range(0).selectExpr("id AS n"),
        )
    ]
    columns = "n BIGINT, v VARIANT, w VARIANT"
    tables = _written_by_both(tmp_path, monkeypatch, columns, frames)
    every = [table.to_df(spark).selectExpr("n", "to_json(v)", "to_json(w)").orderBy("n").toArrow() for table in tables]
    assert every[0].num_rows == 19
    assert every[0] == every[1]
    with pytest.raises(mica.MicaError, match="its reason"):
        tables[1].append(spark.range(1).selectExpr("raise_error('its reason') AS n"))


def _written_by_both(
    path: Path, monkeypatch: pytest.MonkeyPatch, schema: str, frames: list[DataFrame], **options: Any
) -> list[mica.Table]:
    """Two tables of the same rows: by workers, and by the driver without them."""
    jobs, driver = (mica.Table.create(path / name, schema, **options) for name in ("jobs", "driver"))
    for frame in frames:
        jobs.append(frame.repartition(1))
    with monkeypatch.context() as patched:
        patched.delattr("mica.engines.spark.jobs.over_rows")
        for frame in frames:
            driver.append(frame)
    return [jobs, driver]


def _rows_of_driver(
    path: Path, monkeypatch: pytest.MonkeyPatch, schema: str, frames: list[DataFrame], others: list[DataFrame]
) -> list[dict[str, Any]]:
    """The rows of `frames`, which workers write too, and the driver without them; `others` workers alone write."""
    tables = _written_by_both(path, monkeypatch, schema, frames)
    with monkeypatch.context() as patched:
        patched.delattr("mica.engines.spark.jobs.over_rows")
        for frame in others:
            with pytest.raises(AttributeError, match="over_rows"):
                tables[1].append(frame)
    every = [sorted(table.scan().to_arrow().to_pylist(), key=str) for table in tables]
    assert every[0] == every[1]
    return every[0]


@pytest.mark.slow
def test_a_list_of_rows_is_written_without_workers_and_what_a_function_makes_of_it_by_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(n, f"x{n}" if n % 3 else None, {"a": n}, [b"y"]) for n in range(1500)]
    schema = "n BIGINT, s STRING, m MAP<STRING, INT>, l ARRAY<BINARY>"
    parallel = spark.sparkContext.parallelize
    lists = [
        spark.createDataFrame(rows, schema),
        spark.createDataFrame([Row(n=-1, s="Row")]),
        spark.createDataFrame([], schema),
        spark.createDataFrame(rows[:9], schema).alias("given").filter("n > 5").selectExpr("n", "upper(s) AS s"),
        spark.createDataFrame(rows[:2], schema).selectExpr("n + length(repeat(s, 9)) AS n", "'text' AS s"),
    ]
    others = [
        parallel([0, 9]).flatMap(lambda n: [(n, str(i)) for i in range(5)]).toDF("n BIGINT, s STRING"),
        parallel(rows, 3).map(lambda row: row).toDF(schema),
        parallel(range(7)).map(lambda n: (n,)).toDF("n BIGINT"),
        spark.createDataFrame(rows[:9], schema).selectExpr("n", "explode(array(s, 'b')) AS s"),
        spark.createDataFrame(rows[:9], schema).selectExpr("n", "repeat(s, 9) AS s").selectExpr("n", "s"),
        spark.createDataFrame([(n,) for n in range(100_001)], "n BIGINT"),
    ]
    assert len(_rows_of_driver(tmp_path, monkeypatch, schema, lists, others)) == 1506


def test_rows_of_frames_without_columns_are_null_in_every_column(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "s STRING DEFAULT 'x', n INT")
    for frame in (spark.createDataFrame([Row(), Row()], "struct<>"), spark.range(3).select()):
        table.append(frame)
    assert table.scan().to_arrow().to_pylist() == [{"s": "x", "n": None}] * 5
    table.overwrite(spark.range(2).select())
    assert table.scan().count() == 2
    numbered = mica.Table.create(tmp_path / "numbered", "id BIGINT GENERATED ALWAYS AS IDENTITY")
    numbered.append(spark.range(2).select())
    assert numbered.to_arrow().column("id").to_pylist() == [1, 2]


@pytest.mark.slow
def test_few_rows_that_the_driver_may_not_have_are_written_by_workers(tmp_path: Path) -> None:
    program = f"""
        import mica
        table = mica.Table.create({str(tmp_path / "t")!r}, "n BIGINT, s STRING")
        with mica.session("local[2]", **{{"spark.driver.maxResultSize": "1m"}}) as spark:
            large = "concat_ws('', transform(sequence(1, 1000), x -> uuid()))"
            print(table.append(spark.range(100).selectExpr("id AS n", large + " AS s")).rows)"""
    done = subprocess.run([sys.executable, "-c", dedent(program)], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["100"]


def test_a_cancelled_write_of_few_rows_is_not_begun_again_by_workers(spark: SparkSession, tmp_path: Path) -> None:
    """The workers' job followed the cancelled one, and wrote the rows."""
    from pyspark.sql.functions import udf

    table = mica.Table.create(tmp_path / "t", "n BIGINT")
    ended = threading.Event()

    def cancel() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not tracker.getActiveJobsIds() and not ended.wait(0.05):
            pass
        spark.sparkContext.cancelAllJobs()

    slow = udf(lambda n: time.sleep(3) or n, "bigint")
    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(MicaError) as caught:
        table.append(spark.range(2).select(slow("id").alias("n")).limit(5))
    ended.set()
    canceller.join()
    assert (caught.value.code, table.refresh().version) == ("SPARK_JOB_FAILED", 0)
    assert "was cancelled" in caught.value.message


@pytest.mark.slow
def test_few_rows_come_in_as_many_files_as_their_plan_wants(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "n BIGINT")
    table.append(spark.range(90).selectExpr("id AS n").repartition(3))
    assert table.files().num_rows == 3


def test_rows_that_are_not_few_or_have_collations_are_written_by_workers(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "n BIGINT, s STRING COLLATE UTF8_LCASE, v VARIANT")
    rows = spark.createDataFrame(pa.table({"n": [1, 2], "s": ["b", "A"]}))
    given = [
        rows,  # Spark compares the strings
        rows.union(rows),
        spark.sql("SELECT n, s, parse_json(v) AS v FROM VALUES (1L, 'c', '1'), (2L, 'd', NULL) AS t(n, s, v)"),
    ]
    for frame in given:
        table.append(frame)
    assert sorted(table.to_df(spark).toPandas()["n"]) == [1, 1, 1, 1, 2, 2, 2, 2]
    table.append(spark.range(0, 1001, 1, 2).selectExpr("id AS n").union(spark.range(1).selectExpr("id AS n")))
    assert table.files().num_rows >= 5, "of two tasks"


def test_rows_made_of_what_is_small_are_written_without_workers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = "n BIGINT, s STRING"
    lines = spark.range(2000).selectExpr("id AS n", "concat('x', id) AS s")
    for name in ("csv", "json", "parquet"):
        lines.write.format(name).save(str(tmp_path / name))
    spark.read.schema(schema).csv(str(tmp_path / "csv")).createOrReplaceTempView("small_lines")
    small = [
        lines.filter("n % 2 = 0"),
        spark.table("small_lines").sort("n"),
        spark.read.schema(schema).json(str(tmp_path / "json")).alias("a").select("n", "s"),
    ]
    others = [
        spark.read.parquet(str(tmp_path / "parquet")),  # of any number of rows
        spark.range(200_000).selectExpr("id AS n", "'' AS s"),
        lines.selectExpr("n", "repeat(s, 9) AS s"),
        lines.selectExpr("n", "explode(array(s, 'b')) AS s"),
        lines.repartition(2),
    ]
    assert len(_rows_of_driver(tmp_path, monkeypatch, schema, small, others)) == 5000
