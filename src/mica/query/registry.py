"""The names of tables in this process.

The rule: a name leads to the newest version at a place, or to a `Table` at its own. Names of one part may be hidden by
a temporary view that a session made later (`lent`); names of several parts are those of places.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from mica.arguments import TEXT, Kind, refuse_other, takes
from mica.engines.spark import catalog
from mica.engines.spark.catalog import CATALOG
from mica.errors import UserError
from mica.log.snapshot import load
from mica.records import dataclass
from mica.storage import Storage
from mica.table import Table

#: The name of a table that is registered.
IDENTIFIER = Kind("an identifier: letters, digits and _", lambda v: bool(TEXT.fits(v) and re.fullmatch(r"\w+", v)))

#: The same, also with its database: `silver.events`.
NAME = Kind(
    "an identifier (letters, digits and _), or several with points between them",
    lambda v: bool(TEXT.fits(v) and re.fullmatch(r"\w+(?:\.\w+)*", v)),
)

#: The database that Spark begins in. What is made there has a name of one part.
DEFAULT = "default"


@dataclass(frozen=True)
class _Named:
    """What is known of a name."""

    #: What it leads to.
    known: Table | Storage
    #: Whether each database has it: `register` gave it. A table that is made by a name of one part is in `default`.
    everywhere: bool = False
    #: The place that its table got by its name: DROP TABLE deletes the files that are there.
    managed: str | None = None
    #: The temporary view that the session had by the name when it was registered.
    before: Any = None
    #: The place that a metastore gives it, as it spells that.
    kept: str | None = None


#: By their parts in lower case, without the session's catalog before them.
_NAMES: dict[tuple[str, ...], _Named] = {}
#: The tables of the last places, so that a query reads only what is new in their logs. A relative path is another one
#: in another working directory.
_OPENED: dict[tuple[str, frozenset[tuple[str, str]]], Table] = {}
_KEPT = 64
_LOCK = Lock()


@takes(name=NAME)
def register(
    name: str, table: Table | str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
) -> Table:
    """Gives a table a name for `mica.sql` in this process, and returns it: `mica.register("events", "/data/events")`.
    A path is read at its newest version by each query, with `storage_options` as in `Table.open`; a `Table` at its own
    version. A name that was registered before is replaced; a temporary view by it that a session makes later comes
    first there. A name of several parts (`silver.events`) is that of a path.

    Errors: INVALID_ARGUMENT for what is not a name, and for options of a `Table`; TABLE_NOT_FOUND.
    """
    if isinstance(table, Table):
        if "." in name:
            raise UserError.bad_value("table", table, "a path, for a name of several parts")
        if storage_options is not None:
            raise UserError.bad_value("storage_options", sorted(storage_options), "none: a Table has its own")
        found = give(name, table)
    elif isinstance(table, str | os.PathLike):
        found = give(name, Storage.open(table, storage_options))
    else:
        raise UserError.bad_value("table", table, "a mica.Table or a path")
    before = catalog.temporary_now(name)
    with _LOCK:
        _NAMES[_key(name)] = _Named(_NAMES[_key(name)].known, everywhere="." not in name, before=before)
    return found


def view_before(name: str) -> Any:
    """The temporary view that the session had by a name when that was registered, as `catalog.temporary` gives it."""
    found = _NAMES.get(_key(name))
    return None if found is None else found.before


def give(name: str, known: Table | Storage, *, managed: bool = False) -> Table:
    """Gives a name to a table, or to the newest version at a place, and returns it; `managed` as for `promise`. Errors:
    those of `opened`."""
    if isinstance(known, Storage):
        found = opened(known)
        promise(name, known, managed=managed)
        return found
    _lead(name, known)
    return known


def promise(name: str, place: Storage, *, managed: bool = False) -> None:
    """Gives a name to a table that is about to be made. `managed`: nobody said where; so it stays while the name has
    this place."""
    _lead(name, place, **({"managed": str(place)} if managed else {}))


def keep(name: str, place: Storage, entry: str, *, managed: bool) -> None:
    """Gives a name to a place that a metastore says it has, in its spelling `entry`."""
    with _LOCK:
        _NAMES[_key(name)] = _Named(place, managed=str(place) if managed else None, kept=entry)


def kept_at(name: str) -> str | None:
    """What the metastore says of a name's place; None for a name that this process alone has."""
    found = _NAMES.get(_key(name))
    return None if found is None else found.kept


def _lead(name: str, known: Table | Storage, **facts: Any) -> None:
    """Lets a name lead elsewhere; what else is known of it stays, but for what is told."""
    with _LOCK:
        found = _NAMES.get(_key(name))
        _NAMES[_key(name)] = _Named(known, **facts) if found is None else replace(found, known=known, **facts)


def rename(name: str, new: str) -> None:
    """Gives a registered table another name. Errors: INVALID_ARGUMENT as for `register`; TABLE_EXISTS."""
    refuse_other("name", new, NAME)
    if _key(new) != _key(name) and is_registered(new):
        raise taken(new)
    found = _NAMES.get(_key(name))
    if found is not None:
        if is_table(name) and "." in new:
            raise UserError.bad_value("name", new, f"one part, as {name} is a table at one version")
        managed = is_managed(name)
        forget(name)
        give(new, found.known, managed=managed)
        with _LOCK:
            _NAMES[_key(new)] = replace(_NAMES[_key(new)], everywhere=found.everywhere)


