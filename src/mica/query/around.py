"""Runs the statements of Spark's that have queries in them: they are Spark's, over the rows of the queries.

    EXPLAIN [mode] {query | statement}             CACHE [LAZY] TABLE w [OPTIONS (…)] [AS] query
    {DESCRIBE | DESC} [QUERY] query                EXECUTE IMMEDIATE text [INTO x, …] [USING value [AS name], …]
    SET {VAR | VARIABLE} x = … (query) …

The rule: a statement without a query of mica's tables is Spark's as it was written, and so is one that cannot be read.
EXPLAIN of a statement that a call of `Table` runs is refused: it has no plan.

Source: Spark's SqlBaseParser.g4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mica.engines.spark.doors import own_sql
from mica.engines.spark.session import has_delta
from mica.engines.spark.types import unread
from mica.errors import MicaError, UserError
from mica.query import names
from mica.query.insert import Query
from mica.query.lent import is_hidden
from mica.query.located import known_as
from mica.query.parameters import Sql, bound, has_places
from mica.query.row_statements import behind
from mica.query.statement_parts import QUERY, VALUE_QUERY, Parts, ended
from mica.query.statements import Create, Inserts, Selected, Statement, parse_statement
from mica.query.subqueries import constants
from mica.query.table_statements import ConvertToDelta, Drop, DropSchema, Relocate, Rename, Unread
from mica.query.tables import tables_of, target
from mica.query.view_statements import DropView, RenameView, StoredView, UnkeptView, View
from mica.query.viewed import over_views
from mica.query.views import is_stored
from mica.records import dataclass
from mica.schema.lexical import GAP, SPACE
from mica.schema.spelling import quote_if_needed, spelled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BEGINS = re.compile(
    rf"(?is){GAP}(?:(?P<explain>EXPLAIN)|(?P<describe>DESC(?:RIBE)?)|(?P<cache>CACHE)"
    rf"|(?P<set>SET){SPACE}VAR(?:IABLE)?|(?P<execute>EXECUTE){SPACE}IMMEDIATE)\b"
)
_MODES = ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST")


def begins(text: str) -> bool:
    """Whether a text begins like one of these statements."""
    return _BEGINS.match(text) is not None


def explains(text: str) -> bool:
    """Whether a text is an EXPLAIN."""
    kind = _BEGINS.match(text)
    return kind is not None and kind["explain"] is not None


def run(
    spark: SparkSession, text: str, query: Query, again: Callable[[str], DataFrame],
) -> DataFrame | None:  # fmt: skip
    """The statement's result; None if it is Spark's. `query` gives the rows of a query, `again` runs a text as
    this one. Errors: INVALID_ARGUMENT for EXPLAIN of a statement that mica runs; Spark's own."""
    kind = _BEGINS.match(text)
    if kind is None:
        return None

    def ours(query: str) -> bool:
        try:
            found = tables_of(query, spark)
        except MicaError:
            raise
        except Exception:  # noqa: BLE001 - Spark's error names the place in the whole text
            return False
        return found is not None and bool(found.views)

    try:
        statement = _Statement(ended(text))
        found = getattr(statement, f"read_{str(kind.lastgroup).lower()}")()
    except UserError:  # Spark says what is wrong, or knows its marks
        return None
    match found:
        case Explained(statement=inner) if inner is not None and _is_ours(spark, inner):
            raise UserError(
                "INVALID_ARGUMENT",
                "EXPLAIN has no plan of a statement that mica runs itself, by a call of Table",
                hint="mica.explain of a SELECT with the same condition says what is read.",
            )
        case Explained(pieces=pieces):
            return over_views(spark, pieces, ours, lambda text: unread(query(text)))
        case SetVariable(pieces=pieces):
            return over_views(spark, pieces, ours, query)
        case Cached(query=""):
            _refuse_whole(spark, found.table)
        case Cached():
            return _cached(spark, found, query) if ours(found.query) else None
        case Immediate():
            return _immediate(spark, found, ours, query, again)
    return None


@dataclass(frozen=True)
class Explained:
    """EXPLAIN or DESCRIBE QUERY, which read no rows: text and, at each second place, a query. `statement`: what else
    than a query is explained."""

    pieces: list[str]
    statement: Statement | None = None


@dataclass(frozen=True)
class SetVariable:
    """SET VAR: text and, at each second place, a query."""

    pieces: list[str]


@dataclass(frozen=True)
class Cached:
    """CACHE TABLE; `before` is the text before AS, `query` what follows it, or nothing."""

    table: tuple[str, ...]
    before: str
    query: str


@dataclass(frozen=True)
class Immediate:
    """EXECUTE IMMEDIATE: an expression, the names after INTO and the values after USING."""

    text: str
    into: str | None
    values: str | None


