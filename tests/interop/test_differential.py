"""A share of the differential campaign (`make differential`): mica, the session's Spark and DuckDB read each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.campaign.compare import run
from tests.campaign.documents import canonical, differs, documents
from tests.campaign.engines import DuckDB, Mica, SessionSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Faults of files that have one meaning (docs/check.md).
TOLERATED = {"unsorted_ids", "utf16_order"}


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_everyone_reads_what_mica_writes_and_mica_reads_everyone(
    spark: SparkSession, seed: int, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb")
    outcome = run([Mica(), SessionSpark(spark), DuckDB()], seed % 2**31, 2, 40, tmp_path)
    assert len(outcome.cells) >= 12
    for (writer, layout, reader), cell in outcome.cells.items():
        if "mica" not in (writer, reader):
            continue
        # Some documents DuckDB does not write at all.
        assert cell.rows == outcome.written[writer, layout]
        assert writer.startswith("DuckDB") or cell.rows == 80, (writer, layout, reader, outcome.refused)
        # A file whose fault leaves a value without one meaning is refused, and never read as something else.
        broken = set(outcome.violations[writer, layout]) - TOLERATED
        allowed = {"cannot read"} if reader == "mica" and broken else set()
        # Digits that DuckDB does not read back itself (integers of 38 digits) it lost when it wrote.
        own = outcome.cells[writer, layout, writer].wrong.get("digits", (0, ""))
        if writer.startswith("DuckDB") and cell.wrong.get("digits", (0, ""))[0] <= own[0]:
            allowed.add("digits")
        assert set(cell.wrong) <= allowed, (writer, layout, reader, cell.wrong, broken)
    assert not outcome.violations["mica", "shredded"]
    assert not outcome.violations["mica", "unshredded"]


@pytest.mark.parametrize(
    ("expected", "found", "kind"),
    [
        ('{"a":1}', '{"a":1.0}', None),
        ('{"a":1,"b":[2]}', '{"b":[2],"a":1}', None),
        ('{"a":1}', '{"b":1}', "keys"),
        ("[1]", "[1,2]", "length"),
        ('{"a":[1]}', '{"a":[null]}', "null"),
        ("1", '"1"', "value"),
        ("true", "1", "value"),
        ("9007199254740993", "9007199254740992", "digits"),
        ("0.1", "0.2", "value"),
    ],
)
def test_differences_are_seen(expected: str, found: str, kind: str | None) -> None:
    assert differs(canonical(expected), canonical(found)) == kind


def test_documents_repeat_and_vary() -> None:
    one: list[Any] = documents(7, 50)
    assert one == documents(7, 50)
    assert one != documents(8, 50)
    assert len(set(one)) > 40
