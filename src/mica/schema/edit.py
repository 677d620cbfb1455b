"""Finds and changes fields of a schema by their paths.

The rule: a path has the names of fields from the top; a step into an array is `element`, into a map `key` or `value`.
Names match ignoring case, as in Spark, and an exact name comes first. Pure functions.

    s.x                       the field x of the struct s
    l.element.x, m.value.x    the field x of the structs in the array l, in the values of the map m
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mica.errors import UserError
from mica.schema.types import ArrayType, DataType, MapType, Primitive, StructField, StructType

Path = Sequence[str]


def map_fields(schema: StructType, of: Callable[[StructField], StructField]) -> StructType:
    """The schema with every field replaced by `of(field)`, outer fields first, inside arrays and maps too."""

    def type_(t: DataType) -> DataType:
        match t:
            case StructType():
                return StructType(tuple(field(f) for f in t.fields))
            case ArrayType(element):
                return replace(t, element=type_(element))
            case MapType(key, value):
                return replace(t, key=type_(key), value=type_(value))
        return t

    def field(f: StructField) -> StructField:
        changed = of(f)
        return replace(changed, type=type_(changed.type))

    return StructType(tuple(field(f) for f in schema.fields))


def places(
    type_: DataType, at: str = "", field: StructField | None = None, *, named: bool = True
) -> Iterator[tuple[str, DataType, StructField | None, bool]]:
    """Every type in a type, outer ones first: its path, it, its field (None: the whole, an element, a key or a value),
    and whether an expression can name it."""
    yield at, type_, field, named
    match type_:
        case StructType(fields):
            for f in fields:
                yield from places(f.type, f"{at}.{f.name}" if at else f.name, f, named=named)
        case ArrayType(element):
            yield from places(element, f"{at}.element", named=False)
        case MapType(key, value):
            yield from places(key, f"{at}.key", named=False)
            yield from places(value, f"{at}.value", named=False)


def fields_of(type_: DataType) -> Iterator[StructField]:
    """Every field in a type, at any depth."""
    return (field for _, _, field, _ in places(type_) if field is not None)


def unknown_types(type_: DataType, at: str = "") -> Iterator[tuple[str, Primitive]]:
    """Every type in a type that no column of a Delta table has, with its path."""
    for place, found, _, _ in places(type_, at):
        if isinstance(found, Primitive) and not found.known:
            yield place, found


def inside(type_: DataType, path: Path, change: Callable[[DataType], DataType], at: str = "") -> DataType:
    """The type with the type at `path` replaced by `change` of it. Errors: UNKNOWN_COLUMN."""
    if not path:
        return change(type_)
    name, *rest = path
    here = f"{at}.{name}" if at else name
    match type_:
        case StructType(fields):
            found = type_.find(name)
            if found is None:
                raise UserError.unknown_column(here, [f"{at}.{n}" if at else n for n in type_.names])
            new = replace(found, type=inside(found.type, rest, change, f"{at}.{found.name}" if at else found.name))
            return StructType(tuple(new if f is found else f for f in fields))
        case ArrayType(element) if name.lower() == "element":
            return replace(type_, element=inside(element, rest, change, here))
        case MapType(key, _) if name.lower() == "key":
            return replace(type_, key=inside(key, rest, change, here))
        case MapType(_, value) if name.lower() == "value":
            return replace(type_, value=inside(value, rest, change, here))
    raise UserError.unknown_column(here, [at] if at else [])


def edited(
    schema: StructType, path: Path, change: Callable[[tuple[StructField, ...], int], Sequence[StructField]]
) -> StructType:
    """The schema in which the field at `path` and those beside it are `change(fields, its place)`. Errors:
    UNKNOWN_COLUMN.
    """

    def of(type_: DataType) -> DataType:
        found = type_.find(path[-1]) if isinstance(type_, StructType) else None
        if not isinstance(type_, StructType) or found is None:
            known = [".".join((*path[:-1], n)) for n in type_.names] if isinstance(type_, StructType) else []
            raise UserError.unknown_column(".".join(path), known)
        place = next(i for i, f in enumerate(type_.fields) if f is found)
        return StructType(tuple(change(type_.fields, place)))

    new = inside(schema, path[:-1], of)
    assert isinstance(new, StructType)
    return new


def replaced(schema: StructType, path: Path, change: Callable[[StructField], StructField]) -> StructType:
    """The schema with `change` of the field at `path` in its place. Errors: UNKNOWN_COLUMN."""
    return edited(schema, path, lambda fields, i: (*fields[:i], change(fields[i]), *fields[i + 1 :]))


def field_at(schema: StructType, path: Path) -> StructField:
    """The field at `path`. Errors: UNKNOWN_COLUMN."""
    found: list[StructField] = []

    def see(f: StructField) -> StructField:
        found.append(f)
        return f

    replaced(schema, path, see)
    return found[0]
