"""Values that a query or a variable gives to DELETE, UPDATE and MERGE: `SET n = (SELECT …)`, `WHERE day = run_day`.

The rule: Spark is asked once, before the rows are changed, and its values are written into the text as constants.
A query that uses columns of the changed rows is refused: without them Spark does not know its names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from mica.collation.names import to_sql
from mica.engines.spark.errors import is_condition
from mica.engines.spark.session import without_sql_log
from mica.engines.spark.types import from_spark
from mica.errors import UserError
from mica.expressions.parse import parse
from mica.expressions.tree import Call, Cast, Column, Expr, Path, walk
from mica.query.statement_parts import VALUE_QUERY, Parts
from mica.schema import literals
from mica.schema.collations import of_field
from mica.schema.ddl import type_to_ddl
from mica.schema.types import BINARY, STRING, VARIANT, DataType, Primitive, StructField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Words before parentheses whose query is compared with a value, row by row.
_OF_ROWS = ("ANY", "SOME", "ALL")
_JOIN = "Join the rows instead: MERGE INTO … USING (SELECT …) ON … WHEN MATCHED THEN …."
#: Values of an IN, at most: they are constants of the text.
_MOST = 10_000
_TIMESTAMP = Primitive("timestamp")
#: The marks of a path and of a cast behind a name.
_OF_PATHS = (":", "::", ".", "[", "]", "(", ")", ",")
#: Tokens of these, at most.
_LONGEST = 50
#: What may stand before the name of a variable.
_OF_SESSION: tuple[list[str], ...] = ([], ["session"], ["system", "session"])


def with_values(
    text: str, query: Callable[[str], DataFrame], variables: Collection[str] = (), columns: Collection[str] = ()
) -> str:
    """The expression with constants in place of its queries, and of these variables of the session or of a script where
    their names are not those of columns, or of tables before columns; `columns` has both in lower case. Errors:
    UNSUPPORTED_EXPRESSION; INVALID_ARGUMENT for a query with several columns, or more rows than its place takes; those
    of Spark."""
    parts, found, at = Parts(text), "", 0
    while parts.token.kind != "end":
        before = parts.tokens[parts.at - 1].text.upper() if parts.at else ""
        if parts.mark() == "(" and parts.word(1) in VALUE_QUERY and before not in _OF_ROWS:
            start = parts.token.at if before != "EXISTS" else parts.tokens[parts.at - 1].at
            asked = parts.parenthesised()
            read = {"IN": _list, "EXISTS": _exists}.get(before, _value)
            found, at = f"{found}{text[at:start]}{read(asked, query)}", parts.tokens[parts.at - 1].end
        else:
            parts.at += 1
    found += text[at:]
    return _with_variables(found, query, variables, columns) if variables else found


def _with_variables(
    text: str, query: Callable[[str], DataFrame], variables: Collection[str], columns: Collection[str]
) -> str:
    """The expression with constants in place of names that no column has, and a variable: of the session, or of a
    script, there also behind the label of its block. What is read of a variable, and cast, is one constant with it."""
    try:
        tree = parse(text)
    except UserError:
        return text  # it is refused where it is read
    parts = Parts(text)
    places = {token.at: number for number, token in enumerate(parts.tokens)}
    named = {one.at: one.names for one in walk(tree) if isinstance(one, Column)}
    for start in sorted(named.keys() & places.keys(), reverse=True):
        if named[start][0].lower() not in columns and _is_variable(named[start], variables):
            end = _end(text, parts, places[start], len(named[start]))
            text = f"{text[:start]}{_value(f'(SELECT {text[start:end]})', query)}{text[end:]}"
    return text


def _is_variable(names: Sequence[str], variables: Collection[str]) -> bool:
    """Whether these names are a variable's, or that of a field of one."""
    *before, name = names
    if [part.lower() for part in before] in _OF_SESSION and not {name, name.lower()}.isdisjoint(variables):
        return True
    return any(".".join(names[:count]).lower() in variables for count in range(1, len(names) + 1))


def _end(text: str, parts: Parts, first: int, count: int) -> int:
    """Where a value ends that is read of the name of so many parts at a token: `x:a.b[0]::INT` is one of `x`."""
    last = first + 2 * count - 2
    start, found = parts.tokens[first].at, parts.tokens[last].end
    if parts.tokens[last + 1].text not in (":", "::", "[", "."):
        return found
    for token in parts.tokens[last + 1 : -1][:_LONGEST]:
        if token.kind == "mark" and token.text not in _OF_PATHS:
            break
        with suppress(UserError):
            if _is_read(parse(text[start : token.end])):
                found = token.end
    return found


def _is_read(tree: Expr) -> bool:
    """Whether an expression is a column, or what is read of one at constant places."""
    if isinstance(tree, Column):
        return True
    if not isinstance(tree, Path | Cast | Call) or (isinstance(tree, Call) and tree.name not in (".", "[]")):
        return False
    first, *others = tree.children
    return _is_read(first) and not any(isinstance(one, Column) for other in others for one in walk(other))


