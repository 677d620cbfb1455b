"""Parses the statements that alter, restore or describe a table into plain values.

The rule: a statement is one call of `Table`, with its arguments, or a question that `described` answers. Spark tries
first what is neither, or has another form than these.

    ALTER TABLE t ADD {COLUMN | COLUMNS} (c TYPE … [FIRST | AFTER c], …)  … DROP {COLUMN | COLUMNS} [IF EXISTS] (c, …)
                  REPLACE COLUMNS (c TYPE …, …)
                  RENAME COLUMN c TO d        SET TBLPROPERTIES (…)        UNSET TBLPROPERTIES [IF EXISTS] (…)
                  {ALTER | CHANGE} [COLUMN] c {TYPE … | {SET | DROP} NOT NULL | COMMENT '…' | SET DEFAULT … |
                                               DROP DEFAULT | FIRST | AFTER c}, …
                  ALTER [COLUMN] c SYNC IDENTITY
                  CHANGE [COLUMN] c c TYPE [COMMENT '…'] [FIRST | AFTER d]
                  ADD CONSTRAINT c CHECK (…)      DROP CONSTRAINT [IF EXISTS] c      DROP FEATURE f [TRUNCATE HISTORY]
                  CLUSTER BY {(c, …) | NONE}      RENAME TO u, SET LOCATION '…' (of a registered name)
    DROP TABLE [IF EXISTS] t [PURGE] (of a registered name)
    RESTORE [TABLE] t [TO] {VERSION | TIMESTAMP} AS OF …      TRUNCATE TABLE t      COMMENT ON TABLE t IS {'…' | NULL}
    {DESCRIBE | DESC} {DETAIL t | [TABLE] [EXTENDED | FORMATTED] t [c]}
    SHOW TBLPROPERTIES t [(key)]      SHOW COLUMNS {IN | FROM} t [{IN | FROM} d]      SHOW CREATE TABLE t
    SHOW PARTITIONS t [PARTITION (p = 1, …)]
    CONVERT TO DELTA parquet.`path` [NO STATISTICS] [PARTITIONED BY (c TYPE, …)]

Source: Spark's SqlBaseParser.g4 and delta-spark's DeltaSqlBase.g4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal, TypeVar

from mica.collation.names import named
from mica.errors import UserError
from mica.properties import COMMENT, DEFAULT_COLLATION
from mica.query.statement_parts import Parts, refuse_again
from mica.records import dataclass
from mica.schema.ddl import parse_new_columns
from mica.schema.spelling import quote_if_needed, unquoted

Found = TypeVar("Found")
Subject = Literal["detail", "columns", "extended", "column", "names", "properties", "partitions", "statement"]


@dataclass(frozen=True)
class TableCall:
    """A call of `Table` and its arguments."""

    table: tuple[str, ...]
    method: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rename:
    """ALTER TABLE … RENAME TO."""

    table: tuple[str, ...]
    name: tuple[str, ...]


@dataclass(frozen=True)
class Relocate:
    """ALTER TABLE … SET LOCATION."""

    table: tuple[str, ...]
    location: str


@dataclass(frozen=True)
class Drop:
    """DROP TABLE."""

    table: tuple[str, ...]


@dataclass(frozen=True)
class DropSchema:
    """DROP SCHEMA; `cascade`: with the tables in it."""

    schema: tuple[str, ...]
    cascade: bool = False


@dataclass(frozen=True)
class Question:
    """A question about a table; `key`: the property or column that is asked for; None for all properties. `partition`:
    the values of the partitions that are asked for."""

    table: tuple[str, ...]
    what: Subject
    key: str | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class ConvertToDelta:
    """CONVERT TO DELTA; `partition_by` is the DDL of the partition columns."""

    path: str
    partition_by: str | None


@dataclass(frozen=True)
class LetGo:
    """REFRESH TABLE and UNCACHE TABLE: of a table of mica's nothing is held."""

    table: tuple[str, ...]


TableStatementRead = TableCall | Rename | Relocate | Drop | DropSchema | Question | ConvertToDelta | LetGo


@dataclass(frozen=True)
class Unread:
    """A statement of another form. Spark may run it; otherwise `error` is raised."""

    table: tuple[str, ...]
    error: UserError


def read_table_statement(
    text: str, read: Callable[[TableStatement], TableStatementRead]
) -> TableStatementRead | Unread:
    """The statement of a text that begins like one of these, which is read so."""
    statement = None
    try:
        statement = TableStatement(text)
        return read(statement)
    except UserError as e:  # Spark may know its marks
        return Unread(() if statement is None else statement.named, e)


