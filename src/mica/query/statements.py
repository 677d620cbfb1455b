"""Parses the statements that change a table or describe it into plain values.

The rule: expressions and queries stay text, cut out of the statement as they are written; `changes` hands them to the
calls of `Table`. A text that does not begin like one of these statements is None; if it does and then differs, that is
an error that names the place.

    [WITH …] {DELETE FROM | UPDATE | INSERT | MERGE} …  (see `row_statements`)
    {ALTER TABLE | RESTORE | {DROP | TRUNCATE} TABLE | DESCRIBE | SHOW | CONVERT TO DELTA} …  (see `table_statements`)
    OPTIMIZE t [FULL] [WHERE …] [ZORDER BY (c, …)]    REORG TABLE t [WHERE …] APPLY (PURGE)
    VACUUM t [FULL | LITE] [RETAIN n HOURS] [DRY RUN]    FSCK REPAIR TABLE t [DRY RUN]
    {DESCRIBE | DESC} HISTORY t [LIMIT n]
    {CREATE [OR REPLACE | EXTERNAL] | REPLACE} TABLE [IF NOT EXISTS] t (…) USING mica
        [{PARTITIONED | CLUSTER} BY (c, …)] [LOCATION '…'] [COMMENT '…'] [{TBLPROPERTIES | OPTIONS} (…)] [AS query]
    CREATE TABLE [IF NOT EXISTS] t LIKE u [USING {mica | delta}] [LOCATION '…'] [TBLPROPERTIES (…)]
    {CREATE [OR REPLACE] | REPLACE} TABLE [IF NOT EXISTS] t SHALLOW CLONE u [{VERSION | TIMESTAMP} AS OF …]
        [TBLPROPERTIES (…)] [LOCATION '…']
    (OPTIMIZE, VACUUM, FSCK, DESCRIBE HISTORY and DESCRIBE DETAIL take a path in quotes for t, too)
    CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW w [(c, …)] AS query          CREATE [OR REPLACE] TABLE … AS query
    {ALTER | DROP} VIEW w …  (see `view_statements`)    [WITH …] FROM … INSERT … SELECT … [INSERT … SELECT …]

Source: Spark's SqlBaseParser.g4 and delta-spark's DeltaSqlBase.g4; FSCK as in Databricks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial

from mica.arguments import Mode
from mica.collation.identifier import Identifier
from mica.collation.names import named
from mica.errors import UserError
from mica.expressions.tokens import syntax_error
from mica.properties import COMMENT
from mica.query.row_statements import Delete, Insert, MergeInto, RowChange, RowStatement, Update
from mica.query.statement_parts import QUERY, ended
from mica.query.table_statements import TABLE_STATEMENTS, TableCall, TableStatementRead, Unread, read_table_statement
from mica.query.view_statements import DropView, RenameView, StoredView, UnkeptView, View, read_altered, read_dropped
from mica.records import dataclass
from mica.schema.ddl import parse_ddl
from mica.schema.lexical import GAP, SPACE


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE."""

    table: tuple[str, ...]
    where: str | None
    zorder_by: tuple[str, ...]
    full: bool = False
    purge: bool = False


@dataclass(frozen=True)
class VacuumOf:
    """VACUUM; `retain` in hours."""

    table: tuple[str, ...]
    retain: float | None
    dry_run: bool
    lite: bool = False


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
    mode: Mode
    partition_by: tuple[str, ...] = ()
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    query: str | None = None
    #: REPLACE TABLE without CREATE: there must be a table.
    replaces: bool = False
    cluster_by: tuple[str, ...] = ()
    #: That of strings in `ddl` that name none.
    collation: Identifier | None = None


@dataclass(frozen=True)
class CreateLike:
    """CREATE TABLE … LIKE another table; `ours` if USING mica says so."""

    table: tuple[str, ...]
    source: tuple[str, ...]
    mode: Mode
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False


@dataclass(frozen=True)
class CloneOf:
    """CREATE TABLE … SHALLOW CLONE another table; `timestamp` is an expression."""

    table: tuple[str, ...]
    source: tuple[str, ...]
    mode: Mode
    version: int | None = None
    timestamp: str | None = None
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    #: REPLACE TABLE without CREATE: there must be a table.
    replaces: bool = False


