"""The types of a Delta table, as values.

The rule: `TYPES` is the one table of primitive types with their spellings in Delta JSON, Spark DDL and Arrow.
Unknown types keep their name: they can be shown and written back, but not read.

Source: Delta protocol, "Schema Serialization Format"; Parquet, "LogicalTypes".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

import pyarrow as pa

from mica import late
from mica.cached import cached_property
from mica.errors import MicaError, UserError
from mica.records import dataclass


@dataclass(frozen=True)
class DataType:
    """The base of all types. Types are equal if their Delta JSON is equal."""


@dataclass(frozen=True)
class Primitive(DataType):
    """A type without children, by its Delta name: `long`, `decimal(10,2)`, `timestamp_ntz`, `variant`, …"""

    name: str

    def __eq__(self, other: object) -> bool:
        # Types are compared a hundred times a batch and a predicate: not by the way of all records.
        return self is other or (other.__class__ is Primitive and self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def decimal(self) -> tuple[int, int] | None:
        """(precision, scale) of a decimal, otherwise None."""
        if not self.name.startswith("decimal"):
            return None
        match = _DECIMAL.fullmatch(self.name)
        return None if match is None else (int(match[1]), int(match[2]))

    @property
    def known(self) -> bool:
        """Whether the type is in `TYPES`."""
        return self.name in TYPES or self.decimal is not None


@dataclass(frozen=True)
class ArrayType(DataType):
    """A list of one type."""

    element: DataType
    contains_null: bool = True


@dataclass(frozen=True)
class MapType(DataType):
    """Keys are never null."""

    key: DataType
    value: DataType
    value_contains_null: bool = True


@dataclass(frozen=True)
class StructField:
    """One field. `metadata` is Delta's, including unknown keys."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def with_metadata(self, changes: Mapping[str, Any]) -> StructField:
        """Returns a copy with other values of these keys of the metadata; None removes a key."""
        merged = {**self.metadata, **changes}.items()
        return replace(self, metadata={key: value for key, value in merged if key not in changes or value is not None})


@dataclass(frozen=True)
class StructType(DataType):
    """Fields in order; also the schema of a whole table."""

    fields: tuple[StructField, ...] = ()

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        """Spark DDL, as `Table.create` reads it (`a INT,b STRING NOT NULL`); `repr` if a collation has no name."""
        from mica.schema.ddl import to_ddl  # it imports this module

        try:
            return to_ddl(self)
        except MicaError:
            return repr(self)

    @property
    def names(self) -> list[str]:
        """The names of the fields."""
        return [f.name for f in self.fields]

    def has_names_of(self, other: StructType) -> bool:
        """Whether both have fields of the same names, in any case, in the same order."""
        return [*map(str.lower, self.names)] == [*map(str.lower, other.names)]

    def has_fields_of(self, other: StructType) -> bool:
        """Whether both have fields of the same names, in any case and order."""
        return sorted(map(str.lower, self.names)) == sorted(map(str.lower, other.names))

    def find(self, name: str) -> StructField | None:
        """Returns the field of that name: the exact match, else the one that differs only in case, as in Spark."""
        exact, loose = self._by_name
        return exact.get(name) or loose.get(name.lower())

    @cached_property
    def _by_name(self) -> tuple[dict[str, StructField], dict[str, StructField]]:
        """The fields by name and by name in lower case, of equal ones the first: wide tables ask for each of theirs."""
        exact, loose = dict[str, StructField](), dict[str, StructField]()
        for f in self.fields:
            exact.setdefault(f.name, f)
            loose.setdefault(f.name.lower(), f)
        return exact, loose

    def __getstate__(self) -> dict[str, object]:
        """What tasks on Spark get: the fields alone."""
        return {"fields": self.fields}

    def field(self, name: str, of_paths: str = "") -> StructField:
        """Like `find`, but a missing name is an error that lists the existing names, or says what to do with a path."""
        found = self.find(name)
        if found is None:
            raise UserError.unknown_column(name, self.names, of_paths=of_paths)
        return found


@dataclass(frozen=True)
class TypeRow:
    """One row of `TYPES`. `ddl` holds Spark's own spelling first, then its synonyms."""

    delta: str
    ddl: tuple[str, ...]
    arrow: pa.DataType


_US = "us"

#: Delta name → its spellings. Decimals are separate: the functions below parse and make `decimal(p,s)`.
TYPES: Mapping[str, TypeRow] = {
    row.delta: row
    for row in (
        TypeRow("boolean", ("BOOLEAN",), pa.bool_()),
        TypeRow("byte", ("TINYINT", "BYTE"), pa.int8()),
        TypeRow("short", ("SMALLINT", "SHORT"), pa.int16()),
        TypeRow("integer", ("INT", "INTEGER"), pa.int32()),
        TypeRow("long", ("BIGINT", "LONG"), pa.int64()),
        TypeRow("float", ("FLOAT", "REAL"), pa.float32()),
        TypeRow("double", ("DOUBLE",), pa.float64()),
        TypeRow("string", ("STRING",), pa.string()),
        TypeRow("binary", ("BINARY",), pa.binary()),
        TypeRow("date", ("DATE",), pa.date32()),
        TypeRow("timestamp", ("TIMESTAMP", "TIMESTAMP_LTZ"), pa.timestamp(_US, "UTC")),
        TypeRow("timestamp_ntz", ("TIMESTAMP_NTZ",), pa.timestamp(_US)),
        TypeRow("void", ("VOID", "NULL"), pa.null()),
        TypeRow(
            "variant",
            ("VARIANT",),
            pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]),
        ),
    )
}

