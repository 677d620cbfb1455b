"""A session that runs already keeps what its owner has set."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import mica
from tests.oracle import conf

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.mark.parametrize("aside", [False, True], ids=["active", "of another thread"])
def test_a_running_session_takes_the_given_settings_alone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, aside: bool
) -> None:
    monkeypatch.setattr(SparkContext, "setLogLevel", lambda *_: pytest.fail("the level of the log was set"))
    name = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    with conf(spark, {"spark.sql.shuffle.partitions": "800", name: "32", "spark.sql.ansi.enabled": "true"}):
        given = {"spark.sql.ansi.enabled": "false"}
        with ThreadPoolExecutor(1) as other:
            found = other.submit(mica.session, **given).result() if aside else mica.session(**given)
        settings = [found.conf.get(one) for one in ("spark.sql.shuffle.partitions", name, "spark.sql.ansi.enabled")]
        assert settings == ["800", "32", "false"]
