"""Runs SQL scripts (BEGIN … END): their statements as `mica.sql` does, the rest as Spark does.

The rule: variables, conditions, loops and handlers are Spark's. To what it evaluates itself, the conditions and the
queries of FOR, the registered tables are lent, at their newest versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mica.engines.spark.doors import own_sql
from mica.engines.spark.scripts import Script, is_command
from mica.engines.spark.session import has_delta, is_connect
from mica.errors import UserError
from mica.query import fed, views
from mica.query.lent import Lent, Views, mentioned, refusing
from mica.query.parameters import bound
from mica.query.statements import parse_statement
from mica.schema.lexical import GAP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BEGINS = re.compile(rf"(?is){GAP}BEGIN\b")
#: A path, a text that may have any name, or a table that the script makes.
_NAMES = re.compile(rf"(?is)\b(?:delta|mica)\s*\.\s*`|\bIMMEDIATE\b|\bUSING{GAP}mica\b")
#: SET without VAR, which only scripts have.
_SET = re.compile(rf"(?is){GAP}SET\b(?!{GAP}VAR(?:IABLE)?\b)")

#: Runs a statement as `mica.sql` does; the second one is what Spark makes of it.
Run = Callable[[str, "Callable[[], DataFrame]"], "DataFrame"]


def begins(text: str) -> bool:
    """Whether a text is a script."""
    return _BEGINS.match(text) is not None


@refusing()
def run(
    spark: SparkSession,
    text: str,
    args: Any,
    run_one: Run,
    otherwise: Callable[[], DataFrame],
    before: Callable[[], None],
) -> DataFrame:
    """The rows of the script's last query; none without one. `before` is called before whatever Spark evaluates itself.

    Errors: Spark's for the script; those of its statements, if no handler takes them.
    """
    if has_delta(spark) and not _NAMES.search(text) and not mentioned(spark, text):
        return otherwise()
    with suppress(UserError):  # a value without a literal is Spark's to bind; `?` it refuses in a script
        if isinstance(args, Mapping):
            text, args = bound(text, args), None

    def stored(name: str) -> DataFrame | None:
        return views.rows_of(spark, name, lambda text: run_one(text, partial(own_sql, spark, text)))

    script = None if args or is_connect(spark) else Script.of(spark, text)
    if script is None:
        with Lent(spark, stored=stored) as lent, refusing(lent):
            lent.lend_named(text)
            return otherwise()

    known: Views = {}

    @contextmanager
    def lending() -> Iterator[None]:
        # Only for the step: a statement may make a view of such a name, drop it, or drop the table.
        before()
        with Lent(spark, known, stored) as lent:
            lent.lend_named(text)
            yield

    return script.run(lambda text, by_spark: _result(text, by_spark, run_one), lending)


def _result(text: str, by_spark: Callable[[], DataFrame], run_one: Run) -> DataFrame | None:
    """The rows of a statement of a script; None of what is no query."""
    from mica.engines.spark.deferred import Deferred

    asked = False

    def noted() -> DataFrame:
        nonlocal asked
        asked = True
        return by_spark()

    begin = _SET.match(text)
    rows = run_one(text if begin is None else f"SET VAR {text[begin.end() :]}", noted)
    # A query of a change feed is Spark's, too, but of another text.
    asked = asked or (fed.calls(text) and parse_statement(text) is None)
    is_result = isinstance(rows, Deferred) or (asked and not is_command(rows))
    return rows if is_result else None
