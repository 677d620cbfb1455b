"""Finds the tables that a text names: by path, by registered name, and in the session's catalog.

The rule: a name is ours only if it leads to a Delta table that mica can open. `` delta.`path` `` and names of several
parts get the name of a view in the text; every other name stays as it is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from threading import Lock

from mica.arguments import TEXT, takes
from mica.errors import UserError
from mica.records import dataclass
from mica.table import Table

#: What stands in a text where no name can: strings, comments; then names with their parts.
_LEXED = re.compile(
    r"""(?P<other>[rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | --[^\r\n]* | /\*.*?\*/)
      | (?P<path>\b(?:delta|mica)\s*\.\s*`(?P<inner>(?:[^`]|``)*)`)
      | (?P<word>`(?:[^`]|``)*` | \w+)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_REGISTERED: dict[str, Table | str] = {}
#: The tables of the last paths, so that a query reads only what is new in their logs.
_OPENED: dict[str, Table] = {}
_KEPT = 64
_LOCK = Lock()


@takes(name=TEXT)
def register(name: str, table: Table | str | os.PathLike[str]) -> Table:
    """Gives a table a name for `mica.sql` in this process, and returns it: `mica.register("events", "/data/events")`.
    A path is read at its newest version by each query, a `Table` at its own version; a name that was registered before
    is replaced.

    Errors: INVALID_ARGUMENT for a name that is not one identifier; TABLE_NOT_FOUND.
    """
    if not re.fullmatch(r"\w+", name):
        raise UserError.bad_value("name", name, "an identifier: letters, digits and _")
    if not isinstance(table, Table):
        if not isinstance(table, str | os.PathLike):
            raise UserError.bad_value("table", table, "a mica.Table or a path")
        table = os.fspath(table)
    found = opened(table) if isinstance(table, str) else table
    with _LOCK:
        _REGISTERED[name.lower()] = table
    return found


def registered(name: str) -> Table | None:
    """The table of a registered name, any case; None if there is none."""
    found = _REGISTERED.get(name.lower())
    return opened(found) if isinstance(found, str) else found


def opened(path: str) -> Table:
    """The table at a path, at its newest version. Errors: TABLE_NOT_FOUND and those of `Table.open`."""
    with _LOCK:
        known = _OPENED.pop(path, None)
    # A table that another query may hold is not moved: a newer version is another Table.
    snapshot = None if known is None else known.snapshot.refresh()
    if known is None or snapshot is None:
        table = Table.open(path)
    else:
        table = known if snapshot is known.snapshot else Table(snapshot)
    with _LOCK:
        _OPENED[path] = table
        for oldest in list(_OPENED)[:-_KEPT]:
            del _OPENED[oldest]
    return table


@dataclass(frozen=True)
class Named:
    """A text whose tables are views: `views` maps the name of each to its table."""

    text: str
    views: Mapping[str, Table]


def by_path(text: str) -> Named:
    """The text with names of views in place of `` delta.`path` ``, and the tables at those paths."""
    taken = words(text)
    views: dict[str, Table] = {}
    chosen: dict[str, str] = {}

    def replaced(match: re.Match[str]) -> str:
        if match["path"] is None:
            return match[0]
        path = match["inner"].replace("``", "`")
        if path not in chosen:
            stem = re.sub(r"\W", "_", os.path.basename(path.rstrip("/"))) or "table"  # noqa: PTH119 - may be a URL
            name, number = stem, 2
            while name.lower() in taken | {v.lower() for v in views} or registered_name(name):
                name, number = f"{stem}_{number}", number + 1
            views[name] = opened(path)
            chosen[path] = name
        return f"`{chosen[path]}`"

    return Named(_LEXED.sub(replaced, text), views)


@dataclass(frozen=True)
class Renamed:
    """A text in which a name became a view's."""

    text: str
    view: str


def renamed(text: str, parts: Sequence[str], taken: Collection[str]) -> Renamed:
    """The text with the name of a view in place of a name of several parts: `shop.events`."""
    view, number = parts[-1], 2
    while view.lower() in (words(text) if number > 2 else taken) or registered_name(view):
        view, number = f"{parts[-1]}_{number}", number + 1
    name = r"\s*\.\s*".join(f"(?:`{re.escape(part)}`|{re.escape(part)})" for part in parts)
    pattern = re.compile(rf"(?P<name>(?<![\w.`]){name}(?!\w))|{_LEXED.pattern}", _LEXED.flags)
    return Renamed(pattern.sub(lambda m: m[0] if m["name"] is None else f"`{view}`", text), view)


#: What a star of a SELECT follows, and what follows it.
_STAR = re.compile(
    r"(?P<before>\b(?:SELECT|ALL|DISTINCT)\s+|,\s*|(?:`|\w)\.)\*(?P<except>\s*EXCEPT\s*\()?", re.IGNORECASE
)


def without_star(text: str, column: str) -> str:
    """The text with stars that leave a column out."""
    pattern = re.compile(rf"(?P<star>{_STAR.pattern})|{_LEXED.pattern}", _LEXED.flags)

    def replaced(match: re.Match[str]) -> str:
        if match["star"] is None:
            return match[0]
        return f"{match['before']}* EXCEPT ({column}{', ' if match['except'] else ')'}"

    return pattern.sub(replaced, text)


def _words(text: str) -> set[str]:
    return {match["word"].strip("`") for match in _LEXED.finditer(text) if match["word"]}


def words(text: str) -> set[str]:
    """The identifiers of a text in lower case, with its keywords."""
    return {word.lower() for word in _words(text)}


def all_registered() -> list[str]:
    """The registered names."""
    return sorted(_REGISTERED)


def is_table(name: str) -> bool:
    """Whether the name was registered with a `Table` instead of a path."""
    return isinstance(_REGISTERED.get(name.lower()), Table)


def registered_name(name: str) -> bool:
    """Whether the name is registered."""
    return name.lower() in _REGISTERED
