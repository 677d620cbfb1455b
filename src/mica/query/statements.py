"""Parses the statements that change a table or describe it into plain values.

The rule: expressions and queries stay text, cut out of the statement as they are written; `changes` hands them to the
calls of `Table`. A text that does not begin like one of these statements is None; if it does and then differs, that is
an error that names the place.

    DELETE FROM t [a] [WHERE …]                UPDATE t [a] SET c = …, … [WHERE …]
    INSERT {INTO | OVERWRITE} [TABLE] t [(c, …) | BY NAME] [REPLACE WHERE …] query
    MERGE INTO t [a] USING {t [{VERSION | TIMESTAMP} AS OF …] | (query)} [a] ON …
        {WHEN [NOT] MATCHED [BY {TARGET | SOURCE}] [AND …] THEN …}
    OPTIMIZE t [WHERE …] [ZORDER BY (c, …)]    VACUUM t [RETAIN n HOURS] [DRY RUN]
    {DESCRIBE | DESC} HISTORY t [LIMIT n]
    CREATE TABLE [IF NOT EXISTS] t (…) USING mica [PARTITIONED BY (c, …)] [LOCATION '…'] [TBLPROPERTIES (…)] [AS query]
    CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW w [(c, …)] AS query          CREATE [OR REPLACE] TABLE … AS query

Source: Spark's SqlBaseParser.g4 and delta-spark's DeltaSqlBase.g4.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from mica.expressions.cursor import Cursor
from mica.records import dataclass
from mica.schema.ddl import unquote


@dataclass(frozen=True)
class Delete:
    """DELETE."""

    table: tuple[str, ...]
    where: str | None


@dataclass(frozen=True)
class Update:
    """UPDATE."""

    table: tuple[str, ...]
    set: Mapping[str, str]
    where: str | None


@dataclass(frozen=True)
class Insert:
    """INSERT; `columns` as they are named, or none. `by_name`: those of the query. `where`: of REPLACE WHERE."""

    table: tuple[str, ...]
    columns: tuple[str, ...]
    query: str
    overwrite: bool
    by_name: bool = False
    where: str | None = None


@dataclass(frozen=True)
class MergeWhen:
    """One clause of a MERGE; `values` is None for all columns (`*`)."""

    kind: str
    condition: str | None
    action: str
    values: Mapping[str, str] | None = None


@dataclass(frozen=True)
class MergeInto:
    """MERGE; `source` is a query."""

    table: tuple[str, ...]
    alias: str
    source: str
    source_alias: str
    on: str
    clauses: tuple[MergeWhen, ...]


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE."""

    table: tuple[str, ...]
    where: str | None
    zorder_by: tuple[str, ...]


@dataclass(frozen=True)
class VacuumOf:
    """VACUUM; `retain` in hours."""

    table: tuple[str, ...]
    retain: float | None
    dry_run: bool


@dataclass(frozen=True)
class History:
    """DESCRIBE HISTORY."""

    table: tuple[str, ...]
    limit: int | None


@dataclass(frozen=True)
class Create:
    """CREATE TABLE … USING mica; `ddl` is empty if the query gives the columns."""

    table: tuple[str, ...]
    ddl: str
    if_not_exists: bool
    partition_by: tuple[str, ...] = ()
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    query: str | None = None


@dataclass(frozen=True)
class View:
    """CREATE TEMPORARY VIEW … AS; `columns` as they are named, or none."""

    name: str
    columns: tuple[str, ...]
    replace: bool
    shared: bool
    query: str


@dataclass(frozen=True)
class StoredView:
    """CREATE VIEW … AS, which Spark's catalog keeps as a text."""

    before: str
    query: str


@dataclass(frozen=True)
class Selected:
    """A statement of Spark's that ends with a query."""

    before: str
    query: str


Statement = Delete | Update | Insert | MergeInto | Optimize | VacuumOf | History | Create | View | StoredView | Selected

