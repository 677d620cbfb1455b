"""Rows that a query asks for twice are read once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from mica.query import here
from mica.scan import little
from mica.scan.scan import Scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = """
    WITH r AS (SELECT id, upper(s) AS u FROM twice WHERE id > 3)
    SELECT /*+ MERGE(x) */ count(*), max(r.id), min(x.id) FROM r JOIN r AS x ON r.u = x.u
"""


@pytest.mark.parametrize("few", [True, False])
def test_rows_that_a_query_names_twice_are_read_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    """Each place of a CTE was read for itself, and its rows were shuffled for itself."""
    table = mica.Table.create(tmp_path / "t", "id INT, s STRING, n INT")
    for start in (0, 50):
        table.append([{"id": i, "s": f"a{i}", "n": i} for i in range(start, start + 50)])
    mica.register("twice", table)
    reads = list[Any]()
    own = little.rows

    def counted(engine: Any, scan: Any, late: Any) -> Any:
        reads.append(scan)
        return own(engine, scan, late)

    monkeypatch.setattr(little, "rows", counted)
    if not few:
        each = lambda scan, parallelism: [[part] for task in scan.tasks(parallelism) for part in task]  # noqa: E731
        monkeypatch.setattr(Scan, "sent", each)
        monkeypatch.setattr(here, "rows", lambda *_: None)
        monkeypatch.setattr(little, "FEW_FILE_BYTES", 0)
    found = mica.sql(TEXT, spark)
    assert found.collect() == [(96, 99, 4)]
    assert len(reads) == (1 if few else 0)
    if not few:
        assert "ReusedExchange" in found._jdf.queryExecution().executedPlan().toString()


def test_places_that_skip_other_files_do_not_share_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    """A cast of a text only skips files, so both places evaluate the same: nothing."""
    table = mica.Table.create(tmp_path / "t", "id INT, s STRING")
    for year in (2000, 2010):
        table.append([{"id": year, "s": f"{year}-01-01"}])
    mica.register("skipping_twice", table)
    parts = [f"SELECT id FROM skipping_twice WHERE try_cast(s AS DATE) {sign} DATE '2005-01-01'" for sign in ("<", ">")]
    found = mica.sql(" UNION ALL ".join(parts), spark)
    assert sorted(row.id for row in found.collect()) == [2000, 2010]
