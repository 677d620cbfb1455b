"""REPLACE COLUMNS: the table's columns in another order, with others beside them.

The rule: no column goes and none gets another type, so no data file is read or written; a column that is not among the
table's is null in existing rows. Columns keep what the text does not say of them, but for NOT NULL, which goes.

Source: delta-spark's `AlterTableReplaceColumns`.
"""

from __future__ import annotations

from dataclasses import replace

from mica.errors import UserError
from mica.log.snapshot import Snapshot
from mica.maintain.alter import altered, of_new_strings
from mica.maintain.columns import refuse_rows_without
from mica.schema import char, special
from mica.schema.ddl import parse_ddl, type_to_ddl
from mica.schema.types import StructField, StructType


def replace_columns(before: Snapshot, columns: str) -> Snapshot:
    """See `Table.replace_columns`."""
    given = parse_ddl(columns)
    own = {field.name.lower(): field for field in char.sized(before.schema).fields}
    new = char.sized(parse_ddl(columns, of_new_strings(before)))
    fields = tuple(
        _kept(one, own[one.name.lower()], before) if one.name.lower() in own else _new(new.field(one.name))
        for one in char.sized(given).fields
    )
    gone = own.keys() - {name.lower() for name in given.names}
    if gone:
        names = ", ".join(sorted(own[name].name for name in gone))
        raise UserError(
            "INVALID_ARGUMENT",
            f"REPLACE COLUMNS drops no columns, and the text does not name {names}",
            hint="Drop columns by DROP COLUMNS.",
        )
    return altered(before, "REPLACE COLUMNS", {"columns": columns}, StructType(fields))


def _new(given: StructField) -> StructField:
    refuse_rows_without(given)
    return given


def _kept(given: StructField, own: StructField, before: Snapshot) -> StructField:
    """The table's own column."""
    if not given.nullable:
        raise UserError(
            "INVALID_DDL", f"REPLACE COLUMNS takes no NOT NULL, and {own.name!r} has it", hint="Use ALTER COLUMN."
        )
    # A text that says how a column is made or filled would be lost.
    said = [key for key in (special.DEFAULT, special.GENERATED, special.IDENTITY_START) if key in given.metadata]
    if any(given.metadata[key] != own.metadata.get(key) for key in said):
        raise UserError(
            "INVALID_DDL",
            f"REPLACE COLUMNS takes no DEFAULT and no GENERATED, and {own.name!r} has one",
            hint="Leave it out: columns keep theirs. ALTER COLUMN … SET DEFAULT changes a default.",
        )
    plain = before.schema.field(own.name).type  # STRING is what Delta has for a CHAR(n) or VARCHAR(n), which stays
    if given.type not in (own.type, plain) and type_to_ddl(given.type) != type_to_ddl(own.type):
        raise UserError(
            "INCOMPATIBLE_TYPE",
            f"{before.storage} has the column {own.name!r} as {type_to_ddl(own.type)}, and REPLACE COLUMNS changes no "
            f"type: {type_to_ddl(given.type)}",
            hint="Widen a column by ALTER COLUMN … TYPE, add a field of a struct by ADD COLUMNS.",
            column=own.name,
        )
    comment = given.metadata.get("comment")
    kept = replace(own, nullable=True)
    return kept if comment is None else kept.with_metadata({"comment": comment})
