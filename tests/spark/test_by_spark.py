"""DELETE, UPDATE and MERGE by what only Spark evaluates do what delta-spark does, and what mica does by itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sql

import mica
from mica.engines.spark import engine
from tests.oracle import conf
from tests.support import dealt, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id BIGINT, p STRING, n INT, s STRING, a ARRAY<INT>, st STRUCT<x: INT, y: STRING>"
ROWS = """SELECT id, CASE WHEN id % 3 = 0 THEN 'p' ELSE 'q' END p, CAST(id % 5 AS INT) n, concat('s', id % 4) s,
          array(CAST(id AS INT), 7) a, struct(CAST(id AS INT) AS x, 'y' AS y) st"""
STATEMENTS = (
    "DELETE FROM {t} WHERE exists(a, e -> e > 16) AND p = 'q'",
    "DELETE FROM {t} AS x WHERE aggregate(x.a, 0, (sum, e) -> sum + e) = 10 OR x.id IN (2, bit_count(7))",
    "DELETE FROM {t} WHERE s LIKE ANY ('%3', soundex('z')) AND n BETWEEN 3 AND 4",
    "DELETE FROM {t} WHERE n IS NULL AND soundex(s) = 'S000'",
    "UPDATE {t} SET s = sha2(s, 256), n = n + 1, st.y = split_part('a,b', ',', 2) WHERE id & 3 = 1",
    "UPDATE {t} x SET p = upper(soundex(x.p)), a = transform(x.a, e -> e * 2) WHERE x.n = 2",
    "UPDATE {t} SET n = length(soundex(s)) + id, s = DEFAULT",
    "UPDATE {t} SET s = elt(1 + n % 2, 'a', 's2') WHERE s RLIKE 's' AND position('2' IN s) > 0",
    """MERGE INTO {t} t USING (SELECT id * 2 k, 'new' s FROM range(14)) s ON t.id = s.k
       WHEN MATCHED AND exists(t.a, e -> e > 15) THEN DELETE
       WHEN MATCHED THEN UPDATE SET s = md5(s.s), n = t.n + 1
       WHEN NOT MATCHED AND s.k & 2 = 2 THEN INSERT (id, p, s) VALUES (k, soundex(s), s)
       WHEN NOT MATCHED BY SOURCE AND bit_count(id) = 2 THEN UPDATE SET n = n + 100, st.x = -1
       WHEN NOT MATCHED BY SOURCE AND id = 1 THEN DELETE""",
    """MERGE INTO {t} USING (SELECT id % 4 AS k FROM range(9)) s ON soundex({t}.s) = soundex(concat('s', s.k))
       AND {t}.id = s.k WHEN MATCHED THEN DELETE""",
    """MERGE INTO {t} t USING (SELECT id, 'z' p, 1 n, 'z' s, array(1) a, struct(1 AS x, 'a' AS y) st
       FROM range(18, 25)) s ON t.id <=> s.id AND soundex(t.s) > ''
       WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
)


@pytest.mark.slow
@pytest.mark.parametrize("vectors", [False, True])
def test_statements_beside_delta_spark(delta_session: SparkSession, tmp_path: Path, vectors: bool) -> None:
    properties = "TBLPROPERTIES (delta.enableDeletionVectors = true)" * vectors
    spark, counts = delta_session, dict[str, list[Any]]()
    ours, theirs = (f"delta.`{tmp_path / name}`" for name in ("ours", "theirs"))
    for t, run, format_ in ((ours, lambda text: mica.sql(text, spark), "mica"), (theirs, spark.sql, "delta")):
        run(f"CREATE TABLE {t} ({COLUMNS}) USING {format_} PARTITIONED BY (p) {properties}")
        for first in (0, 10):
            run(f"INSERT INTO {t} {ROWS} FROM range({first}, {first + 10})")
    for statement in dealt(STATEMENTS, vectors, 4):
        for t, run in ((ours, lambda text: mica.sql(text, spark)), (theirs, spark.sql)):
            counts[t] = run(statement.format(t=t)).collect()
        assert counts[ours] == counts[theirs], statement
        assert stored(tmp_path / "ours") == stored(tmp_path / "theirs"), statement
    mine, others = (sorted(map(str, spark.sql(f"SELECT * FROM {t}").collect())) for t in (ours, theirs))
    assert mine == others


