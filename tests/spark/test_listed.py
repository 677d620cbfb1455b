"""Lists of tables show mica's as Spark's are shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[None]:
    """The session reads names of mica's."""
    mica.enable(spark)
    yield
    mica.disable(spark)


@pytest.fixture
def databases(spark: SparkSession, enabled: None) -> Iterator[tuple[str, str]]:
    """Two databases with the same tables, of Spark's and of mica's."""
    for database, source in (("of_spark", "parquet"), ("of_mica", "mica")):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {database}")
        spark.sql(
            f"CREATE TABLE {database}.l1 (a INT COMMENT 'x', p INT) USING {source} PARTITIONED BY (p) COMMENT 'hi'"
        )
        spark.range(1).write.format(source).saveAsTable(f"{database}.L2")
    spark.range(1).createOrReplaceTempView("l1")
    yield "of_spark", "of_mica"
    spark.sql("USE default")
    spark.catalog.dropTempView("l1")
    spark.sql("DROP SCHEMA of_spark CASCADE")


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_tables_of_a_database_are_listed_as_spark_s(spark: SparkSession, databases: tuple[str, str]) -> None:
    """They were in no list."""
    shown = list[list[Any]]()
    for database in databases:
        catalog, found = spark.catalog, list[Any]()
        for text in (
            f"SHOW TABLES IN {database}", f"SHOW TABLES FROM `{database}` LIKE '*2'", f"SHOW TABLES IN {database} 'l1'",
            f"SHOW VIEWS IN {database} LIKE 'l*'", f"SHOW TABLE EXTENDED IN {database} LIKE 'l*'",
        ):  # fmt: skip
            found.append([tuple(row)[:3] for row in spark.sql(text).collect()])
        found += [catalog.listTables(database, "l*"), catalog.getTable(f"{database}.L2")]
        found += [catalog.listColumns(f"{database}.l1"), catalog.listColumns(f"spark_catalog.{database}.l2")]
        found += [catalog.listColumns("l1", database)]
        spark.sql(f"USE {database}")
        found += [catalog.getTable("l2"), [row.tableName for row in spark.sql("SHOW TABLES LIKE 'l*'").collect()]]
        spark.sql("USE default")
        shown.append(found)
    of_spark, of_mica = (str(found).replace(name, "d") for found, name in zip(shown, databases, strict=True))
    assert of_mica == of_spark
    (row,) = spark.sql("SHOW TABLE EXTENDED IN of_mica LIKE 'l2'").collect()
    assert "|-- id: long" in row.information
    for told in ("Database: of_mica\nTable: l2\nType: MANAGED\nProvider: delta\nLocation: ", "/l2\nSchema: root"):
        assert told in row.information
    assert "VIEW" not in row.information, "it was shown as a view"
    spark.sql("COMMENT ON TABLE of_mica.l2 IS 'two'")
    (row,) = spark.sql("SHOW TABLE EXTENDED IN of_mica LIKE 'l2'").collect()
    assert "\nProvider: delta\nComment: two\nLocation: " in row.information


@pytest.mark.usefixtures("enabled", "compiled")
def test_what_is_made_in_default_is_listed_there_only(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE listed_alone USING mica AS SELECT 1 AS a")
    text = "SHOW TABLES IN {} LIKE 'listed_*'"
    assert spark.sql(text.format("default")).collect() == [("default", "listed_alone", False)]
    spark.sql("CREATE SCHEMA IF NOT EXISTS of_others")
    assert spark.sql(text.format("of_others")).collect() == []
    assert spark.catalog.getTable("listed_alone").namespace == ["default"]
    assert ("Type", "MANAGED", "") in spark.sql("DESCRIBE EXTENDED listed_alone").collect()
    spark.sql("USE of_others")
    try:
        assert not spark.catalog.tableExists("of_others.listed_alone")
        for text in ("SELECT * FROM of_others.listed_alone", "INSERT INTO of_others.listed_alone VALUES (2)"):
            with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
                spark.sql(text)
    finally:
        spark.sql("USE default")


@pytest.mark.usefixtures("enabled", "compiled")
def test_a_table_is_described_with_its_database_as_by_delta_spark(delta_session: SparkSession, tmp_path: Path) -> None:
    """It was described as one without a name."""
    told = list[list[tuple[str, str]]]()
    for kind in ("delta", "mica"):
        delta_session.sql(f"CREATE SCHEMA told_{kind}")
        for name, place in (("managed", ""), ("external", f"LOCATION '{tmp_path}/{kind}'")):
            own = f"told_{kind}.{name}"
            delta_session.sql(f"CREATE TABLE {own} (a INT) USING {kind} {place} COMMENT 'c'")
            rows = delta_session.sql(f"DESCRIBE EXTENDED {own}").collect()
            found = [(row.col_name, row.data_type.replace(f"told_{kind}", "d")) for row in rows]
            start = found.index(("# Detailed Table Information", ""))
            told.append([pair for pair in found[start:] if pair[0] not in ("Location", "Table Properties")])
            delta_session.sql(f"DROP TABLE {own}")
        delta_session.sql(f"DROP SCHEMA told_{kind}")
    assert told[2:] == told[:2]
    assert ("Type", "EXTERNAL") in told[1]