MAX_PRECISION = 38

_DECIMAL = late.pattern(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")

BOOLEAN, BYTE, SHORT, INTEGER, LONG = (Primitive(n) for n in ("boolean", "byte", "short", "integer", "long"))
FLOAT, DOUBLE, STRING, BINARY, DATE = (Primitive(n) for n in ("float", "double", "string", "binary", "date"))
TIMESTAMP, TIMESTAMP_NTZ, VOID, VARIANT = (Primitive(n) for n in ("timestamp", "timestamp_ntz", "void", "variant"))

#: Integers by width: the index is the rank in Spark's numeric precedence.
INTEGRALS = (BYTE, SHORT, INTEGER, LONG)


def decimal(precision: int, scale: int) -> Primitive:
    """Returns the decimal type of that precision (1 to 38) and scale (0 to the precision)."""
    if not 1 <= precision <= MAX_PRECISION or not 0 <= scale <= precision:
        raise UserError(
            "INVALID_TYPE",
            f"DECIMAL({precision},{scale}) is not valid: precision is 1 to {MAX_PRECISION}, scale 0 to the precision",
        )
    return Primitive(f"decimal({precision},{scale})")


def walk(schema: StructType, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Yields every field reachable through structs, parents first, with its path of names."""
    for f in schema.fields:
        path = (*prefix, f.name)
        yield path, f
        if isinstance(f.type, StructType):
            yield from walk(f.type, path)


def variant_columns(schema: StructType) -> tuple[tuple[str, ...], ...]:
    """The VARIANT columns, as paths through structs; Variants in arrays and maps are not among them."""
    return tuple(path for path, f in walk(schema) if f.type == VARIANT)


def nests_variants(type_: DataType) -> bool:
    """Whether Variants are in arrays or maps of the type."""
    match type_:
        case StructType(fields):
            return any(nests_variants(f.type) for f in fields)
        case ArrayType() | MapType():
            return contains(type_, VARIANT)
        case _:
            return False


def is_text(type_: DataType) -> bool:
    """Whether it is STRING, or CHAR(n) or VARCHAR(n) where types have lengths (`mica.schema.char`)."""
    return isinstance(type_, Primitive) and type_.name.startswith(("string", "char(", "varchar("))


def contains(type_: DataType, wanted: Primitive) -> bool:
    """Whether `wanted` is anywhere in the type, inside arrays and maps too."""
    match type_:
        case StructType(fields):
            return any(contains(f.type, wanted) for f in fields)
        case ArrayType(element):
            return contains(element, wanted)
        case MapType(key, value):
            return contains(key, wanted) or contains(value, wanted)
        case _:
            return type_ == wanted


def refuse_twice(names: Iterable[str], *, exact: bool = False) -> None:
    """Raises if names of one level do not differ by more than case: Spark and Delta cannot tell such names apart. With
    `exact`, if names are equal."""
    seen: dict[str, str] = {}
    for name in names:
        key = name if exact else name.lower()
        if key in seen:
            other = seen[key]
            also = "twice" if other == name else f"beside {other!r}, which differs only in case"
            raise UserError("DUPLICATE_COLUMN", f"the column {name!r} is given {also}")
        seen[key] = name


def loosened(type_: DataType) -> DataType:
    """The type with nulls allowed everywhere in it, and without metadata of its fields: two types that differ in
    nothing else have the same values.
    """
    match type_:
        case StructType(fields):
            return StructType(tuple(StructField(f.name, loosened(f.type)) for f in fields))
        case ArrayType(element):
            return ArrayType(loosened(element))
        case MapType(key, value):
            return MapType(loosened(key), loosened(value))
    return type_


def renamed(given: DataType, wanted: DataType) -> DataType:
    """A type with the names of the fields that are at the same places of another one; those that are more keep theirs,
    and all do if they are fewer."""
    match given, wanted:
        case StructType(), StructType() if len(given.fields) >= len(wanted.fields):
            pairs = zip(given.fields, wanted.fields, strict=False)
            named = [replace(f, name=own.name, type=renamed(f.type, own.type)) for f, own in pairs]
            return StructType((*named, *given.fields[len(named) :]))
        case ArrayType(), ArrayType():
            return replace(given, element=renamed(given.element, wanted.element))
        case MapType(), MapType():
            return replace(given, value=renamed(given.value, wanted.value))
    return given
