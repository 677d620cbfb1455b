"""Columns of a table changed: added, dropped, renamed, moved, widened, described.

The rule: no data file is rewritten, and every file that exists can still be read: by physical names where a name
changes (column mapping), and by widening where a type does. What a change needs is checked first, in the log or in the
rows.

Source: PROTOCOL.md, "Column Mapping", "Type Widening", "Default Columns"; operations named as delta-spark names them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import orjson

from mica.collation.identifier import Identifier
from mica.errors import UserError
from mica.expressions import typed_paths
from mica.expressions.parse import parse
from mica.expressions.tokens import tokenize
from mica.expressions.tree import Column, walk
from mica.log import creation, type_changes
from mica.log.actions import Metadata
from mica.log.domains import CLUSTERING_DOMAIN, clustering_columns
from mica.log.snapshot import Snapshot
from mica.maintain.alter import (
    altered,
    changed,
    collation_in,
    is_partition,
    of_new_strings,
    recollated,
    refuse_use,
    writable,
)
from mica.maintain.constraints import refuse_violations
from mica.properties import (
    BLOOM_PATHS,
    ENABLE_TYPE_WIDENING,
    INGEST_COLUMNS,
    SHREDDING_RULES,
    SKIPPING_NAMES,
    TYPED_PATHS,
    VARIANT_STATS_NAMES,
    parse_names,
)
from mica.records import dataclass
from mica.schema import char, collations, special
from mica.schema.ddl import parse_column_type, parse_new_columns, type_to_ddl
from mica.schema.edit import edited, field_at, inside, replaced
from mica.schema.spelling import quote_if_needed
from mica.schema.types import ArrayType, DataType, MapType, Primitive, StructField, StructType, refuse_twice
from mica.stats.columns import TYPE_CHANGES, physical_names
from mica.stats.named import parse_paths, without_columns
from mica.variant.steering import without_column
from mica.write.rules import refuse_other_types, rules_of

_WIDER = "Types only become wider: INT to BIGINT, FLOAT to DOUBLE, DATE to TIMESTAMP_NTZ, more digits."
_LONGER = "A CHAR or VARCHAR column becomes STRING or a VARCHAR that is not shorter; inside of a type it stays."

#: Steps of a path into an array or a map.
_STEPS = ("element", "key", "value")


@dataclass(frozen=True)
class Position:
    """Where a field goes among those beside it; neither: where it is, or the end."""

    first: bool = False
    after: str | None = None

    def place(self, others: Sequence[StructField], default: int) -> int:
        """The index among the other fields. Errors: UNKNOWN_COLUMN."""
        if self.first:
            return 0
        if self.after is None:
            return default
        beside = StructType(tuple(others)).field(_single(self.after))
        return next(i for i, f in enumerate(others) if f is beside) + 1


@dataclass(frozen=True)
class ColumnChange:
    """What a column gets; None for what stays: see `Table.alter_column`."""

    type: str | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    position: Position = Position()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ColumnChange:
        """The arguments of `Table.alter_column`."""
        kept = {name: value for name, value in given.items() if name not in ("first", "after")}
        return cls(**kept, position=Position(given.get("first", False), given.get("after")))

    def described(self, schema: StructType, column: str) -> StructType:
        """The schema with its comment, and whether it may be null."""
        if self.nullable is not None:
            nullable = self.nullable
            schema = replaced(schema, _field_path(schema, column), lambda f: replace(f, nullable=nullable))
        if self.comment is not None:
            comment = {"comment": self.comment or None}
            schema = replaced(schema, _field_path(schema, column), lambda f: f.with_metadata(comment))
        return schema


def add_columns(before: Snapshot, columns: str, into: str | None, position: Position) -> Snapshot:
    """See `Table.add_columns`."""
    schema: DataType = before.schema
    base = () if into is None else _path(into)
    for path, places, fields in _groups(columns, of_new_strings(before)):
        for f in fields:
            refuse_rows_without(f)
        if position != Position() and (path or places != Position()):
            raise UserError(
                "INVALID_ARGUMENT",
                f"{columns!r} says where its columns go, and so does the call",
                hint="Say it once.",
            )
        if base:
            fields = list(char.sized(StructType(tuple(fields))).fields)  # noqa: PLW2901 - the column keeps the lengths
        schema = inside(schema, [*base, *path], partial(_grown, fields, position if position != Position() else places))
    assert isinstance(schema, StructType)
    parameters = {"columns": columns, **({} if into is None else {"into": into})}
    return altered(before, "ADD COLUMNS", parameters, schema)


def _groups(columns: str, collation: Identifier) -> Iterator[tuple[tuple[str, ...], Position, list[StructField]]]:
    """New columns with the path to their struct and their place; those that come last together."""
    last: list[StructField] = []
    for new in parse_new_columns(columns, collation):
        if new.into or new.first or new.after is not None:
            if last:
                yield (), Position(), last
                last = []
            after = None if new.after is None else quote_if_needed(new.after)
            yield new.into, Position(new.first, after), [new.field]
        else:
            last.append(new.field)
    if last:
        yield (), Position(), last


def _grown(new: Sequence[StructField], position: Position, type_: DataType) -> DataType:
    """The struct with these fields in it. Errors: TYPE_MISMATCH, DUPLICATE_COLUMN, UNKNOWN_COLUMN."""
    if not isinstance(type_, StructType):
        raise UserError(
            "TYPE_MISMATCH",
            f"{new[0].name!r} would be a field of {type_to_ddl(type_)}, which has none",
            hint="Give the path of a struct: s, l.element, m.value.",
        )
    refuse_twice([*type_.names, *(f.name for f in new)])
    at = position.place(type_.fields, len(type_.fields))
    return StructType((*type_.fields[:at], *new, *type_.fields[at:]))


def drop_columns(before: Snapshot, columns: Sequence[str], *, if_exists: bool = False) -> Snapshot:
    """See `Table.drop_columns`."""
    writable(before)
    schema, metadata = before.schema, before.metadata
    if if_exists:
        columns = [column for column in columns if _exists(schema, column)]
        if not columns:
            return before
    for column in columns:
        path = _field_path(schema, column)
        _refuse_partition(before, path, column, "dropped")
        refuse_use(before, path, "drop")
        _refuse_clustering(before, path, column, "dropped")
        _needs_mapping(before, column, "dropped")
        schema = edited(schema, path, lambda fields, i, at=path: _rest(fields, i, at))  # type: ignore[misc]
        metadata = _in_properties(metadata, path, None)
    return _committed(before, "DROP COLUMNS", {"columns": list(columns)}, schema, metadata, takes_names=True)


def rename_column(before: Snapshot, column: str, name: str) -> Snapshot:
    """See `Table.rename_column`."""
    writable(before)
    path = _field_path(before.schema, column)
    refuse_use(before, path, "rename")
    if before.mapping == "none":
        _refuse_partition(before, path, column, "renamed")
        _refuse_clustering(before, path, column, "renamed without column mapping")
    _needs_mapping(before, column, "renamed")
    schema = collations.renamed(char.sized(before.schema), path, name)
    metadata = _in_properties(before.metadata, path, name)
    if len(path) == 1:
        partitions = tuple(name if p == path[0] else p for p in metadata.partition_columns)
        metadata = replace(metadata, partition_columns=partitions)
    parameters = {"oldColumnPath": ".".join(path), "newColumnPath": ".".join((*path[:-1], name))}
    takes_names = before.mapping == "none"
    return _committed(before, "RENAME COLUMN", parameters, schema, metadata, takes_names=takes_names)


def alter_columns(
    before: Snapshot, changes: Mapping[str, ColumnChange], *, ansi: bool = True, timezone: str = "UTC"
) -> Snapshot:
    """See `Table.alter_columns`; the settings are those by which rules are judged."""
    if not changes:
        return before
    writable(before)
    schema, rests = before.schema, False
    for column, change in changes.items():
        path = _path(column)
        if change.type is not None and (collation := collation_in(change.type)) is not None:
            schema = recollated(before, schema, path, collation)
            schema = schema if len(path) > 1 else _widened(before, schema, path, "STRING")  # of a CHAR or VARCHAR
        elif change.type is not None:
            schema = _widened(before, schema, path, change.type)
            refuse_other_types(schema, [schema.field(path[0])], ansi=ansi, timezone=timezone)
        if change.nullable is not None:
            rests |= not change.nullable and _refuse_nulls(before, path, column)
        schema = change.described(schema, column)
        if change.default is not None:
            schema = _with_default(schema, path, change.default)
            table = str(before.storage)
            rules = rules_of(schema, before.properties, table, ansi=ansi, timezone=timezone, every_default=False)
            rules.absent(name for name in schema.names if name.lower() != path[0].lower())
        if change.position != Position():
            at = change.position
            schema = edited(schema, _field_path(schema, column), lambda fields, i, at=at: _moved(fields, i, at))  # type: ignore[misc]
    if len(changes) == 1:
        return altered(before, "CHANGE COLUMN", {"column": next(iter(changes))}, schema, rests_on_files=rests)
    return altered(before, "CHANGE COLUMNS", {"columns": [*changes]}, schema, rests_on_files=rests)


# --- what each change asks -------------------------------------------------------------------------------------------


def _path(column: str) -> tuple[str, ...]:
    found = parse_names(column)
    if len(found) != 1:
        raise UserError.bad_value("a column", column, "one name, with dots into structs: s.x, l.element.x")
    return found[0]


def _field_path(schema: StructType, column: str) -> tuple[str, ...]:
    """The path of a field as the schema spells it. Errors: UNKNOWN_COLUMN."""
    path = _path(column)
    field_at(schema, path)
    here: DataType = schema
    names = []
    for name in path:
        match here:
            case StructType():
                names.append(here.field(name).name)
                here = here.field(name).type
            case ArrayType(element):
                names.append("element")
                here = element
            case MapType(key, value):
                names.append(name.lower())
                here = key if name.lower() == "key" else value
    return tuple(names)


def _single(name: str) -> str:
    return _path(name)[-1]


def refuse_rows_without(f: StructField) -> None:
    """Refuses a new column that existing rows would have to have a value for."""
    for wrong, clause in (
        (not f.nullable, "NOT NULL"),
        (special.DEFAULT in f.metadata, "DEFAULT"),
        (special.GENERATED in f.metadata or special.IDENTITY_START in f.metadata, "GENERATED"),
    ):
        if wrong:
            raise UserError(
                "MISSING_COLUMN",
                f"the column {f.name!r} is {clause}, and existing rows have no value for it",
                hint=f"Leave {clause} out; alter_column sets a default for new rows.",
                column=f.name,
            )


def _refuse_partition(before: Snapshot, path: Sequence[str], column: str, does: str) -> None:
    if is_partition(before, path[0]):
        raise UserError(
            "INVALID_PARTITION_COLUMN", f"{column!r} is a partition column and cannot be {does}", column=column
        )


def _refuse_clustering(before: Snapshot, path: Sequence[str], column: str, does: str) -> None:
    through = any(_is_step(before.schema, tuple(path[:n])) for n in range(2, len(path)))
    names = () if through else physical_names(before.schema, path)
    for wanted in clustering_columns(before.domains.get(CLUSTERING_DOMAIN)):
        if names and wanted[: len(names)] == names:
            raise UserError(
                "COLUMN_IN_USE",
                f"{before.storage} is clustered by {column!r}, which cannot be {does}",
                hint="Change the clustering first (ALTER TABLE … CLUSTER BY).",
                column=column,
            )


def _needs_mapping(before: Snapshot, column: str, does: str) -> None:
    """Refuses a change of names if files name the column. Errors: NEEDS_COLUMN_MAPPING."""
    if before.mapping == "none" and before.files.num_rows:
        raise UserError(
            "NEEDS_COLUMN_MAPPING",
            f"{before.storage} has files that name the column {column!r}: without column mapping it cannot be {does}",
            hint='Turn it on first: set_properties({"delta.columnMapping.mode": "name"}).',
            column=column,
        )


def _rest(fields: tuple[StructField, ...], place: int, path: Sequence[str]) -> tuple[StructField, ...]:
    if len(fields) == 1:
        raise UserError(
            "INVALID_ARGUMENT", f"{'.'.join(path)!r} is the only column or field of its level", hint="Keep one."
        )
    return (*fields[:place], *fields[place + 1 :])


def _moved(fields: tuple[StructField, ...], place: int, position: Position) -> tuple[StructField, ...]:
    others = (*fields[:place], *fields[place + 1 :])
    at = position.place(others, place)
    return (*others[:at], fields[place], *others[at:])


def _with_default(schema: StructType, path: tuple[str, ...], default: str) -> StructType:
    if len(path) > 1:
        raise UserError("INVALID_ARGUMENT", f"{'.'.join(path)!r} is no column: only columns have defaults")
    _refuse_identity(schema, path, "have a default")
    return replaced(schema, path, lambda f: f.with_metadata({special.DEFAULT: default or None}))


def _refuse_identity(schema: StructType, path: tuple[str, ...], what: str) -> None:
    """Refuses what an identity column cannot have, which is BIGINT and numbered (PROTOCOL.md, "Identity Columns")."""
    if special.IDENTITY_START in schema.field(path[0]).metadata:
        raise UserError("COLUMN_IN_USE", f"{path[0]!r} is an identity column, which cannot {what}", column=path[0])


def _refuse_nulls(before: Snapshot, path: tuple[str, ...], column: str) -> bool:
    """Refuses NOT NULL for a column with nulls; returns whether files were asked. Errors: CONSTRAINT_VIOLATED."""
    if any(step.lower() in _STEPS for step in path[1:]) and not field_at(before.schema, path).nullable:
        return False
    here: DataType = before.schema
    for step in path:
        if not isinstance(here, StructType):
            raise UserError(
                "UNSUPPORTED_EXPRESSION",
                f"{column!r} is inside of an array or a map, where mica cannot look for nulls",
                hint="Only columns and fields of structs can become NOT NULL.",
            )
        here = here.field(step).type
    names = [quote_if_needed(name) for name in path]
    around = [f"{'.'.join(names[: n + 1])} IS NULL" for n in range(len(names) - 1)]
    expr = " OR ".join([f"{'.'.join(names)} IS NOT NULL", *around])
    refuse_violations(before, f"NOT NULL of {column!r}", f"({expr})", expr)
    return True


def _widened(before: Snapshot, schema: StructType, path: tuple[str, ...], text: str) -> StructType:
    """The schema with a wider type at `path`, which may end in an array's element, a map's key or value.

    Errors: FEATURE_NEEDED, INCOMPATIBLE_TYPE, COLUMN_IN_USE.
    """
    wanted, declared = parse_column_type(text)
    inner = len(path)
    while inner > 1 and path[inner - 1].lower() in _STEPS and _is_step(schema, path[:inner]):
        inner -= 1
    holder, steps = path[:inner], path[inner:]
    was: list[DataType] = []

    def change(type_: DataType) -> DataType:
        was.append(type_)
        return wanted

    if not steps and (field_at(schema, path).type, char.at(schema.field(path[0]), path[1:])) == (wanted, declared):
        return schema
    refuse_use(before, holder, "change the type of")
    _refuse_identity(schema, path, "have another type")

    def of_length(f: StructField) -> StructField:
        """The column with another length of its strings."""
        before = char.at(schema.field(path[0]), path[1:])
        if before == declared:
            return f
        if len(path) > 1 or not char.is_wider(before, declared):
            _refuse_type(path, before or type_to_ddl(wanted), declared or type_to_ddl(wanted), _LONGER)
        return f.with_metadata({special.CHAR_VARCHAR: declared or None})

    def of(f: StructField) -> StructField:
        found = replace(f, type=inside(f.type, steps, change))
        (source,) = was
        if source == wanted:
            return of_length(f)
        _refuse_narrowing(path, source, wanted)
        if not ENABLE_TYPE_WIDENING.of(before.properties):
            raise UserError(
                "FEATURE_NEEDED",
                f"{before.storage} does not allow wider types: {ENABLE_TYPE_WIDENING.name} is not true",
                hint=f'Turn it on first: set_properties({{"{ENABLE_TYPE_WIDENING.name}": "true"}}).',
            )
        assert isinstance(source, Primitive) and isinstance(wanted, Primitive)  # noqa: PT018 - for the type checker
        one: dict[str, str] = {"fromType": source.name, "toType": wanted.name}
        told = [*f.metadata.get(TYPE_CHANGES, []), one | ({"fieldPath": ".".join(steps).lower()} if steps else {})]
        return found.with_metadata({TYPE_CHANGES: told})

    return replaced(schema, holder, of)


def _exists(schema: StructType, column: str) -> bool:
    try:
        _field_path(schema, column)
    except UserError:
        return False
    return True


def _is_step(schema: StructType, path: tuple[str, ...]) -> bool:
    """Whether the last name of the path is a step into an array or a map, and no field of a struct."""
    try:
        field_at(schema, path)
    except UserError:
        return True
    return False


def _refuse_narrowing(path: Sequence[str], source: DataType, wanted: DataType) -> None:
    known = isinstance(source, Primitive) and isinstance(wanted, Primitive)
    if not known or not type_changes.is_wider(source.name, wanted.name):  # type: ignore[attr-defined]
        _refuse_type(path, type_to_ddl(source), type_to_ddl(wanted), _WIDER)


def _refuse_type(path: Sequence[str], source: str, wanted: str, hint: str) -> NoReturn:
    what = f"the type of {'.'.join(path)!r} is {source.upper()} and cannot become {wanted.upper()}"
    raise UserError("INCOMPATIBLE_TYPE", what, hint=hint)


def _in_properties(metadata: Metadata, path: Sequence[str], name: str | None) -> Metadata:
    """The metadata with the column under its new name (None: dropped) in the properties that list columns."""
    found: dict[str, str | None] = {}
    for known, renamed in _NAMING.items():
        text = metadata.configuration.get(known)
        if text is not None:
            # A text that cannot be read stays as it is: a later version of mica may have set it.
            with contextlib.suppress(UserError, ValueError):
                found[known] = renamed(text, path, name) or None
    return metadata.with_configuration(found) if found else metadata


def _ingest_columns(text: str, path: Sequence[str], name: str | None) -> str:
    given = INGEST_COLUMNS.values.parse(text)
    if len(path) == 1:
        same = [key for key in given if key.lower() == path[0].lower()]
        given = {name if key in same and name else key: v for key, v in given.items() if name or key not in same}
        given = {key: text if name is None else _renamed_in(text, path[0], name) for key, text in given.items()}
    return orjson.dumps(given).decode() if given else ""


def _renamed_in(text: str, column: str, name: str) -> str:
    """The expression with a column under its new name; one that cannot be read stays as it is."""
    with contextlib.suppress(UserError):
        found = {e.at for e in walk(parse(text)) if isinstance(e, Column) and e.names[0].lower() == column.lower()}
        for token in reversed(tokenize(text)):
            if token.at in found:
                text = text[: token.at] + quote_if_needed(name) + text[token.end :]
    return text


def _paths(text: str, path: Sequence[str], name: str | None) -> str:
    parse_paths(text)
    return without_columns(text, path, name)


#: The properties that name columns, and their texts with a column under its new name, or (None) without it.
_NAMING: Mapping[str, Callable[[str, Sequence[str], str | None], str]] = {
    SKIPPING_NAMES.name: without_columns,
    VARIANT_STATS_NAMES.name: _paths,
    BLOOM_PATHS.name: _paths,
    SHREDDING_RULES.name: without_column,
    INGEST_COLUMNS.name: _ingest_columns,
    TYPED_PATHS.name: typed_paths.without_column,
}


def _committed(
    before: Snapshot,
    operation: str,
    parameters: Mapping[str, Any],
    schema: StructType,
    metadata: Metadata,
    *,
    takes_names: bool,
) -> Snapshot:
    """Commits the schema; `takes_names`: a name that files have is gone from it, by which another may cluster."""
    protocol, after = creation.altered(before.protocol, metadata, schema=schema)
    rests = before.mapping == "none"
    watched = [CLUSTERING_DOMAIN] if takes_names else []
    return changed(before, operation, parameters, protocol, after, rests_on_files=rests, watched=watched)
