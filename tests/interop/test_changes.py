"""mica and delta-spark change rows of two tables alike: the rows are the same. (In turn: `test_all_kinds.py`.)

Each pair of changes by delta-spark takes seconds: few are drawn, and a campaign makes all.
"""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from tests.support import CAMPAIGN, dealt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Predicates of which a part matches in some files, all, or none.
WHERES = [
    "id % 7 = {k}", "v:a::int BETWEEN {k}0 AND {k}9", "n IS NULL AND id < {k}00", "p = {p}", "p = {p} AND id % 3 = 0",
    "v:s::string LIKE 't{k}%'", "NOT (n > {k}5)", "n > 1{k}0 OR id = {k}", "id < 0", "v:s::string IN ('t{k}', 't1{k}')",
]  # fmt: skip
VALUES = [
    {"n": "id + 1"}, {"n": "CASE WHEN n IS NULL THEN 0 ELSE n * 2 END"}, {"p": "(p + 1) % 3"},
    {"n": "CAST(NULL AS BIGINT)"},
    {"s": "concat(s, '-', CAST(id AS STRING))", "n": "coalesce(n, 7)"},
]  # fmt: skip
COLUMNS = ("id", "p", "n", "s", "to_json(v)")
DRAWN = len(WHERES) if CAMPAIGN else 2


def rows(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    frame = spark.read.format("delta").load(str(path)).selectExpr(*COLUMNS)
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.mark.slow
@pytest.mark.parametrize("vectors", dealt([False, True], 0))
def test_both_change_the_same_rows(
    delta_session: SparkSession, tmp_path: Path, rng: random.Random, vectors: bool
) -> None:
    spark = delta_session
    for number, where in enumerate(rng.sample(WHERES, DRAWN)):
        asked = where.format(k=rng.randrange(7), p=rng.randrange(3))
        values = rng.choice(VALUES)
        tables = []
        for name in ("mine", "theirs"):
            path = tmp_path / f"{name}{number}"
            properties = {"delta.enableDeletionVectors": str(vectors).lower()}
            table = mica.Table.create(
                path, "id INT, p INT, n BIGINT, s STRING, v VARIANT", ["p"], properties=properties
            )
            for part in range(3):
                table.append([
                    {"id": i, "p": i % 3, "n": None if i % 4 == 0 else i, "s": "x", "v": {"a": i, "s": f"t{i}"}}
                    for i in range(part * 50, part * 50 + 50)
                ])  # fmt: skip
            tables.append(table)
        mine, theirs = tables
        done = [mine.update(values, asked), mine.delete(asked, spark=spark if number == 0 else None)]
        sets = ", ".join(f"{k} = {v}" for k, v in values.items())
        spark.sql(f"UPDATE delta.`{theirs.path}` SET {sets} WHERE {asked}")
        spark.sql(f"DELETE FROM delta.`{theirs.path}` WHERE {asked}")
        assert rows(spark, Path(mine.path)) == rows(spark, Path(theirs.path)), asked
        told = [dict(row["operation_metrics"] or ()) for row in theirs.refresh().history().to_pylist()
                if row["operation"] in ("UPDATE", "DELETE")][::-1]  # fmt: skip
        names = [row["operation"] for row in theirs.history().to_pylist()][::-1]
        for commit, name in zip(done, ("UPDATE", "DELETE"), strict=True):
            if name in names and commit.metrics:
                counted = "numUpdatedRows" if name == "UPDATE" else "numDeletedRows"
                other = told[[n for n in names if n in ("UPDATE", "DELETE")].index(name)]
                if counted in other:
                    assert int(other[counted]) == commit.metrics[counted], (asked, name)


@pytest.mark.slow
def test_conflicts_are_judged_in_the_zone_of_the_session(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    table = mica.Table.create(tmp_path, "id INT, ts TIMESTAMP", ["ts"])
    moments = [datetime(2020, 1, 1, hour, tzinfo=UTC) for hour in (0, 12)]
    table.append([{"id": number, "ts": moment} for number, moment in enumerate(moments)])
    stale = mica.Table.open(tmp_path)
    table.append([{"id": 2, "ts": datetime(2020, 1, 1, 3, tzinfo=UTC)}])  # at ten in the evening in New York
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with pytest.raises(mica.ConflictError):
            stale.delete("hour(ts) IN (19, 22)", spark=spark)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert mica.Table.open(tmp_path).count() == 3


@pytest.mark.slow
def test_the_log_shows_conditions_alike(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    shown = []
    for name in ("mine", "theirs"):
        table = mica.Table.create(tmp_path / name, "id INT")
        table.append([{"id": 1}, {"id": 2}])
        for text in ("UPDATE {} SET id = 3", "UPDATE {} SET id = 4 WHERE (id = 3)", "DELETE FROM {}"):
            written = text.format(f"delta.`{table.path}`")
            _ = mica.sql(written, spark) if name == "mine" else spark.sql(written)
        told = [dict(row["operation_parameters"]) for row in table.refresh().history(3).to_pylist()]
        shown.append([re.sub(r"#\d+|[() ]", "", parameters["predicate"]) for parameters in told])
    assert shown[0] == shown[1] == ['["true"]', '["id=3"]', "[]"]