class TableStatement(Parts):
    """Parses one statement. Errors: INVALID_EXPRESSION, with the place."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.named: tuple[str, ...] = ()

    def table(self) -> tuple[str, ...]:
        """The name of the table: the first one."""
        found = super().table()
        self.named = self.named or found
        return found

    def alter(self) -> TableCall | Rename | Relocate:
        """ALTER TABLE."""
        self.accept("ALTER", "TABLE")
        table = self.table()
        if self.accept("RENAME", "TO"):
            name = self.several_names()
            self.end()
            return Rename(table, name)
        if self.accept("SET", "LOCATION"):
            location = self.string()
            self.end()
            return Relocate(table, location)
        return TableCall(table, *self._one_of(_ALTERATIONS))

    def restore(self) -> TableCall:
        """RESTORE."""
        self.accept("RESTORE")
        self.accept("TABLE")
        table = self.table()
        self.accept("TO")
        version, timestamp = self.as_of()
        if version is None and timestamp is None:
            self.fail("VERSION AS OF or TIMESTAMP AS OF is expected")
        arguments: dict[str, Any] = {"version": version} if timestamp is None else {"timestamp": timestamp}
        self.end()
        return TableCall(table, "restore", arguments)

    def drop(self) -> Drop:
        """DROP TABLE; PURGE says something of the files of a table that Spark manages."""
        self.accept("DROP", "TABLE")
        self.accept("IF", "EXISTS")
        found = Drop(self.table())
        self.accept("PURGE")
        self.end()
        return found

    def drop_schema(self) -> DropSchema:
        """DROP SCHEMA, or DATABASE."""
        self.accept("DROP")
        self.at += 1
        self.accept("IF", "EXISTS")
        found = DropSchema(self.several_names(), self.accept("CASCADE"))
        self.accept("RESTRICT")
        self.end()
        return found

    def truncate(self) -> TableCall:
        """TRUNCATE TABLE: every row is deleted."""
        self.accept("TRUNCATE", "TABLE")
        found = TableCall(self.table(), "delete")
        self.end()
        return found

    def describe(self) -> Question:
        """DESCRIBE, of a table or one of its columns."""
        self.at += 1
        if self.accept("DETAIL"):
            found = Question(self.place(), "detail")
        else:
            self.accept("TABLE")
            extended = self.accept("EXTENDED") or self.accept("FORMATTED")
            table = self.table()
            if self.token.kind == "end":
                return Question(table, "extended" if extended else "columns")
            found = Question(table, "column", self.column())
        self.end()
        return found

    def comment(self) -> TableCall:
        """COMMENT ON TABLE."""
        self.accept("COMMENT", "ON", "TABLE")
        table = self.table()
        self.expect("IS")
        text = None if self.accept("NULL") else self.string()
        self.end()
        return TableCall(table, "set_properties", {"properties": {COMMENT: text}})

    def show(self) -> Question:
        """SHOW, of one table."""
        self.accept("SHOW")
        return self._one_of(_SHOWN)

    def columns(self) -> Question:
        """SHOW COLUMNS. A database behind the table is that of a name without one; else both must be the same."""
        if not self.accept("IN"):
            self.expect("FROM")
        table = self.table()
        if self.accept("IN") or self.accept("FROM"):
            behind, database = self.at, self.several_names()
            if len(table) == 1:
                table = self.named = (*database, *table)
            elif table[-2].lower() != database[-1].lower():
                self.at = behind
                self.fail(f"{table[-2]}, the database of the table, is expected")
        return Question(table, "names")

    def let_go(self) -> LetGo:
        """REFRESH TABLE, UNCACHE TABLE."""
        if self.accept("UNCACHE", "TABLE"):
            self.accept("IF", "EXISTS")
        else:
            self.accept("REFRESH", "TABLE")
        table = self.table()
        self.end()
        return LetGo(table)

    def properties(self) -> Question:
        """SHOW TBLPROPERTIES."""
        table, key = self.table(), None
        if self.accept("("):
            key = self._key()
            self.expect(")")
        return Question(table, "properties", key)

    def partitions(self) -> Question:
        """SHOW PARTITIONS."""
        table, at = self.table(), self.at
        wanted = self.partition() if self.accept("PARTITION") else {}
        if None in wanted.values():
            self.at = at
            self.fail("PARTITION gives each of its columns a value")
        return Question(table, "partitions", partition=wanted)

    def convert(self) -> ConvertToDelta:
        """CONVERT TO DELTA."""
        self.accept("CONVERT", "TO", "DELTA")
        parts = self.table()
        if len(parts) != 2 or parts[0].lower() != "parquet":
            self.fail("a folder is expected: parquet.`/data/events`")
        self.accept("NO", "STATISTICS")
        partition_by = self.parenthesised()[1:-1] if self.accept("PARTITIONED", "BY") else None
        self.end()
        return ConvertToDelta(parts[1], partition_by)

    def _one_of(self, known: Mapping[tuple[str, ...], Callable[[TableStatement], Found]]) -> Found:
        """What follows the words that come next, up to the end."""
        found = self._read(known)
        self.end()
        return found

    def _read(self, known: Mapping[tuple[str, ...], Callable[[TableStatement], Found]]) -> Found:
        """What follows the words that come next."""
        read = next((read for words, read in known.items() if self.accept(*words)), None)
        if read is None:
            self.fail(f"{', '.join(' '.join(words) for words in known)} is expected")
        return read(self)

    # --- ALTER TABLE: the method and its arguments -------------------------------------------------------------------

    def add_columns(self) -> tuple[str, dict[str, Any]]:
        """Columns and fields, each with its place."""
        columns = self.parenthesised()[1:-1] if self.mark() == "(" else self.rest()
        parse_new_columns(columns)
        return "add_columns", {"columns": columns}

    def replace_columns(self) -> tuple[str, dict[str, Any]]:
        """REPLACE COLUMNS."""
        return "replace_columns", {"columns": self.parenthesised()[1:-1]}

    def drop_columns(self) -> tuple[str, dict[str, Any]]:
        """DROP COLUMNS."""
        unless = self.accept("IF", "EXISTS")
        columns = list(self.each(self.column)) if self.mark() == "(" else [self.column()]
        while self.accept(","):
            columns.append(self.column())
        return "drop_columns", {"columns": columns, "if_exists": unless}

    def rename_column(self) -> tuple[str, dict[str, Any]]:
        """RENAME COLUMN."""
        column = self.column()
        self.expect("TO")
        return "rename_column", {"column": column, "name": self.identifier()}

    def alter_column(self) -> tuple[str, dict[str, Any]]:
        """ALTER COLUMN: one change of a column, or of each of several."""
        changes = dict[str, dict[str, Any]]()
        while not changes or self.accept(","):
            column = self.column()
            if not changes and self.accept("SYNC", "IDENTITY"):
                self.end()
                return "sync_identity", {"column": column}
            refuse_again(column, set(map(str.lower, changes)))
            changes[column] = self._read(_CHANGES)
        self.end()
        if len(changes) == 1:
            return "alter_column", {"column": column, **changes[column]}
        return "alter_columns", {"changes": changes}

    def change_column(self) -> tuple[str, dict[str, Any]]:
        """CHANGE COLUMN: as ALTER COLUMN, or Hive's form, which tells all of the column: `c c BIGINT COMMENT '…'`."""
        before = self.at
        column = self.column()
        last, name = (unquoted(token.text) for token in self.tokens[self.at - 1 : self.at + 1])
        again = name.lower() == last.lower()
        if not (again and self.word() == "TYPE") and any(self.accept(*words) for words in _CHANGES):
            self.at = before
            return self.alter_column()
        self.identifier()
        if not again:
            self.at -= 1
            self.fail(f"{column} is expected, since another name is given by RENAME COLUMN {column} TO {name}")
        found: dict[str, Any] = {"type": self.until("COMMENT", "FIRST", "AFTER", "NOT")}
        if self.accept("COMMENT"):
            found["comment"] = self.string()
        if self.accept("FIRST"):
            found["first"] = True
        elif self.accept("AFTER"):
            found["after"] = quote_if_needed(self.identifier())
        self.end()
        return "alter_column", {"column": column, **found}

    def default_collation(self) -> tuple[str, dict[str, Any]]:
        """DEFAULT COLLATION: that of strings in new columns."""
        return "set_properties", {"properties": {DEFAULT_COLLATION: named(self).name}}

    def set_properties(self) -> tuple[str, dict[str, Any]]:
        """SET TBLPROPERTIES."""
        return "set_properties", {"properties": self.pairs()}

    def unset_properties(self) -> tuple[str, dict[str, Any]]:
        """UNSET TBLPROPERTIES."""
        self.accept("IF", "EXISTS")
        return "set_properties", {"properties": dict.fromkeys(self.each(self._key))}

    def add_constraint(self) -> tuple[str, dict[str, Any]]:
        """ADD CONSTRAINT."""
        name = self.identifier()
        self.expect("CHECK")
        return "add_constraint", {"name": name, "expr": self.parenthesised()[1:-1]}

    def drop_constraint(self) -> tuple[str, dict[str, Any]]:
        """DROP CONSTRAINT."""
        unless = self.accept("IF", "EXISTS")
        return "drop_constraint", {"name": self.identifier(), "if_exists": unless}

    def drop_feature(self) -> tuple[str, dict[str, Any]]:
        """DROP FEATURE."""
        name = self._key()
        return "drop_feature", {"name": name, "truncate_history": self.accept("TRUNCATE", "HISTORY")}

    def cluster_by(self) -> tuple[str, dict[str, Any]]:
        """CLUSTER BY: columns, or none."""
        return "cluster_by", {"columns": [] if self.accept("NONE") else list(self.each(self.column))}

    def one_type(self) -> str:
        """A type: another column may follow only where Spark runs the statement."""
        start, depth = self.token.at, 0
        while self.token.kind != "end" and (depth or self.mark() != ","):
            depth += (self.mark() in ("(", "<")) - (self.mark() in (")", ">"))
            self.at += 1
        return self.text[start : self.tokens[self.at - 1].end]

    def _key(self) -> str:
        return self.string() if self.token.kind == "string" else ".".join(self.several_names())