class _Statement(Parts):
    """The statements, each by its first word."""

    def read_explain(self) -> Explained | Cached | None:
        """EXPLAIN of a query, or of a statement that has one, or that mica runs."""
        self.at += 1
        if self.word() in _MODES:
            self.at += 1
        before, text = self.in_two()
        if self.word() == "CACHE":
            cached = self.read_cache()
            return cached if cached is not None and not cached.query else None
        inner = parse_statement(text)
        if inner is None or isinstance(inner, Unread):
            return Explained([before, text]) if inner is None and self.begins_query() else None
        ctes, query = getattr(inner, "ctes", ""), getattr(inner, "query", None) or ""
        asked = behind(ctes, query) if query else ""
        return Explained([before + text.removeprefix(ctes).removesuffix(query), asked], inner)

    def read_describe(self) -> Explained | None:
        """DESCRIBE QUERY; None for DESCRIBE of anything else."""
        self.at += 1
        # Without QUERY these words may also be names: of a table that is described.
        is_query = self.accept("QUERY") or self.word() in ("SELECT", "WITH", "FROM") or self.mark() == "("
        more = self.tokens[min(self.at + 1, len(self.tokens) - 1)].kind != "end"
        return Explained(self.in_two()) if is_query and more and self.begins_query() else None

    def read_set(self) -> SetVariable:
        """SET VAR, which may have queries anywhere in its expressions."""
        return SetVariable(list(self._cut()))

    def read_cache(self) -> Cached | None:
        """CACHE TABLE; None for a name that Spark refuses."""
        self.at += 1
        self.accept("LAZY")
        self.expect("TABLE")
        name = self.table()
        if self.accept("OPTIONS"):
            self.pairs()
        before = self.text[: self.tokens[self.at - 1].end]
        self.accept("AS")
        whole = self.token.kind == "end"
        return Cached(name, before, self.in_two()[1]) if whole or (len(name) == 1 and self.begins_query()) else None

    def read_execute(self) -> Immediate:
        """EXECUTE IMMEDIATE."""
        self.at += 2
        text = self.until("INTO", "USING")
        into = self.until("USING") if self.accept("INTO") else None
        return Immediate(text, into, self.rest() if self.accept("USING") else None)

    def begins_query(self) -> bool:
        """Whether a query comes next."""
        return self.word() in QUERY or self.mark() == "("

    def in_two(self) -> list[str]:
        """What precedes here, and the query from here on."""
        return [self.text[: self.token.at], self.text[self.token.at :]]

    def _cut(self) -> Iterator[str]:
        """The text and, at each second place, the queries in parentheses."""
        at = 0
        while self.token.kind != "end":
            if self.mark() == "(" and self.word(1) in (*VALUE_QUERY, "FROM"):
                start = self.token.at + 1
                end = start + len(self.parenthesised()) - 2
                yield self.text[at:start]
                yield self.text[start:end]
                at = end
            else:
                self.at += 1
        yield self.text[at:]


def _is_ours(spark: SparkSession, statement: Statement) -> bool:
    """Whether Spark has no plan of a statement: delta-spark has one of its own, for what it knows by path or name."""
    if isinstance(statement, View | UnkeptView | StoredView | RenameView | DropView | Selected | DropSchema):
        return False
    if isinstance(statement, Create):
        return True
    if isinstance(statement, ConvertToDelta):
        return not has_delta(spark)
    if isinstance(statement, Rename | Relocate | Drop):
        return len(statement.table) == 1 and known_as(spark, statement.table) is not None
    for table in statement.tables if isinstance(statement, Inserts) else (statement.table,):
        known = len(table) > 1 and has_delta(spark)
        if not known and target(spark, table, catalogs=False) is not None:
            return True
    return False


def _refuse_whole(spark: SparkSession, table: tuple[str, ...]) -> None:
    """Refuses to cache a table of mica's without a query: its scans read files, whatever Spark holds in memory."""
    is_ours = (names.is_path(table) and not has_delta(spark)) or is_stored(spark, table)
    if is_ours or (known_as(spark, table) is not None and not (len(table) == 1 and is_hidden(spark, table[0]))):
        name = spelled(table)
        raise UserError(
            "INVALID_ARGUMENT",
            f"CACHE TABLE {name} would hold rows that no query asks for: mica reads the table's files",
            hint=f"Cache a query, and ask for that: CACHE TABLE w AS SELECT * FROM {name}.",  # noqa: S608 - a hint
        )


def _cached(spark: SparkSession, statement: Cached, query: Callable[[str], DataFrame]) -> DataFrame:
    """Makes a temporary view, as Spark does, and caches that."""
    view = quote_if_needed(statement.table[0])
    unread(query(statement.query)).createTempView(view)
    try:
        return own_sql(spark, statement.before)
    except Exception:
        spark.catalog.dropTempView(view)
        raise


def _immediate(
    spark: SparkSession, given: Immediate, ours: Callable[[str], bool], query: Query, again: Callable[[str], DataFrame]
) -> DataFrame | None:
    """The text that Spark makes of the expression runs as any other, the values of USING in it, in their types."""

    def asked(text: str) -> DataFrame:
        return own_sql(spark, text)

    try:
        text = asked(f"SELECT {given.text}").collect()[0][0]
        kind = _BEGINS.match(text)
        if kind is not None and kind["execute"]:
            return None
        if given.values is not None:
            text = bound(text, _values(text, given.values, asked))
    except Exception:  # noqa: BLE001 - Spark's error names the place in the whole text
        return None
    if given.into is None:
        return again(text)
    statement = parse_statement(text)
    if statement is not None and (isinstance(statement, Unread) or _is_ours(spark, statement)):
        raise UserError(
            "INVALID_ARGUMENT",
            f"INTO of EXECUTE IMMEDIATE takes the row of a query, and the text is none: {text}",
            hint="Leave INTO out.",
        )
    return over_views(spark, [f"SET VAR ({given.into}) = (", ended(text), ")"], ours, query)


def _values(text: str, given: str, asked: Query) -> list[Sql] | dict[str, Sql]:
    """The values of USING: in their order if the text has places, else by their names, of which none comes twice."""
    rows = asked(f"SELECT {given}")
    values, names = [*map(Sql, constants(rows, given))], rows.columns
    if has_places(text):
        return values
    if len({*names}) < len(names):
        raise UserError("INVALID_ARGUMENT", "a name of USING is given twice")
    return dict(zip(names, values, strict=True))