TRUE = "exists(array(1), one -> one = 1)"
WRAPPED = (f"({{text}}) AND {TRUE}", f"{TRUE} AND ({{text}})", "exists(array(1), one -> {text})")
FEATURES: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "feed": {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"},
    "tracked": {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"},
}
CONDITIONS = ("n = 2", "p = 'a' AND id > 10", "id % 3 = 0", "v:n::int = 2", "s IS NULL", "id < 0")
SET = {"n": "n + 1", "s": "concat(s, 'k')", "st.y": "p", "p": "'z'", "v": "variant_set(v, '$.q', id)"}
CLAUSES: Mapping[str, Callable[[Any, Callable[[str], str], Callable[[str], str]], Any]] = {
    "update": lambda merge, when, value: merge.when_matched_update(
        {"n": value("s.m"), "s": "s2", "v": value("s.w")}, when("m > 1")
    ),
    "delete some": lambda merge, when, _: merge.when_matched_delete(when("t.id % 4 = 1")),
    "delete": lambda merge, *_: merge.when_matched_delete(),
    "insert": lambda merge, _, value: merge.when_not_matched_insert({"id": "k", "p": value("'new'"), "v": "w"}),
    "update others": lambda merge, when, _: merge.when_not_matched_by_source_update(
        {"n": "n + 100", "st.x": "-1"}, when("id % 2 = 1")
    ),
    "delete others": lambda merge, when, _: merge.when_not_matched_by_source_delete(when("id % 5 = 1")),
}


ROW_COUNT = 90


def made(place: Path, features: Mapping[str, str], seed: int) -> mica.Table:
    draw = random.Random(seed)
    columns = "id BIGINT, p STRING, n INT, s STRING, st STRUCT<x: INT, y: STRING>, v VARIANT"
    table = mica.Table.create(place, columns, partition_by=draw.choice([[], ["p"]]), properties=features)
    for first in range(0, ROW_COUNT, 30):
        rows = [
            {
                "id": i,
                "p": draw.choice("abc"),
                "n": draw.choice([None, 1, 2, 3]),
                "s": draw.choice(["x", "yy", None]),
                "st": {"x": i, "y": "q"},
                "v": {"n": i % 5},
            }
            for i in range(first, first + 30)
        ]
        table.append(rows)
    table.delete("id % 7 = 3")
    return table


def told(table: mica.Table) -> dict[str, Any]:
    columns = {"id": "id", "p": "p", "n": "n", "s": "s", "x": "st.x", "y": "st.y", "v": "to_json(v)"}
    # New rows have ids in the order in which they were written, which is chance if Spark shuffles them.
    own_id = f"nullif(least(_metadata.row_id, {ROW_COUNT}), {ROW_COUNT})"
    ids = {"row": own_id} if table.properties.get("delta.enableRowTracking") == "true" else {}
    found = {"rows": table.scan(columns={**columns, **ids}).to_arrow().to_pylist()}
    for row in found["rows"]:
        if row["p"] == "new":
            row.pop("row", None)  # in which order rows are inserted is open
    if table.properties.get("delta.enableChangeDataFeed") == "true":
        feed = table.changes(table.version, columns={**columns, "kind": "_change_type"}).to_arrow()
        found["feed"] = feed.to_pylist()
    return {name: sorted(map(str, rows)) for name, rows in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("features", FEATURES)
def test_spark_and_mica_change_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, features: str
) -> None:
    """The same change by texts that mica reads, and by texts around them that only Spark does."""
    draw = random.Random(f"{seed} {features}")
    source = spark.range(0, 95, draw.choice([2, 3])).select(
        sql.col("id").alias("k"), sql.lit("S").alias("s2"), (sql.col("id") % 4).cast("int").alias("m"),
        sql.expr("""parse_json('{"z": 1}')""").alias("w"),
    )  # fmt: skip
    if features in ("plain", "tracked"):
        monkeypatch.setattr(engine, "FEW_ROWS", -1)  # those of mica are shuffled

    def changed(table: mica.Table, choice: random.Random, when: Any, value: Any) -> Any:
        condition = choice.choice(CONDITIONS)
        match choice.choice(["delete", "update", "merge", "merge"]):
            case "delete":
                return table.delete(when(condition), spark=spark)
            case "update":
                chosen = dict(choice.sample(sorted(SET.items()), 3))
                values = {name: text if "variant_set" in text else value(text) for name, text in chosen.items()}
                return table.update(values, when(condition), spark=spark)
        merge = table.merge(source, when("t.id = k"), spark=spark, source_alias="s", target_alias="t")
        for name in choice.sample(sorted(CLAUSES), 4):
            if name != "delete":
                merge = CLAUSES[name](merge, when, value)
        return CLAUSES["delete"](merge, when, value).execute()

    for step in range(2):
        one, other = (made(tmp_path / f"{who}{step}", FEATURES[features], seed) for who in ("one", "other"))
        choice = draw.random()
        mine = changed(one, random.Random(choice), lambda text: text, lambda text: text)
        sparks = changed(
            other,
            random.Random(choice),
            lambda text: draw.choice(WRAPPED).format(text=text),
            lambda text: f"CASE WHEN {TRUE} THEN {text} END",
        )
        assert told(one) == told(other)
        counts = [
            {name: count for name, count in done.metrics.items() if not name.endswith(("TimeMs", "Bytes", "Added"))}
            for done in (mine, sparks)
        ]
        assert counts[0] == {name: counts[1].get(name) for name in counts[0]}
        assert mica.check(other.path).ok


def table(tmp_path: Path, **columns: Any) -> mica.Table:
    found = mica.Table.create(tmp_path / "t", "id BIGINT, s STRING, c CHAR(4)")
    found.append([{"id": 1, "s": "a", "c": "x", **columns}])
    found.append([{"id": 2, "s": "b", "c": "y", **columns}])
    return found


def test_parts_that_mica_has_skip_files(spark: SparkSession, tmp_path: Path) -> None:
    t = table(tmp_path)
    [first] = t.scan(where="id = 1").kept.column("path").to_pylist()
    (tmp_path / "t" / first).unlink()  # whoever reads it fails
    assert t.delete("soundex(s) = 'B000' AND id > 1", spark=spark).metrics["numDeletedRows"] == 1
    with pytest.raises(Exception, match=first):
        t.delete("soundex(s) = 'A000'", spark=spark)


@pytest.mark.slow
@pytest.mark.parametrize("files", [1, 2])
def test_parts_that_spark_evaluates_skip_by_its_zones(spark: SparkSession, tmp_path: Path, files: int) -> None:
    """Spark before 2026's zones is an hour ahead of mica there; no row may depend on what else is in its file."""
    where = "soundex(s) = 'A100' AND to_date(ts) = DATE'2028-06-16'"
    times = [datetime(2028, 6, 15, 23, 10, tzinfo=UTC), datetime(2028, 6, 16, 10, tzinfo=UTC)]
    rows = [{"s": "ab", "ts": time} for time in times]
    t = mica.Table.create(tmp_path / "t", "s STRING, ts TIMESTAMP")
    for some in [rows] if files == 1 else [[row] for row in rows]:
        t.append(some)
    with conf(spark, {"spark.sql.session.timeZone": "Africa/Casablanca"}):
        expected = t.to_df(spark).where(where).count()
        assert t.delete(where, spark=spark).metrics["numDeletedRows"] == expected


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("no_such(s) = 'x'", "UNSUPPORTED_EXPRESSION"),
        ("soundex(nothing) = 'x'", "UNKNOWN_COLUMN"),
        ("soundex(s) = 'A000' AND nothing = 1", "UNKNOWN_COLUMN"),
        ("row_number() OVER (ORDER BY id) = 1", "UNSUPPORTED_EXPRESSION"),
        ("s SIMILAR TO 'x'", "INVALID_EXPRESSION"),
        ("input_file_name() LIKE '%'", "UNSUPPORTED_EXPRESSION"),
        ("", "INVALID_EXPRESSION"),
    ],
)
def test_what_spark_does_not_know_either_is_refused_by_mica(
    spark: SparkSession, tmp_path: Path, where: str, code: str
) -> None:
    t = table(tmp_path)
    with pytest.raises(mica.UserError) as caught:
        t.delete(where, spark=spark)
    assert caught.value.code == code
    assert "__mica" not in str(caught.value)
    assert (t.version, t.count()) == (2, 2)


