"""What would make a table easier and faster to read: suggestions, each with its reason and the command that applies it.

The rule: a suggestion follows from what the table's files hold, and changes nothing. A kind of suggestion is a function
of `KINDS`, from a survey of the files to at most one suggestion.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mica.arguments import OPTIONS, takes
from mica.checking.survey import evenly, look_at, variants_of
from mica.errors import UserError
from mica.log.opened import Opened, snapshot_of
from mica.log.snapshot import Snapshot
from mica.properties import TYPED_PATHS
from mica.schema.ddl import quote_if_needed, type_to_ddl
from mica.schema.types import BYTE, INTEGER, LONG, SHORT, DataType
from mica.variant.path import VariantPath

#: At most so many files are looked at, from all of the table.
FILES = 32

#: A typed path is in at least this share of the rows, and this share of its values has the type; at most so many.
PRESENT, TYPED, PATHS = 0.01, 0.9, 100

_INTEGERS: Sequence[DataType] = (BYTE, SHORT, INTEGER, LONG)


@dataclass(frozen=True)
class Suggestion:
    """`value` is what to say, `command` the line that says it; `details` are its parts, each with its figures."""

    kind: str
    value: str
    reason: str
    command: str
    details: Sequence[Mapping[str, Any]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The suggestion as plain values."""
        return asdict(self)


@takes(storage_options=OPTIONS)
def suggest(
    table: str | os.PathLike[str] | Opened, storage_options: Mapping[str, str] | None = None
) -> list[Suggestion]:
    """Returns what would make a table easier and faster to read; nothing is changed.

    `typed_paths`: the paths of its Variants that have one type, as the DDL of `format("mica")`'s option `typedPaths`
    and of the property `mica.paths`: readers that know no Variant see them as columns, and filters on them skip. The
    details are `name`, `type`, `path`, `rows` (the share of the rows that have it) and `typed` (the share of its values
    that have the type; the others are read as null).

    `table` is a path or an open table. At most 32 of its files are looked at, their footers alone.

    Errors: those of `Table.open`.
    """
    snapshot = snapshot_of(table, storage_options)
    if snapshot is None:
        raise UserError("TABLE_NOT_FOUND", f"{table} is not a Delta table", hint="Name the folder of a table.")
    survey = _survey(snapshot)
    return [found for one in KINDS if (found := one(survey)) is not None]


@dataclass
class _Path:
    """The rows that have a path of a Variant, by the type that it has there; None where the value is none of it."""

    rows: Counter[DataType | None] = field(default_factory=Counter)

    @property
    def type(self) -> DataType | None:
        """The type of most values; integers of several widths are one type, the widest."""
        known = {type_: count for type_, count in self.rows.items() if type_ is not None and count}
        integers = [type_ for type_ in _INTEGERS if type_ in known]
        if len(integers) > 1:
            known[integers[-1]] = sum(known.pop(type_) for type_ in integers)
        return max(known, key=lambda type_: known[type_], default=None)

    @property
    def total(self) -> int:
        """All rows that have the path."""
        return self.rows.total()

    def share(self, type_: DataType) -> float:
        """The share of the values that have the type."""
        alike = _INTEGERS[: _INTEGERS.index(type_) + 1] if type_ in _INTEGERS else [type_]
        return sum(self.rows[one] for one in alike) / max(self.total, 1)


@dataclass
class _Survey:
    """What some of a table's files say about its Variant columns."""

    snapshot: Snapshot
    rows: int = 0
    files: int = 0
    paths: dict[tuple[str, ...], _Path] = field(default_factory=dict)

    def add(self, path: str) -> None:
        """Adds a file."""
        look = look_at(self.snapshot, path)
        for steps, one in look.paths.items():
            self.paths.setdefault(steps, _Path()).rows.update({one.type: one.typed_rows, None: one.residual_rows})
        self.rows += look.rows
        self.files += 1

    @property
    def variants(self) -> list[str]:
        """The Variant columns that are not in a struct."""
        return variants_of(self.snapshot)


def _survey(snapshot: Snapshot) -> _Survey:
    """Reads the footers of files from all of the table."""
    survey, files = _Survey(snapshot), snapshot.files.column("path")
    for at in evenly(len(files), FILES):
        survey.add(files[at].as_py())
    return survey


def _typed_paths(survey: _Survey) -> Suggestion | None:
    details, taken = list[dict[str, Any]](), {name.lower() for name in survey.snapshot.schema.names}
    for (column, *steps), path in sorted(survey.paths.items(), key=lambda item: -item[1].total)[: 10 * PATHS]:
        type_ = path.type
        if type_ is None or path.total < PRESENT * survey.rows or path.share(type_) < TYPED or len(details) == PATHS:
            continue
        name = _name(steps, taken)
        taken.add(name.lower())
        spelled = f"{quote_if_needed(column)}:{VariantPath(tuple(steps))}"
        shares = {"rows": round(path.total / survey.rows, 4), "typed": round(path.share(type_), 4)}
        details.append({"name": name, "type": type_to_ddl(type_), "path": spelled, **shares})
    own = survey.variants[0] if len(survey.variants) == 1 else None
    value = ", ".join(_ddl(one, own) for one in details)
    if not details or value == TYPED_PATHS.of(survey.snapshot.properties):
        return None
    table = str(survey.snapshot.storage)
    return Suggestion(
        "typed_paths",
        value,
        f"{len(details)} paths have one type in at least {TYPED:.0%} of their values ({survey.rows:,} rows in "
        f"{survey.files:,} of {survey.snapshot.files.num_rows:,} files): as columns they are read without VARIANT, and "
        "filters on them skip",
        f"mica alter {shlex.quote(table)} --set {shlex.quote(f'{TYPED_PATHS.name}={value}')}",
        details,
    )


def _name(steps: Sequence[str], taken: set[str]) -> str:
    """The last steps of a path that no other column is named by."""
    names = ["_".join(steps[-count:]) for count in range(1, len(steps) + 1)]
    free = next((name for name in names if name.lower() not in taken), None)
    number = 2
    while free is None or free.lower() in taken:
        free, number = f"{names[-1]}_{number}", number + 1
    return free


def _ddl(path: Mapping[str, Any], own: str | None) -> str:
    """A column of typed paths. A field of the table's only Variant needs no path."""
    name = quote_if_needed(path["name"])
    short = own is not None and path["path"] == f"{quote_if_needed(own)}:{name}"
    return f"{name} {path['type']}" if short else f"{name} {path['type']} AS {path['path']}"


#: The kinds of suggestions.
KINDS: Sequence[Callable[[_Survey], Suggestion | None]] = (_typed_paths,)
