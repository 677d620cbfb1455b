"""What statements about views say.

The rule: queries stay text. What is no change of a view's query or name is Spark's to read.

    CREATE [OR REPLACE] [[GLOBAL] TEMPORARY] VIEW [IF NOT EXISTS] v [(c, …)] … AS query       (read by `statements`)
    ALTER VIEW v {AS query | RENAME TO w}             DROP VIEW [IF EXISTS] v

Source: Spark's SqlBaseParser.g4.
"""

from __future__ import annotations

from mica.query.statement_parts import Parts
from mica.records import dataclass


@dataclass(frozen=True)
class View:
    """CREATE TEMPORARY VIEW … AS; `columns` as they are named, or none."""

    name: str
    columns: tuple[str, ...]
    replace: bool
    shared: bool
    query: str


@dataclass(frozen=True)
class UnkeptView:
    """CREATE TEMPORARY VIEW … AS with a clause that a view of a DataFrame does not have."""

    query: str


@dataclass(frozen=True)
class StoredView:
    """CREATE VIEW … AS, which Spark's catalog keeps as a text, or ALTER VIEW … AS."""

    before: str
    query: str
    name: tuple[str, ...]
    alters: bool = False
    unless: bool = False


@dataclass(frozen=True)
class RenameView:
    """ALTER VIEW … RENAME TO."""

    name: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class DropView:
    """DROP VIEW."""

    name: tuple[str, ...]


def read_altered(text: str) -> StoredView | RenameView | None:
    """ALTER VIEW; None for what else may be altered. Errors: INVALID_EXPRESSION, with the place."""
    parts = Parts(text)
    parts.accept("ALTER", "VIEW")
    name = parts.table()
    if parts.accept("AS"):
        return StoredView(text[: parts.token.at], text[parts.token.at :], name, alters=True)
    if not parts.accept("RENAME", "TO"):
        return None
    found = RenameView(name, parts.table())
    parts.end()
    return found


def read_dropped(text: str) -> DropView:
    """DROP VIEW. Errors: INVALID_EXPRESSION, with the place."""
    parts = Parts(text)
    parts.accept("DROP", "VIEW")
    parts.accept("IF", "EXISTS")
    found = DropView(parts.table())
    parts.end()
    return found
