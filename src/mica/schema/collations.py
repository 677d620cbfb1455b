"""Collations in a schema: where they are stored, and how they follow changes of the schema.

The rule: a string's collation is in the metadata of the nearest enclosing field, under the field's name and the path
from there (`col2.element.key`). A string without a key is binary, and binary is never stored. A key keeps its
spelling, including versions and names of other systems, until it is changed.

    a STRING COLLATE de                      {"a": "icu.de"}                 on the field a
    m MAP<STRING COLLATE de, STRING>         {"m.key": "icu.de"}             on the field m
    x ARRAY<STRUCT<f: STRING COLLATE de>>    {"f": "icu.de"}                 on the field f inside

Source: Delta RFC "Collated String Type", section "Specifying collations in the table schema".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mica.collation.identifier import Identifier, parse
from mica.collation.names import is_binary, to_sql
from mica.errors import CorruptDataError, MicaError, UserError
from mica.records import dataclass
from mica.schema.edit import edited, map_fields
from mica.schema.types import STRING, ArrayType, DataType, MapType, StructField, StructType, is_text, refuse_twice

#: The key of a field's metadata that holds the collations inside it: {"a.element": "icu.de"}.
COLLATIONS = "__COLLATIONS"


#: The names from a value to a part of it, through arrays and maps as `element`, `key` and `value`.
Way = tuple[str, ...]


@dataclass(frozen=True)
class CollatedString:
    """A string with a collation. `column` has the names from the root, through arrays and maps as `element`, `key` and
    `value`; `plain`: the path leads through structs only, so there is one value per row.
    """

    column: tuple[str, ...]
    identifier: Identifier
    plain: bool


def strings(type_: DataType, place: str) -> Iterator[str]:
    """Yields the strings in a type that are not inside a nested struct, as keys of `__COLLATIONS` name them."""
    match type_:
        case ArrayType(element):
            yield from strings(element, f"{place}.element")
        case MapType(key, value):
            yield from strings(key, f"{place}.key")
            yield from strings(value, f"{place}.value")
        case _ if is_text(type_):
            yield place


def ways_to_strings(type_: DataType) -> Iterator[Way]:
    """Yields the way to every string in a type, also in nested structs."""
    match type_:
        case StructType(fields):
            for f in fields:
                yield from ((f.name, *way) for way in ways_to_strings(f.type))
        case ArrayType(element):
            yield from (("element", *way) for way in ways_to_strings(element))
        case MapType(key, value):
            yield from (("key", *way) for way in ways_to_strings(key))
            yield from (("value", *way) for way in ways_to_strings(value))
        case _ if is_text(type_):
            yield ()


def of_field(f: StructField) -> dict[str, Identifier]:
    """Returns the collations in a field's metadata: place → identifier. Errors: INVALID_COLLATION, with the column."""
    kept = f.metadata.get(COLLATIONS)
    if kept is None:
        return {}
    if not isinstance(kept, Mapping):
        raise _bad(f.name, repr(kept), "it is not an object of places and identifiers")
    places = set(strings(f.type, f.name))
    found: dict[str, Identifier] = {}
    seen: dict[str, str] = {}
    for place, text in kept.items():
        if place not in places:
            raise _bad(f.name, repr(text), f"the place {place!r} is not a string of this column")
        if place.lower() in seen:
            raise _bad(f.name, repr(text), f"{place!r} and {seen[place.lower()]!r} differ only in case")
        seen[place.lower()] = place
        if not isinstance(text, str):
            raise _bad(f.name, repr(text), f"the value at {place!r} is not text")
        try:
            found[place] = parse(text)
        except UserError as e:
            raise _bad(f.name, repr(text), e.message) from None
    return found


def walk_collated(schema: StructType, prefix: tuple[str, ...] = (), plain: bool = True) -> Iterator[CollatedString]:
    """Yields every collated string of a schema, inside arrays and maps too."""
    for f in schema.fields:
        for place, identifier in of_field(f).items():
            steps = place[len(f.name) :].split(".")[1:]
            yield CollatedString((*prefix, f.name, *steps), identifier, plain and not steps)
        for way, inner in _structs(f.type):
            yield from walk_collated(inner, (*prefix, f.name, *way), plain and not way)


def _structs(type_: DataType, steps: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], StructType]]:
    """Yields the outermost structs in a type, each with its path."""
    match type_:
        case StructType():
            yield steps, type_
        case ArrayType(element):
            yield from _structs(element, (*steps, "element"))
        case MapType(key, value):
            yield from _structs(key, (*steps, "key"))
            yield from _structs(value, (*steps, "value"))


