"""Optimize along a curve as a Spark job: the same rows, and files that predicates skip."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import mica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_on_spark(spark: SparkSession, tmp_path: Path, rng: random.Random) -> None:
    table = mica.Table.create(tmp_path, "id INT, p INT, s STRING COLLATE UNICODE_CI, v VARIANT", ["p"])
    for file in range(4):
        table.append([
            {"id": i, "p": i % 2, "s": rng.choice("aBcDeFgH") + str(i),
             "v": {"a": rng.randrange(5000), "b": rng.choice([rng.randrange(99), f"x{i}", None])}}
            for i in range(file * 500, file * 500 + 500)
        ])  # fmt: skip
    columns = {"id": "id", "p": "p", "s": "s", "v": "to_json(v)"}
    before = sorted(map(str, table.scan(columns=columns).to_arrow().to_pylist()))
    done = table.optimize(zorder_by=["v:a", "s"], target_file_size=5_000, spark=spark)
    assert done.metrics["numRemovedFiles"] == 8
    assert done.files >= 4
    assert len(table.scan(where="v:a::int < 100").plan.kept) <= done.files * 0.75
    assert len(table.scan(where="s < 'b'", spark=spark).plan.kept) <= done.files * 0.75
    assert sorted(map(str, table.scan(columns=columns).to_arrow().to_pylist())) == before
