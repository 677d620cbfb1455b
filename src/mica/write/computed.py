"""The columns that an ingest computes from each document: those of the call, and those that the table stores.

The rule: later runs compute the same columns as the first. A table that an ingest creates stores the expressions in a
property (`mica.ingest.columns`, a JSON object of names to expressions); a call may override them for its own rows. A
partition column without an expression is an error, not null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import orjson

from mica.errors import UserError
from mica.expressions.bind import BoundExpr, bind_value
from mica.log.snapshot import Snapshot
from mica.properties import INGEST_COLUMNS
from mica.schema.types import StructType


def kept_in(snapshot: Snapshot | None) -> dict[str, str]:
    """The expressions that a table stores, for columns that it has."""
    if snapshot is None:
        return {}
    kept = INGEST_COLUMNS.of(snapshot.properties)
    return {name: text for name, text in kept.items() if snapshot.schema.find(name) is not None}


def as_property(columns: Mapping[str, str]) -> dict[str, str]:
    """The property of a new table that stores these expressions."""
    return {INGEST_COLUMNS.name: orjson.dumps(dict(columns)).decode()} if columns else {}


def bound(
    columns: Mapping[str, str], kept: Mapping[str, str], document: StructType, *, ansi: bool, timezone: str
) -> dict[str, BoundExpr]:
    """The expressions of a run by column name: those of the call, and stored ones of other columns.

    Errors: those of the expressions; MISSING_COLUMN if a stored one does not fit the documents.
    """
    found = {name: bind_value(text, document, ansi=ansi, timezone=timezone) for name, text in columns.items()}
    given = {name.lower() for name in columns}
    for name, text in kept.items():
        if name.lower() in given:
            continue
        try:
            found[name] = bind_value(text, document, ansi=ansi, timezone=timezone)
        except UserError as e:
            raise UserError(
                "MISSING_COLUMN",
                f"the table computes its column {name!r} as {text}, which fails for these documents: {e.message}",
                hint=f"Give its expression: columns={{{name!r}: …}}.",
                column=name,
            ) from None
    return found


def others(columns: Mapping[str, str], kept: Mapping[str, str]) -> list[str]:
    """A note for each column that this run computes by another expression than the table's."""
    known = {name.lower(): text for name, text in kept.items()}
    return [
        f"the column {name!r} is computed as {text} in this run; the table's expression is {known[name.lower()]}"
        for name, text in columns.items()
        if known.get(name.lower(), text).strip() != text.strip()
    ]


def refuse_without(table: str, partition_by: Iterable[str], computed: Iterable[str], document: str) -> None:
    """Raises MISSING_COLUMN for a partition column without an expression."""
    named = {name.lower() for name in (*computed, document)}
    for name in partition_by:
        if name.lower() not in named:
            raise UserError(
                "MISSING_COLUMN",
                f"{table} is partitioned by {name!r}, and this run has no expression for it: it would be null in every "
                "row",
                hint=f"Give its expression: columns={{{name!r}: …}}. The table property {INGEST_COLUMNS.name} stores "
                "it for later runs.",
                column=name,
            )