@dataclass(frozen=True)
class Inserts:
    """Several INSERTs that share a FROM: the tables, and a statement of its own for each."""

    tables: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Selected:
    """A statement of Spark's that ends with a query."""

    before: str
    query: str


Statement = (
    Delete | Update | Insert | MergeInto | Optimize | VacuumOf | History | Create | CreateLike | CloneOf | View |
    UnkeptView | StoredView | RenameView | DropView | Selected | Inserts | TableStatementRead
)  # fmt: skip


def begins(text: str) -> bool:
    """Whether a text begins like one of these statements."""
    return _reader(text) is not None


def makes_ours(text: str) -> bool:
    """Whether a text makes a table of mica's: one with another clause is none of Spark's, for which that would be the
    name of a table that is not there."""
    return _reader(text) is _CREATED and _Statement(ended(text)).makes_ours()


def parse_statement(text: str) -> Statement | Unread | None:
    """The statement; None for a text that begins otherwise. Errors: INVALID_EXPRESSION, with the place in the text."""
    read = _reader(text)
    return None if read is None else read(ended(text))


def _reader(text: str) -> _Read | None:
    begin = _BEGINS.match(text)
    return None if begin is None or begin.lastindex is None else _READERS[begin.lastindex - 1]


def _shared(text: str, ctes: str = "") -> Inserts | None:
    """The INSERTs behind a FROM; None for a query."""
    try:
        return _Statement(text).inserts(ctes)
    except UserError:  # Spark may know its marks
        return None


def _after_ctes(text: str) -> RowChange | Inserts | None:
    """A change of rows whose queries see the tables of a WITH before it; None for a query."""
    try:
        statement = _Statement(text)
    except UserError:  # Spark may know its marks
        return None
    depth = 0
    while statement.token.kind != "end":
        depth += (statement.mark() == "(") - (statement.mark() == ")")
        ends = not depth and statement.mark() == ")"
        statement.at += 1
        if ends and statement.mark() != "," and statement.word() not in ("AS", "MAX"):  # of the last one
            read, ctes = _CHANGES.get(statement.word()), text[: statement.token.at]
            if statement.word() == "FROM":
                return _shared(text.removeprefix(ctes), ctes)
            return None if read is None else replace(read(statement), ctes=ctes)
    return None


