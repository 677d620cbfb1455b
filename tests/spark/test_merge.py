"""Merges on Spark keep the bounds of collated columns, with the whole source in every task and with a shuffle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import mica
from mica.engines.spark import engine
from mica.write import running_merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.parametrize("few", [100_000, -1])
def test_collated_bounds_and_shredding_are_kept(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(engine, "FEW_ROWS", few)
    table = mica.Table.create(tmp_path, "id INT, p INT, s STRING COLLATE UNICODE_CI, v VARIANT", ["p"])
    frame = spark.range(0, 60, 1, 3).selectExpr(
        "int(id) id", "int(id % 2) p", "concat('Name ', id) s", "parse_json(concat('{\"a\":', id, '}')) v"
    )
    table.append(frame)
    source = spark.range(50, 70).selectExpr(
        "int(id) id", "int(id % 2) p", "'Zoë' s", "parse_json(concat('{\"a\":', id + 1000, '}')) v"
    )
    merging = table.merge(source, "target.id = source.id AND target.p = source.p")
    done = merging.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done.metrics["numTargetRowsUpdated"], done.metrics["numTargetRowsInserted"]) == (10, 10)
    assert mica.check(table, spark=spark).ok
    assert table.scan("s = 'ZOË'", spark=spark).to_df(spark).count() == 20
    assert len(table.scan("s > 'zz'", spark=spark).plan.kept) == 0
    assert len(table.scan("v:a::int > 2000").plan.kept) == 0
    assert table.scan("v:a::int > 1040").count() == 20


@pytest.mark.slow
def test_the_same_of_a_large_source_in_both_ways(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for few in (100_000, -1):
        monkeypatch.setattr(engine, "FEW_ROWS", few)
        table = mica.Table.create(tmp_path / str(few), "id BIGINT, n BIGINT NOT NULL, d DECIMAL(38,10)")
        table.append(spark.range(0, 30_000, 1, 4).selectExpr("id", "id n", "cast(id AS DECIMAL(38,10)) d"))
        source = spark.range(20_000, 40_000, 1, 3).selectExpr("cast(id AS DECIMAL(30,0)) k", "id n")
        merging = table.merge(source, "t.d = s.k", source_alias="s", target_alias="t")
        merging = merging.when_matched_delete("t.id % 10 = 0").when_matched_update({"n": "t.n + s.n"}, "t.id % 10 = 1")
        merging = merging.when_not_matched_insert({"id": "-n", "n": "n"}, "n % 100 = 0")
        done = merging.when_not_matched_by_source_delete("t.id < 5").execute()
        told = {name: value for name, value in done.metrics.items() if "Rows" in name and "Copied" not in name}
        found.append((told, table.scan(columns=["id", "n"]).to_arrow().sort_by("id").to_pydict()))
    assert found[0] == found[1]
    assert found[0][0]["numTargetRowsDeleted"] == 1_005
    with pytest.raises(mica.UserError) as raised:
        table.merge(spark.sql("SELECT 7L id UNION ALL SELECT 7L"), "target.id = source.id").when_matched_delete(
            "target.n > 0").execute()  # fmt: skip
    assert (raised.value.code, "target.id = 7" in raised.value.message) == ("AMBIGUOUS_MERGE", True)


@pytest.mark.slow
@pytest.mark.parametrize("variant", [False, True])
def test_many_rows_of_this_process_are_shuffled_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: bool
) -> None:
    """An Arrow source is sent to every task only if it is small."""
    monkeypatch.setattr(engine, "FEW_ROWS", 5)
    monkeypatch.setattr(running_merge, "WithSource", None)  # nobody gets the whole source
    table = mica.Table.create(tmp_path, "id BIGINT, s STRING COLLATE UTF8_LCASE, v VARIANT, a ARRAY<INT>")
    table.append([{"id": i, "s": f"s{i}", "v": {"n": i}, "a": [i]} for i in range(100)])
    v = [f'{{"n":{i}}}' for i in range(90, 190)]
    source = pa.table({
        "id": pa.array(range(90, 190), pa.int64()), "s": [f"S{i}" for i in range(90, 190)],
        "v": mica.variant.from_json(v) if variant else v, "a": [[i, None] for i in range(90, 190)],
    })  # fmt: skip
    merging = table.merge(source, "target.id = source.id AND target.s = source.s COLLATE UTF8_LCASE", spark=spark)
    done = merging.when_matched_update({"a": "source.a"}).when_not_matched_insert_all().execute()
    assert (done.metrics["numTargetRowsUpdated"], done.metrics["numTargetRowsInserted"]) == (10, 90)
    columns = {"id": "id", "n": "v:n::int", "size": "size(a)"}
    found = table.scan(columns=columns).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": i, "n": i, "size": 1 + (i >= 90)} for i in range(190)]


def test_rows_without_keys_go_to_every_task_only_if_each_pair_is_cheap(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row meets every row: what one task would do with a file is shared between the blocks of the source."""
    monkeypatch.setattr(engine, "FEW_ROWS", 5)
    monkeypatch.setattr(running_merge, "WithSource", None)  # nobody gets the whole source
    table = mica.Table.create(tmp_path, "id BIGINT")
    table.append([{"id": i} for i in range(30)])
    merge = table.merge(pa.table({"k": list(range(20))}), "target.id > source.k + 9", spark=spark)  # 20 of 50 rows
    assert merge.when_matched_delete().execute().metrics["numTargetRowsDeleted"] == 20


