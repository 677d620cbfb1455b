"""`mica alter`: changes of a table's columns, properties, features and constraints.

The rule: each option is one call of `Table`, and a commit of its own, in the order of `--help`; those of properties are
one, and so are the columns to drop. The first that is refused ends the command, and those before it stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from mica.cli import options
from mica.cli.console import out, pairs, print_json, storage_options
from mica.errors import UserError
from mica.schema.ddl import to_ddl
from mica.table import Table

Texts = list[str] | None
#: A call of a table, and its arguments.
Change = tuple[Callable[..., Any], tuple[Any, ...]]


def _option(name: str, shown: str, text: str) -> Any:
    return typer.Option(name, metavar=shown, help=text)


def run(
    table: options.TablePath,
    properties: Annotated[Texts, _option("--set", "NAME=VALUE", "Set a table property. Repeatable.")] = None,
    unset: Annotated[Texts, _option("--unset", "NAME", "Remove a table property. Repeatable.")] = None,
    add_feature: Annotated[Texts, _option("--add-feature", "NAME", "Add a table feature. Repeatable.")] = None,
    add_columns: Annotated[Texts, _option("--add-columns", "DDL", "Add columns: 'title STRING, n INT'.")] = None,
    rename: Annotated[Texts, _option("--rename", "COLUMN=NAME", "Rename a column or field (s.x). Repeatable.")] = None,
    types: Annotated[Texts, _option("--type", "COLUMN=TYPE", "Widen a column's type. Repeatable.")] = None,
    collation: Annotated[
        Texts, _option("--collation", "COLUMN=COLLATION", "Set a column's collation. Repeatable.")
    ] = None,
    default: Annotated[
        Texts, _option("--default", "COLUMN=EXPRESSION", "Set the default of new rows; an empty one removes it.")
    ] = None,
    comment: Annotated[Texts, _option("--comment", "COLUMN=TEXT", "Set a column's comment. Repeatable.")] = None,
    nullable: Annotated[Texts, _option("--nullable", "COLUMN", "Allow nulls. Repeatable.")] = None,
    not_null: Annotated[Texts, _option("--not-null", "COLUMN", "Forbid nulls. Repeatable.")] = None,
    drop_column: Annotated[Texts, _option("--drop-column", "COLUMN", "Drop a column or field. Repeatable.")] = None,
    drop_constraint: Annotated[Texts, _option("--drop-constraint", "NAME", "Drop a constraint. Repeatable.")] = None,
    add_constraint: Annotated[
        Texts, _option("--add-constraint", "NAME=EXPRESSION", "Add a CHECK constraint. Repeatable.")
    ] = None,
    drop_feature: Annotated[Texts, _option("--drop-feature", "NAME", "Drop a table feature. Repeatable.")] = None,
    truncate_history: Annotated[
        bool, typer.Option("--truncate-history", help="With --drop-feature: delete the history that needs it.")
    ] = False,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Change a table's columns, properties, features and constraints, in the order of the options here.

    Each option is a commit of its own, but --set and --unset are one together, and so are --drop-column."""

    values = {**pairs(properties, "--set"), **dict.fromkeys(unset or ())}
    asked: list[Change] = [*([(Table.set_properties, (values,))] if values else [])]
    asked += _each(add_feature, Table.add_feature)
    asked += _each(add_columns, Table.add_columns)
    renamed = _named(rename, "--rename", Table.rename_column)
    if unnamed := [column for _, (column, name) in renamed if not name]:  # a table may have such a column
        raise typer.BadParameter(f"{unnamed[0]!r} gets no name.", param_hint="--rename")
    asked += renamed
    asked += _named(types, "--type", lambda t, name, value: t.alter_column(name, type=value))
    asked += _named(collation, "--collation", Table.set_collation)
    asked += _named(default, "--default", lambda t, name, value: t.alter_column(name, default=value))
    asked += _named(comment, "--comment", lambda t, name, value: t.alter_column(name, comment=value))
    asked += _each(nullable, lambda t, name: t.alter_column(name, nullable=True))
    asked += _each(not_null, lambda t, name: t.alter_column(name, nullable=False))
    asked += [(Table.drop_columns, (drop_column,))] if drop_column else []
    asked += _each(drop_constraint, Table.drop_constraint)
    asked += _named(add_constraint, "--add-constraint", Table.add_constraint)
    asked += _each(drop_feature, lambda t, name: t.drop_feature(name, truncate_history=truncate_history))
    if not asked:
        raise UserError("INVALID_ARGUMENT", "no change was given", hint="Name one, such as --add-columns.")
    names = {name.lower() for name in nullable or ()}
    if both := [name for name in not_null or () if name.lower() in names]:
        raise UserError(
            "INVALID_ARGUMENT", f"--nullable and --not-null name {both[0]!r}", hint="Leave one of them out."
        )
    opened = Table.open(table, storage_options=storage_options(storage_option))
    for call, arguments in asked:
        call(opened, *arguments)
    if json:
        print_json(
            {
                "version": opened.version,
                "schema": to_ddl(opened.schema),
                "properties": dict(opened.properties),
                "features": sorted({*opened.protocol.reader_features, *opened.protocol.writer_features}),
            }
        )
        return
    out().print(f"version {opened.version}: {to_ddl(opened.schema)}", markup=False, highlight=False)


def _each(texts: Texts, call: Callable[[Table, str], Any]) -> list[Change]:
    return [(call, (text,)) for text in texts or ()]


def _named(texts: Texts, option: str, call: Callable[[Table, str, str], Any]) -> list[Change]:
    return [(call, pair) for pair in pairs(texts, option).items()]
