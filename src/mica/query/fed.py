"""Serves the change feed to SQL: `table_changes('events', 3)`, `table_changes_by_path('/data/events', '2026-01-31')`.

The rule: a call over a table of mica's becomes the name of a temporary view of `Table.changes`, while Spark takes the
text; what Spark keeps as a text (a view, a cached query) keeps its view. Any other call is Spark's.

Source: delta-spark's functions of these names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from mica.engines.spark.doors import own_sql
from mica.engines.spark.session import has_delta, is_connect
from mica.engines.spark.types import from_spark
from mica.errors import UserError
from mica.expressions.coerce import is_number
from mica.query import names, settings
from mica.query.parameters import bound
from mica.query.row_statements import INSIDE
from mica.query.statement_parts import Parts
from mica.query.statements import parse_statement
from mica.query.tables import target, unknown
from mica.query.view_statements import View
from mica.schema.lexical import GAP, SPACE
from mica.schema.types import INTEGRALS
from mica.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CALL = re.compile(
    rf"(?P<call>(?<![\w.`])(?P<quote>`?)table_changes(?P<by_path>_by_path)?(?P=quote){GAP}\((?P<arguments>{INSIDE})\))"
    rf"|{names.LEXED.pattern}",
    names.LEXED.flags,
)
#: Statements that Spark keeps the text of.
_KEPT = re.compile(rf"{GAP}(?:CREATE{SPACE}(?:OR{SPACE}REPLACE{SPACE})?(?!TABLE\b)|CACHE\b|ALTER\b)", re.IGNORECASE)
_NUMBERS = count(1)


def calls(text: str) -> bool:
    """Whether a text may ask for a change feed."""
    return "table_changes" in text.lower()


@contextmanager
def fed(spark: SparkSession, text: str, args: Any) -> Iterator[tuple[str, Any]]:
    """The text with names of views in place of the calls, and the values of its parameters.

    Errors: those of `Table.changes`; INVALID_ARGUMENT for a call without a start, and on Spark Connect, which looks for
    views when rows are read; TABLE_NOT_FOUND, but where the session has functions of these names.
    """
    if is_connect(spark):
        _refuse(spark, text)
        yield text, args
        return
    if args and any(match["call"] and re.search("[?:]", match["arguments"]) for match in _CALL.finditer(text)):
        with suppress(UserError):  # a value without a literal is Spark's to bind
            text, args = bound(text, args), None
    made, found, at, kept = list[str](), "", 0, False
    try:
        for match in _CALL.finditer(text):
            if match["call"] is None:
                continue
            rows = _rows(spark, match["arguments"], match)
            if rows is not None:
                made.append(f"{names.FED}{next(_NUMBERS)}")
                rows.createOrReplaceTempView(made[-1])
                found, at = f"{found}{text[at : match.start()]}{made[-1]}", match.end()
        yield found + text[at:], args
        kept = _is_kept(text)
    finally:
        if not kept:
            for name in made:
                spark.catalog.dropTempView(name)


def _refuse(spark: SparkSession, text: str) -> None:
    """Refuses the feed of a table of mica's; what another call means the server knows."""
    for match in _CALL.finditer(text):
        arguments = Parts(match["arguments"] or "")
        table = _table(spark, arguments.string(), match) if match["call"] and arguments.at_string else None
        if table is not None:
            raise UserError(
                "INVALID_ARGUMENT",
                f"on Spark Connect no text asks for the change feed of {table.path}",
                hint=f"Load {table.path!r} by format mica with the option readChangeFeed.",
            )


def _is_kept(text: str) -> bool:
    """Whether Spark keeps the text, and asks for its views again; a temporary view of mica's keeps a plan."""
    if not _KEPT.match(text):
        return False
    with suppress(UserError):
        return not isinstance(parse_statement(text), View)
    return True


def _rows(spark: SparkSession, text: str, call: re.Match[str]) -> DataFrame | None:
    """The changes that a call asks for; None for a table that is not mica's."""
    arguments = Parts(text)
    if not arguments.at_string:
        return None  # no constant: Spark says what it wants
    name = arguments.string()
    table = _table(spark, name, call)
    if table is None:
        return None
    given = arguments.several(arguments.one_expression) if arguments.accept(",") else ()
    arguments.end()
    if not 1 <= len(given) <= 2:
        raise UserError(
            "INVALID_ARGUMENT", f"table_changes({text}) needs a first version or time, and maybe a last one"
        )
    asked = dict[str, Any]()
    for side, limit in zip(("from", "to"), given, strict=False):
        asked |= _limit(spark, table, side, limit)
    return table.changes(**asked).to_df(spark)


def _table(spark: SparkSession, name: str, call: re.Match[str]) -> Table | None:
    """The table that a call names; None for what is delta-spark's, or a function of the session's own."""
    if call["by_path"] is not None:
        return None if has_delta(spark) else Table.open(name)
    parts = Parts(name).several_names()
    found = target(spark, parts, catalogs=not has_delta(spark))
    if found is not None or is_connect(spark) or has_delta(spark) or spark.catalog.functionExists("table_changes"):
        return found
    raise unknown(parts)


def _limit(spark: SparkSession, table: Table, side: str, text: str) -> Mapping[str, Any]:
    """A first or last version; a last one may be one that the table does not have yet, as in delta-spark."""
    version = int(text) if text.isdecimal() else _version(spark, text)
    if version is None:
        return {f"{side}_timestamp": settings.moment(spark, text)}
    return {f"{side}_version": min(version, table.version) if side == "to" else version}


def _version(spark: SparkSession, text: str) -> int | None:
    """The value of an expression that is a whole number; None for a time: a cast would make one of a number, too."""
    found = own_sql(spark, f"SELECT ({text})")
    kind = from_spark(found.schema).fields[0].type
    if not is_number(kind):
        return None
    value = found.collect()[0][0] if kind in INTEGRALS else None
    if value is None:
        raise UserError.bad_value("a limit of table_changes", text, "a version, or a time as a text")
    return int(value)
