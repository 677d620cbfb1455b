"""Values of an UPDATE that a query gives: `SET n = (SELECT max(n) FROM u)`.

The rule: Spark runs the query once, before the rows are changed, and its one value is written into the text as a
constant. A query that uses columns of the changed rows is refused: without them Spark does not know its names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mica.engines.spark.session import without_sql_log
from mica.engines.spark.types import from_spark
from mica.errors import UserError
from mica.query.statement_parts import VALUE_QUERY, Parts
from mica.schema import literals
from mica.schema.ddl import type_to_ddl
from mica.schema.types import BINARY, STRING, VARIANT, Primitive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Words before parentheses whose query gives more than a value.
_OF_ROWS = ("IN", "EXISTS", "ANY", "SOME", "ALL")
_TIMESTAMP = Primitive("timestamp")


def with_values(text: str, query: Callable[[str], DataFrame]) -> str:
    """The expression with constants in place of its queries. Errors: UNSUPPORTED_EXPRESSION; INVALID_ARGUMENT for a
    query with several rows or columns; those of Spark."""
    parts, found, at = Parts(text), "", 0
    while parts.token.kind != "end":
        before = parts.tokens[parts.at - 1].text.upper() if parts.at else ""
        if parts.mark() == "(" and parts.word(1) in VALUE_QUERY and before not in _OF_ROWS:
            start = parts.token.at
            asked = parts.parenthesised()
            found, at = f"{found}{text[at:start]}{_value(asked, query)}", start + len(asked)
        else:
            parts.at += 1
    return found + text[at:]


def _value(asked: str, query: Callable[[str], DataFrame]) -> str:
    """The value of a query in parentheses, as SQL."""
    try:
        with without_sql_log():
            rows = query(asked[1:-1])
    except Exception as e:
        if "[UNRESOLVED_COLUMN" not in str(e):
            raise
        raise UserError(
            "UNSUPPORTED_EXPRESSION",
            f"the query {asked} uses a name that it does not have; columns of the changed table cannot be used in it",
            hint="Join the rows instead: MERGE INTO … USING (SELECT …) ON … WHEN MATCHED THEN UPDATE SET ….",
        ) from e
    if len(rows.columns) != 1:
        raise UserError("INVALID_ARGUMENT", f"{asked} gives {len(rows.columns)} columns where one value is needed")
    rows = rows.toDF("value")
    type_ = from_spark(rows.schema).fields[0].type
    if not isinstance(type_, Primitive) or type_ == VARIANT:
        raise UserError(
            "UNSUPPORTED_EXPRESSION",
            f"{asked} gives {type_to_ddl(type_)}; only values of plain types can come from a query here",
            hint="Join the rows instead: MERGE INTO … USING (SELECT …) ON … WHEN MATCHED THEN UPDATE SET ….",
        )
    # As texts every number and time is exact; a time with a zone is not, in the hour that a clock has twice.
    shown = {_TIMESTAMP: "unix_micros(value)", BINARY: "hex(value)"}.get(type_, "CAST(value AS STRING)")
    values = [row[0] for row in rows.selectExpr(shown).limit(2).collect()]
    if len(values) > 1:
        raise UserError(
            "INVALID_ARGUMENT", f"{asked} gives more than one row where one value is needed", hint="Aggregate its rows."
        )
    if not values or values[0] is None:
        return f"CAST(NULL AS {type_to_ddl(type_)})"
    if type_ == _TIMESTAMP:
        return f"timestamp_micros({values[0]})"
    if type_ == BINARY:
        return f"X'{values[0]}'"
    constant = literals.show(values[0], STRING)
    return constant if type_ == STRING else f"CAST({constant} AS {type_to_ddl(type_)})"
