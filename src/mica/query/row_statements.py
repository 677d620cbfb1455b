"""Parses the statements that change rows of a table into plain values: see `statements`, which parses the others.

    DELETE FROM t [a] [WHERE …]                UPDATE t [a] SET c = …, … [WHERE …]
    INSERT [WITH SCHEMA EVOLUTION] {INTO | OVERWRITE} [TABLE] t [PARTITION (p [= …], …)] [(c, …) | BY NAME]
        [REPLACE WHERE …] query
    MERGE [WITH SCHEMA EVOLUTION] INTO t [a] USING {t [{VERSION | TIMESTAMP} AS OF …] | (query)} [a] ON …
        {WHEN [NOT] MATCHED [BY {TARGET | SOURCE}] [AND …] THEN …}

Source: Spark's SqlBaseParser.g4 and delta-spark's DeltaSqlBase.g4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from mica.errors import UserError
from mica.expressions.tokens import Token, syntax_error
from mica.query.statement_parts import QUERY, Parts, as_assigned, is_tables, refuse_again, without_name
from mica.records import dataclass
from mica.schema.hidden import Readable
from mica.schema.lexical import GAP, QUOTED_STRING, SKIPPED, SPACE
from mica.schema.types import StructType

_OUTSIDE = rf"""(?>{SKIPPED}|[^()'"]|{QUOTED_STRING})"""
#: What stands in parentheses, with three pairs in each other at most.
INSIDE = f"(?:{_OUTSIDE})*"
for _ in range(3):
    INSIDE = rf"(?:{_OUTSIDE}|\({INSIDE}\))*"
_WITH = re.compile(rf"{GAP}WITH\b", re.IGNORECASE)
#: The version or time that a table is read at: a text or literal, a call or parentheses, with an interval, or a number
#: or a text as Spark's option of a table. An expression that goes on is another one.
AS_OF = re.compile(
    rf"""{SPACE}(?:FOR{SPACE})?(?:(?:SYSTEM_)?VERSION{SPACE}AS{SPACE}OF{SPACE}(?P<quote>['"]?)(?P<version>\d+)(?P=quote)(?!\w)
      | (?:SYSTEM_TIME|TIMESTAMP){SPACE}AS{SPACE}OF{SPACE}
        (?P<moment>(?:\w+\s*)?(?:{QUOTED_STRING} | \({INSIDE}\))
          (?:\s*[-+]\s*INTERVAL\s+(?:{QUOTED_STRING}|\d+)\s+\w+)?)
        (?!{GAP}(?:\|\||[-+*/%&|^:\['"])))
    | {SPACE}WITH{GAP}\({GAP}(?:(?P<o>['"]?)versionAsOf(?P=o)(?:{GAP}={GAP}|{SPACE})(?P<q>['"]?)(?P<option>\d+)(?P=q)
      | (?P<p>['"]?)timestampAsOf(?P=p)(?:{GAP}={GAP}|{SPACE})(?P<time>{QUOTED_STRING})){GAP}\)""",
    re.VERBOSE | re.IGNORECASE,
)
#: How a version or time begins, of any kind.
AS_OF_ANY = re.compile(
    rf"{SPACE}(?:FOR{SPACE})?(?:(?:SYSTEM_)?VERSION|SYSTEM_TIME|TIMESTAMP){SPACE}AS{SPACE}OF\b", re.IGNORECASE
)
_AFTER_REPLACED = ("SELECT", "WITH", "VALUES", "TABLE")  # the condition of REPLACE WHERE may have FROM in it
#: What ends the columns of a SELECT that may have DEFAULT among them.
_AFTER_COLUMNS = ("FROM", "WHERE", "ORDER", "LIMIT")


@dataclass(frozen=True)
class Delete:
    """DELETE; `name` may precede columns."""

    table: tuple[str, ...]
    name: str
    where: str | None
    #: As of an INSERT.
    ctes: str = ""


@dataclass(frozen=True)
class Update:
    """UPDATE; `name` may precede columns."""

    table: tuple[str, ...]
    name: str
    set: Mapping[str, str]
    where: str | None
    #: As of an INSERT.
    ctes: str = ""


@dataclass(frozen=True)
class Insert:
    """INSERT; `columns` as they are named, or none. `by_name`: those of the query. `where`: of REPLACE WHERE. `using`:
    of REPLACE USING.
    `partition`: the columns of PARTITION, with their values or None. `evolves`: WITH SCHEMA EVOLUTION."""

    table: tuple[str, ...]
    columns: tuple[str, ...]
    query: str
    overwrite: bool
    by_name: bool = False
    where: str | None = None
    using: tuple[str, ...] = ()
    partition: Mapping[str, str | None] = field(default_factory=dict)
    evolves: bool = False
    #: The WITH before the statement, whose tables its queries see.
    ctes: str = ""


@dataclass(frozen=True)
class MergeWhen:
    """One clause of a MERGE; `values` is None for all columns (`*`). The target's name may precede columns."""

    kind: str
    condition: str | None
    action: str
    values: Mapping[str, str] | None = None


@dataclass(frozen=True)
class MergeInto:
    """MERGE; `source` is a query. `evolves`: WITH SCHEMA EVOLUTION."""

    table: tuple[str, ...]
    alias: str
    source: str
    source_alias: str
    on: str
    clauses: tuple[MergeWhen, ...]
    evolves: bool = False
    #: As of an INSERT.
    ctes: str = ""


#: The statements that change rows.
RowChange = Delete | Update | Insert | MergeInto


def behind(ctes: str, query: str) -> str:
    """A query that sees the tables of a WITH before it, and may have a WITH of its own."""
    nested = bool(ctes) and _WITH.match(query) is not None
    return f"{ctes}SELECT * FROM ({query})" if nested else f"{ctes}{query}"  # noqa: S608 - the user's query


def of_columns(statement: RowChange, schema: StructType) -> RowChange:
    """The statement without the table's name before its columns; a merge has two tables and keeps the names."""
    columns = Readable(schema.fields)
    match statement:
        case Delete(name=name, where=str(where)):
            return replace(statement, where=without_name(where, name, columns))
        case Update(name=name, set=texts, where=where):
            values, known = dict[str, str](), set[str]()
            for given, text in texts.items():
                names = Parts(given).several_names()
                column = as_assigned(names[1:] if is_tables(names, name, columns) else names)
                refuse_again(column, known)
                known.add(column.lower())
                values[column] = without_name(text, name, columns)
            where = None if where is None else without_name(where, name, columns)
            return replace(statement, set=values, where=where)
        case Insert(table=(*_, name), where=str(where)):
            return replace(statement, where=without_name(where, name, columns))
    return statement


def with_defaults(query: str, texts: Sequence[str]) -> str:
    """A query of an INSERT with these texts, one of each column, for DEFAULT in VALUES or as a column of its SELECT."""
    found = RowStatement(query)
    return found.defaulted(texts) if found.word() == "VALUES" else found.selected_defaults(texts)


class RowStatement(Parts):
    """The statements that change rows."""

    def delete(self) -> Delete:
        """DELETE, to its end."""
        self.accept("DELETE", "FROM")
        table = self.table()
        found = Delete(table, self.alias_or_name(table, "WHERE"), self.condition("WHERE"))
        self.end()
        return found

    def update(self) -> Update:
        """UPDATE, to its end."""
        self.accept("UPDATE")
        table = self.table()
        name = self.alias_or_name(table, "SET")
        self.expect("SET")
        found = Update(table, name, self.assignments("WHERE"), self.condition("WHERE"))
        self.end()
        return found

    def insert(self) -> Insert:
        """INSERT, whose query is a text."""
        self.accept("INSERT")
        evolves = self.accept("WITH", "SCHEMA", "EVOLUTION")
        overwrite = self.accept("OVERWRITE")
        if not overwrite:
            self.expect("INTO")
        self.accept("TABLE")
        table = self.table()
        if self.word() == "WITH" and self.mark(1) == "(":  # not a CTE's name
            hint = "Leave them out; INSERT WITH SCHEMA EVOLUTION INTO … adds the columns that the table lacks."
            what = "INSERT INTO a table WITH options is not supported here"
            raise syntax_error(self.text, self.token.at, what, hint, code="UNSUPPORTED_EXPRESSION")
        partition = self.partition() if self.accept("PARTITION") else {}
        self.pass_alias()
        by_name = self.accept("BY", "NAME")
        self.refuse_replaced()
        is_query = self.mark(1) == "(" or (self.word(1) in QUERY and self.mark(2) not in (",", ")"))
        columns = self.listed() if self.mark() == "(" and not is_query else ()
        replaced = not overwrite and not partition and self.accept("REPLACE")
        using = tuple(self.each(self.identifier)) if replaced and self.accept("USING") else ()
        where = self.condition("WHERE", *_AFTER_REPLACED) if replaced and not using else None
        if self.word() not in QUERY and self.mark() != "(":
            self.fail("a query or VALUES is expected")
        query, overwrite = self.text[self.token.at :], overwrite or where is not None or bool(using)
        return Insert(table, columns, query, overwrite, by_name, where, using, partition, evolves)

    def pass_alias(self) -> None:
        """Goes past an alias of the table, which Spark's grammar has before REPLACE USING, and which says nothing."""
        ahead = 2 if self.word() == "AS" else 1
        then = ahead + 2 if (self.word(ahead), self.word(ahead + 1)) == ("BY", "NAME") else ahead
        if (self.word(then), self.word(then + 1)) == ("REPLACE", "USING"):
            self.at += ahead

    def refuse_replaced(self) -> None:
        """Refuses REPLACE ON, which an alias of the table may precede."""
        ahead = next((n for n in (0, 1, 2) if self.word(n) == "REPLACE" and self.word(n + 1) == "ON"), None)
        if ahead is not None and (ahead < 2 or self.word() == "AS"):
            self.at += ahead
            what = "INSERT … REPLACE ON is not supported here"
            hint = "Use REPLACE USING (…) for equal columns, REPLACE WHERE for a condition on the table, or MERGE INTO."
            raise syntax_error(self.text, self.token.at, what, hint, code="UNSUPPORTED_EXPRESSION")

    def defaulted(self, texts: Sequence[str]) -> str:
        """The text with one of these for each DEFAULT in rows of VALUES."""
        depth, column, before, at = 0, 0, "", 0
        while self.accept("VALUES") or self.token.kind != "end":
            mark = self.mark()
            depth += (mark == "(") - (mark == ")")
            column = 0 if depth == 0 else column + (depth == 1 and mark == ",")
            alone = self.tokens[self.at - 1].text.upper() in ("VALUES", "(", ",") and self.mark(1) in (",", ")", "")
            if self.word() == "DEFAULT" and depth < 2 and alone and column < len(texts):
                before, at = before + self.text[at : self.token.at] + texts[column], self.token.end
            self.at += 1
        return before + self.text[at:]

    def selected_defaults(self, texts: Sequence[str]) -> str:
        """The text with one of these for each column of a SELECT that is DEFAULT."""
        while self.accept("("):
            pass
        if not self.accept("SELECT"):
            return self.text
        depth, columns = 0, [list[Token]()]
        while self.token.kind != "end" and (depth or self.word() not in _AFTER_COLUMNS):
            mark = self.mark()
            depth += (mark == "(") - (mark == ")")
            if depth < 0:
                break
            if mark == "," and not depth:
                columns.append([])
            else:
                columns[-1].append(self.token)
            self.at += 1
        if len(columns) != len(texts):
            return self.text
        found, at = "", 0
        for tokens, text in zip(columns, texts, strict=True):
            if [token.text.upper() for token in tokens] == ["DEFAULT"]:
                found, at = f"{found}{self.text[at : tokens[0].at]}{text}", tokens[0].end
        return found + self.text[at:]

    def merge(self) -> MergeInto:
        """MERGE, to its end."""
        self.accept("MERGE")
        evolves = self.accept("WITH", "SCHEMA", "EVOLUTION")
        self.expect("INTO")
        table = self.table()
        alias = self.alias_or_name(table, "USING")
        self.expect("USING")
        named: tuple[str, ...] = ("source",)
        if self.mark() == "(":
            source = self.parenthesised()
        else:
            at = self.token.at
            named = self.table()
            end = self.tokens[self.at - 1].end
            as_of = AS_OF.match(self.text, end)
            end = end if as_of is None else as_of.end()
            while self.token.kind != "end" and self.token.at < end:
                self.at += 1
            source = f"SELECT * FROM {self.text[at:end]}"  # noqa: S608 - the text's own name
        source_alias = self.alias_or_name(named, "ON")
        self.expect("ON")
        on = self.until("WHEN")
        clauses: list[MergeWhen] = []
        while self.accept("WHEN"):
            clauses.append(self.clause())
        self.end()
        return MergeInto(table, alias, source, source_alias, on, tuple(clauses), evolves)

    def clause(self) -> MergeWhen:
        """One clause, after WHEN."""
        negated = self.accept("NOT")
        self.expect("MATCHED")
        kind = "matched" if not negated else "not matched"
        if self.accept("BY"):
            if self.accept("SOURCE"):
                kind = "not matched by source"
            else:
                self.expect("TARGET")
        condition = self.until("THEN") if self.accept("AND") else None
        self.expect("THEN")
        inserts = kind == "not matched"
        if not inserts and self.accept("DELETE"):
            return MergeWhen(kind, condition, "delete")
        if not inserts and self.accept("UPDATE"):
            self.expect("SET")
            values = None if self.accept("*") else self.assignments("WHEN")
            return MergeWhen(kind, condition, "update", values)
        if not inserts and self.word() == "INSERT":
            self.fail("UPDATE or DELETE is expected: rows that are not matched are inserted")
        self.expect("INSERT")
        if self.accept("*"):
            return MergeWhen(kind, condition, "insert")
        columns = self.each(self.assigned)
        if len({column.lower() for column in columns}) < len(columns):
            raise UserError("DUPLICATE_COLUMN", f"a column is given twice: {', '.join(columns)}", column=columns[0])
        self.expect("VALUES")
        given = self.expressions()
        if len(given) != len(columns):
            self.fail(f"{len(columns)} values are expected, {len(given)} were given")
        return MergeWhen(kind, condition, "insert", dict(zip(columns, given, strict=True)))
