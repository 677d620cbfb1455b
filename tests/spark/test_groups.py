"""The first groups of a query: what one process counts returns no others, and they are those of Spark."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import mica
from mica.engines.spark import folds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def table(spark: SparkSession, seed: int, tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    rng = random.Random(seed)
    table = mica.Table.create(tmp_path_factory.mktemp("groups") / "t", "k STRING, v VARIANT")
    for _ in range(2):
        table.append([
            {"k": rng.choice([None, *"abcdefgh"]), "v": {"k": rng.choice("pqrst"), "t": rng.randrange(1000)}}
            for _ in range(300)
        ])  # fmt: skip
    table.to_df(spark).createOrReplaceTempView("of_groups")
    return table


@pytest.mark.parametrize(
    ("query", "cut"),
    [
        ("v:k::string k, count(*) c FROM {} GROUP BY 1 ORDER BY c DESC, k LIMIT 2", True),
        ("k, count(DISTINCT v:t::int) c FROM {} GROUP BY k ORDER BY c, k LIMIT 3", True),
        ("k, max(v:t::bigint) - min(v:t::bigint) c FROM {} GROUP BY k ORDER BY c DESC, k LIMIT 3", True),
        ("k, min(v:t::bigint) c FROM {} GROUP BY k ORDER BY c, k LIMIT 3", True),
        ("k, min(v:t::bigint) c FROM {} GROUP BY k ORDER BY k DESC NULLS FIRST LIMIT 3", True),
        ("k, min(v:t::bigint) c FROM {} GROUP BY k ORDER BY k NULLS LAST LIMIT 3", True),
        ("v:k::string k, max(v:t::int) c FROM {} GROUP BY 1 ORDER BY k DESC LIMIT 3", True),
        ("v:t::int n, count(*) c FROM {} GROUP BY 1 ORDER BY n LIMIT 4", True),
        ("v:t::int n, count(*) + 1 c FROM {} GROUP BY 1 ORDER BY c DESC, n LIMIT 4", False),
        ("v:t::int n, count(*) c FROM {} GROUP BY 1 ORDER BY n + 1 LIMIT 4", False),
        ("v:k::string k, count(*) c FROM {} GROUP BY 1 ORDER BY c, k LIMIT 0", False),
        ("v:t::double k, count(*) c FROM {} GROUP BY 1 ORDER BY k DESC LIMIT 3", False),
    ],
)
def test_the_first_groups_are_those_of_spark(
    spark: SparkSession, table: mica.Table, monkeypatch: pytest.MonkeyPatch, query: str, cut: bool
) -> None:
    found = []

    class Counted(folds.First):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)
            found.append(given)

    monkeypatch.setattr(folds, "First", Counted)
    rows = mica.sql(f"SELECT {query.format(f'delta.`{table.path}`')}", spark).collect()
    assert rows == spark.sql(f"SELECT {query.format('of_groups')}").collect()
    assert bool(found) == cut