#: The words after ALTER TABLE t.
_ALTERATIONS: Mapping[tuple[str, ...], Callable[[TableStatement], tuple[str, dict[str, Any]]]] = {
    ("ADD", "COLUMNS"): TableStatement.add_columns,
    ("ADD", "COLUMN"): TableStatement.add_columns,
    ("ADD", "CONSTRAINT"): TableStatement.add_constraint,
    ("REPLACE", "COLUMNS"): TableStatement.replace_columns,
    ("DROP", "COLUMNS"): TableStatement.drop_columns,
    ("DROP", "COLUMN"): TableStatement.drop_columns,
    ("DROP", "CONSTRAINT"): TableStatement.drop_constraint,
    ("DROP", "FEATURE"): TableStatement.drop_feature,
    ("RENAME", "COLUMN"): TableStatement.rename_column,
    ("ALTER", "COLUMN"): TableStatement.alter_column,
    ("ALTER",): TableStatement.alter_column,
    ("CHANGE", "COLUMN"): TableStatement.change_column,
    ("CHANGE",): TableStatement.change_column,
    ("CLUSTER", "BY"): TableStatement.cluster_by,
    ("DEFAULT", "COLLATION"): TableStatement.default_collation,
    ("SET", "TBLPROPERTIES"): TableStatement.set_properties,
    ("UNSET", "TBLPROPERTIES"): TableStatement.unset_properties,
}