def _value(asked: str, query: Callable[[str], DataFrame]) -> str:
    """The value of a query in parentheses, as SQL."""
    rows, column = _asked(asked, query)
    values = _constants(rows.limit(2), column)
    if len(values) > 1:
        raise UserError(
            "INVALID_ARGUMENT", f"{asked} gives more than one row where one value is needed", hint="Aggregate its rows."
        )
    return values[0] if values else _constant(None, column)


def _list(asked: str, query: Callable[[str], DataFrame]) -> str:
    """The values of a query after IN, each once, as SQL; `(SELECT)` if there are none, which only mica reads."""
    rows, column = _asked(asked, query)
    values = _constants(rows.distinct().limit(_MOST + 1), column)
    if len(values) > _MOST:
        raise UserError(
            "INVALID_ARGUMENT",
            f"{asked} gives more than {_MOST:,} values, which are too many for IN",
            hint="Join the rows instead: MERGE INTO … USING (SELECT DISTINCT …) ON … WHEN MATCHED THEN ….",
        )
    return f"({', '.join(values) or 'SELECT'})"


def _exists(asked: str, query: Callable[[str], DataFrame]) -> str:
    """Whether a query has rows, as SQL."""
    return "true" if _rows(asked, query).limit(1).count() else "false"


def _asked(asked: str, query: Callable[[str], DataFrame]) -> tuple[DataFrame, StructField]:
    """The rows of a query in parentheses, whose one column is `value` and can be written as text, and that column."""
    rows = _rows(asked, query)
    if len(rows.columns) != 1:
        raise UserError(
            "INVALID_ARGUMENT", f"{asked} gives {len(rows.columns)} columns where one is needed", hint=_JOIN
        )
    rows = rows.toDF("value")
    column = from_spark(rows.schema).fields[0]
    return rows.selectExpr(f"{_shown(column, asked)} AS value"), column


def constants(rows: DataFrame, asked: str) -> list[str]:
    """The one row that was asked for, as SQL of its types. Errors: UNSUPPORTED_EXPRESSION for one of no plain type."""
    rows = rows.toDF(*(f"c{place}" for place in range(len(rows.columns))))
    columns = from_spark(rows.schema).fields
    found = rows.selectExpr(*(_shown(column, asked) for column in columns)).collect()[0]
    # Literals, as parameters are: the text may be Spark's.
    return [_constant(value, column, string="") for value, column in zip(found, columns, strict=True)]


def _shown(column: StructField, asked: str) -> str:
    """A column as what can be written as text."""
    type_ = column.type
    if not isinstance(type_, Primitive) or type_ == VARIANT:
        raise UserError(
            "UNSUPPORTED_EXPRESSION",
            f"{asked} gives {type_to_ddl(type_)}; only values of plain types can come from a query here",
            hint=_JOIN,
        )
    # As texts every number and time is exact; a time with a zone is not, in the hour that a clock has twice.
    exact = {_TIMESTAMP: f"unix_micros({column.name})", BINARY: f"hex({column.name})"}
    return exact.get(type_, f"CAST({column.name} AS STRING)")


def _rows(asked: str, query: Callable[[str], DataFrame]) -> DataFrame:
    """The rows of a query in parentheses, which sees no columns from outside."""
    try:
        with without_sql_log():
            return query(asked[1:-1])
    except Exception as e:
        if not is_condition(e, "UNRESOLVED_COLUMN"):
            raise
        raise UserError(
            "UNSUPPORTED_EXPRESSION",
            f"the query {asked} uses a name that it does not have; columns of the changed table cannot be used in it",
            hint=_JOIN,
        ) from e


def _constants(rows: DataFrame, column: StructField) -> list[str]:
    return [_constant(row[0], column) for row in rows.collect()]


def _constant(value: object, column: StructField, string: str = "STRING") -> str:
    """A value of the column that `_asked` gives, as SQL. It keeps the column's collation, as strong as it was."""
    text = _plain(value, column.type, string)
    names = [to_sql(collation) for collation in of_field(column).values()]
    return f"CAST({text} AS STRING COLLATE {names[0]})" if names else text


def _plain(value: object, type_: DataType, string: str) -> str:
    if value is None:
        return f"CAST(NULL AS {type_to_ddl(type_)})"
    if type_ == _TIMESTAMP:
        return f"timestamp_micros({value})"
    if type_ == BINARY:
        return f"X'{value}'"
    constant = literals.show(value, STRING)
    # Not a literal of STRING: beside a CHAR column Spark pads those, and no values of queries.
    return f"{string}{constant}" if type_ == STRING else f"CAST({constant} AS {type_to_ddl(type_)})"