class _Statement(RowStatement):
    def optimize(self) -> Optimize:
        self.accept("OPTIMIZE")
        table = self.place()
        full = self.accept("FULL")
        where = self.condition("WHERE", "ZORDER")
        columns: tuple[str, ...] = ()
        if self.accept("ZORDER", "BY"):
            # delta-spark's grammar can do without the parentheses.
            columns = self.expressions() if self.mark() == "(" else self.several(self.one_expression)
        self.end()
        return Optimize(table, where, columns, full)

    def reorg(self) -> Optimize:
        """REORG TABLE … APPLY (PURGE): an OPTIMIZE, which also leaves dropped columns out of the files."""
        self.accept("REORG")
        self.expect("TABLE")
        table = self.place()
        where = self.condition("WHERE", "APPLY")
        self.expect("APPLY")
        self.expect("(")
        if not self.accept("PURGE"):
            self.fail("PURGE is expected: mica keeps no metadata of other table formats")
        self.expect(")")
        self.end()
        return Optimize(table, where, (), purge=True)

    def vacuum(self) -> VacuumOf:
        self.accept("VACUUM")
        table = self.place()
        retain, dry, lite = None, False, False
        left = {"FULL": "kind", "LITE": "kind", "RETAIN": "retention", "DRY": "run"}
        while (word := self.word()) in left:  # in any order, each once
            left = {other: kind for other, kind in left.items() if kind != left[word]}
            if self.accept("RETAIN"):
                retain = self.number()
                self.expect("HOURS")
            elif self.accept("DRY"):
                self.expect("RUN")
                dry = True
            else:
                self.at += 1
                lite = word == "LITE"
        if self.word() == "USING":
            hint = "Leave it out: VACUUM lists the table's folder itself."
            what = "VACUUM … USING INVENTORY is not supported here"
            raise syntax_error(self.text, self.token.at, what, hint, code="UNSUPPORTED_EXPRESSION")
        self.end()
        return VacuumOf(table, retain, dry, lite)

    def fsck(self) -> TableCall:
        for word in ("FSCK", "REPAIR", "TABLE"):
            self.expect(word)
        table = self.place()
        if self.word() in ("METADATA", "VERIFY"):
            what = "FSCK REPAIR TABLE looks for files that are gone, and has no other mode here"
            hint = "Leave it out; `mica check` reads all files of a table, and lists what is wrong with them."
            raise syntax_error(self.text, self.token.at, what, hint, code="UNSUPPORTED_EXPRESSION")
        dry = self.accept("DRY")
        if dry:
            self.expect("RUN")
        self.end()
        return TableCall(table, "fsck", {"dry_run": dry})

    def history(self) -> History:
        self.at += 2
        table = self.place()
        limit = self.count() if self.accept("LIMIT") else None
        self.end()
        return History(table, limit)

    def makes_ours(self) -> bool:
        """Whether USING mica precedes a query: in strings, comments and queries the words mean nothing."""
        depth = 0
        for at in range(len(self.tokens)):
            depth += (self.mark(at) == "(") - (self.mark(at) == ")")
            if not depth and self.word(at) == "AS":
                return False
            if not depth and self.word(at) == "USING" and self.word(at + 1) == "MICA":
                return True
        return False

    def made(self) -> tuple[tuple[str, ...], Mode, bool]:
        """The table that a statement makes, what it does if there is one, and whether there must be one (REPLACE)."""
        replaces = not self.accept("CREATE")
        mode: Mode = "overwrite" if self.accept("REPLACE") or self.accept("OR", "REPLACE") else "error"
        if mode == "error":
            self.accept("EXTERNAL")
        self.expect("TABLE")
        mode = "ignore" if mode == "error" and self.accept("IF", "NOT", "EXISTS") else mode
        return self.table(), mode, replaces

    def created(self) -> Statement | None:
        """CREATE TABLE or REPLACE TABLE, of mica's or of Spark's."""
        is_plain = self.word() == "CREATE" and self.word(1) == "TABLE"
        table, mode, replaces = self.made()
        found = self.clone(table, mode, replaces) or (self.like(table, mode) if is_plain else None)
        if found is not None:
            return found
        self.at = 0
        return self.create() if self.makes_ours() else self.selected()

    def create(self) -> Create | None:
        """CREATE TABLE … USING mica; None where OPTIONS (path …) make it a name in Spark's catalog of a table that is
        there."""
        external = self.word(1) == "EXTERNAL"
        table, mode, replaces = self.made()
        ddl = self.parenthesised()[1:-1] if self.mark() == "(" else ""
        if self.word() == "LIKE":
            self.fail("USING is expected: OR REPLACE takes no table LIKE another")
        self.expect("USING")
        self.at += 1
        partition_by: tuple[str, ...] = ()
        cluster_by: tuple[str, ...] = ()
        location, query, is_name, collation = None, None, False, None
        properties, options, comment = dict[str, str](), dict[str, str](), dict[str, str]()
        while self.token.kind != "end":
            if self.accept("PARTITIONED", "BY"):
                partition_by, more = self.partitioned()
                ddl = ", ".join(filter(None, (ddl, more)))
            elif self.accept("LOCATION"):
                location = self.string()
            elif self.accept("COMMENT"):
                comment = {COMMENT: self.string()}
            elif self.accept("TBLPROPERTIES"):
                properties = self.pairs()
            elif self.accept("CLUSTER", "BY"):
                cluster_by = self.each(self.column)
            elif self.accept("DEFAULT", "COLLATION"):
                collation = named(self)
            elif self.accept("OPTIONS"):
                is_name, options = not ddl, self.pairs()
                paths = [name for name in options if name.lower() == "path"]
                location = options.pop(paths[-1]) if paths else location
            else:
                self.accept("AS")
                if self.word() not in QUERY and self.mark() != "(":
                    self.fail(f"{_CLAUSES} or AS is expected")
                query = self.text[self.token.at :]
                break
        if is_name and query is None:
            return None
        if any(not name.lower().startswith(("delta.", "mica.")) for name in options):
            self.fail("OPTIONS takes path and properties of delta. and mica.: others are TBLPROPERTIES")
        if external and location is None:
            self.fail("LOCATION '…' is expected, as for any EXTERNAL table")
        made = {**options, **properties, **comment}
        return Create(table, ddl, mode, partition_by, location, made, query, replaces, cluster_by, collation)

    def partitioned(self) -> tuple[tuple[str, ...], str]:
        """The partition columns; where they come with types, which are not among the table's other columns then, also
        the DDL of them."""
        if self.mark(2) in (",", ")"):
            return self.listed(), ""
        more = self.parenthesised()[1:-1]
        return tuple(parse_ddl(more).names), more

    def like(self, table: tuple[str, ...], mode: Mode) -> CreateLike | None:
        """CREATE TABLE … LIKE, of a table that may be mica's; None for any other CREATE TABLE."""
        if not self.accept("LIKE"):
            return None
        source, ours, location, properties = self.table(), False, None, dict[str, str]()
        while self.token.kind != "end":
            if self.word() == "USING" and self.word(1) in ("MICA", "DELTA"):
                ours, self.at = self.word(1) == "MICA", self.at + 2
            elif self.accept("LOCATION"):
                location = self.string()
            elif self.accept("TBLPROPERTIES"):
                properties = self.pairs()
            else:
                return None  # of Spark's: other formats, and how rows are stored in them
        return CreateLike(table, source, mode, location, properties, ours)

    def clone(self, table: tuple[str, ...], mode: Mode, replaces: bool) -> CloneOf | None:
        """CREATE TABLE … SHALLOW CLONE; None for any other CREATE TABLE. Errors: INVALID_ARGUMENT for a deep one."""
        if self.accept("CLONE") or self.accept("DEEP", "CLONE"):
            raise UserError(
                "INVALID_ARGUMENT",
                "a clone is a SHALLOW CLONE: there are no deep ones (nor in delta-spark)",
                hint="CREATE TABLE … USING mica AS SELECT … makes a table of the rows.",
            )
        if not self.accept("SHALLOW", "CLONE"):
            return None
        source, location, properties = self.table(), None, dict[str, str]()
        version, timestamp = self.as_of("TBLPROPERTIES", "LOCATION")
        while self.token.kind != "end":
            if self.accept("TBLPROPERTIES"):
                properties = self.pairs()
            elif self.accept("LOCATION"):
                location = self.string()
            else:
                self.fail("VERSION AS OF, TIMESTAMP AS OF, TBLPROPERTIES or LOCATION is expected")
        return CloneOf(table, source, mode, version, timestamp, location, properties, replaces)

    def inserts(self, ctes: str) -> Inserts | None:
        """FROM, and INSERTs that share it; a SELECT without INSERT is a query."""
        self.expect("FROM")
        self.until("INSERT", "SELECT", "MAP", "REDUCE")
        shared, tables, texts = self.text[: self.token.at], list[tuple[str, ...]](), list[str]()
        while self.word() == "INSERT":
            start = self.token.at
            self.accept("INSERT")
            self.accept("WITH", "SCHEMA", "EVOLUTION")
            _ = self.accept("INTO") or self.accept("OVERWRITE")
            self.accept("TABLE")
            tables.append(self.table())
            into = self.text[start : self.token.at] + self.before("SELECT", "MAP", "REDUCE")
            texts.append(f"{ctes}{into}{shared}{self.until('INSERT')}")
        self.end()
        return Inserts(tuple(tables), tuple(texts)) if tables else None

    def before(self, *words: str) -> str:
        """The text up to one of these words outside of parentheses, which may come next."""
        return "" if self.word() in words else f"{self.until(*words)} "

    def written(self) -> Selected | None:
        """INSERT OVERWRITE DIRECTORY … and a query."""
        while self.token.kind != "end":
            if self.word() in QUERY or (self.mark() == "(" and self.word(1) in QUERY):
                return Selected(self.text[: self.token.at], self.text[self.token.at :])
            self.at += 1
        return None

    def commented(self) -> str:
        """The name of a view's column, with a comment behind it."""
        name = self.identifier()
        if self.accept("COMMENT"):
            self.string()
        return name

    def selected(self) -> View | UnkeptView | StoredView | Selected | None:
        """CREATE … AS a query, of a view or of a table of Spark's."""
        self.accept("CREATE")
        replace = self.accept("REPLACE") or self.accept("OR", "REPLACE")
        self.accept("EXTERNAL")
        shared = self.accept("GLOBAL")
        is_view = self.accept("TEMP") or self.accept("TEMPORARY")
        stored = not is_view and self.word() == "VIEW"
        self.at += 1
        unless = self.accept("IF", "NOT", "EXISTS")
        name = self.table()
        columns: tuple[str, ...] = ()
        if is_view and not unless and len(name) == 1:
            columns = self.each(self.commented) if self.mark() == "(" else ()
            if self.accept("COMMENT"):
                self.string()
        plain = is_view and not unless and len(name) == 1 and self.word() == "AS"
        depth = 0
        while self.token.kind != "end":
            depth += (self.mark() == "(") - (self.mark() == ")")
            if not depth and self.word() == "AS" and (self.word(1) in QUERY or self.mark(1) == "("):
                before, query = self.text[: self.tokens[self.at + 1].at], self.text[self.tokens[self.at + 1].at :]
                if plain:
                    return View(name[0], columns, replace, shared, query)
                if is_view:
                    return UnkeptView(query)
                return StoredView(before, query, name, unless=unless) if stored else Selected(before, query)
            self.at += 1
        return None