_BEGINS = re.compile(
    r"(?is)(?:\s|--[^\r\n]*|/\*.*?\*/)*(DELETE\s+FROM|UPDATE|INSERT|MERGE|OPTIMIZE|VACUUM|DESC(?:RIBE)?\s+HISTORY|"
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|(?:(?:GLOBAL\s+)?TEMP(?:ORARY)?\s+)?VIEW)(?=.*\b(?:USING\s+mica|AS)\b))\b"
)
_TEXT = r"'(?:[^'\\]|\\.|'')*'"
#: What stands in parentheses, which may hold one pair more.
_INSIDE = rf"(?:[^()']|{_TEXT}|\((?:[^()']|{_TEXT})*\))*"
#: The version or time that a table is read at: a text or literal, a call or parentheses, with an interval.
AS_OF = re.compile(
    rf"""\s+(?:FOR\s+)?(?:(?:SYSTEM_)?VERSION\s+AS\s+OF\s+(?P<quote>'?)(?P<version>\d+)(?P=quote)(?!\w)
      | (?:SYSTEM_TIME|TIMESTAMP)\s+AS\s+OF\s+
        (?P<moment>(?:\w+\s*)?(?:{_TEXT} | \({_INSIDE}\))(?:\s*[-+]\s*INTERVAL\s+(?:{_TEXT}|\d+)\s+\w+)?))""",
    re.VERBOSE | re.IGNORECASE,
)
_QUERY = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_AFTER_REPLACED = ("SELECT", "WITH", "VALUES", "TABLE")  # the condition of REPLACE WHERE may have FROM in it
#: What ends the columns of a SELECT that may have DEFAULT among them.
_AFTER_COLUMNS = ("FROM", "WHERE", "ORDER", "LIMIT")
_OURS = re.compile(r"(?is)\bUSING\s+mica\b")


def parse_statement(text: str) -> Statement | None:
    """The statement; None for a text that begins otherwise. Errors: INVALID_EXPRESSION, with the place in the text."""
    begin = _BEGINS.match(text)
    if begin is None:
        return None
    word = begin[1].split()[0].upper()
    if word == "CREATE" and (_OURS.search(text) is None or begin[1].upper().split()[1] != "TABLE"):
        return _Statement(text.rstrip().rstrip(";")).selected()
    return _STATEMENTS["DESCRIBE" if word == "DESC" else word](_Statement(text.rstrip().rstrip(";")))


def with_defaults(query: str, texts: Sequence[str]) -> str:
    """A query of an INSERT with these texts, one of each column, for DEFAULT in VALUES or as a column of its SELECT."""
    found = _Statement(query)
    return found.defaulted(texts) if found.word() == "VALUES" else found.selected_defaults(texts)


