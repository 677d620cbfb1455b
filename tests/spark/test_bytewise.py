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
from tests.support import refuses_between

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONDITIONS = [
    "ci = 'A'", "ci <> 'A'", "'a' < ci", "ci <= 'C'", "ci IN ('STRASSE', 'nope')", "ci NOT IN ('A', 'ä')",
    "ci = 'nope'", "ci <=> 'A'", "NOT 'A' <=> ci", "ci IS DISTINCT FROM 'nope'",
    "NOT (ci = 'A' OR de > 'b')", "de = 'a' AND id < 9", "ci >= 'B' OR de IS NULL", "ci BETWEEN 'a' AND 'c'",
    "(v:w::string) COLLATE de_CI_AI = 'Strasse'", "p COLLATE UNICODE_CI_AI = 'a'", "upper(p) COLLATE de_CI = 'ä'",
    "ci = 'A' AND low = 'a'", "coalesce(ci = 'A', true)", "s.x = 'A'",
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


@pytest.mark.parametrize("partition_by", [[], ["p"]], ids=["no partitions", "by a plain column"])
def test_changes_by_a_collation_are_those_of_spark(
    spark: SparkSession, tmp_path: Path, partition_by: list[str]
) -> None:
    table = _table(spark, tmp_path, partition_by)
    began = table.version
    rows = table.to_df(spark).cache()
    everyone = set(range(len(WORDS)))
    for condition in CONDITIONS:
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


def test_new_values_are_compared_too(spark: SparkSession, tmp_path: Path) -> None:
    table = _table(spark, tmp_path, [])
    table.update({"p": "CASE WHEN ci = 'A' THEN 'one' WHEN de < 'a' THEN 'less' END"}, spark=spark)
    wanted = {"a": "one", "A": "one", "": "less"}
    found = table.scan(columns={"w": "low", "p": "p"}).to_arrow().to_pylist()
    assert {row["w"]: row["p"] for row in found} == {word: wanted.get(word or " ") for word in WORDS} | {"": "less"}


def test_what_is_not_asked_is_refused(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table(spark, tmp_path, [])
    for condition in (
        "ci = p COLLATE UNICODE_CI",
        "CAST(id AS STRING) COLLATE UNICODE_CI = '1'",
        "startswith(ci, 'A')",
    ):
        with pytest.raises(UserError) as caught:
            table.delete(condition, spark=spark)
        assert caught.value.code == "NEEDS_SPARK", condition
        assert str(caught.value.hint).startswith("Compare bytes"), condition
    for change in (partial(table.delete, "ci = 'A'"), partial(table.update, {"p": "'x'"}, where="ci = 'A'")):
        with pytest.raises(UserError) as caught:
            change()
        assert caught.value.code == "NEEDS_SPARK"
        assert str(caught.value.hint).startswith("Pass spark=mica.session()")
    monkeypatch.setattr(bytewise, "MOST", 2)
    with pytest.raises(UserError) as caught:
        table.delete("ci < 'b'", spark=spark)
    assert caught.value.code == "NEEDS_SPARK"
    assert table.scan().count() == len(WORDS)


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
    for on in (
        "target.ci = source.k COLLATE UNICODE_CI", "target.de = source.k COLLATE de_CI_AI AND target.id < 12",
        "target.ci <=> source.k COLLATE UNICODE_CI", "(target.v:w::string) COLLATE tr_CI = source.k",
        "target.p COLLATE UNICODE_CI_AI = source.k AND source.n < 6", "target.low = source.k COLLATE UTF8_LCASE",
        "target.s.x = source.k COLLATE UNICODE_CI AND target.id % 3 = source.n % 3",
    ):  # fmt: skip
        meant = on.replace("target.v:w::string", "variant_get(target.v, '$.w', 'string')")
        pairs = spark.sql(f"SELECT target.id, n FROM their_rows target JOIN their_words source ON {meant}").collect()
        found, met = {row.id for row in pairs}, {row.n for row in pairs}
        for source in (words, words.toArrow()):
            merging = table.merge(source, on, spark=spark).when_matched_update({"id": "target.id + 100"})
            merging.when_not_matched_insert({"id": "1000 + source.n"}).execute()
            ids = set(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())
            assert {i - 100 for i in ids if 100 <= i < 1000} == found, on
            assert {i - 1000 for i in ids if i >= 1000} == set(range(len(given))) - met, on
            table.restore(began)
    rows.unpersist()
    with pytest.raises(UserError) as caught:
        table.merge(
            words, "target.id = source.n AND target.ci < source.k COLLATE UNICODE_CI"
        ).when_matched_delete().execute()
    assert caught.value.code == "NEEDS_SPARK"
