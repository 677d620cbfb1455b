"""Finds the tables that a text names: by path, by registered name, and in the session's catalog.

The rule: a name is ours only if it leads to a Delta table that mica can open. `` delta.`path` ``, names of several
parts and names with a version or time get the name of a view in the text; every other name stays as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from mica.engines.spark.catalog import CATALOG, PROVIDERS
from mica.engines.spark.stored_views import Definition
from mica.errors import UserError
from mica.log.at_path import at_path
from mica.log.snapshot import load
from mica.log.time_travel import both_given
from mica.query import registry
from mica.query.row_statements import AS_OF, AS_OF_ANY, INSIDE
from mica.records import dataclass
from mica.schema.lexical import GAP, QUOTED_NAME, QUOTED_STRING, RAW_STRING, REST, SKIPPED, SPACE
from mica.schema.spelling import quoted, unquote, unquoted
from mica.storage import Storage
from mica.table import Table

#: What stands in a text where no name can: strings, comments; then names with their parts.
LEXED = re.compile(
    rf"""(?P<other>{RAW_STRING} | {QUOTED_STRING} | {SKIPPED} | (?!{QUOTED_NAME}){REST})
      | (?P<path>\b(?:delta|mica)\s*\.\s*`(?P<inner>(?:[^`]|``)*)`)
      | (?P<word>{QUOTED_NAME} | \w+)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

#: IDENTIFIER of a text, of a parameter or of an expression, where a name may stand.
_CLAUSE = re.compile(
    rf"""(?P<clause>(?<![\w.`])IDENTIFIER\s*\(\s*
          (?:(?:(?P<text>{QUOTED_STRING}) | :(?P<parameter>\w+))\s*\) | (?P<expr>{INSIDE})\)))
      | {LEXED.pattern}""",
    LEXED.flags,
)
#: The options of a table.
_OPTIONS = re.compile(rf"{SPACE}WITH{GAP}\({INSIDE}\)", re.IGNORECASE)
#: What makes an expression no constant.
_QUERY = re.compile(r"(?i)\bSELECT\b")
#: A part of a name: no number, as Spark reads one.
_PART = re.compile(rf"{QUOTED_NAME}|(?!\d+(?:[eE]\d+)?(?:[dDfFlLsSyY]|[bB][dD])?(?!\w))[A-Za-z0-9_]+")
NAME = re.compile(rf"\s*(?:{_PART.pattern})(?:\s*\.\s*(?:{_PART.pattern}))*\s*")

#: How the names of views begin that serve a change feed (`query/fed.py`).
FED = "mica_changes_"

#: What stands between two parts of a name.
_POINT = re.compile(rf"{GAP}\.{GAP}")

#: What gives the place of a table by its name.
Locate = Callable[[str], Storage | str | None]


@dataclass(frozen=True)
class Named:
    """A text whose tables are views: `views` maps the name of each to its table, `pinned` those that the text reads at
    a version or time, `catalogued` those of the session's catalog, with their names there. `given` is the text before.
    `stored` are stored views that it names; a table of the text of one is in `views` as `view.name`.
    """

    text: str
    views: Mapping[str, Table]
    pinned: frozenset[str] = frozenset()
    catalogued: Mapping[str, str] = field(default_factory=dict)
    given: str = ""
    stored: Mapping[str, Definition] = field(default_factory=dict)

    @property
    def texts(self) -> dict[str, str]:
        """The texts of stored views that name tables, by the names of these in `views`."""
        return {key: text for name, one in self.stored.items() for key, text in one.texts(name).items()}

    @property
    def own(self) -> dict[str, Table]:
        """The tables that the text itself names."""
        inner = self.texts
        return {view: table for view, table in self.views.items() if view not in inner}

    @property
    def said(self) -> str:
        """The text with those of its stored views."""
        return "\n".join([self.text, *self.texts.values()])


def by_path(
    text: str,
    moment: Callable[[str], int],
    is_taken: Callable[[str], bool] = registry.is_registered,
    located: Locate | None = None,
    relations: Collection[str] | None = None,
) -> Named:
    """The text with names of views in place of `` delta.`path` `` and of names with a version or time, and the tables
    there. `moment` gives the ms since the epoch of an expression, `is_taken` whether a view has that name, `located`
    the place of a table of the catalog; `relations` are the text's tables by Spark's parser, where it is known: an
    alias or a column may be called delta, too. Errors: UNSUPPORTED_EXPRESSION for other options of a table, which Spark
    passes over for a view.
    """
    named = [match for match in LEXED.finditer(text) if match["other"] is None]
    views: dict[str, Table] = {}
    pinned: set[str] = set()
    chosen: dict[tuple[str, str], str] = {}
    found, at = "", 0
    for number, match in enumerate(named):
        as_of = AS_OF.match(text, match.end())
        end = match.end() if as_of is None else as_of.end()
        options = _OPTIONS.match(text, end)
        if as_of is None and options is None and (match["path"] is None or AS_OF_ANY.match(text, end)):
            continue
        parts = _parts(text, named, number)
        if match["path"] is not None:
            storage = _place_of_path(parts, relations)
        else:
            storage = _place_of_name(text, parts, named, located)
        if storage is None:
            continue
        if options is not None:
            raise UserError(
                "UNSUPPORTED_EXPRESSION",
                f"{storage} has the options {options[0].strip()}, and mica takes versionAsOf or timestampAsOf alone",
                hint="Read a change feed by table_changes('t', 0), and leave other options out.",
            )
        key = (str(storage), "" if as_of is None else as_of[0])
        if key not in chosen:
            view = chosen[key] = _view_of(text, parts, match, named, views, is_taken)
            views[view], old = _as_of(storage, as_of, moment)
            pinned |= {view} if old else set()
        start = named[number + 1 - len(parts) + (match["path"] is not None)].start()
        found, at = f"{found}{text[at:start]}`{chosen[key]}`", end
    return Named(found + text[at:], views, frozenset(pinned))


def is_path(parts: Sequence[str]) -> bool:
    """Whether a name has the form of a path: delta.`/data/events`."""
    return len(parts) == 2 and parts[0].lower() in PROVIDERS


def path_of(name: str) -> str | None:
    """The path of a name that is one; None for any other."""
    found = LEXED.fullmatch(name)
    return None if found is None or found["path"] is None else found["inner"].replace("``", "`")


def identified(text: str, args: Any = None, constant: Callable[[str], object] = lambda _: None) -> str:
    """The text with the name itself in place of `IDENTIFIER('name')`, `IDENTIFIER(:parameter)` and
    `IDENTIFIER(expression)`, of which `constant` gives the value. What is no name stays, for Spark to refuse.

    Source: Spark SQL reference, "IDENTIFIER clause".
    """
    values = args if isinstance(args, Mapping) else {}

    def replaced(match: re.Match[str]) -> str:
        if match["clause"] is None:
            return match[0]
        if match["expr"] is not None:
            name = None if _QUERY.search(match["expr"]) else constant(match["expr"])
        else:
            name = values.get(match["parameter"]) if match["text"] is None else unquote(match["text"])
        if not isinstance(name, str) or not NAME.fullmatch(name):
            return match[0]
        parts = _PART.findall(name)
        path = is_path(parts)
        # In quotes no name is a keyword; the first part of a path is one.
        return ".".join(part if part[0] == "`" or (path and i == 0) else quoted(part) for i, part in enumerate(parts))

    return _CLAUSE.sub(replaced, text) if "identifier" in text.lower() else text


def _parts(text: str, named: Sequence[re.Match[str]], number: int) -> list[str]:
    """The parts of the name that ends with this one of the text."""
    last = named[number]
    path = last["path"] is not None
    parts = [last[0].partition(".")[0].rstrip(), last["inner"].replace("``", "`")] if path else [unquoted(last[0])]
    while number and _POINT.fullmatch(text, named[number - 1].end(), named[number].start()):
        number -= 1
        parts.insert(0, unquoted(named[number][0]))
    return parts


def _place_of_path(parts: Sequence[str], relations: Collection[str] | None) -> Storage | None:
    """The place that a name with a path stands for; None if it is no table's."""
    *before, _, path = parts
    if [part.lower() for part in before] not in ([], [CATALOG]):
        return None
    # Spark's tree has ", " between parts: in a path it cannot be told from that.
    found = None if relations is None else {name.replace(", ", ".") for name in relations}
    is_relation = found is None or ".".join(parts).replace(", ", ".") in found
    return Storage.open(path) if is_relation else None