@pytest.mark.slow
def test_values_are_stored_as_by_an_update(spark: SparkSession, tmp_path: Path) -> None:
    t = table(tmp_path)
    with pytest.raises(mica.UserError) as caught:
        t.update({"id": "soundex(s)"}, spark=spark)
    assert caught.value.code == "INCOMPATIBLE_TYPE"
    assert "soundex(s) is STRING" in caught.value.message
    with pytest.raises(mica.UserError, match="bit_count") as caught:
        t.update({"c": "soundex(s)", "id": "bit_count(id) * 1e30"}, spark=spark)
    assert "__mica" not in str(caught.value)
    with pytest.raises(mica.UserError, match="no function explode"):  # a row has one value
        t.update({"id": "explode(array(1))"}, spark=spark)
    with pytest.raises(mica.UserError, match=r"no column 'target\.nothing'"):
        t.merge(spark.range(3), "soundex(target.nothing) = 'x'", spark=spark).when_matched_delete().execute()
    merge = t.merge(spark.range(3), "target.id = source.id", spark=spark)
    with pytest.raises(mica.UserError) as caught:
        merge.when_matched_update({"id": "soundex(s)"}).execute()
    assert caught.value.code == "INCOMPATIBLE_TYPE"
    t.update({"id": "bit_count(id)", "s": "soundex(s)"}, spark=spark)
    assert t.scan(columns=["id", "s"]).to_arrow().to_pylist() == [{"id": 1, "s": "A000"}, {"id": 1, "s": "B000"}]