def taken(name: str) -> UserError:
    """The error for a new name that is registered."""
    return UserError("TABLE_EXISTS", f"the name {name} is registered already", hint="Choose another name.")


def relocate(name: str, path: str) -> None:
    """Gives a registered name to the table at a path. Errors: TABLE_NOT_FOUND, also for one of a version;
    INVALID_ARGUMENT for other columns or partitions than those of the table that had the name."""
    known = storage_of(name)
    there = Storage.open(path) if known is None else known.like(path, known.trust)
    before, after = registered(name), opened(there)
    if before is not None and _shape(before) != _shape(after):
        raise UserError(
            "INVALID_ARGUMENT",
            f"the table {after.path} has other columns or partitions than {name}: {after.schema}",
            hint=f"If that is meant, drop the name and give it again: CREATE TABLE {name} USING mica LOCATION '…'.",
        )
    give(name, there)


def _shape(table: Table) -> tuple[str, tuple[str, ...]]:
    """The columns and partitions, without what no query sees."""
    return str(table.schema), table.partition_by


def forget(name: str) -> None:
    """Takes a registered name away; the table stays."""
    with _LOCK:
        _NAMES.pop(_key(name), None)


def holds_another(place: str, parts: Sequence[str]) -> bool:
    """Whether a place that a name gets is that of a table which was renamed since it got it."""
    others = [named.managed for key, named in tuple(_NAMES.items()) if named.managed is not None and key != _key(parts)]
    return bool(others) and Storage.open(place).uri in {Storage.open(other).uri for other in others}


def is_managed(name: str) -> bool:
    """Whether the files of a registered table go with its name: those of one that was made without a place."""
    place = place_of(name)
    return place is not None and _NAMES[_key(name)].managed == place


def place_of(name: str) -> str | None:
    """The place of a registered name, any case, whatever is there; None if there is none."""
    found = storage_of(name)
    return None if found is None else str(found)


def storage_of(name: str | Sequence[str]) -> Storage | None:
    """The same with the options of its store; of a name or its parts."""
    found = _NAMES.get(_key(name))
    if found is None:
        return None
    return found.known.snapshot.storage if isinstance(found.known, Table) else found.known


def in_database(database: str) -> list[str]:
    """The last parts of the names that a database has, both in lower case, but for those that each has."""
    before = {tuple(database.split(".")), *([()] if database == DEFAULT else [])}
    return [key[-1] for key, named in tuple(_NAMES.items()) if key[:-1] in before and not named.everywhere]


def name_in(database: str, name: str) -> str | None:
    """The registered name of a table of a database that it alone has; None if there is none."""
    if is_registered(f"{database}.{name}"):
        return f"{database}.{name}"
    return name if name.lower() in in_database(database) else None


def place_in(database: str, name: str) -> Storage | None:
    """The place of the same."""
    known = name_in(database, name)
    return None if known is None else storage_of(known)


def has_names() -> bool:
    """Whether there is a registered name."""
    return bool(_NAMES)


def has_qualified() -> bool:
    """Whether there is a name of several parts."""
    return any(len(key) > 1 for key in tuple(_NAMES))


def _key(name: str | Sequence[str]) -> tuple[str, ...]:
    parts = name.replace("`", "").split(".") if isinstance(name, str) else name
    return tuple(map(str.lower, without_catalog(parts)))


def without_catalog(parts: Sequence[str]) -> Sequence[str]:
    """A name of several parts without the session's catalog before its database."""
    return parts[1:] if len(parts) > 2 and parts[0].lower() == CATALOG else parts


def registered(name: str) -> Table | None:
    """The table of a registered name of one part, any case; None if there is none."""
    found = None if "." in name else _NAMES.get(_key(name))
    if found is None:
        return None
    return found.known if isinstance(found.known, Table) else opened(found.known)


def opened(place: Storage | str) -> Table:
    """The table at a place, at its newest version. Errors: TABLE_NOT_FOUND and those of `Table.open`."""
    storage = Storage.open(place) if isinstance(place, str) else place
    key = str(storage), frozenset(storage.options.items())
    with _LOCK:
        known = _OPENED.pop(key, None)
    # A table that another query may hold is not moved: a newer version is another Table.
    snapshot = None if known is None else known.snapshot.refresh()
    if known is None or snapshot is None:
        table = Table(load(storage))
    else:
        table = known if snapshot is known.snapshot else Table(snapshot)
    with _LOCK:
        _OPENED[key] = table
        for oldest in list(_OPENED)[:-_KEPT]:
            del _OPENED[oldest]
    return table


def is_registered(name: str) -> bool:
    """Whether the name is registered."""
    return _key(name) in _NAMES


def is_everywhere(name: str) -> bool:
    """Whether each database has the registered name: it is one of `register`."""
    found = _NAMES.get(_key(name))
    return found is not None and found.everywhere


def all_registered() -> list[str]:
    """The registered names of one part."""
    return sorted(key[0] for key in tuple(_NAMES) if len(key) == 1)


def is_table(name: str) -> bool:
    """Whether the name was registered with a `Table` instead of a path."""
    found = _NAMES.get(_key(name))
    return found is not None and isinstance(found.known, Table)