@pytest.mark.slow
def test_blocks_of_a_large_source_meet_the_table_where_no_equality_joins(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "FEW_ROWS", -1)
    table = mica.Table.create(tmp_path, "id INT, n INT")
    table.append(spark.range(0, 100, 1, 4).selectExpr("int(id) id", "0 n"))
    # Each range holds ten ids, of which the last three rows of the source have none.
    source = spark.range(0, 12, 1, 3).selectExpr("int(id * 10 + 5) low", "int(id * 10 + 14) high")
    merging = table.merge(source, "t.id BETWEEN s.low AND s.high", source_alias="s", target_alias="t")
    merging = merging.when_matched_update({"n": "s.low"}, "t.id % 2 = 0").when_not_matched_insert({"id": "-low"})
    done = merging.when_not_matched_by_source_delete("t.id > 2").execute()
    told = {name: value for name, value in done.metrics.items() if "Rows" in name and "Copied" not in name and value}
    assert told == {
        "numSourceRows": 12, "numTargetRowsInserted": 2, "numTargetRowsUpdated": 47, "numTargetRowsDeleted": 2,
        "numTargetRowsMatchedUpdated": 47, "numTargetRowsNotMatchedBySourceDeleted": 2, "numOutputRows": 100,
    }  # fmt: skip
    found = {row["id"]: row["n"] for row in table.to_arrow().to_pylist()}
    kept = [-115, -105, *range(3), *range(5, 100)]
    assert found == {i: None if i < 0 else (i - 5) // 10 * 10 + 5 if i >= 5 and i % 2 == 0 else 0 for i in kept}
    twice = spark.range(0, 20, 1, 2).selectExpr("int(id % 2) low")  # in all blocks
    with pytest.raises(mica.UserError) as raised:
        table.merge(twice, "target.id > source.low").when_matched_delete("target.n > source.low").execute()
    assert raised.value.code == "AMBIGUOUS_MERGE"
    assert table.merge(twice, "target.id > source.low").when_matched_delete().execute().metrics[
        "numTargetRowsDeleted"] == 97  # fmt: skip
    merging = table.merge(source.where("low < 0"), "t.id > s.low", source_alias="s", target_alias="t")
    done = merging.when_not_matched_by_source_delete("t.id > -1").execute()
    assert done.metrics["numTargetRowsDeleted"] == 1  # an empty block marks no row of a file


def test_a_source_may_have_null_variants(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "k INT, v VARIANT, s STRUCT<v: VARIANT>")
    table.append(spark.sql("SELECT 1 AS k, parse_json('1') AS v, named_struct('v', parse_json('2')) AS s"))
    source = spark.sql("""
        SELECT k, parse_json(x) AS v, named_struct('v', parse_json(x)) AS s
        FROM VALUES (1, NULL), (2, '[3]'), (3, NULL) AS t(k, x)""")
    for rows, found in ((source, 3), (source.where("k > 3"), 3)):
        merged = table.merge(rows, "target.k = source.k").when_matched_update_all().when_not_matched_insert_all()
        merged.execute()
        assert table.scan().to_arrow().num_rows == found
    texts = table.to_df(spark).selectExpr("k", "to_json(v)", "to_json(s)").orderBy("k").collect()
    assert [tuple(row) for row in texts] == [(1, None, "{}"), (2, "[3]", '{"v":[3]}'), (3, None, "{}")]


def test_arrays_without_a_type_are_empty_ones_of_the_column(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, a ARRAY<INT>, s STRUCT<x: ARRAY<INT>>, v ARRAY<VARIANT>")
    source = spark.sql("SELECT 1 AS id, array() AS a, named_struct('x', array()) AS s, array() AS v")
    table.append(source)
    table.merge(source.withColumn("id", source.id + 1), "target.id = source.id").when_not_matched_insert_all().execute()
    wanted = {"a": [], "s": {"x": []}, "v": []}
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [{"id": 1, **wanted}, {"id": 2, **wanted}]


@pytest.mark.slow
@pytest.mark.parametrize("ddl", ["id INT, n INT, s STRING", "id INT, n INT DEFAULT 3, s STRING"])
@pytest.mark.parametrize("value", ["'k'", "soundex('Robert')"])
def test_a_stream_is_read_once_also_where_spark_evaluates_values(
    spark: SparkSession, tmp_path: Path, ddl: str, value: str
) -> None:
    rows = pa.table({"id": pa.array([1, 9], pa.int32()), "n": pa.array([7, 8], pa.int32())})
    found = []
    for number, source in enumerate((rows, rows.to_reader(), iter([[{"id": 1, "n": 7}], [{"id": 9, "n": 8}]]))):
        table = mica.Table.create(tmp_path / str(number), ddl)
        table.append([{"id": i, "n": i, "s": "x"} for i in range(3)])
        merging = table.merge(source, "target.id = source.id", spark=spark).when_matched_update({"s": value})
        merging = merging.when_not_matched_insert({"id": "source.id", "n": "source.n"})
        merging.when_not_matched_by_source_delete().execute()
        found.append(sorted((row["id"], row["n"], row["s"]) for row in table.scan().to_arrow().to_pylist()))
    assert found == [[(1, 1, "k" if value == "'k'" else "R163"), (9, 8, None)]] * 3
