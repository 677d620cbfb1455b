"""Actions of an enabled session's DataFrames: they read what they need, and give Spark's rows."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as sql
from pyspark.sql.classic.dataframe import DataFrame as Classic

import mica
from mica.engines.spark import marks, text_marks
from mica.engines.spark.errors import may_be_of_row
from mica.errors import UserError
from mica.query import frames, here
from mica.scan import little
from mica.table import marked
from tests.oracle import conf
from tests.support import dealt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Make = Callable[["DataFrame"], "DataFrame"]
DOCUMENTS = [
    {"k": "abc"[i % 3], "n": i if i % 7 else f"n{i}", "o": {"x": i % 4}, "l": list(range(i % 3)), "r": i}
    for i in range(40)
]
for one in DOCUMENTS[:20]:
    del one["r"]
ROWS = [
    {"id": i, "p": "even" if i % 2 == 0 else None, "v": json.dumps(one) if i % 11 else None}
    for i, one in enumerate(DOCUMENTS)
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    """Four files of ten rows, by `id`, which is in no file twice."""
    made = mica.Table.create(tmp_path_factory.mktemp("frames") / "t", "id INT NOT NULL, p STRING, v VARIANT")
    for first in range(0, 40, 10):
        made.append(ROWS[first : first + 10])
    return made


@pytest.fixture
def frame(spark: SparkSession, table: mica.Table) -> Iterator[DataFrame]:
    """The table in an enabled session."""
    mica.register("framed", table.path)
    mica.enable(spark)
    yield spark.table("framed")
    mica.disable(spark)


@pytest.fixture(scope="module")
def plain(spark: SparkSession) -> DataFrame:
    """The same rows, which mica never saw."""
    rows = [(one["id"], one["p"], one["v"]) for one in ROWS]
    whole = spark.createDataFrame(rows, "id INT NOT NULL, p STRING, t STRING").coalesce(1)
    return whole.selectExpr("id", "p", "parse_json(t) AS v").alias("framed")


def _text(frame: DataFrame) -> list[str]:
    return sorted(
        str([value.toJson() if hasattr(value, "toJson") else value for value in row]) for row in frame.collect()
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", [
    lambda f: f,
    lambda f: f.select("framed.id", sql.expr("v:k::string AS k")),
    lambda f: f.where("id > 25 AND v:k::string = 'a'").select(sql.expr("v:o.x::int"), "v"),
    lambda f: f.where("try_variant_get(v, '$.n', 'int') BETWEEN 5 AND 30").groupBy("p").agg(sql.max("id")),
    lambda f: f.groupBy(sql.expr("v:k::string")).agg(sql.expr("count(DISTINCT v:o.x::int)"), sql.expr("max(v:r::int)")),
    lambda f: f.alias("a").join(f.alias("b"), sql.expr("a.id = b.id + 1 AND b.v:k::string = 'b'"), "left"),
    lambda f: f.where("id < 5").union(f.where("v:k::string = 'c'")),
    lambda f: f.orderBy(sql.expr("v:r::int").desc_nulls_last(), "id").limit(3).select("id"),
    lambda f: f.select("p").distinct(),
    lambda f: f.withColumn("first", sql.expr("row_number() OVER (PARTITION BY p ORDER BY id)")).where("first = 1"),
    lambda f: f.select("id", sql.explode(sql.expr("CAST(v:l AS ARRAY<INT>)"))),
    lambda f: f.select("id", sql.udf(lambda n: None if n is None else n + 1, "int")(sql.expr("v:r::int"))),
    lambda f: f.where("v IS NULL"),
    lambda f: f.drop("v").mapInArrow(lambda them: them, "id INT, p STRING").where("p IS NULL"),
])  # fmt: skip
def test_a_narrowed_plan_has_the_rows_of_spark(frame: DataFrame, plain: DataFrame, make: Make) -> None:
    assert frames.narrowed(make(frame)) is not None
    assert _text(make(frame)) == _text(make(plain))


@pytest.fixture
def by_tasks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are not read before a DataFrame is made of them."""
    monkeypatch.setattr(here, "rows", lambda *_: None)
    monkeypatch.setattr(here, "groups", lambda *_: None)


