"""A scan that is too much for this process is left to Spark's tasks as soon as that is seen."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import mica
from mica.engines.spark.batches import REFUSED
from mica.engines.spark.engine import Spark
from mica.scan import little
from mica.tasks import parts
from mica.tasks.read import read_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, ROWS = 32, 1_000


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are opened here; a file is a task, if there are several threads, and a large one."""
    found: list[str] = []

    def noted(spec: Any, files: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        for file in files:
            found.append(file.path)
            time.sleep(0.1)  # as a large one takes
            yield from read_parts(spec, [file])

    monkeypatch.setattr(little, "read_parts", noted)
    monkeypatch.setattr(little, "TASK_BYTES", 0)
    monkeypatch.setattr(parts, "LEAST_BYTES", 1)
    monkeypatch.setattr(little, "FEW_ROWS", 2 * ROWS)
    monkeypatch.setattr("mica.scan.scan.workers", lambda spec, files, threads: threads)
    return found


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    made = mica.Table.create(tmp_path / "t", "id BIGINT, n BIGINT")
    for number in range(FILES):
        ids = pa.array(range(number * ROWS, (number + 1) * ROWS))
        made.append(pa.table({"id": ids, "n": pa.array([i % 100 for i in range(ROWS)])}))
    return made


@pytest.mark.spark
def test_rows_that_will_be_too_many_are_left_to_tasks_early(
    spark: SparkSession, table: mica.Table, opened: list[str]
) -> None:
    scan = table.scan("n < 50")
    assert little.rows(Spark(spark), scan, REFUSED) is None
    assert 0 < len(opened) < FILES  # how many others have begun meanwhile is chance
    assert scan.count() == FILES * ROWS // 2


@pytest.mark.spark
def test_a_few_of_many_rows_are_read_here(spark: SparkSession, table: mica.Table, opened: list[str]) -> None:
    found = little.rows(Spark(spark), table.scan("n = 7"), REFUSED)
    assert found is not None
    assert found.count() == FILES * ROWS // 100
    assert len(opened) == FILES


def test_rows_are_counted_where_all_are_read(table: mica.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million rows that are much alike take few bytes."""
    assert little.is_little(table.scan())
    monkeypatch.setattr(little, "FEW_ROWS", 2 * ROWS)
    assert not little.is_little(table.scan(columns=["id"]))
    assert little.is_little(table.scan("n = 7"))
    assert little.is_little(table.scan(limit=9))
    monkeypatch.setattr(little, "FEW_FILE_BYTES", 9)
    assert not little.is_little(table.scan(limit=9))


@pytest.mark.parametrize(
    ("rows", "used", "read", "much"),
    [
        (0, 0, 10, False),  # none so far
        (100, 0, 1, False),  # they might be in one place
        (5_000, 0, 10, False),  # as many as fit
        (5_000, 0, 4, True),
        (0, 1 << 20, 5, True),  # few, and large
    ],
)  # fmt: skip
def test_what_will_be_found(rows: int, used: int, read: int, *, much: bool) -> None:
    pace = little._Pace(100)
    pace.ended(rows, used, read)
    assert pace.is_much is much
