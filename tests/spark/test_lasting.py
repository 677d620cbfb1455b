"""Workers of Spark's: what lasts as long as they do is set aside from garbage collection, and nothing else is."""

from __future__ import annotations

from collections import defaultdict

import pytest
from pyspark.sql import SparkSession

from mica.engines.spark import jobs

pytestmark = [pytest.mark.slow, pytest.mark.spark]

#: One row: the process, what was set aside, and what garbage collection looks at.
COUNTS = """[__import__("pyarrow").record_batch({
    "pid": [__import__("os").getpid()],
    "aside": [__import__("gc").get_freeze_count()],
    "looked_at": [len(__import__("gc").get_objects())],
})]"""


def test_modules_are_set_aside_and_no_task_adds_to_them(spark: SparkSession) -> None:
    by_worker = defaultdict(list)
    for _ in range(60):  # a session that has run other jobs has more workers, which take turns
        found = jobs.collect(jobs.over_tasks(spark, eval, [COUNTS], "pid long, aside long, looked_at long"))
        for row in found.to_pylist():
            by_worker[row["pid"]].append((row["aside"], row["looked_at"]))
        counts = max(by_worker.values(), key=len)
        if len(counts) == 4:
            break
    else:
        pytest.fail("no worker was used again")
    assert counts[-1][0] > 4 * counts[-1][1], counts  # modules of PySpark, Arrow and mica: tens of thousands
    assert counts[-1][0] <= counts[-2][0], counts  # the objects of a task are not among them