class _Statement(Cursor):
    def delete(self) -> Delete:
        self.accept("DELETE", "FROM")
        table = self.table()
        found = Delete(table, self.condition("WHERE", self.names_of(table, "WHERE")))
        self.end()
        return found

    def update(self) -> Update:
        self.accept("UPDATE")
        table = self.table()
        names = self.names_of(table, "SET")
        self.expect("SET")
        values = self.assignments(names, ("WHERE",))
        found = Update(table, values, self.condition("WHERE", names))
        self.end()
        return found

    def insert(self) -> Insert:
        self.accept("INSERT")
        overwrite = self.accept("OVERWRITE")
        if not overwrite:
            self.expect("INTO")
        self.accept("TABLE")
        table = self.table()
        by_name = self.accept("BY", "NAME")
        columns = self.listed() if self.mark() == "(" and self.word(1) not in ("SELECT", "WITH", "VALUES") else ()
        replaced = not overwrite and self.accept("REPLACE")
        where = self.condition("WHERE", {table[-1].lower()}, *_AFTER_REPLACED) if replaced else None
        if self.word() not in _QUERY and self.mark() != "(":
            self.fail("a query or VALUES is expected")
        return Insert(table, columns, self.text[self.token.at :], overwrite or where is not None, by_name, where)

    def defaulted(self, texts: Sequence[str]) -> str:
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
        if not self.accept("SELECT"):
            return self.text
        depth, cuts = 0, [self.tokens[self.at - 1].end - 1]
        while self.token.kind != "end" and (depth or self.word() not in _AFTER_COLUMNS):
            mark = self.mark()
            depth += (mark == "(") - (mark == ")")
            cuts += [self.token.at] if mark == "," and not depth else []
            self.at += 1
        columns = [self.text[start + 1 : end] for start, end in itertools.pairwise([*cuts, self.token.at])]
        if len(columns) == len(texts):
            pairs = zip(columns, texts, strict=True)
            columns = [f" {text} " if column.strip().upper() == "DEFAULT" else column for column, text in pairs]
        return self.text[: cuts[0] + 1] + ",".join(columns) + self.text[self.token.at :]

    def merge(self) -> MergeInto:
        self.accept("MERGE")
        self.expect("INTO")
        table = self.table()
        alias = self.alias("USING") or table[-1]
        self.expect("USING")
        if self.mark() == "(":
            source, name = self.parenthesised(), "source"
        else:
            at = self.token.at
            name = self.table()[-1]
            end = self.tokens[self.at - 1].end
            as_of = AS_OF.match(self.text, end)
            end = end if as_of is None else as_of.end()
            while self.token.kind != "end" and self.token.at < end:
                self.at += 1
            source = f"SELECT * FROM {self.text[at:end]}"  # noqa: S608 - the text's own name
        source_alias = self.alias("ON") or name
        self.expect("ON")
        on = self.until("WHEN")
        clauses: list[MergeWhen] = []
        while self.accept("WHEN"):
            clauses.append(self.clause(alias))
        self.end()
        return MergeInto(table, alias, source, source_alias, on, tuple(clauses))

    def clause(self, alias: str) -> MergeWhen:
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
        if self.accept("DELETE"):
            return MergeWhen(kind, condition, "delete")
        if self.accept("UPDATE"):
            self.expect("SET")
            values = None if self.accept("*") else self.assignments({alias.lower()}, ("WHEN",), only_left=True)
            return MergeWhen(kind, condition, "update", values)
        self.expect("INSERT")
        if self.accept("*"):
            return MergeWhen(kind, condition, "insert")
        columns = self.listed()
        self.expect("VALUES")
        given = self.expressions()
        if len(given) != len(columns):
            self.fail(f"{len(columns)} values are expected, {len(given)} were given")
        return MergeWhen(kind, condition, "insert", dict(zip(columns, given, strict=True)))

    def optimize(self) -> Optimize:
        self.accept("OPTIMIZE")
        table = self.table()
        where = self.condition("WHERE", set(), "ZORDER")
        columns = self.expressions() if self.accept("ZORDER", "BY") else ()
        self.end()
        return Optimize(table, where, columns)

    def vacuum(self) -> VacuumOf:
        self.accept("VACUUM")
        table = self.table()
        retain = self.number() if self.accept("RETAIN") else None
        if retain is not None:
            self.expect("HOURS")
        dry = self.accept("DRY", "RUN")
        self.end()
        return VacuumOf(table, retain, dry)

    def describe(self) -> History:
        self.at += 2
        table = self.table()
        limit = int(self.number()) if self.accept("LIMIT") else None
        self.end()
        return History(table, limit)

    def create(self) -> Create:
        self.accept("CREATE", "TABLE")
        unless = self.accept("IF", "NOT", "EXISTS")
        table = self.table()
        ddl = self.parenthesised()[1:-1] if self.mark() == "(" else ""
        self.expect("USING")
        self.at += 1
        partition_by: tuple[str, ...] = ()
        location, properties, query = None, {}, None
        while self.token.kind != "end":
            if self.accept("PARTITIONED", "BY"):
                partition_by = self.listed()
            elif self.accept("LOCATION"):
                location = self.string()
            elif self.accept("TBLPROPERTIES"):
                properties = self.pairs()
            else:
                self.accept("AS")
                if self.word() not in _QUERY and self.mark() != "(":
                    self.fail("PARTITIONED BY, LOCATION, TBLPROPERTIES or AS is expected")
                query = self.text[self.token.at :]
                break
        return Create(table, ddl, unless, partition_by, location, properties, query)

    def selected(self) -> View | StoredView | Selected | None:
        """CREATE … AS a query, of a view or of a table of Spark's."""
        self.accept("CREATE")
        replace = self.accept("OR", "REPLACE")
        shared = self.accept("GLOBAL")
        is_view = self.accept("TEMP") or self.accept("TEMPORARY")
        stored = not is_view and self.word() == "VIEW"
        self.at += 1
        unless = self.accept("IF", "NOT", "EXISTS")
        name = self.table()
        columns: tuple[str, ...] = ()
        if is_view and not unless and len(name) == 1 and self.mark() == "(":
            columns = self.listed()
        plain = is_view and not unless and len(name) == 1 and self.word() == "AS"
        depth = 0
        while self.token.kind != "end":
            depth += (self.mark() == "(") - (self.mark() == ")")
            if not depth and self.word() == "AS" and (self.word(1) in _QUERY or self.mark(1) == "("):
                before, query = self.text[: self.tokens[self.at + 1].at], self.text[self.tokens[self.at + 1].at :]
                if plain:
                    return View(name[0], columns, replace, shared, query)
                return (StoredView if stored else Selected)(before, query)
            self.at += 1
        return None

    # --- parts -------------------------------------------------------------------------------------------------------

    def table(self) -> tuple[str, ...]:
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        return tuple(parts)

    def alias(self, *stops: str) -> str | None:
        self.accept("AS")
        if self.token.kind == "end" or self.word() in stops:
            return None
        return self.identifier()

    def names_of(self, table: tuple[str, ...], *stops: str) -> set[str]:
        """What may qualify a column of the table, in lower case."""
        return {table[-1].lower(), (self.alias(*stops) or table[-1]).lower()}

    def condition(self, word: str, names: set[str], *stops: str) -> str | None:
        return self.unqualified(names, stops) if self.accept(word) else None

    def until(self, *stops: str) -> str:
        return self.unqualified(set(), stops)

    def unqualified(self, names: set[str], stops: tuple[str, ...], marks: str = "") -> str:
        """The text up to one of these words or marks outside of parentheses, without `names` before its columns."""
        start, depth, case, cut = self.token.at, 0, 0, []
        while self.token.kind != "end":
            word, mark = self.word(), self.mark()
            case += (word == "CASE") - (word == "END" and case > 0)
            if depth == 0 and case == 0 and (word in stops or (mark and mark in marks)):
                break
            if mark == ")" and depth == 0:
                break
            depth += (mark == "(") - (mark == ")")
            before = self.tokens[self.at - 1].text if self.at else ""
            bare = self.token.text.strip("`").lower()
            if bare in names and self.mark(1) == "." and before not in (".", ":"):
                cut.append((self.token.at, self.tokens[self.at + 1].end))
                self.at += 1
            self.at += 1
        end = self.tokens[self.at - 1].end
        if end <= start:
            self.fail("an expression is expected")
        text, at = "", start
        for first, last in cut:
            text, at = text + self.text[at:first], last
        return text + self.text[at:end]

    def assignments(self, names: set[str], stops: tuple[str, ...], *, only_left: bool = False) -> dict[str, str]:
        found: dict[str, str] = {}
        while True:
            parts = self.table()
            if len(parts) > 1 and parts[0].lower() in names:
                parts = parts[1:]
            self.expect("=")
            found[".".join(parts)] = self.unqualified(set() if only_left else names, stops, ",")
            if not self.accept(","):
                return found

    def expressions(self) -> tuple[str, ...]:
        return self.each(lambda: self.unqualified(set(), (), ","))

    def listed(self) -> tuple[str, ...]:
        return self.each(lambda: self.table()[-1])

    def each(self, one: Callable[[], str]) -> tuple[str, ...]:
        self.expect("(")
        found = [one()]
        while self.accept(","):
            found.append(one())
        self.expect(")")
        return tuple(found)

    def pairs(self) -> dict[str, str]:
        self.expect("(")
        found: dict[str, str] = {}
        while True:
            name = self.string() if self.token.kind == "string" else ".".join(self.table())
            self.expect("=")
            if self.token.kind == "string":
                found[name] = self.string()
            else:
                found[name] = self.token.text
                self.at += 1
            if not self.accept(","):
                break
        self.expect(")")
        return found

    def parenthesised(self) -> str:
        start = self.token.at
        self.expect("(")
        self.unqualified(set(), ())
        self.expect(")")
        return self.text[start : self.tokens[self.at - 1].end]

    def string(self) -> str:
        if self.token.kind != "string":
            self.fail("a text in quotes is expected")
        self.at += 1
        return unquote(self.tokens[self.at - 1].text)

    def number(self) -> float:
        try:
            found = float(self.token.text)
        except ValueError:
            self.fail("a number is expected")
        self.at += 1
        return found

    def end(self) -> None:
        if self.token.kind != "end":
            self.fail("the end is expected")


_STATEMENTS: Mapping[str, Callable[[_Statement], Statement]] = {
    "DELETE": _Statement.delete,
    "UPDATE": _Statement.update,
    "INSERT": _Statement.insert,
    "MERGE": _Statement.merge,
    "OPTIMIZE": _Statement.optimize,
    "VACUUM": _Statement.vacuum,
    "DESCRIBE": _Statement.describe,
    "CREATE": _Statement.create,
}
