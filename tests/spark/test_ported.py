"""What programs for delta-spark do in an enabled session: rows, versions and errors are as there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import col, expr, length, lit, when

import mica
from mica.errors import UserError
from tests.oracle import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NESTED = (
    "id INT, st STRUCT<a: INT, b: STRING>, ar ARRAY<INT>, mp MAP<STRING, INT>, ars ARRAY<STRUCT<x: INT, y: STRING>>"
)
#: A row of texts, with the fields of structs in another order; `{}` is the id.
TEXTS = (
    "SELECT {} AS id, named_struct('b', 5, 'a', '7') AS st, array('3') AS ar, map(1, '4') AS mp, "
    "array(named_struct('y', 8, 'x', '9')) AS ars"
)
STORED = ((7, "5"), [3], {"1": 4}, [(9, "8")])


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """An enabled session."""
    mica.enable(spark)
    yield spark
    mica.disable(spark)


@pytest.fixture
def table(session: SparkSession, tmp_path: Path) -> mica.Table:
    """A table of numbers that is known as `ported`."""
    made = mica.Table.create(tmp_path / "t", "id BIGINT, v INT")
    made.append([{"id": i, "v": 2 * i} for i in range(4)])
    mica.register("ported", made.path)
    return made


def _of(table: mica.Table) -> list[tuple[int, int]]:
    return sorted(tuple(row.values()) for row in table.refresh().to_arrow().to_pylist())


def test_texts_inside_of_structs_arrays_and_maps_are_cast(session: SparkSession, tmp_path: Path) -> None:
    """They were refused in UPDATE, MERGE and INSERT."""
    table = mica.Table.create(tmp_path / "nested", NESTED)
    table.append([{"id": 1}, {"id": 2}])
    name = f"delta.`{table.path}`"
    session.sql(
        f"UPDATE {name} SET st = named_struct('b', 5, 'a', '7'), ar = array('3'), mp = map(1, '4'), "
        "ars = array(named_struct('y', 8, 'x', '9')) WHERE id = 1"
    )
    session.sql(
        f"MERGE INTO {name} t USING ({TEXTS.format(2)} UNION ALL {TEXTS.format(3)}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    session.sql(f"INSERT INTO {name} BY NAME " + TEXTS.format(4).replace("map(1", "map('1'"))
    rows = session.table(name).orderBy("id").collect()
    assert [(row.id, (tuple(row.st), row.ar, row.mp, [tuple(one) for one in row.ars])) for row in rows] == [
        (i, STORED) for i in (1, 2, 3, 4)
    ]
    with pytest.raises(mica.MicaError, match="INVALID_CAST"):
        session.sql(f"UPDATE {name} SET ar = array('x')")
    with pytest.raises(UserError, match="INCOMPATIBLE_TYPE"):  # places do not say which field it is
        session.sql(f"UPDATE {name} SET st = struct('8', 'y')")


@pytest.mark.slow
def test_writers_by_a_name_cast_as_insert(session: SparkSession, table: mica.Table) -> None:
    """Texts were refused; so were an error's words, behind those of a traceback."""
    rows = session.sql("SELECT '7' AS v, '9' AS id")
    rows.writeTo("ported").append()
    rows.write.mode("append").option("userMetadata", "kept").saveAsTable("ported")
    assert _of(table)[-2:] == [(9, 7), (9, 7)]
    assert table.history(1).column("user_metadata").to_pylist() == ["kept"]
    for wrong, said in (
        (session.sql("SELECT DATE'2024-01-01' AS v"), r"^\[INCOMPATIBLE_TYPE\] the column 'v' is INT"),
        (session.sql("SELECT 5000000000 AS v"), r"^\[INVALID_VALUE\] a value of the column 'v'"),
    ):
        with pytest.raises(Exception, match=said):
            wrong.writeTo("ported").append()
    with pytest.raises(Exception, match=r"^\[ROWS_OUTSIDE_OVERWRITE\] "):
        session.sql("SELECT 5L AS id, 6 AS v").writeTo("ported").overwrite(col("v") == 5)


@pytest.mark.parametrize("name", ["`odd-name`", "`odd name`", "`odd.name`", "default.`odd-name`"])
def test_a_name_that_no_table_can_have(session: SparkSession, name: str) -> None:
    """Spark failed with an error of Java's."""
    rows = session.range(1)
    for write in (rows.write.format("mica").saveAsTable, lambda name: rows.writeTo(name).using("mica").create()):
        with pytest.raises(UserError, match=r"INVALID_ARGUMENT\] the table must be an identifier"):
            write(name)