def check(schema: StructType, table: str) -> list[CollatedString]:
    """Returns the collated strings of a table before a write. Errors: INVALID_COLLATION with table and column."""
    try:
        return list(walk_collated(schema))
    except MicaError as e:
        raise type(e)(e.code, e.message, hint=e.hint, table=table, **e.context) from None


def normalized(schema: StructType) -> StructType:
    """Removes keys that mean binary: "Writers must not write the collation identifier … with default
    collation".
    """

    def of(f: StructField) -> StructField:
        kept = {place: str(i) for place, i in of_field(f).items() if not is_binary(i)}
        return f.with_metadata({COLLATIONS: kept or None})

    return map_fields(schema, of)


def set_collation(schema: StructType, column: tuple[str, ...], identifier: Identifier | None) -> StructType:
    """Returns the schema with another collation of one string; None and binary remove it. `column` is as in
    `CollatedString`, in any case. Errors: UNKNOWN_COLUMN, TYPE_MISMATCH if it is not a string.
    """
    asked = ".".join(column)
    found = _find(schema, column)
    if found is None:
        raise UserError.unknown_column(asked, [".".join(way) for way in ways_to_strings(schema)], what="string column")
    fields, place = found
    target = fields[-1]

    def of(f: StructField) -> StructField:
        if f is not target:
            return f
        kept = {p: str(i) for p, i in of_field(f).items() if p != place}
        if identifier is not None and not is_binary(identifier):
            kept[place] = str(identifier)
        return f.with_metadata({COLLATIONS: kept or None})

    return map_fields(schema, of)


def renamed(schema: StructType, column: tuple[str, ...], name: str) -> StructType:
    """Returns the schema with one field renamed, also in the keys of its collations; `column` is a path as in
    `schema/edit.py`. Errors: UNKNOWN_COLUMN, DUPLICATE_COLUMN.
    """

    def of(fields: tuple[StructField, ...], i: int) -> tuple[StructField, ...]:
        refuse_twice([name if n == i else f.name for n, f in enumerate(fields)])
        return (*fields[:i], renamed_field(fields[i], name), *fields[i + 1 :])

    return edited(schema, column, of)


def renamed_field(f: StructField, name: str) -> StructField:
    """The field under another name, also in the keys of its collations."""
    kept = {name + place[len(f.name) :]: str(i) for place, i in of_field(f).items()}
    return replace(f.with_metadata({COLLATIONS: kept or None}), name=name)


def _find(schema: StructType, column: tuple[str, ...]) -> tuple[list[StructField], str] | None:
    """Returns the fields on the path to a string, and its place in the last one."""
    here: DataType = schema
    fields: list[StructField] = []
    place = ""
    for name in column:
        match here:
            case StructType():
                f = here.find(name)
                if f is None:
                    return None
                fields.append(f)
                here, place = f.type, f.name
            case ArrayType(element) if name.lower() == "element":
                here, place = element, f"{place}.element"
            case MapType(key, _) if name.lower() == "key":
                here, place = key, f"{place}.key"
            case MapType(_, value) if name.lower() == "value":
                here, place = value, f"{place}.value"
            case _:
                return None
    return (fields, place) if here == STRING and fields else None


def for_spark(schema: StructType) -> StructType:
    """Returns the schema with Spark's names and without versions.

    Errors: UNKNOWN_COLLATION for a collation that Spark does not have; read such a column as binary to avoid it.
    """

    def of(f: StructField) -> StructField:
        kept = {}
        for place, identifier in of_field(f).items():
            name = to_sql(identifier)
            if name is None:
                raise unknown(place, identifier)
            if not is_binary(identifier):
                kept[place] = f"{identifier.provider.lower()}.{name}"
        return f.with_metadata({COLLATIONS: kept or None})

    return map_fields(schema, of)


def unknown(column: str, identifier: Identifier) -> UserError:
    """The error for a table's collation that Spark does not have."""
    return UserError(
        "UNKNOWN_COLLATION",
        f"the column {column!r} has the collation {identifier}, which Spark does not have",
        hint=f"To read it as binary, select {column} COLLATE UTF8_BINARY.",
        column=column,
        collation=str(identifier),
    )


def _bad(column: str, found: str, why: str) -> CorruptDataError:
    return CorruptDataError(
        "INVALID_COLLATION",
        f"the column {column!r} has the collation {found}: {why}",
        hint="Repair the table's schema: __COLLATIONS maps places such as 'a.element' to PROVIDER.NAME.",
        column=column,
    )