def _place_of_name(
    text: str,
    parts: Sequence[str],
    named: Sequence[re.Match[str]],
    located: Locate | None,
) -> Storage | None:
    """The place of the table that a name stands for; None if there is none, and where a column may have the name with
    more parts before it: no view is called so."""
    place: Storage | str | None = registry.storage_of(parts[0]) if len(parts) == 1 else None
    if located is not None:
        place = located(".".join(map(quoted, parts)))
    if isinstance(place, Storage) and len(parts) == 1:
        return place
    alike = [match for match in named if unquoted(match[0]).lower() == parts[-1].lower()]
    if any(_is_before_point(text, match) and not _is_last(text, match, parts[-1]) for match in alike):
        return None
    return Storage.open(place) if isinstance(place, str) else place


def _view_of(
    text: str,
    parts: Sequence[str],
    match: re.Match[str],
    named: Sequence[re.Match[str]],
    views: Collection[str],
    is_taken: Callable[[str], bool],
) -> str:
    """The name of a new view, for a table that one of the names `named` of the text stands for."""
    used = {view.lower() for view in views}
    stem = parts[-1]
    if match["path"] is not None:
        stem = re.sub(r"\W", "_", os.path.basename(stem.rstrip("/"))) or "table"  # noqa: PTH119
    elif (
        stem.lower() not in used
        and (len(parts) == 1 or not is_taken(stem))
        and all(AS_OF.match(text, m.end()) for m in named if _is_name(text, m, stem))
    ):
        return stem  # the text reads this name only at versions, and it may qualify columns
    return _free(stem, words(text) | used, is_taken)


