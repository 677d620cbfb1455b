"""FSCK REPAIR TABLE: of paths, registered names and the catalog's tables, read by delta-spark afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from mica.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ["dataFilePath", "dataFileMissing", "deletionVectorPath", "deletionVectorFileMissing"]


def _holed(path: Path) -> tuple[mica.Table, str]:
    """A table of three files, of which the first is gone, and its name."""
    table = mica.Table.create(path, "id INT, v VARIANT", properties={"delta.enableVariantShredding": "true"})
    for n in range(3):
        table.append([{"id": n, "v": {"n": n}}])
    (part,) = table.scan("id = 0").whole_files()
    Path(path, part.path).unlink()
    return table, str(Path(path, part.path))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["delta.`{}`", "'{}'", "holed"])
def test_files_that_are_gone_leave_the_table(delta_session: SparkSession, tmp_path: Path, form: str) -> None:
    table, lost = _holed(tmp_path / "t")
    mica.register("holed", table.path)
    name = form.format(table.path)
    listed = mica.sql(f"FSCK REPAIR TABLE {name} DRY RUN", delta_session)
    assert listed.columns == COLUMNS
    assert [tuple(row) for row in listed.collect()] == [(lost, True, None, False)]
    with pytest.raises(Exception, match="is gone"):
        mica.sql(f"SELECT * FROM delta.`{table.path}`", delta_session).collect()
    assert mica.sql(f"FSCK REPAIR TABLE {name}", delta_session).collect() == listed.collect()
    assert mica.sql(f"FSCK REPAIR TABLE {name}", delta_session).collect() == []
    rows = [(1, "1"), (2, "2")]
    text = f"SELECT id, v:n::string FROM delta.`{table.path}` ORDER BY id"
    assert [tuple(row) for row in mica.sql(text, delta_session).collect()] == rows
    delta = delta_session.read.format("delta").load(table.path)
    assert sorted(tuple(row) for row in delta.selectExpr("id", "v:n::string").collect()) == rows
    last = delta_session.sql(f"DESCRIBE HISTORY delta.`{table.path}` LIMIT 1").first()
    assert (last["operation"], last["operationMetrics"]["numRemovedFiles"]) == ("FSCK", "1")


def test_a_table_of_the_catalog(delta_session: SparkSession, tmp_path: Path) -> None:
    table, lost = _holed(tmp_path / "t")
    delta_session.sql(f"CREATE TABLE holed_there USING delta LOCATION '{table.path}'")
    mica.enable(delta_session)
    try:
        (row,) = delta_session.sql("FSCK REPAIR TABLE holed_there").collect()
        assert tuple(row) == (lost, True, None, False)
        assert delta_session.sql("SELECT count(*) FROM holed_there").first() == (2,)
    finally:
        mica.disable(delta_session)
        delta_session.sql("DROP TABLE holed_there")


def test_what_is_no_table_is_named(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("nowhere", f"delta.`{tmp_path}`"):
        with pytest.raises(UserError) as caught:
            mica.sql(f"FSCK REPAIR TABLE {name}", spark)
        assert caught.value.code == "TABLE_NOT_FOUND", name
    table, _ = _holed(tmp_path / "t")
    with pytest.raises(UserError, match="changes a table at its newest version"):
        mica.sql(f"FSCK REPAIR TABLE delta.`{table.path}@v1`", spark)
    spark.range(1).createOrReplaceTempView("a_view")
    try:
        with pytest.raises(UserError):
            mica.sql("FSCK REPAIR TABLE a_view", spark)
    finally:
        spark.catalog.dropTempView("a_view")
