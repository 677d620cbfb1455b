"""The columns that a scan may read of its source.

The rule: a scan reads neither ids of rows that are not tracked, nor `_metadata` itself, nor a column of a type that
Delta does not have: a Parquet file may hold one, and whoever leaves it out can read the others.
"""

from __future__ import annotations

from collections.abc import Collection

from mica.errors import UserError
from mica.expressions.bind import Leaf
from mica.scan.source import Source
from mica.schema.edit import unknown_types
from mica.schema.hidden import FIELDS, METADATA, ROW_ID, ROW_VERSION, is_hidden


def refuse_unreadable(source: Source, leaves: Collection[Leaf]) -> None:
    """Errors: UNSUPPORTED_TYPE; FEATURE_NEEDED for ids of rows that are not tracked; UNKNOWN_COLUMN for the hidden
    column itself."""
    for leaf in leaves:
        name = ".".join(leaf.column)
        for at, odd in unknown_types(leaf.type, name):
            rest = [f.name for f in source.schema.fields if not any(unknown_types(f.type))]
            raise UserError(
                "UNSUPPORTED_TYPE",
                f"the column {at!r} has the Arrow type {odd.name}, which no Delta type holds",
                hint=f"Name the columns to read: columns={rest}." if rest else "Cast it first.",
                column=at,
            )
    asked = {leaf.column for leaf in leaves if is_hidden(source.schema, leaf.column)}
    if (METADATA,) in asked:
        raise UserError.unknown_column(METADATA, [".".join(one) for one in FIELDS])
    tracked = asked & {ROW_ID, ROW_VERSION}
    if tracked and source.row_ids is None:
        name = ".".join(min(tracked))
        raise UserError(
            "FEATURE_NEEDED",
            f"{source.name} does not track rows (delta.enableRowTracking is not true), so they have no {name}",
            hint="Set delta.enableRowTracking to true.",
            column=name,
        )
