"""A clustered table of delta-spark, changed and optimized by mica and by delta-spark in turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from mica.log.clustering import cluster_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_both_cluster_their_own_files(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT, s STRING) USING delta CLUSTER BY (id, s)")
    table = mica.Table.open(path)
    assert cluster_by(table.snapshot) == ["id", "s"]
    spark.sql(f"INSERT INTO delta.`{path}` SELECT CAST(id AS INT), CAST(id % 7 AS STRING) FROM range(100)")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    theirs = set(table.refresh().snapshot.clustering_providers().to_pylist())
    assert theirs == {"liquid"}
    for start in (100, 150):
        table.append([{"id": i, "s": str(i % 7)} for i in range(start, start + 50)])
    table.optimize()
    found = table.snapshot.clustering_providers().to_pylist()
    assert sorted(set(found)) == ["liquid", "mica"]
    table.delete("id = 5 OR id = 120")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    assert spark.read.format("delta").load(str(path)).count() == table.refresh().count() == 198
    assert mica.check(path).ok


@pytest.mark.slow
def test_delta_spark_has_the_columns_that_mica_clusters_by(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, t = delta_session, f"delta.`{tmp_path / 't'}`"
    mica.sql(f"CREATE TABLE {t} (id INT, s STRUCT<a: INT>) USING mica CLUSTER BY (s.a)", spark)
    assert spark.sql(f"DESCRIBE DETAIL {t}").collect()[0].clusteringColumns == ["s.a"]
    mica.sql(f"ALTER TABLE {t} CLUSTER BY (id, s.a)", spark)
    mica.sql(f"INSERT INTO {t} VALUES (2, NULL), (1, NULL)", spark)
    mica.sql(f"OPTIMIZE {t} FULL", spark)
    assert spark.sql(f"DESCRIBE DETAIL {t}").collect()[0].clusteringColumns == ["id", "s.a"]
    spark.sql(f"OPTIMIZE {t} FULL")
    spark.sql(f"ALTER TABLE {t} CLUSTER BY NONE")
    assert mica.sql(f"DESCRIBE DETAIL {t}", spark).collect()[0].clusteringColumns == []
    assert mica.sql(f"SELECT count(*) FROM {t}", spark).collect()[0][0] == 2