def _free(stem: str, taken: Collection[str], is_taken: Callable[[str], bool]) -> str:
    """A name that begins so and is none of these, nor a registered one or that of a view."""
    name, number = stem, 2
    while name.lower() in taken or registry.is_registered(name) or is_taken(name):
        name, number = f"{stem}_{number}", number + 1
    return name


def _is_name(text: str, match: re.Match[str], name: str) -> bool:
    """Whether it is this name alone, neither before a point nor after one."""
    return _is_last(text, match, name) and not _is_before_point(text, match)


def _is_last(text: str, match: re.Match[str], name: str) -> bool:
    return unquoted(match[0]).lower() == name.lower() and not text[: match.start()].rstrip().endswith(".")


def _is_before_point(text: str, match: re.Match[str]) -> bool:
    return text[match.end() :].lstrip().startswith(".")


def _as_of(storage: Storage, as_of: re.Match[str] | None, moment: Callable[[str], int]) -> tuple[Table, bool]:
    """The table at a place, and whether the text gives its version or time."""
    if as_of is not None:
        if at_path(str(storage))[1] is not None:
            raise both_given()
        version, time = as_of["version"] or as_of["option"], as_of["moment"] or as_of["time"]
        return Table(load(storage, int(version)) if version else load(storage, None, moment(time))), True
    found = at_version(str(storage), moment)
    return registry.opened(storage) if found is None else found, found is not None


def at_version(path: str, moment: Callable[[str], int]) -> Table | None:
    """The table at the version or time that its path gives, `path@v3`; None if it gives none."""
    storage, asked = at_path(path)
    if asked is None:
        return None
    return Table(load(storage, None, moment(f"'{asked}'")) if isinstance(asked, datetime) else load(storage, asked))


def renamed(
    text: str, parts: Sequence[str], taken: Collection[str], is_taken: Callable[[str], bool] = registry.is_registered,
    *, only_here: bool = False,
) -> tuple[str, str] | None:  # fmt: skip
    """The text with the name of a view in place of a name of several parts (`shop.events`), and that name. None where
    the last part before a column may be another's: a CTE's or that of a view, or of a table that the text names so;
    `only_here` where nobody else knows the table: then it is the other's, such as an alias."""
    view = parts[-1]
    pattern = _spelled(parts)
    rest = pattern.sub(lambda m: m[0] if m["name"] is None else " ", text)
    alone = [match for match in LEXED.finditer(rest) if match["word"] and _is_last(rest, match, view)]
    qualifies = [_is_before_point(rest, match) for match in alone]
    if not all(qualifies) or view.lower() in taken or is_taken(view):
        if any(qualifies) and not only_here:
            return None
        view = _free(view, words(text) | {view.lower()}, is_taken)
    return pattern.sub(lambda m: m[0] if m["name"] is None else f"`{view}`", text), view


def shortened(text: str, parts: Sequence[str]) -> str:
    """The text with only the last part of a name of several before columns. One that reads a table by the whole name
    stays."""
    pattern = _spelled(parts)
    found = [match for match in pattern.finditer(text) if match["name"]]
    if not all(_is_before_point(text, match) for match in found):
        return text
    return pattern.sub(lambda m: m[0] if m["name"] is None else quoted(parts[-1]), text)


def _spelled(parts: Sequence[str]) -> re.Pattern[str]:
    """What finds a name of several parts in a text, as `name`, also with the catalog before it."""
    catalog, *own = (f"(?:`{re.escape(part)}`|{re.escape(part)})" for part in (CATALOG, *parts))
    name = r"\s*\.\s*".join([rf"(?:{catalog}\s*\.\s*)?{own[0]}", *own[1:]])
    return re.compile(rf"(?P<name>(?<![\w.`]){name}(?!\w))|{LEXED.pattern}", LEXED.flags)


#: What a star of a SELECT follows, and what follows it.
_STAR = re.compile(
    r"(?P<before>\b(?:SELECT|ALL|DISTINCT)\s+|,\s*|(?:`|\w)\.)\*(?P<except>\s*EXCEPT\s*\()?", re.IGNORECASE
)


def without_star(text: str, column: str) -> str:
    """The text with each `*` as `* EXCEPT (column)`."""
    pattern = re.compile(rf"(?P<star>{_STAR.pattern})|{LEXED.pattern}", LEXED.flags)

    def replaced(match: re.Match[str]) -> str:
        if match["star"] is None:
            return match[0]
        return f"{match['before']}* EXCEPT ({column}{', ' if match['except'] else ')'}"

    return pattern.sub(replaced, text)


#: A table as a query of its own.
_TABLE = re.compile(rf"\s*TABLE\s(?P<name>{NAME.pattern});?\s*", re.IGNORECASE)


def selected(text: str) -> str:
    """The text; `TABLE name` as the SELECT that it stands for."""
    found = _TABLE.fullmatch(text)
    return text if found is None else f"SELECT * FROM {found['name']}"  # noqa: S608


def words(text: str) -> set[str]:
    """The identifiers of a text in lower case, with its keywords."""
    return {unquoted(match["word"]).lower() for match in LEXED.finditer(text) if match["word"]}
