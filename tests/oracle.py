"""What Spark itself gives for expressions, many at a time, row by row where some rows fail.

Answers come from queries. Where a query fails, Spark's own evaluation of the optimized expression says which rows fail,
and the rest is asked again without them.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

import mica
from mica.errors import UserError
from mica.expressions.bind import BoundExpr, bind_value
from mica.expressions.evaluate import evaluate
from mica.schema.types import StructType

#: The answer of a row whose evaluation is an error.
FAILED = "an error"
#: Spark's analysis refuses the expression.
REFUSED = "refused"
_BATCH = 60

#: Statements by mica and by delta-spark: a text and a session.
RUNS: dict[str, Callable[..., Any]] = {"ours": mica.sql, "theirs": lambda text, spark: spark.sql(text)}

Answers = dict[str, "list[Any] | str"]


@contextlib.contextmanager
def conf(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Sets options of the session for a while."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def ask(frame: Any, texts: Sequence[str]) -> Answers:
    """A list of values per expression, one per row; `frame` has the row numbers in its column `row`, from 0."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # A cast that two expressions share would be made before either asks for it, and fail on rows that neither asks.
    with conf(frame.sparkSession, {"spark.sql.subexpressionElimination.enabled": "false"}):
        return _ask(frame, texts)


def _ask(frame: Any, texts: Sequence[str]) -> Answers:
    frame = frame.coalesce(1).localCheckpoint()  # no optimizer reaches behind it
    answers: Answers = {}
    sound, shown = [], {}
    for text in texts:
        try:
            if frame.selectExpr(text).schema[0].dataType.simpleString().startswith("interval"):
                shown[f"cast(({text}) as string)"] = text  # which tells its units, and Arrow has none of months
            else:
                sound.append(text)
        except Exception:  # noqa: BLE001 — an analysis error of any kind
            answers[text] = REFUSED
    sound += shown
    for i in range(0, len(sound), _BATCH):
        part = sound[i : i + _BATCH]
        try:
            answers |= _query(frame, part, ())
        except Exception:  # noqa: BLE001 — a row of some expression fails
            answers |= _with_failures(frame, part)
    return {shown.get(text, text): answer for text, answer in answers.items()}


def _with_failures(frame: Any, texts: Sequence[str]) -> Answers:
    """Expressions that fail on the same rows are asked together, without those rows."""
    together: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for text, rows in _failing_rows(frame, texts).items():
        together[rows].append(text)
    answers: Answers = {}
    for rows, group in together.items():
        answers |= _query(frame, group, rows)
    return answers


def _query(frame: Any, texts: Sequence[str], failing: tuple[int, ...]) -> Answers:
    count = frame.count() if failing else 0
    if count and len(failing) == count:
        return {text: [FAILED] * count for text in texts}
    source = frame.where(f"row NOT IN ({', '.join(map(str, failing))})") if failing else frame
    columns = [f"({e}) AS c{i}" for i, e in enumerate(texts)]
    try:
        found = source.selectExpr("row", *columns).toArrow().sort_by("row")
    except Exception:
        if not failing:
            raise
        if len(texts) > 1:
            return {k: v for text in texts for k, v in _query(frame, [text], failing).items()}
        return {texts[0]: [FAILED] * count}  # a constant that fails wherever it stands
    answers: Answers = {}
    for i, text in enumerate(texts):
        values = iter(to_python(found.column(f"c{i}")))
        answers[text] = [FAILED if row in failing else next(values) for row in range(count or found.num_rows)]
    return answers


def _failing_rows(frame: Any, texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    rows = frame._jdf.queryExecution().executedPlan().executeCollect()
    order = [row["row"] for row in frame.select("row").collect()]
    projections = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.expressions.InterpretedMutableProjection
    found = {}
    for text in texts:
        try:
            plan = frame.selectExpr("row + 1", text)._jdf.queryExecution().optimizedPlan()
        except Exception:  # noqa: BLE001 — the optimizer looks at a constant that fails
            found[text] = tuple(sorted(order))
            continue
        # Of the plan's two expressions the second one is asked.
        projection = projections(plan.expressions().drop(1), plan.children().head().output())
        failing = []
        for number, row in zip(order, rows, strict=True):
            try:
                projection.apply(row)
            except Exception:  # noqa: BLE001 — the row's error
                failing.append(number)
        found[text] = tuple(sorted(failing))
    return found


def to_python(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """As Python values; dates and timestamps as ints, for Python's own know no year beyond 9999."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_string(column.type):
        binary = column.cast(pa.binary()).to_pylist()  # Spark casts any bytes to a string
        return [None if v is None else v.decode("utf-8", "surrogateescape") for v in binary]
    elif pa.types.is_nested(column.type):
        return [_decoded(value) for value in column.cast(_plain(column.type)).to_pylist()]
    found: list[Any] = column.to_pylist()
    return found


def _plain(type_: pa.DataType) -> pa.DataType:
    """The type with strings, which may be any bytes in Spark, as binary, and with dates and timestamps as ints."""
    if pa.types.is_map(type_):
        return pa.map_(_plain(type_.key_type), _plain(type_.item_type))
    if pa.types.is_list(type_):
        return pa.list_(_plain(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([f.with_type(_plain(f.type)) for f in type_])
    if pa.types.is_date32(type_) or pa.types.is_timestamp(type_):
        return pa.int32() if pa.types.is_date32(type_) else pa.int64()
    return pa.binary() if pa.types.is_string(type_) else type_


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _decoded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_decoded(inner) for inner in value]
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


_ROW_CODES = ("INVALID_CAST", "ARITHMETIC_OVERFLOW", "DIVIDE_BY_ZERO", "INVALID_ARRAY_INDEX")


def bound_and_judged(text: str, schema: StructType, rows: pa.Table, *, ansi: bool, timezone: str) -> list[Any] | str:
    """What mica gives for a text over these rows; the code of what it refuses."""
    try:
        bound = bind_value(text, schema, ansi=ansi, timezone=timezone)
    except UserError as e:
        return e.code
    return judged(bound, [rows.column(leaf.column[0]).combine_chunks() for leaf in bound.leaves], rows.num_rows)


def judged(bound: BoundExpr, leaves: Sequence[pa.Array], count: int) -> list[Any]:
    """What mica gives, row by row where some rows fail."""
    try:
        return to_python(evaluate(bound, leaves, num_rows=count))
    except UserError as e:
        if e.code not in _ROW_CODES:
            raise
    found: list[Any] = []
    for row in range(count):
        try:
            found += to_python(evaluate(bound, [leaf.slice(row, 1) for leaf in leaves], num_rows=1))
        except UserError as e:
            if e.code not in _ROW_CODES:
                raise
            found.append(FAILED)
    return found


def same(found: Any, expected: Any) -> bool:
    """Whether two answers are equal; NaN is NaN, 0.0 is not -0.0, and 1 is not 1.0."""
    return repr(found) == repr(expected)
