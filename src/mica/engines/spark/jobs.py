"""Runs tasks as Spark jobs.

The rule: a job is only `mapInArrow` over a DataFrame, so Spark Connect and every cluster can run it. The data of a task
is in the function's pickled bytes, never in the text of a plan, so secrets do not appear in a UI or a log.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import pickle
import platform
import re
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from mica import __version__
from mica.engines import progress
from mica.engines.spark import decimals, types
from mica.engines.spark.lasting import set_aside
from mica.engines.spark.session import is_connect
from mica.errors import ConflictError, CorruptDataError, MicaError, StorageError, UnsupportedTableError, UserError
from mica.schema.spelling import quote_if_needed
from mica.schema.types import StructType as OwnStructType
from mica.schema.types import loosened
from mica.tasks import lane

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Task = TypeVar("Task")
Result = TypeVar("Result")
Batches = Iterable[pa.RecordBatch]

#: Upper limit of rows per task of the input range, see `over_tasks`.
MAX_CLAIM = 1 << 27


def over_tasks(
    spark: SparkSession,
    function: Callable[[Task], Batches],
    tasks: Sequence[Task],
    schema: StructType | str,
    *,
    size_in_bytes: int = 0,
    for_people: bool = False,
) -> DataFrame:
    """A DataFrame of the batches that `function` yields for each task; every task is one partition.

    `size_in_bytes` is the approximate size of the result. Spark estimates the output of `mapInArrow` by its input; with
    an input of a few task numbers it would broadcast a large result in a join. So the input is a range of the right
    estimated size, filtered to one number per partition. `for_people` says that the user gets the DataFrame: then Spark
    shows its errors, and `collect` does not translate them.
    """
    if not tasks:
        return spark.createDataFrame([], schema)
    claim = max(1, min(size_in_bytes // (8 * len(tasks)), MAX_CLAIM))
    numbers = spark.range(0, len(tasks) * claim, 1, len(tasks))
    if claim > 1:
        numbers = numbers.filter(f"id % {claim} = 0")
    payloads = [zlib.compress(pickle.dumps(task), 1) for task in tasks]
    return numbers.mapInArrow(
        _on_worker(_run_tasks, (pickle.dumps(function), payloads, claim), marks=not for_people), schema
    )


def tasks_of(command: bytes) -> tuple[Any, list[Any]] | None:
    """The function and the tasks of a job of `over_tasks`, by its bytes in Spark's plan. None for another function, and
    for one so large that the bytes are the name of a broadcast."""
    if _on_worker.__qualname__.encode() not in command:
        return None
    run, _ = pickle.loads(command)  # noqa: S301 - the driver's own bytes
    of = inspect.getclosurevars(run).nonlocals
    if of["name"] != _run_tasks.__qualname__:
        return None
    function, payloads, _ = of["arguments"]
    return pickle.loads(function), [pickle.loads(zlib.decompress(one)) for one in payloads]  # noqa: S301


def over_rows(
    rows: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Batches], schema: StructType | str
) -> DataFrame:
    """A DataFrame of the results of `function` for the batches of each partition."""
    names = rows.columns
    if any(mark in name for name in names for mark in ".`*"):
        # PySpark looks its columns up by their names, and quotes none.
        rows, function = rows.toDF(*map(str, range(len(names)))), partial(_run_named, names, function)
    if not is_connect(rows.sparkSession):
        rows, numbers = decimals.sent(rows)
        function = partial(decimals.of_numbers, numbers, function) if numbers else function
    return rows.mapInArrow(_on_worker(_run_rows, (pickle.dumps(function),)), schema)


def together(rows: DataFrame, partition_by: Sequence[str]) -> DataFrame:
    """The rows, those of a partition together."""
    from pyspark.sql import functions as sql

    names = [quote_if_needed(name) for name in partition_by]
    return rows.hint("rebalance", *names).sortWithinPartitions(*map(sql.col, names))


def collect(frame: DataFrame) -> pa.Table:
    """Runs the job once and collects its (small) result; an error of a task is raised unchanged."""
    return ran(frame.sparkSession, frame.toArrow)


def ran(spark: SparkSession, work: Callable[[], Result]) -> Result:
    """What `work`, which runs jobs, returns; an error of a task is raised unchanged."""
    try:
        return interruptible(spark, work)
    except Exception as e:  # noqa: BLE001 - read and translated
        # A failed job raises PySparkException, gRPC's error or Py4J's, depending on session and cause. The user sees
        # mica's sentence only: Spark's error with its stacks is the __context__.
        raise translate(e) from None


def collect_given(frame: DataFrame) -> pa.Table:
    """Collects rows of the user, with nulls allowed in structs: `toArrow` fails on a null struct with a field that is
    never null."""
    from pyspark.sql import functions as sql

    given = types.from_spark(frame.schema)
    loose = [replace(field, type=loosened(field.type)) for field in given.fields]
    wanted = types.to_spark(OwnStructType(tuple(loose)))
    strict = [name for name, own, f in zip(given.names, given.fields, loose, strict=True) if own.type != f.type]
    casts = {name: sql.col(quote_if_needed(name)).cast(wanted[name].dataType) for name in strict}
    return collect(frame.withColumns(casts) if casts else frame)


def interruptible(spark: SparkSession, work: Callable[[], Result]) -> Result:
    """Returns the result of `work`; Ctrl-C cancels the jobs and raises KeyboardInterrupt. A watcher sees how
    many tasks of the running stages have ended.

    The main thread handles signals. PySpark's handler asks the JVM to cancel the jobs, which fails if the main thread
    itself waits for the JVM. So `work` runs in another thread.
    """
    with shown(spark):
        return work() if threading.current_thread() is not threading.main_thread() else _aside(spark, work)


def _aside(spark: SparkSession, work: Callable[[], Result]) -> Result:
    """Runs `work` in another thread."""
    from pyspark import InheritableThread

    done: list[Result] = []
    failed: list[BaseException] = []
    ended = threading.Event()  # a `join` that Ctrl-C ended takes the thread for ended, up to Python 3.12

    def run() -> None:
        try:
            done.append(work())
        except BaseException as e:  # noqa: BLE001 - it belongs to the caller, who raises it
            failed.append(e)
        finally:
            ended.set()

    thread = InheritableThread(run, session=spark)
    thread.daemon = True
    thread.start()
    try:
        while thread.is_alive() and not ended.wait(LOOK_SECONDS):
            pass
    except KeyboardInterrupt:
        with contextlib.suppress(Exception):
            _cancel(spark)
        ended.wait(CANCEL_SECONDS)  # files of its tasks can be deleted only after they have ended
        raise
    if failed:
        raise failed[0]
    return done[0]


#: Seconds to wait for a cancelled job.
CANCEL_SECONDS = 10


def _cancel(spark: SparkSession) -> None:
    """Ends the jobs of the session."""
    try:
        spark.sparkContext.cancelAllJobs()
    except Exception:  # noqa: BLE001 - a Connect session has no context
        spark.interruptAll()


@contextlib.contextmanager
def shown(spark: SparkSession) -> Iterator[None]:
    """Shows the session's jobs while the block runs, to whoever watches."""
    work, ended = progress.current(), threading.Event()
    if work is None:
        yield
        return
    watcher = threading.Thread(target=_watch, args=(spark, work, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join(LOOK_SECONDS)
        work.ended()


#: Seconds between two looks at the tasks, and to wait for the end of the last one.
WATCH_SECONDS = 0.5
LOOK_SECONDS = 5


def _watch(spark: SparkSession, work: progress.Work, ended: threading.Event) -> None:
    """Reports the tasks of the running jobs, if the session can (Spark Connect cannot)."""
    with contextlib.suppress(Exception):
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(WATCH_SECONDS):
            jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
            tasks = sum(stage.numTasks for stage in stages if stage is not None)
            done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            if tasks and not ended.is_set():
                work.tell(tasks=tasks, ended_tasks=done, input_bytes=work.progress.total_bytes * done // tasks)


#: Marks a task's own error at the end of the worker's trace: one readable line of JSON.
_MARK = re.compile(r"mica-error:(\{.*\})")
#: An error without a mark, in the trace of a DataFrame that people read: class, code, message, hint and condition.
_TRACED = re.compile(
    r"^mica\.errors\.(\w+): \[(\w+)\] (.+)(?:\n(?!Spark: )(\S.*))?(?:\nSpark: ([A-Z_.]+)$)?", re.MULTILINE
)
_KINDS: dict[str, type[MicaError]] = {
    kind.__name__: kind for kind in (UserError, UnsupportedTableError, CorruptDataError, ConflictError, StorageError)
}


#: A worker without mica, or without what mica stands on; or without Python.
_LACKING = re.compile(
    r"No module named '((?:mica|pyarrow|numpy|pandas|obstore|orjson)\b)|Cannot run program \"([^\"]+)\""
)
#: The message for a job that was cancelled: by its group, by its tag or in Spark's UI.
CANCELLED = "a Spark job was cancelled; nothing was committed"
#: The sentence of a job's error: of the task that failed, or the last of a worker's trace.
_REASON = re.compile(r"(?:most recent failure: Lost task [^:]*: |^(?=\w+(?:Error|Exception): ))(.*)", re.MULTILINE)
#: The sentence of an error for which PySpark has no class: Py4J's first line names its own call only.
_OF_PY4J = re.compile(r"^: (?:[\w.$]+: )?(.*)", re.MULTILINE)
#: Such a sentence from Spark's condition on, behind the class of its error; the condition, and its main one.
_SPARKS = re.compile(r"(?:\([\w.$]+\) |[\w.$]+: )?(\[(([A-Z][A-Z0-9_]*)(?:\.[A-Z0-9_]+)*)\] .+)")
#: mica's codes for conditions of Spark: whoever casts a row, the error has one code.
_CODES = {
    "ARITHMETIC_OVERFLOW": "ARITHMETIC_OVERFLOW",
    "CANNOT_PARSE_TIMESTAMP": "INVALID_CAST",
    "CAST_INVALID_INPUT": "INVALID_CAST",
    "CAST_OVERFLOW": "INVALID_CAST",
    "CAST_OVERFLOW_IN_TABLE_INSERT": "INVALID_VALUE",
    "COLLATION_MISMATCH": "COLLATION_MISMATCH",
    "DATATYPE_MISMATCH": "TYPE_MISMATCH",
    "DIVIDE_BY_ZERO": "DIVIDE_BY_ZERO",
    "INVALID_ARRAY_INDEX": "INVALID_ARRAY_INDEX",
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": "INVALID_ARRAY_INDEX",
    "INVALID_INDEX_OF_ZERO": "INVALID_ARRAY_INDEX",
    "INVALID_VARIANT_CAST": "INVALID_CAST",
    "NUMERIC_VALUE_OUT_OF_RANGE": "INVALID_CAST",
    "REMAINDER_BY_ZERO": "DIVIDE_BY_ZERO",
    "UNRESOLVED_COLUMN": "UNKNOWN_COLUMN",
}
#: A value that is not one of its column (`assigned.checked`).
_ASSIGNED = re.compile(
    r"(?s)\[USER_RAISED_EXCEPTION\] (the value '.*?' for the column .+? cannot be cast to [A-Z].*?)(?: SQLSTATE|$)"
)
#: Spark has lost a worker; a parser of JSON has an exception of nearly the same name.
_LOST = re.compile(r"ExecutorLostFailure|Python worker exited unexpectedly|\bEOFException")


def translate(error: Exception) -> Exception:
    """The error that a task raised, extracted from Spark's text; otherwise a MicaError with Spark's reason."""
    text = str(error)
    # The last mark is the real one: text before it may quote data with the same words.
    marks = _MARK.findall(text)
    if marks:
        own = json.loads(marks[-1])
        return _KINDS.get(own["kind"], MicaError)(own["code"], own["message"], hint=own["hint"], **own["context"])
    traced = _TRACED.findall(text)
    if traced:
        kind, code, message, hint, condition = traced[-1]
        return _KINDS.get(kind, MicaError)(code, message, hint=hint or None, condition=condition or None)
    lacking = _LACKING.search(text)
    if lacking:
        what = f"could not import {lacking[1]}" if lacking[1] else f"could not run its Python, {lacking[2]}"
        return UserError(
            "WORKER_WITHOUT_MICA",
            f"a Spark worker {what}",
            hint="Install the same wheel of mica for the Python that the workers run (PYSPARK_PYTHON).",
        )
    if _LOST.search(text):
        return MicaError(
            "WORKER_LOST",
            "a Spark worker died while it ran a task; nothing was committed",
            hint="Read the worker's log: the usual causes are lack of memory and killed processes.",
        )
    if "No space left on device" in text:
        return StorageError("DISK_FULL", "a Spark worker ran out of disk; nothing was committed")
    if "MALFORMED_VARIANT" in text:
        return CorruptDataError("MALFORMED_VARIANT", "Spark met a malformed Variant; nothing was committed")
    if "SPARK_JOB_CANCELLED" in text:
        return MicaError("SPARK_JOB_FAILED", CANCELLED)  # Spark's first line names a call of Py4J only
    if (assigned := _ASSIGNED.search(text)) is not None:
        return UserError("INVALID_CAST", assigned[1])
    told = _REASON.findall(text) or _OF_PY4J.findall(text) or [line for line in text.splitlines() if line.strip()]
    reason = (told or [type(error).__name__])[0].strip()[:500]
    if (sparks := _SPARKS.match(reason)) is not None and sparks[3] in _CODES:
        return UserError(_CODES[sparks[3]], sparks[1].rstrip(" ;"), condition=sparks[2])
    return MicaError("SPARK_JOB_FAILED", f"a Spark job failed: {reason}")


def versions() -> dict[str, str]:
    """The versions that driver and workers must share."""
    python = platform.python_version_tuple()
    return {"Python": f"{python[0]}.{python[1]}", "mica": __version__}


def _on_worker(
    body: Callable[..., Batches], arguments: tuple[Any, ...], *, marks: bool = True
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Wraps a job so that a worker without mica, or with another version, says so before it unpickles mica's objects.

    The inner function is pickled by value (it is local) and uses builtins only.
    """
    module, name, expected = body.__module__, body.__qualname__, versions()

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib

        jobs = importlib.import_module(module)
        jobs.check_versions(expected)
        try:
            yield from getattr(jobs, name)(batches, *arguments)
        except Exception as e:  # noqa: BLE001 - all of them cross to the driver
            raise (jobs.marked(e) if marks else jobs.noted(e)) from None

    return run


def check_versions(expected: dict[str, str]) -> None:
    """Refuses to work for a driver with another version of Python or mica: pickled tasks may not be compatible."""
    found = versions()
    for name, asked in expected.items():
        if found[name] != asked:
            raise marked(
                UserError(
                    "VERSION_MISMATCH",
                    f"this Spark worker has {name} {found[name]}, the driver has {name} {asked}",
                    hint="Install the driver's Python and wheel of mica on the workers (PYSPARK_PYTHON, an archive).",
                )
            )


def marked(error: Exception) -> Exception:
    """Encodes mica's errors as text that survives Spark's wrapping; `translate` decodes it."""
    if not isinstance(error, MicaError):
        return error
    parts = {"code": error.code, "message": error.message, "hint": error.hint, "context": dict(error.context)}
    text = json.dumps({"kind": type(error).__name__, **parts}, default=str)
    return RuntimeError(f"{error}\nmica-error:{text}")


def noted(error: Exception) -> Exception:
    """The error as people read it, with Spark's name for it as a last line."""
    condition = error.context.get("condition") if isinstance(error, MicaError) else None
    if condition is not None:
        error.add_note(f"Spark: {condition}")
    return error


def _run_tasks(
    numbers: Iterator[pa.RecordBatch], function: bytes, payloads: list[bytes], claim: int
) -> Iterator[pa.RecordBatch]:
    set_aside()
    run = pickle.loads(function)  # noqa: S301 - the driver's own bytes
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            lane.begin(number // claim)
            yield from run(pickle.loads(zlib.decompress(payloads[number // claim])))  # noqa: S301


def _run_rows(batches: Iterator[pa.RecordBatch], function: bytes) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    set_aside()
    context = TaskContext.get()
    lane.begin(0 if context is None else context.partitionId())
    yield from pickle.loads(function)(batches)  # noqa: S301


def _run_named(
    names: Sequence[str], function: Callable[[Iterator[pa.RecordBatch]], Batches], batches: Iterator[pa.RecordBatch]
) -> Batches:
    return function(batch.rename_columns(list(names)) for batch in batches)


def parallelism(spark: SparkSession) -> int:
    """The number of concurrent tasks of the session; for a Connect session it is derived from the settings."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 - Connect raises several types here, none of them public in both versions
        for name in ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism", "spark.executor.cores"):
            value = spark.conf.get(name, None)
            if value and str(value).isdigit():
                return int(value)
        return 8
