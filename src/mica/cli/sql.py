"""`mica sql`: runs a Spark SQL text on an embedded session, its Delta tables read by mica."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import pairs, print_bytes, print_rows, storage_options
from mica.cli.scan import SHOWN
from mica.cli.sessions import spark_session
from mica.errors import MicaError, UserError

Tables = Annotated[
    list[str] | None, typer.Option("--table", "-t", help="NAME=PATH: a name for a table in the text. Repeatable.")
]

#: Options of `to_json`: null fields are shown, and times with all of their digits.
_JSON = (
    "map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS[XXX]', "
    "'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS')"
)
#: What Spark says, after the name of its condition. [PYTHON_EXCEPTION] is a worker's.
_SPARKS = re.compile(r"\[(?!PYTHON_EXCEPTION)([A-Z][A-Z0-9_.]+)\] .+")


def run(
    text: Annotated[str, typer.Argument(metavar="SQL", help="A query, or a statement such as DELETE or MERGE.")],
    table: Tables = None,
    storage_option: options.StorageOption = None,
    limit: options.Limit = None,
    json: options.JsonRows = False,
) -> None:
    """Run a Spark SQL text; tables are named by delta.`PATH` or by --table."""
    from mica.engines.spark.jobs import shown
    from mica.query.entry import sql
    from mica.schema.spelling import quoted

    with named(table, storage_option), sparks_errors():
        frame = sql(text, spark_session())
        most = limit if limit is not None or json else SHOWN
        frame = frame if most is None else frame.limit(most)
        names, types = frame.columns, [f.dataType.typeName() for f in frame.schema.fields]
        frame = frame.toDF(*(f"c{at}" for at in range(len(names))))  # names of a query may come twice
        if json:
            fields = ", ".join(f"c{at} AS {quoted(name)}" for at, name in enumerate(names))
            lines = frame.selectExpr(f"to_json(struct({fields}), {_JSON}) AS line")
            print_bytes(f"{row.line}\n".encode() for row in lines.toLocalIterator())
            return
        with shown(frame.sparkSession):
            found = frame.selectExpr(*(_text(f"c{at}", kind) for at, kind in enumerate(types))).collect()
        rows = [[None if value is None else str(value) for value in row] for row in found]
        print_rows("", names, rows)
        if limit is None and len(rows) == SHOWN:
            sys.stderr.write(f"the first {SHOWN} rows; --limit shows more\n")


def _text(column: str, kind: str) -> str:
    """A column as a text of Spark's, which has years and intervals that Python lacks; bytes stay bytes."""
    if kind in ("struct", "array", "map", "variant"):
        return f"to_json({column}, {_JSON})"
    return column if kind == "binary" else f"CAST({column} AS STRING)"


@contextmanager
def named(tables: list[str] | None, stored: list[str] | None) -> Iterator[None]:
    """Registers the tables of `--table`, with the options of `--storage-option`."""
    from mica.query.registry import register

    for name, path in pairs(tables, "--table").items():
        register(name, path, storage_options=storage_options(stored))
    yield


@contextmanager
def sparks_errors() -> Iterator[None]:
    """Shows a worker's error as mica raised it, and Spark's own as a mistake in the text; both without stacks."""
    from mica.engines.spark.errors import is_sparks
    from mica.engines.spark.jobs import translate

    try:
        yield
    except MicaError:
        raise
    except Exception as e:
        if not is_sparks(e):
            raise
        own, sparks = translate(e), _SPARKS.search(str(e))
        if sparks is None or getattr(own, "code", None) != "SPARK_JOB_FAILED":
            raise own from e
        unknown = sparks[1] == "TABLE_OR_VIEW_NOT_FOUND"
        hint = "Write delta.`PATH`, or give the name a path: --table NAME=PATH." if unknown else None
        raise UserError("INVALID_EXPRESSION", sparks[0].rstrip(" ;"), hint=hint) from e