TEXTS: list[tuple[str, Make]] = [
    ("SELECT * FROM framed", lambda f: f.where("v:k::string = 'b' AND id > 25").groupBy("p").count()),
    ("SELECT * FROM framed", lambda f: f.where("framed.id > 25").selectExpr("framed.id", "v:o.x::int AS x")),
    ("SELECT id + 1 AS id, v AS w FROM framed WHERE p IS NULL", lambda f: f.where("w:k::string = 'b'").select("id")),
    ("WITH w AS (SELECT * FROM framed WHERE id > 5) SELECT a.id, b.v FROM w a JOIN w b ON a.id = b.id + 1",
     lambda f: f.groupBy(sql.expr("v:k::string")).agg(sql.max("id"))),
    ("SELECT * FROM framed WHERE id > 20", lambda f: f.where("id < 25").union(f.where("v:k::string = 'c'"))),
    ("SELECT id, v FROM framed WHERE id > 20",
     lambda f: f.alias("a").join(f.alias("b"), sql.expr("a.id = b.id + 1")).select("a.id", sql.expr("b.v:k::string"))),
    ("SELECT * FROM framed WHERE id IN (SELECT max(id) FROM framed GROUP BY v:k::string)", lambda f: f.select("id")),
    ("SELECT * FROM framed ORDER BY id LIMIT 9", lambda f: f.groupBy(sql.expr("v:k::string")).count()),
    ("SELECT * FROM framed a WHERE EXISTS (SELECT 1 FROM framed b WHERE b.id = a.id + 1)", lambda f: f.where("id > 9")),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("by_tasks_alone")
@pytest.mark.parametrize(("text", "make"), dealt(TEXTS, 0))
def test_what_is_made_of_a_text_is_narrowed_by_both(
    spark: SparkSession, frame: DataFrame, plain: DataFrame, text: str, make: Make
) -> None:
    plain.createOrReplaceTempView("plainly")
    expected = make(spark.sql(text.replace("FROM framed", "FROM plainly AS framed")
                              .replace("AS framed a", "a").replace("AS framed b", "b")))  # fmt: skip
    made = make(spark.sql(text))
    assert frames.narrowed(made) is not None
    assert _text(made) == _text(expected)
    assert made.count() == expected.count()
    spark.sql(text).createOrReplaceTempView("texted")
    assert frames.narrowed(make(spark.table("texted").alias("framed"))) is not None
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW texted AS {text}")
    assert _text(make(spark.table("texted").alias("framed"))) == _text(expected)


@pytest.mark.slow
@pytest.mark.usefixtures("by_tasks_alone")
def test_a_text_is_read_as_its_own_scans_where_rows_depend_on_how_they_are_spread(
    spark: SparkSession, frame: DataFrame
) -> None:
    made = spark.sql("SELECT * FROM framed WHERE id > 30")
    for derived in (made.limit(5), made.sample(0.5, seed=1), made.select(sql.rand(1)), made.agg(sql.first("id"))):
        assert frames.narrowed(derived) is None
        assert derived.count() == derived.count()
    for text in ("SELECT rand(1) AS id FROM framed", "SELECT id, current_timestamp() AS t FROM framed"):
        assert frames.narrowed(spark.sql(text).where("id > 0")) is None


@pytest.mark.usefixtures("by_tasks_alone")
def test_a_text_over_a_view_of_a_text_keeps_what_that_said(spark: SparkSession, frame: DataFrame) -> None:
    spark.sql("SELECT * FROM framed WHERE id > 30").createOrReplaceTempView("texted")
    over = spark.sql("SELECT t.id, f.v FROM texted t JOIN framed f ON t.id = f.id + 1")
    spark.sql("SELECT * FROM framed WHERE id > 35").createOrReplaceTempView("texted")
    found = over.where("v:k::string = 'c'")
    assert frames.narrowed(found) is not None
    assert sorted(row.id for row in found.collect()) == [33, 36, 39]


def test_what_is_made_of_a_text_may_ask_for_columns_that_it_leaves_out(spark: SparkSession, frame: DataFrame) -> None:
    made = spark.sql("SELECT v:k::string AS k FROM framed WHERE id > 35")
    assert frames.narrowed(made.where("framed.id < 38")) is not None
    assert [row.k for row in made.where("framed.id < 38").orderBy("k").collect()] == ["a", "b"]
    assert [row.k for row in made.orderBy(sql.desc("id")).collect()] == ["a", "c", "b", "a"]
    joined = spark.sql("SELECT * FROM framed a LEFT JOIN framed b USING (id) WHERE id = 7")
    assert joined.select("b.id").collect() == [(7,)]
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN") as failed:
        made.where("nowhere = 1")
    assert "`k`" in str(failed.value)  # what it may have meant, of the text's columns
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        spark.sql("SELECT DISTINCT p FROM framed").where("id = 1")  # nor does Spark find it there


@pytest.mark.slow
@pytest.mark.usefixtures("by_tasks_alone")
def test_a_text_has_its_version_and_may_be_forgotten(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT, v VARIANT")
    made.append([{"id": 1}])
    mica.register("moving", made.path)
    mica.enable(spark)
    try:
        before = spark.sql("SELECT * FROM moving")
        unread = spark.sql("SELECT * FROM moving").where("id >= 1")
        spark.sql("INSERT INTO moving VALUES (2, NULL)")
        assert (before.count(), unread.count(), spark.sql("SELECT * FROM moving").count()) == (1, 1, 2)
        versions = "UNION ALL ".join(f"SELECT * FROM moving VERSION AS OF {number} " for number in (1, 2, 1, 2, 0))
        assert spark.sql(versions).where("id > 0").count() == 6
        monkeypatch.setattr(text_marks, "_KEPT", 1)
        other = spark.sql("SELECT id FROM moving")
        assert (other.where("id > 1").count(), unread.count()) == (1, 1)
        assert frames.narrowed(unread) is None
        monkeypatch.setattr(marked, "_VERSIONS", 2)
        monkeypatch.setattr(marked, "_KNOWN", {})
        assert frames.narrowed(spark.sql(versions).where("id > 0")) is None
        assert spark.sql(versions).where("id > 0").count() == 6
    finally:
        mica.disable(spark)


ACTIONS: list[Callable[[DataFrame], Any]] = [
    lambda f: f.count() == 1,
    lambda f: [row["id"] for row in f.collect()] == [34],
    lambda f: [row["id"] for row in f.toLocalIterator()] == [34],
    lambda f: [row["id"] for row in f.take(5)] == [34],
    lambda f: [row["id"] for row in f.tail(num=5)] == [34],
    lambda f: f.first()["id"] == f.head()["id"] == f.head(n=2)[0]["id"] == 34,
    lambda f: not f.isEmpty(),
    lambda f: f.toPandas()["id"].tolist() == [34],
    lambda f: f.toArrow().column("id").to_pylist() == [34],
    lambda f: f.show() is f.show(n=5, truncate=False) is None,
    lambda f: f.rdd is f.rdd and [row.id for row in f.rdd.collect()] == [34],
    lambda f: [json.loads(row)["id"] for row in f.toJSON().collect()] == [34],
    lambda f: f.foreach(print) is f.foreachPartition(list) is None,
]


@pytest.mark.slow
def test_every_action_reads_the_file_of_its_rows_alone(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT, v VARIANT")
    for first in (0, 20):
        made.append([{key: row[key] for key in ("id", "v")} for row in ROWS[first : first + 20]])
    mica.register("halved", made.path)
    mica.enable(spark)
    try:
        found = spark.table("halved").where("id = 34 AND v:r::int = 34")
        for add in [row for row in made.files().to_pylist() if json.loads(row["stats"])["minValues"]["id"] == 0]:
            (tmp_path / "t" / add["path"]).unlink()
        by_text = spark.sql("SELECT * FROM halved").where("id = 34 AND v:r::int = 34")
        for number, action in enumerate(ACTIONS):
            assert action(found), number
            assert action(by_text), number
            assert action(spark.sql("SELECT * FROM halved WHERE id = 34 AND v:r::int = 34")), number
        found.write.parquet(str(tmp_path / "copy"))
        assert mica.explain(found).scans[0].kept.num_rows == 1
    finally:
        mica.disable(spark)
    assert pq.read_table(tmp_path / "copy").column("id").to_pylist() == [34]
    assert "|34|" in capsys.readouterr().out.replace(" ", "")


@pytest.mark.parametrize("make", [
    lambda f: f.limit(5).select("id"),
    lambda f: f.sortWithinPartitions("id").limit(5),
    lambda f: f.sample(0.5, seed=1),
    lambda f: f.withColumn("r", sql.rand(1)),
    lambda f: f.withColumn("r", sql.monotonically_increasing_id()),
    lambda f: f.dropDuplicates(["p"]),
    lambda f: f.agg(sql.first("id")),
    lambda f: f.selectExpr("id", "input_file_block_start()"),
    lambda f: f.observe(Observation(), sql.count("*")),
    lambda f: f.drop("v").pandas_api().to_spark("index"),
])  # fmt: skip
def test_what_depends_on_how_rows_are_spread_is_left_to_spark(frame: DataFrame, make: Make) -> None:
    assert frames.narrowed(make(frame)) is None
    with pytest.raises(UserError, match="Spark reads the DataFrame"):
        mica.explain(make(frame))


def test_what_is_cached_is_not_read_again(frame: DataFrame) -> None:
    cached = frame.where("id > 30").cache()
    try:
        assert frames.narrowed(cached) is None
        assert frames.narrowed(frame.where("id > 30").groupBy("p").count()) is None
        assert frames.narrowed(frame.where("id > 31")) is not None
    finally:
        cached.unpersist()


def test_an_action_does_not_keep_what_was_cached(frame: DataFrame) -> None:
    found = frame.where("id > 30")
    assert not found.isEmpty()
    found.cache()
    try:
        assert frames.narrowed(found) is None
        assert found.count() == 9
    finally:
        found.unpersist()
    assert frames.narrowed(found) is not None


def test_the_columns_are_nullable_as_those_of_the_dataframe(frame: DataFrame) -> None:
    found = frame.where("id > 30").select(sql.isnull("v").alias("n"), sql.coalesce("p", sql.lit("x")).alias("c"), "p")
    rows = frames.narrowed(found)
    assert rows is not None
    assert rows.schema == found.schema
    assert [field.nullable for field in found.toArrow().schema] == [False, False, True]


def test_a_field_keeps_its_comment_when_it_is_written(spark: SparkSession, tmp_path: Path) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT, s STRUCT<a: INT COMMENT 'of a', b: INT>")
    made.append([{"id": 1, "s": {"a": 2, "b": 3}}])
    mica.enable(spark)
    try:
        found = made.to_df(spark).where("id = 1").select("s.a", sql.expr("s.b").alias("c"))
        rows = frames.narrowed(found)
    finally:
        mica.disable(spark)
    assert rows is not None
    written = json.loads(rows._jdf.queryExecution().analyzed().schema().json())["fields"]
    assert [field["metadata"] for field in written] == [{"comment": "of a"}, {}]


def test_times_are_those_of_the_zone_when_the_dataframe_was_made(spark: SparkSession, frame: DataFrame) -> None:
    found = frame.select(sql.expr("hour(timestamp_seconds(id))"))
    assert frames.narrowed(found) is not None
    with conf(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        assert frames.narrowed(found) is None
        assert found.first()[0] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("compiled", "by_tasks")
def test_a_row_that_spark_does_not_come_to_fails_no_take(frame: DataFrame) -> None:
    found = frame.where("v:n::int >= 0")
    assert frames.narrowed(found, lambda frame: frame.limit(1)) is not None
    assert (found.head() is None, len(found.take(1)), found.isEmpty()) == (False, 1, False)
    with pytest.raises(Exception, match="INVALID"):
        found.collect()


def test_nor_does_one_of_few_rows_that_are_here(frame: DataFrame) -> None:
    found = frame.select("id").where("p = 'even' AND 10 / (id - 38) < 3")
    assert frames.narrowed(found, lambda frame: frame.limit(1)) is not None
    assert (found.head() is None, len(found.take(1)), found.isEmpty()) == (False, 1, False)
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        found.collect()


def test_a_job_that_was_cancelled_is_not_run_again() -> None:
    assert may_be_of_row(PySparkException("[DIVIDE_BY_ZERO] Division by zero."))
    assert not may_be_of_row(
        PySparkException("x: org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 1 cancelled")
    )
    assert not may_be_of_row(ValueError("[DIVIDE_BY_ZERO]"))


def test_what_an_action_does_not_take_spark_refuses(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TypeError, match=r"count\(\)"):
        frame.count(1)  # type: ignore[call-arg]
    frame.show(-1)
    assert "only showing top 0 rows" in capsys.readouterr().out


def test_an_action_looks_at_its_plan_once(frame: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's `first` is `head`, which takes, and that collects."""
    looked, own = list[Any](), frames.marked_plan
    monkeypatch.setattr(
        frames, "marked_plan", lambda of, *others, **more: looked.append(of) or own(of, *others, **more)
    )
    assert frame.where("id = 5").first()["id"] == 5
    assert len(looked) == 1


def test_a_dataframe_keeps_its_version(spark: SparkSession, tmp_path: Path) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT")
    made.append([{"id": 1}])
    mica.register("moving", made)
    mica.enable(spark)
    try:
        before, by_reader = spark.table("moving"), spark.read.table("moving")
        spark.sql("INSERT INTO moving VALUES (2)")
        made.refresh()
        assert (before.count(), by_reader.count(), spark.table("moving").where("moving.id > 0").count()) == (1, 1, 2)
    finally:
        mica.disable(spark)


def test_a_table_of_few_rows_has_its_name_too(spark: SparkSession, tmp_path: Path) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT", properties={"delta.enableDeletionVectors": "true"})
    made.append([{"id": 1}, {"id": 2}])
    made.delete("id = 1")
    mica.register("little", made.path)
    mica.enable(spark)
    try:
        assert [row.id for row in spark.table("little").where("little.id > 0").collect()] == [2]
    finally:
        mica.disable(spark)


def test_few_rows_are_computed_no_earlier_than_those_of_files(spark: SparkSession, tmp_path: Path) -> None:
    """Of a bare local relation Catalyst takes each projection at once, below a filter that comes later."""
    made = mica.Table.create(tmp_path / "t", "id INT, s STRING", properties={"delta.enableDeletionVectors": "true"})
    made.append([{"id": 1, "s": "7"}, {"id": 2, "s": "x"}, {"id": 3, "s": "8"}])
    made.delete("id = 3")
    cast = made.to_df(spark).withColumn("n", sql.expr("CAST(s AS INT)"))
    assert [row.n for row in cast.where("id = 1").collect()] == [7]
    assert cast.count() == 2
    assert cast.select("id").where("id > 0")._jdf.queryExecution().optimizedPlan().nodeName() == "LocalRelation"
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        cast.collect()


def test_few_rows_beside_a_table_leave_it_narrowed(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    made = mica.Table.create(tmp_path / "t", "k INT", properties={"delta.enableDeletionVectors": "true"})
    made.append([{"k": 34}, {"k": 35}])
    made.delete("k = 35")
    joined = frame.join(made.to_df(spark), sql.expr("id = k")).select("id")
    assert frames.narrowed(joined) is not None
    assert [row.id for row in joined.collect()] == [34]


def test_a_version_that_is_opened_again_has_its_mark(frame: DataFrame, table: mica.Table) -> None:
    found = frame.where("id > 30")
    for _ in range(6):
        mica.Table.open(table.path).to_df(frame.sparkSession)
    assert frames.narrowed(found) is not None


def test_a_table_that_is_asked_for_is_known_longer_than_others(spark: SparkSession, tmp_path: Path) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT")
    made.append([{"id": 0}])
    mica.enable(spark)
    try:
        found, idle = made.to_df(spark), mica.Table.open(made.path, version=0).to_df(spark)
        for number in range(1, 6):
            made.append([{"id": number}])
            made.to_df(spark)
            assert frames.narrowed(found) is not None
        assert frames.narrowed(idle) is None
    finally:
        mica.disable(spark)


def test_many_rows_of_small_files_are_narrowed_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT", properties={"delta.enableDeletionVectors": "true"})
    made.append([{"id": 1}, {"id": 2}, {"id": 3}])
    made.delete("id = 1")
    mica.enable(spark)
    try:
        few = made.to_df(spark).where("id > 2")
        assert frames.narrowed(few) is None, "they are in the driver"
        monkeypatch.setattr(little, "FEW_ROWS", 0)
        for many in (made.to_df(spark).where("id > 2"), made.to_df(spark)):
            assert frames.narrowed(many, lambda frame: frame.groupBy().count()) is not None
        assert (many.where("id > 2").count(), few.count(), many.count()) == (1, 1, 2)
    finally:
        mica.disable(spark)


def test_two_processes_of_one_jvm_have_other_marks() -> None:
    assert runpy.run_path(marks.__file__)["MARK"] != marks.MARK


def test_nothing_stays_when_the_session_is_disabled(spark: SparkSession) -> None:
    before = Classic.collect, Classic.write
    mica.enable(spark)
    assert Classic.collect is not before[0]
    mica.disable(spark)
    assert (Classic.collect, Classic.write) == before


def test_functions_of_python_get_collated_strings_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT, s STRING COLLATE UTF8_LCASE")
    made.append([{"id": 1, "s": "A"}])
    mica.enable(spark)
    try:
        frame = made.to_df(spark).where("s = 'a'")
        assert frames.narrowed(frame) is not None
        assert frames.narrowed(frame.select(sql.udf(str.lower)("s"))) is None
        assert [row[0] for row in frame.select(sql.pandas_udf(lambda s: s.str.lower(), "string")("s")).collect()] == [
            "a"
        ]
    finally:
        mica.disable(spark)


@pytest.mark.usefixtures("by_tasks")
def test_what_reads_a_collated_table_by_python_is_none_of_these(spark: SparkSession, tmp_path: Path) -> None:
    made = mica.Table.create(
        tmp_path / "t", "id INT, s STRING COLLATE UTF8_LCASE", properties={"delta.enableDeletionVectors": "true"}
    )
    made.append([{"id": 1, "s": "A"}, {"id": 2, "s": "a"}])
    made.delete("id = 2")
    mica.enable(spark)
    try:
        frame = made.to_df(spark).where("s = 'a'")
        assert frames.narrowed(frame) is not None
        assert frames.narrowed(frame.select(sql.udf(str.lower)("s"))) is None
        assert [row.id for row in frame.collect()] == [1]
    finally:
        mica.disable(spark)