#: What may follow USING mica.
_CLAUSES = "PARTITIONED BY, CLUSTER BY, LOCATION, COMMENT, TBLPROPERTIES, DEFAULT COLLATION, OPTIONS"
#: What may follow a WITH.
_CHANGES: Mapping[str, Callable[[_Statement], RowChange]] = {
    "DELETE": _Statement.delete,
    "UPDATE": _Statement.update,
    "INSERT": _Statement.insert,
    "MERGE": _Statement.merge,
}
_Read = Callable[[str], "Statement | Unread | None"]


def _by(read: Callable[[_Statement], Statement | Unread | None]) -> _Read:
    return lambda text: read(_Statement(text))


_CREATED = _by(_Statement.created)
#: How each statement begins, with a blank for all that parts two words, and what reads it: the first one that fits.
_STATEMENTS: Mapping[str, _Read] = {
    "DELETE FROM": _by(_Statement.delete),
    "UPDATE": _by(_Statement.update),
    # Spark's own: files of a query.
    r"INSERT OVERWRITE (?:LOCAL )?DIRECTORY(?= (?:['\"]|USING\b))": _by(_Statement.written),
    "INSERT": _by(_Statement.insert),
    "MERGE": _by(_Statement.merge),
    rf"WITH(?=.*\b(?:{'|'.join(_CHANGES)})\b)": _after_ctes,
    r"FROM(?=.*\bINSERT\b)": _shared,
    "OPTIMIZE": _by(_Statement.optimize),
    "REORG": _by(_Statement.reorg),
    "VACUUM": _by(_Statement.vacuum),
    "FSCK": _by(_Statement.fsck),
    rf"DESC(?:RIBE)? HISTORY(?={GAP}[^;])": _by(_Statement.history),
    r"CREATE (?:OR REPLACE |EXTERNAL )?TABLE(?=.*\b(?:USING mica|AS|LIKE|CLONE)\b)": _CREATED,
    r"REPLACE TABLE(?=.*\b(?:USING mica|CLONE)\b)": _CREATED,
    r"CREATE (?:OR REPLACE )?(?:(?:GLOBAL )?TEMP(?:ORARY)? )?VIEW(?=.*\b(?:USING mica|AS|LIKE|CLONE)\b)": _by(
        _Statement.selected
    ),
    r"ALTER VIEW(?=.*\b(?:AS|RENAME)\b)": read_altered,
    "DROP VIEW": read_dropped,
    **{begin: partial(read_table_statement, read=read) for begin, read in TABLE_STATEMENTS.items()},
}
_READERS = tuple(_STATEMENTS.values())
_BEGINS = re.compile(rf"(?is){GAP}(?:{'|'.join('({})'.format(begin.replace(' ', SPACE)) for begin in _STATEMENTS)})\b")
