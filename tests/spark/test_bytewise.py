"""DELETE, UPDATE and MERGE by ICU's collations change the rows that Spark's own comparator finds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from mica.engines.spark import engine
from mica.errors import UserError
from mica.write import bytewise
from tests.spark.test_collations import WORDS
from tests.support import dealt, refuses_between

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONDITIONS = [
    "ci = 'A'", "ci <> 'A'", "'a' < ci", "ci <= 'C'", "ci IN ('STRASSE', 'nope')", "ci NOT IN ('A', 'ä')",
    "ci = 'nope'", "ci <=> 'A'", "NOT 'A' <=> ci", "ci IS DISTINCT FROM 'nope'",
    "NOT (ci = 'A' OR de > 'b')", "de = 'a' AND id < 9", "ci >= 'B' OR de IS NULL", "ci BETWEEN 'a' AND 'c'",
    "(v:w::string) COLLATE de_CI_AI = 'Strasse'", "p COLLATE UNICODE_CI_AI = 'a'", "upper(p) COLLATE de_CI = 'ä'",
    "ci = 'A' AND low = 'a'", "coalesce(ci = 'A', true)", "s.x = 'A'",
    # These are Spark's alone.
    "ci = p COLLATE UNICODE_CI", "CAST(id AS STRING) COLLATE UNICODE_CI = '1'", "startswith(ci, 'A')",
    "id > 2 AND de <= de AND ci = 'a'",
]  # fmt: skip


def _table(spark: SparkSession, path: Path, partition_by: list[str]) -> mica.Table:
    ddl = (
        "id INT, ci STRING COLLATE UNICODE_CI, de STRING COLLATE de_CI_AI, low STRING COLLATE UTF8_LCASE, p STRING, "
        "s STRUCT<x: STRING COLLATE UNICODE_CI>, v VARIANT"
    )
    table = mica.Table.create(path, ddl, partition_by)
    rows = [(i, w, w, w, w, (w,)) for i, w in enumerate(WORDS)]
    frame = spark.createDataFrame(rows, "id int, ci string, de string, low string, p string, s struct<x: string>")
    for half in ("id % 2 = 0", "id % 2 = 1"):
        table.append(frame.where(half).selectExpr("*", "to_variant_object(named_struct('w', p)) AS v").coalesce(1))
    return table


@pytest.mark.slow
@pytest.mark.parametrize("partition_by", [[], ["p"]], ids=["no partitions", "by a plain column"])
def test_changes_by_a_collation_are_those_of_spark(
    spark: SparkSession, tmp_path: Path, partition_by: list[str]
) -> None:
    table = _table(spark, tmp_path, partition_by)
    began = table.version
    rows = table.to_df(spark).cache()
    everyone = set(range(len(WORDS)))
    for condition in dealt(CONDITIONS, bool(partition_by), 4):
        if refuses_between(condition):
            continue
        meant = condition.replace("v:w::string", "variant_get(v, '$.w', 'string')")
        found = {row.id for row in rows.where(meant).select("id").collect()}
        table.delete(condition, spark=spark)
        assert {row["id"] for row in table.scan(columns=["id"]).to_arrow().to_pylist()} == everyone - found, condition
        table.restore(began)
        table.update({"id": "id + 100"}, condition, spark=spark)
        changed = {i for i in table.scan(columns=["id"]).to_arrow()["id"].to_pylist() if i >= 100}
        assert changed == {i + 100 for i in found}, condition
        table.restore(began)
    rows.unpersist()


@pytest.mark.slow
def test_new_values_are_compared_too(spark: SparkSession, tmp_path: Path) -> None:
    table = _table(spark, tmp_path, [])
    table.update({"p": "CASE WHEN ci = 'A' THEN 'one' WHEN de < 'a' THEN 'less' END"}, spark=spark)
    wanted = {"a": "one", "A": "one", "": "less"}
    found = table.scan(columns={"w": "low", "p": "p"}).to_arrow().to_pylist()
    assert {row["w"]: row["p"] for row in found} == {word: wanted.get(word or " ") for word in WORDS} | {"": "less"}


def test_new_values_that_only_spark_compares_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    table = _table(spark, tmp_path, [])
    rows = {row.w: row.p for row in table.to_df(spark).selectExpr("low w", "if(ci <= s.x, 'x', p) p").collect()}
    table.update({"p": "if(ci <= s.x, 'x', p)"}, where="contains(ci, 'A')", spark=spark)
    found = table.scan(columns={"w": "low", "p": "p"}).to_arrow().to_pylist()
    hit = {row.w for row in table.to_df(spark).where("contains(ci, 'A')").selectExpr("low w").collect()}
    assert {row["w"]: row["p"] for row in found} == {w: rows[w] if w in hit else w for w in WORDS}
    assert hit == {"a", "A", "a ", "straße", "STRASSE"}


def test_long_lists_are_compared_by_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table(spark, tmp_path, [])
    monkeypatch.setattr(bytewise, "MOST", 2)
    left = table.to_df(spark).where("NOT coalesce(ci < 'b', false)").count()
    table.delete("ci < 'b'", spark=spark)
    assert table.scan().count() == left < len(WORDS)


def test_without_a_session_the_way_out_is_one(spark: SparkSession, tmp_path: Path) -> None:
    table = _table(spark, tmp_path, [])
    for change in (partial(table.delete, "ci = 'A'"), partial(table.update, {"p": "'x'"}, where="ci = 'A'")):
        with pytest.raises(UserError) as caught:
            change()
        assert caught.value.code == "NEEDS_SPARK"
        assert str(caught.value.hint).startswith("Pass spark=mica.session()")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["whole", "shuffled"])
def test_rows_meet_by_a_collation_as_in_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    if mode == "shuffled":
        monkeypatch.setattr(engine, "FEW_ROWS", -1)
    table = _table(spark, tmp_path, ["p"])
    began = table.version
    rows = table.to_df(spark).cache()
    given = ["A", "ÄH", "strasse", "nope", None, "C", "ı"]
    words = spark.createDataFrame([(word, n) for n, word in enumerate(given)], "k string, n int")
    rows.createOrReplaceTempView("their_rows")
    words.createOrReplaceTempView("their_words")
    conditions = (
        "target.ci = source.k COLLATE UNICODE_CI", "target.de = source.k COLLATE de_CI_AI AND target.id < 12",
        "target.ci <=> source.k COLLATE UNICODE_CI", "(target.v:w::string) COLLATE tr_CI = source.k",
        "target.p COLLATE UNICODE_CI_AI = source.k AND source.n < 6", "target.low = source.k COLLATE UTF8_LCASE",
        "target.s.x = source.k COLLATE UNICODE_CI AND target.id % 3 = source.n % 3",
        "target.id = source.n AND target.ci < source.k COLLATE UNICODE_CI",
    )  # fmt: skip
    for turn, on in dealt([*enumerate(conditions)], mode == "whole"):
        meant = on.replace("target.v:w::string", "variant_get(target.v, '$.w', 'string')")
        pairs = spark.sql(f"SELECT target.id, n FROM their_rows target JOIN their_words source ON {meant}").collect()
        found, met = {row.id for row in pairs}, {row.n for row in pairs}
        for source in dealt((words, words.toArrow()), turn + (mode == "whole")):
            merging = table.merge(source, on, spark=spark).when_matched_update({"id": "target.id + 100"})
            merging.when_not_matched_insert({"id": "1000 + source.n"}).execute()
            ids = set(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())
            assert {i - 100 for i in ids if 100 <= i < 1000} == found, on
            assert {i - 1000 for i in ids if i >= 1000} == set(range(len(given))) - met, on
            table.restore(began)
    rows.unpersist()


def test_clauses_of_a_merge_compare_by_a_collation(spark: SparkSession, tmp_path: Path) -> None:
    table = _table(spark, tmp_path, [])
    others = {row.low for row in table.to_df(spark).where("ci = 'straße'").select("low").collect()}
    words = spark.createDataFrame([(word, n) for n, word in enumerate(["A", "b", "Ch"])], "k string, n int")
    merging = table.merge(words, "target.low = source.k COLLATE UTF8_LCASE", spark=spark)
    merging.when_matched_delete("target.ci = 'A'").when_matched_update(
        {"id": "CASE WHEN target.de < source.k COLLATE de_CI_AI THEN 1 ELSE 100 END"}
    ).when_not_matched_by_source_update({"p": "'other'"}, condition="target.ci = 'straße'").execute()
    found = {row["low"]: (row["id"], row["p"]) for row in table.scan(columns=["low", "id", "p"]).to_arrow().to_pylist()}
    wanted = {word: (i, "other" if word in others else word) for i, word in enumerate(WORDS)}
    assert found == {w: v for w, v in wanted.items() if w not in ("a", "A")} | {"b": (100, "b"), "ch": (100, "ch")}
