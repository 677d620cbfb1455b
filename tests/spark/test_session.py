"""A session that runs already keeps what its owner has set."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import mica
from mica.engines.spark.session import _defaults
from mica.storage.options import STORES
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


def test_no_plan_shows_a_key_that_is_an_option_of_a_statement(spark: SparkSession, tmp_path: Path) -> None:
    setting = "spark.sql.redaction.options.regex"
    mica.Table.create(tmp_path / "t", "a BIGINT")
    kept = re.compile(r"key|secret|token$|sas|container_authorization")  # whose values are secrets
    names = sorted(name for _, options in STORES.values() for name in options if kept.search(name))
    options = ", ".join(f"`storage.{name}` 'hush'" for name in names if not name.endswith("_enabled"))
    mica.enable(spark)
    try:
        with conf(spark, {setting: _defaults("local[1]")[setting]}):
            made = spark.sql(f"CREATE TEMPORARY VIEW keys USING mica OPTIONS (path '{tmp_path}/t', {options})")
            text = made._jdf.queryExecution().toString()
    finally:
        mica.disable(spark)
    spark.catalog.dropTempView("keys")
    assert "account_key" in text
    assert "hush" not in text