def test_the_detail_has_the_name(session: SparkSession, table: mica.Table) -> None:
    session.sql("CREATE TABLE ported_made (id INT) USING mica")
    try:
        names = [session.sql(f"DESCRIBE DETAIL {one}").head().name for one in ("ported_made", "default.ported_made")]  # type: ignore[union-attr]
        assert names == ["spark_catalog.default.ported_made"] * 2
    finally:
        session.sql("DROP TABLE ported_made")
    details = [session.sql(f"DESCRIBE DETAIL {one}").head().name for one in ("ported", f"delta.`{table.path}`")]  # type: ignore[union-attr]
    assert details == ["ported", None]


def test_what_spark_holds_of_a_table_is_let_go_by_any_name(session: SparkSession, table: mica.Table) -> None:
    """Of names with their database Spark knew no table."""
    mica.register("ported_db.named", table.path)
    for name in ("ported", "ported_db.named"):
        session.catalog.refreshTable(name)
        session.catalog.uncacheTable(name)
        with pytest.raises(UserError, match=r"CACHE TABLE .* would hold rows that no query asks for"):
            session.catalog.cacheTable(name)


def test_writers_of_no_table_say_so(session: SparkSession) -> None:
    """Spark spoke of modes, and failed with an error of Java's where `delta` is the default format."""
    with pytest.raises(UserError, match="save is given no path"):
        session.range(1).write.format("mica").save()
    with conf(session, {"spark.sql.sources.default": "mica"}), pytest.raises(UserError, match="TABLE_NOT_FOUND"):
        session.range(1).write.insertInto("ported_gone")


@pytest.mark.slow
def test_views_of_texts_stand_for_their_table(session: SparkSession, table: mica.Table) -> None:
    """As those of `spark.table` do."""
    path = f"delta.`{table.path}`"
    for number, made in enumerate(
        (f"SELECT * FROM {path}", "SELECT t.id, v FROM ported AS t", "TABLE ported", "SELECT * FROM ported_0")
    ):
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW ported_{number} AS {made}")
    session.sql("SELECT * FROM ported").createOrReplaceTempView("ported_4")
    try:
        for number in range(5):
            session.sql(f"UPDATE ported_{number} SET v = v + 1 WHERE id = {number % 4}")
            assert sum(row.v for row in session.table(f"ported_{number}").collect()) == 13 + number
        for part in (
            "SELECT v, id FROM ported", "SELECT id AS v, v AS id FROM ported", "SELECT * FROM ported WHERE id > 0",
            "SELECT * FROM ported LIMIT 9", f"SELECT * FROM {path} VERSION AS OF 1",
            f"SELECT * FROM delta.`{table.path}@v1`",
        ):  # fmt: skip
            session.sql(f"CREATE OR REPLACE TEMPORARY VIEW ported_5 AS {part}")
            with pytest.raises(UserError, match="ported_5 is a temporary view that does not show the whole") as refused:
                session.sql("DELETE FROM ported_5 WHERE id = 3")
            assert refused.value.code == "INVALID_ARGUMENT"
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW ported_0 AS SELECT * FROM {path}")
        for part in ("SELECT * FROM ported_0 WHERE id > 0", "SELECT id + 0 AS id, v FROM ported_0"):
            session.sql(f"CREATE OR REPLACE TEMPORARY VIEW ported_5 AS {part}")
            with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's own, of several kinds
                session.sql("DELETE FROM ported_5 WHERE id = 3")
            assert "not through a view" in "".join(getattr(caught.value, "__notes__", ())), caught.value
        assert table.refresh().version == 6
    finally:
        for number in range(6):
            session.catalog.dropTempView(f"ported_{number}")


