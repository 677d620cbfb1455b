"""What Spark evaluates of a change: texts that mica does not read, or whose answer it does not know.

The rule: Spark runs the user's own texts, once, on the version that changes. Its rows have the place of each row of the
table (`placed_merge`), at which it changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from mica import engines
from mica.engines.spark.errors import is_condition, is_unread
from mica.engines.spark.session import without_sql_log
from mica.engines.spark.texts import NESTED, OF_FILES, nested
from mica.errors import UserError
from mica.expressions.collations import refuse_in_process
from mica.expressions.tree import Column, Expr
from mica.expressions.unparsed import gives_texts, has_window, names
from mica.log.snapshot import Snapshot
from mica.scan.scan import Scan
from mica.schema.char import declared, is_padded
from mica.schema.hidden import FIELDS, METADATA, ROW_INDEX
from mica.schema.spelling import quote_if_needed
from mica.schema.types import DataType
from mica.tasks.placed_merge import FILE, INDEX, TASK
from mica.write.assignment import Place, stored_at
from mica.write.placed_merge import Numbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

#: The codes of what mica refuses and Spark may have; NEEDS_SPARK: a comparison by one of ICU's collations.
_MAY_BE_SPARKS = ("UNSUPPORTED_EXPRESSION", "INVALID_EXPRESSION", "TYPE_MISMATCH", "NEEDS_SPARK")

#: How columns are called that Spark makes.
_OWN = "__mica_"
VALUE = f"{_OWN}value_"


def or_by_spark(mine: Callable[[], T], by_spark: Callable[[UserError], T], *, on_spark: bool) -> T:
    """What mica makes; where it refuses an expression that Spark may have, what Spark makes of it, or an error with the
    way out, where there is no session."""
    try:
        return mine()
    except UserError as refused:
        if refused.code not in _MAY_BE_SPARKS:
            raise
        if on_spark:
            return by_spark(refused)
        hint = refused.hint or "Give spark=: what mica does not have Spark evaluates."
        raise UserError(refused.code, refused.message, hint=hint, **refused.context) from None


def is_lacking(bind: Callable[[], object], *also: str) -> bool:
    """Whether mica refuses an expression that Spark may have; `also` are further codes of refusals that may be. Errors:
    what else is wrong with it."""
    try:
        bind()
    except UserError as refused:
        if refused.code not in (*_MAY_BE_SPARKS, *also):
            raise
        return True
    return False


def is_sparks(bind: Callable[[], Expr]) -> bool:
    """Whether only Spark evaluates a value: mica lacks it, or it compares by a collation that tasks do not have."""

    def evaluated() -> None:
        refuse_in_process(bind())

    return is_lacking(evaluated)


def rows_with_places(
    snapshot: Snapshot, scan: Scan, spark: SparkSession, texts: Sequence[str], refused: UserError
) -> DataFrame:
    """The rows of a scan of a version, with the columns that the texts may name and their places. Errors: `refused`, if
    the texts would mean something else there."""
    schema, said = snapshot.schema, [names(text) for text in texts]
    every, words = None in said, set[str]().union(*(one or () for one in said))
    asked = {f.name: quote_if_needed(f.name) for f in schema.fields if every or f.name.lower() in words}
    refuse_own(asked)
    # Spark pads texts beside CHAR columns, but for what a query gave.
    pads = any(map(gives_texts, texts)) and any(is_padded(declared(schema.field(name))) for name in asked)
    of_files = any(function in text.lower() for function in OF_FILES for text in texts)  # the rows are of mica's tasks
    # What a window sees would be the rows that match, or pairs of a join: no rows of a table.
    windows = any(map(has_window, texts))
    if pads or of_files or windows or schema.find(METADATA) is not None:
        raise refused
    hidden = {f"{NESTED}{name}": f"{METADATA}.{name}" for _, name in FIELDS if METADATA in words and name in words}
    places = {TASK: TASK, FILE: FILE, INDEX: ".".join(ROW_INDEX)}
    source = Numbered(snapshot, engines.of(spark).parallelism)
    frame = replace(scan, source=source, columns={**asked, **hidden, **places}).to_df(spark)
    return nested(frame, METADATA, list(hidden)) if hidden else frame


def refuse_own(columns: Iterable[str]) -> None:
    """Refuses columns of a table or source that are called like those which Spark makes. Errors: INVALID_NAME."""
    for name in columns:
        if name.lower().startswith(_OWN):
            raise UserError(
                "INVALID_NAME",
                f"the column {name!r} has a name that mica needs for itself where Spark evaluates a text",
                hint="Rename the column.",
                column=name,
            )


@contextmanager
def analysed(refused: UserError, columns: Iterable[str]) -> Iterator[None]:
    """While Spark reads texts: what it does not know either is `refused`, and a name without a column as by mica."""
    try:
        with without_sql_log():
            yield
    except Exception as error:
        # A row has one value: what makes several of one is none.
        if is_unread(error) or any(is_condition(error, one) for one in ("UNSUPPORTED_GENERATOR", "DATATYPE_MISMATCH")):
            raise refused from error
        if is_condition(error, "UNRESOLVED_COLUMN"):
            parameters: dict[str, str] = getattr(error, "getMessageParameters", dict)() or {}
            name = parameters.get("objectName", "").strip("`").replace("`.`", ".")
            raise UserError.unknown_column(name, list(columns)) from error
        raise


@contextmanager
def as_written(side: str, texts: Mapping[str, str]) -> Iterator[None]:
    """While rows change: errors name the user's texts, not the columns of a side that hold their values."""
    try:
        yield
    except UserError as error:
        columns = rf"{re.escape(quote_if_needed(side))}\.(\w+)"
        message = re.sub(columns, lambda found: texts.get(found[1], found[0]), error.message)
        if message == error.message:
            raise
        raise UserError(error.code, message, hint=error.hint, **error.context) from error


def refuse_value(place: Place, text: str, given: DataType) -> None:
    """Refuses a value of this type for a column or field, as an update does. Errors: INCOMPATIBLE_TYPE."""
    stored_at(Column((VALUE,)), given, place, text)