#: The words after SHOW.
_SHOWN: Mapping[tuple[str, ...], Callable[[TableStatement], Question]] = {
    ("COLUMNS",): TableStatement.columns,
    ("TBLPROPERTIES",): TableStatement.properties,
    ("PARTITIONS",): TableStatement.partitions,
    ("CREATE", "TABLE"): lambda s: Question(s.table(), "statement"),
}

#: The words after ALTER COLUMN c.
_CHANGES: Mapping[tuple[str, ...], Callable[[TableStatement], dict[str, Any]]] = {
    ("TYPE",): lambda s: {"type": s.one_type()},
    ("SET", "NOT", "NULL"): lambda _: {"nullable": False},
    ("DROP", "NOT", "NULL"): lambda _: {"nullable": True},
    ("COMMENT",): lambda s: {"comment": s.string()},
    ("SET", "DEFAULT"): lambda s: {"default": s.until(marks=",")},
    ("DROP", "DEFAULT"): lambda _: {"default": ""},
    ("FIRST",): lambda _: {"first": True},
    ("AFTER",): lambda s: {"after": quote_if_needed(s.identifier())},
}

#: How each statement begins, with a blank for all that parts two words, and what reads it.
TABLE_STATEMENTS: Mapping[str, Callable[[TableStatement], TableStatementRead]] = {
    "ALTER TABLE": TableStatement.alter,
    "RESTORE": TableStatement.restore,
    "TRUNCATE TABLE": TableStatement.truncate,
    "DROP TABLE": TableStatement.drop,
    "DROP (?:SCHEMA|DATABASE)": TableStatement.drop_schema,
    "DESC(?:RIBE)?": TableStatement.describe,
    f"SHOW (?:{'|'.join(map(' '.join, _SHOWN))})": TableStatement.show,
    "CONVERT TO DELTA": TableStatement.convert,
    "COMMENT ON TABLE": TableStatement.comment,
    "(?:REFRESH|UNCACHE) TABLE": TableStatement.let_go,
}