@pytest.mark.slow
def test_merge_into_is_the_merge_that_says_the_same(session: SparkSession, table: mica.Table) -> None:
    """It was refused."""
    rows = session.createDataFrame([(1, 77), (9, 50)], "id BIGINT, v INT").alias("s")
    (
        rows.mergeInto("ported", col("s.id") == col("ported.id"))
        .whenMatched(col("s.v") > 5)
        .update({"ported.v": when(col("ported.v") > 1, col("s.v") + length(lit("x'y"))).otherwise(lit(0))})
        .whenNotMatched()
        .insert({"id": rows["id"], "v": expr("cast(s.v AS STRING)")})
        .whenNotMatchedBySource(col("ported.v") > 5)
        .delete()
        .merge()
    )
    assert _of(table) == [(0, 0), (1, 80), (2, 4), (9, 50)]
    own = session.table("ported").where("id < 2").withColumn("w", lit(1)).alias("o")
    merging = own.mergeInto("ported", expr("o.id = ported.id")).withSchemaEvolution()
    merging.whenMatched().updateAll().whenNotMatched().insertAll().whenNotMatchedBySource().update(
        {"v": lit(-1)}
    ).merge()
    assert sorted(map(tuple, session.table("ported").collect()), key=str) == [
        (0, 0, 1), (1, 80, 1), (2, -1, None), (9, -1, None),
    ]  # fmt: skip
    odd = session.sql("SELECT 1L AS id, named_struct('id', 2L) AS source, named_struct('v', 3) AS target").alias("s")
    odd.mergeInto("ported", expr("s.id = ported.id")).whenMatched().update({"v": expr("s.target.v")}).merge()
    assert session.table("ported").where("id = 1").head().v == 3  # type: ignore[union-attr]
    with pytest.raises(UserError, match="a row that is not matched has no delete"):
        rows.mergeInto("ported", expr("s.id = ported.id")).whenNotMatched().delete()
    with pytest.raises(UserError, match="expressions of one row"):
        rows.mergeInto("ported", expr("count(s.id) = 1"))
    with pytest.raises(Exception, match=r"UNRESOLVED_COLUMN.*nope"):
        rows.mergeInto("ported", expr("s.id = ported.id")).whenMatched().update({"nope": lit(1)})


@pytest.mark.slow
def test_numbers_are_seconds_in_a_timestamp(delta_session: SparkSession, tmp_path: Path) -> None:
    """They were refused in each statement."""
    mica.disable(delta_session)
    seconds = "-1.2345678", "5", "cast(5.5 AS DOUBLE)"
    texts = (
        "INSERT INTO {0} SELECT 1, {1}, array({1})",
        "UPDATE {0} SET t = {1}, ts = array({1}) WHERE id = 0",
        (
            "MERGE INTO {0} o USING (SELECT 2 AS id, {1} AS t, array({1}) AS ts) n ON o.id = n.id "
            "WHEN NOT MATCHED THEN INSERT *"
        ),
    )
    columns, found = "(id INT, t TIMESTAMP, ts ARRAY<TIMESTAMP>)", []
    for kind, run in (("delta", delta_session.sql), ("mica", lambda text: mica.sql(text, delta_session))):
        name = f"delta.`{tmp_path / kind}`"
        run(f"CREATE TABLE {name} {columns} USING {kind}")
        run(f"INSERT INTO {name} VALUES (0, NULL, NULL)")
        for text, value in zip(texts, seconds, strict=True):
            run(text.format(name, value))
        rows = mica.Table.open(tmp_path / kind).to_df(delta_session)
        found.append(rows.selectExpr("id", "unix_micros(t)", "unix_micros(ts[0])").orderBy("id").collect())
    assert found[0] == found[1]
    assert found[1] == [(0, 5_000_000, 5_000_000), (1, -1_234_567, -1_234_567), (2, 5_500_000, 5_500_000)]


def test_an_array_is_set_for_a_variant(session: SparkSession, tmp_path: Path) -> None:
    """As INSERT takes it; UPDATE and MERGE refused it."""
    table = mica.Table.create(tmp_path / "variants", "id INT, v VARIANT")
    name = f"delta.`{table.path}`"
    session.sql(f"INSERT INTO {name} VALUES (1, NULL), (2, NULL)")
    session.sql(f"UPDATE {name} SET v = array('a', NULL) WHERE id = 1")
    session.sql(
        f"MERGE INTO {name} t USING (SELECT 2 AS id, array(3) AS a) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.a"
    )
    assert [str(row["v"]) for row in session.table(name).orderBy("id").collect()] == ['["a",null]', "[3]"]
    with pytest.raises(UserError, match="TYPE_MISMATCH"):  # nor does Spark cast structs
        session.sql(f"UPDATE {name} SET v = array(struct(1 AS a))")
