"""Tasks as Spark jobs: one task a partition, claims of size, errors that keep their kind."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from mica.engines.spark import jobs
from mica.errors import MicaError, UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def square(task: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"x": pa.array([task * task], pa.int64())})


def refuse(task: int) -> Iterator[pa.RecordBatch]:
    raise UserError("INVALID_ARGUMENT", f"task {task} does not want to", hint="Ask tomorrow.", path="a/b")


def test_every_task_is_a_partition_and_runs_once(spark: SparkSession) -> None:
    frame = jobs.over_tasks(spark, square, [1, 2, 3, 4, 5], "x bigint", size_in_bytes=1 << 20)
    assert sorted(jobs.collect(frame).column("x").to_pylist()) == [1, 4, 9, 16, 25]
    assert frame.rdd.getNumPartitions() == 5


def test_spark_is_told_the_size_so_that_it_broadcasts_no_table(spark: SparkSession) -> None:
    frame = jobs.over_tasks(spark, square, [1, 2], "x bigint", size_in_bytes=1 << 24)
    plan = frame._jdf.queryExecution().optimizedPlan()
    assert abs(plan.stats().sizeInBytes() - (1 << 24)) < 1 << 10
    assert sorted(r.x for r in frame.collect()) == [1, 4]


def test_no_tasks_give_no_rows(spark: SparkSession) -> None:
    assert jobs.collect(jobs.over_tasks(spark, square, [], "x bigint")).num_rows == 0


def test_an_error_of_a_task_comes_out_as_it_was_raised(spark: SparkSession) -> None:
    with pytest.raises(UserError) as raised:
        jobs.collect(jobs.over_tasks(spark, refuse, [7], "x bigint"))
    assert (raised.value.code, raised.value.hint, raised.value.context) == (
        "INVALID_ARGUMENT",
        "Ask tomorrow.",
        {"path": "a/b"},
    )
    assert "task 7" in raised.value.message


def test_a_worker_with_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "versions", lambda: {"Python": "3.99", "mica": "0"})
    with pytest.raises(RuntimeError, match=r"worker has Python 3\.99, the driver has Python 3\.11"):
        jobs.check_versions({"Python": "3.11", "mica": "0"})


@pytest.mark.parametrize("hint", ["Use try_cast.", None])
def test_what_spark_calls_an_error_is_read_from_its_trace(hint: str | None) -> None:
    given = UserError("INVALID_CAST", "v:a cannot be cast", hint=hint, condition="INVALID_VARIANT_CAST")
    trace = "".join(traceback.format_exception_only(jobs.noted(given)))
    found = jobs.translate(RuntimeError(f"Traceback:\n  File x\n{trace} SQLSTATE: 38000"))
    assert isinstance(found, MicaError)
    assert (found.hint, found.context) == (hint, {"condition": "INVALID_VARIANT_CAST"})


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (
            "Traceback:\nModuleNotFoundError: No module named 'mica.tasks'",
            "WORKER_WITHOUT_MICA",
            "could not import mica",
        ),
        ("ModuleNotFoundError: No module named 'pyarrow'", "WORKER_WITHOUT_MICA", "could not import pyarrow"),
        (
            'x: java.io.IOException: Cannot run program "/no/python": error=2',
            "WORKER_WITHOUT_MICA",
            "Python, /no/python",
        ),
        (
            (
                "calling o1.getResult.\n: Job aborted due to stage failure: Task 0 failed once, most recent "
                "failure: Lost task 0.0 in stage 0.0 (TID 0) (x executor driver): a.B: the disk broke\n\tat y"
            ),
            "SPARK_JOB_FAILED",
            "a Spark job failed: a.B: the disk broke",
        ),
        (
            "From the worker:\nTraceback:\n  File x\nValueError: no such thing",
            "SPARK_JOB_FAILED",
            "ValueError: no such thing",
        ),
        (
            (
                "Traceback:\n  File x\nmica.errors.UserError: [INVALID_CAST] f: v:a cannot be cast\nUse try_cast.\n"
                " SQLSTATE: 38000\n\tat y"
            ),
            "INVALID_CAST",
            "f: v:a cannot be cast",
        ),
        (
            (
                "An error occurred while calling o9.localCheckpoint.\n: org.x.SparkException: [MALFORMED] so: {.\n"
                "\tat y\nCaused by: com.x.JsonEOFException: Unexpected end-of-input"
            ),
            "SPARK_JOB_FAILED",
            "a Spark job failed: [MALFORMED] so: {.",
        ),
        (
            (
                "Job aborted due to stage failure: Task 0 failed once, most recent failure: Lost task 0.0 in stage 0.0 "
                "(TID 0) (x executor driver): org.x.SparkDateTimeException: [CAST_INVALID_INPUT] The value 'x'.\n\tat y"
            ),
            "INVALID_CAST",
            "[CAST_INVALID_INPUT] The value 'x'.",
        ),
        ("(org.x.Y) [CAST_OVERFLOW_IN_TABLE_INSERT] so", "INVALID_VALUE", "[CAST_OVERFLOW_IN_TABLE_INSERT] so"),
        ("(org.x.Y) [NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] 1000", "INVALID_CAST", "[NUMERIC_VALUE_OUT_OF_RANGE."),
        ("(org.x.Y) [USER_RAISED_EXCEPTION] no", "SPARK_JOB_FAILED", "a Spark job failed: (org.x.Y) [USER_RAISED_"),
        ("worker x: java.io.EOFException\n\tat y", "WORKER_LOST", "died"),
        ("only this", "SPARK_JOB_FAILED", "a Spark job failed: only this"),
    ],
)
def test_what_spark_says_becomes_one_sentence(text: str, code: str, says: str) -> None:
    found = jobs.translate(RuntimeError(text))
    assert isinstance(found, MicaError)
    assert found.code == code
    assert says in found.message