def test_in_process_it_is_refused_with_the_way_out(tmp_path: Path) -> None:
    t = table(tmp_path)
    merge = t.merge(pa.table({"k": [1]}), "target.id = source.k AND soundex(target.s) = 'x'").when_matched_delete()
    for change in (lambda: t.delete("soundex(s) = 'x'"), merge.execute):
        with pytest.raises(mica.UserError) as caught:
            change()
        assert caught.value.code == "UNSUPPORTED_EXPRESSION"
        assert "spark=" in str(caught.value.hint)


def test_char_columns_are_compared_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    t = table(tmp_path)
    assert (
        t.update({"s": "soundex(s)"}, "c = 'x' AND length(c) = 4 AND bit_count(1) = 1", spark=spark).metrics[
            "numUpdatedRows"
        ]
        == 1
    )
    with pytest.raises(mica.UserError, match="soundex"):  # no literal: Spark would pad it
        mica.sql(
            f"DELETE FROM mica.`{t.path}` WHERE soundex(s) = 'A000' AND c = (SELECT max('x') FROM range(1))", spark
        )


def test_queries_give_values(spark: SparkSession, tmp_path: Path) -> None:
    t = table(tmp_path)
    name = f"mica.`{t.path}`"
    values = f"SELECT max(s) FROM {name}"
    mica.sql(f"UPDATE {name} SET s = soundex(({values})) WHERE s IN ({values}) AND bit_count(1) = 1", spark)
    mica.sql(f"DELETE FROM {name} WHERE soundex(s) = 'A000' AND id NOT IN (SELECT id FROM {name} WHERE id > 9)", spark)
    assert t.refresh().scan(columns=["id", "s"]).to_arrow().to_pylist() == [{"id": 2, "s": "B000"}]


def test_spark_has_variables_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    t = table(tmp_path)
    spark.sql("DECLARE OR REPLACE VARIABLE most BIGINT DEFAULT 2")
    mica.sql(f"DELETE FROM mica.`{t.path}` WHERE soundex(s) LIKE '_000' AND bit_count(1) = 1 AND id < most", spark)
    spark.sql("DROP TEMPORARY VARIABLE most")
    assert t.refresh().scan(columns=["id"]).to_arrow().to_pylist() == [{"id": 2}]


def test_a_row_that_might_match_is_a_conflict(spark: SparkSession, tmp_path: Path) -> None:
    one, other = table(tmp_path), mica.Table.open(tmp_path / "t")
    other.append([{"id": 50, "s": "a"}])
    one.delete("soundex(s) = 'A000' AND id < 10", spark=spark)  # its bounds say that the new row cannot match
    other.refresh()
    one.refresh()
    other.append([{"id": 5, "s": "b"}])
    with pytest.raises(mica.ConflictError, match="CONCURRENT_APPEND"):
        one.delete("soundex(s) = 'B000' AND id < 10", spark=spark)
    assert mica.Table.open(one.path).count() == 3


def test_a_version_of_an_application_runs_once(spark: SparkSession, tmp_path: Path) -> None:
    t = table(tmp_path)
    for expected in (1, 0):
        done = t.update({"id": "bit_count(id) + 100"}, "soundex(s) = 'A000'", spark=spark, txn=("app", 1))
        assert done.metrics.get("numUpdatedRows", 0) == expected
    [last] = t.history(1).to_pylist()
    assert (last["operation"], dict(last["operation_parameters"])) == (
        "UPDATE", {"predicate": '["(soundex(s) = \'A000\')"]'},
    )  # fmt: skip


@pytest.mark.slow
def test_of_the_source_only_named_columns_are_computed(spark: SparkSession, tmp_path: Path) -> None:
    t = table(tmp_path)
    fails = spark.udf.register("fails", lambda _: 1 // 0, "INT")
    source = spark.range(1, 4).select(sql.col("id").alias("k"), sql.lit("n").alias("s"), fails("id").alias("bad"))
    on = "target.id = source.k AND bit_count(1) = 1"
    merge = t.merge(source, on, spark=spark).when_matched_update({"s": "soundex(source.s)"})
    assert merge.when_not_matched_insert({"id": "k"}).execute().metrics["numOutputRows"] == 3
    t.refresh()
    with pytest.raises(mica.MicaError, match="ZeroDivisionError") as caught:
        t.merge(source, on, spark=spark).when_matched_update({"s": "soundex(CAST(bad AS STRING))"}).execute()
    assert caught.value.code == "SPARK_JOB_FAILED"
    every = t.merge(
        source.drop("bad").selectExpr("k AS ID", "'all' AS S", "'c' AS c"), f"{TRUE} AND target.id = source.ID"
    )
    every.when_matched_update_all().when_not_matched_insert_all().execute()
    assert set(t.refresh().scan(columns=["s", "c"]).to_arrow().column("s").to_pylist()) == {"all"}


def test_names_of_its_own_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """They would be taken for what Spark makes."""
    t = mica.Table.create(tmp_path, "id BIGINT, __mica_task INT")
    t.append([{"id": 1, "__mica_task": 7}])
    source = spark.range(3).select(sql.col("id").alias("k"), sql.lit(5).alias("__mica_row"))
    merge = t.merge(source, "soundex('a') = 'A000' AND target.id = source.k", spark=spark)
    for change in (
        merge.when_matched_update({"id": "source.__mica_row"}).execute,
        lambda: t.delete("soundex(CAST(__mica_task AS STRING)) = 'A000'", spark=spark),
    ):
        with pytest.raises(mica.UserError) as caught:
            change()
        assert caught.value.code == "INVALID_NAME"
    assert merge.when_matched_update({"id": "bit_count(k) + 1"}).execute().metrics["numTargetRowsUpdated"] == 1


def test_what_was_kept_is_freed(spark: SparkSession, tmp_path: Path) -> None:
    t, kept = table(tmp_path), spark.sparkContext._jsc.sc().getPersistentRDDs
    before = kept().size()
    merge = t.merge(spark.range(1, 4), "soundex('a') = 'A000' AND target.id = source.id", spark=spark)
    merge.when_matched_delete().when_not_matched_insert({"id": "source.id"}).execute()
    assert kept().size() <= before


def test_types_that_only_spark_casts(spark: SparkSession, tmp_path: Path) -> None:
    t = table(tmp_path)
    assert t.update({"id": "id << 1L"}, "(id & '1') = 1", spark=spark).metrics["numUpdatedRows"] == 1
    assert sorted(t.scan(columns=["id"]).to_arrow().column("id").to_pylist()) == [2, 2]
    with pytest.raises(mica.UserError) as caught:
        t.delete("id + array(1) = 3", spark=spark)
    assert caught.value.code == "TYPE_MISMATCH"
