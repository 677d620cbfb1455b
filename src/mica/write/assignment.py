"""Which values may be assigned to a column or a field of a struct by an update or a merge, and how they are cast.

The rule is Spark's ANSI store assignment: a value is cast to the column's type if no valid value of its type is
surprising there, and one that does not fit is an error, with ANSI mode and without. Other casts must be written, but
for those of a literal text to a number, a boolean, a date or a time, which delta-spark reads, and for those of SQL
statements (`casting`), which run as they do in delta-spark.

Source: Spark SQL reference, "ANSI Compliance", "Store assignment"; Spark's Cast.canANSIStoreAssign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from mica.collation.names import BINARY as BYTEWISE
from mica.errors import MicaError, UserError
from mica.expressions.coerce import is_exact, is_real
from mica.expressions.parse import parse
from mica.expressions.set_field import field_of, with_field
from mica.expressions.tree import Cast, Collate, Column, Expr, Literal
from mica.schema.ddl import type_to_ddl
from mica.schema.interval_types import is_interval
from mica.schema.special import DEFAULT
from mica.schema.spelling import spelled, unquoted
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INTEGRALS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    Primitive,
    StructField,
    StructType,
    loosened,
)

TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)

#: Called before a value is cast by the rules of a statement; None where they do not apply.
_CASTS: ContextVar[Callable[[], None] | None] = ContextVar("casts", default=None)


@contextmanager
def casting(before: Callable[[], None]) -> Iterator[None]:
    """Casts values in the `with` block, and what is inside of them, as by CAST (`is_cast`): what delta-spark does in
    UPDATE and MERGE. `before` is called once there is a cast that another policy of store assignment makes otherwise.
    """
    token = _CASTS.set(before)
    try:
        yield
    finally:
        _CASTS.reset(token)


def _way_out(text: str, given: DataType, wanted: str) -> str:
    if wanted == "VARIANT" and given == STRING:
        return f"parse_json({text}) reads it as JSON, cast({text} AS VARIANT) keeps the text."
    if wanted == "VARIANT":
        return f"Structs become one by to_variant_object({text}), other values by parse_json of their JSON."
    if "STRUCT<" in wanted:  # a cast takes the fields of structs by their places
        return "Its fields need the column's names, all of them, and types that fit."
    return f"Cast it: cast({text} AS {wanted})."


def stored(value: Expr, given: DataType, column: StructField, text: str) -> Expr:
    """The value, of type `given`, in the column's type; `text` is how it was written. Errors: INCOMPATIBLE_TYPE."""
    if given == column.type:
        return value
    note_cast(given, column.type)
    if not may_be_stored(given, column.type) and not _is_literal(value, column.type):
        wanted = type_to_ddl(column.type)
        raise UserError(
            "INCOMPATIBLE_TYPE",
            f"the column {column.name!r} is {wanted}, and {text} is {type_to_ddl(given)}",
            hint=_way_out(text, given, wanted),
            column=column.name,
        )
    loose = loosened(column.type)
    if loosened(given) != loose != column.type:
        value = Cast(value, loose, stores=True)  # then it is seen whether what must not be null is
    return Cast(value, column.type, stores=True)


def note_cast(given: DataType, wanted: DataType) -> None:
    """Tells the statement (`casting`) of a value that is about to be cast."""
    before = _CASTS.get()
    if before is not None and not is_kept(given, wanted):
        before()


def is_kept(given: DataType, wanted: DataType) -> bool:
    """Whether each policy of store assignment stores all values of a type, and alike."""
    if given in INTEGRALS and wanted in INTEGRALS:
        return INTEGRALS.index(given) <= INTEGRALS.index(wanted)
    if wanted == VARIANT and not is_cast(given, wanted):
        return True  # which no policy does: a text is read as JSON
    widens = given in INTEGRALS and (is_real(wanted) or wanted == STRING)
    return widens or given == VOID or loosened(given) == loosened(wanted)


def _is_literal(value: Expr, wanted: DataType) -> bool:
    """Whether a value is a literal text for a column of numbers, dates or times: whether it fits is seen at once."""
    return isinstance(value, Literal) and value.type == STRING and is_read_from_text(wanted)


def may_be_stored(given: DataType, wanted: DataType) -> bool:
    """Whether a value is stored by a cast, part by part: fields of structs have the names of the column's."""
    match given, wanted:
        case ArrayType(), ArrayType():
            return may_be_stored(given.element, wanted.element)
        case MapType(), MapType():
            return may_be_stored(given.key, wanted.key) and may_be_stored(given.value, wanted.value)
        case StructType(), StructType() if given.has_fields_of(wanted):
            return all(may_be_stored(f.type, wanted.field(f.name).type) for f in given)
    same, casts = loosened(given) == loosened(wanted), _CASTS.get() is not None
    if casts and isinstance(given, ArrayType) and wanted == VARIANT:
        return True  # if its elements can be cast, which binding says
    return same or assignable(given, wanted) or (casts and is_cast(given, wanted))


def is_cast(given: DataType, wanted: DataType) -> bool:
    """Whether delta-spark casts a value, or one inside of it, beyond what `assignable` says."""
    is_number = is_exact(wanted) or is_real(wanted)
    match given:
        case Primitive("string"):
            return is_read_from_text(wanted) or wanted == BINARY
        case Primitive("variant"):
            from mica.expressions.casts import variant_holds

            return wanted != VARIANT and variant_holds(wanted)
        case Primitive("boolean" | "timestamp"):
            return is_number or wanted == VARIANT
        case Primitive("binary"):
            return wanted in (STRING, VARIANT)
        case StructType() | ArrayType() | MapType():
            return wanted == STRING
        case Primitive("date" | "timestamp_ntz"):
            return wanted == VARIANT
    if is_interval(given):
        return wanted == STRING or is_exact(wanted)
    return (is_exact(given) or is_real(given)) and wanted in (BOOLEAN, TIMESTAMP, VARIANT)


def is_read_from_text(type_: DataType) -> bool:
    """Whether delta-spark's INSERT reads a text for a column of this type."""
    return type_ in (BOOLEAN, *TIMES) or is_exact(type_) or is_real(type_)


def assignable(given: DataType, wanted: DataType) -> bool:
    """Whether a value may be stored in a column without an explicit cast: see the rule of this module."""
    if given == VOID or wanted == STRING:
        return given == VOID or is_exact(given) or is_real(given) or given in (*TIMES, BOOLEAN)
    if given in TIMES:
        return wanted in TIMES
    return (is_exact(given) or is_real(given)) and (is_exact(wanted) or is_real(wanted))


def as_bytes(value: Expr, type_: DataType) -> Expr:
    """A value of this type as it is stored: the collation of a string is a matter of the schema."""
    return Collate(value, str(BYTEWISE)) if type_ == STRING else value


#: A column, and the fields in it down to the one that is meant.
Place = tuple[StructField, ...]


def place_of(schema: StructType, given: str) -> Place:
    """The column that a key of `set` names (`n`), or the field (`s.x`). A column whose name has a dot comes first.

    Errors: UNKNOWN_COLUMN; INCOMPATIBLE_TYPE for a field of what is not a struct.
    """
    whole = _whole(schema, given)
    if whole is not None:
        return (whole,)
    names = _names(given)
    if schema.find(names[0]) is None:
        raise UserError.unknown_column(given, schema.names)
    found: list[StructField] = []
    here: DataType = schema
    for name in names:
        if not isinstance(here, StructType):
            hint = "Set the whole column" + (", with variant_set." if here == VARIANT else ".")
            what = f"{shown(found)} is {type_to_ddl(here)}, and only fields of structs can be set alone"
            raise UserError("INCOMPATIBLE_TYPE", what, hint=hint, column=found[0].name)
        field = here.find(name)
        if field is None:
            raise UserError.unknown_column(given, [f"{shown(found)}.{own}" for own in here.names])
        found.append(field)
        here = field.type
    return tuple(found)


def begins(schema: StructType, given: str) -> bool:
    """Whether a column is what a key of `set` names, or where the field is that it names."""
    return _whole(schema, given) is not None or is_field(schema, given)


def is_field(schema: StructType, given: str) -> bool:
    """Whether what a key of `set` names is no column, but in one."""
    return _whole(schema, given) is None and schema.find(_names(given)[0]) is not None


def _whole(schema: StructType, given: str) -> StructField | None:
    return schema.find(given) or schema.find(unquoted(given))


def _names(given: str) -> tuple[str, ...]:
    """The column that a key names, and the fields in it; the key alone if it is no name."""
    try:
        named = parse(given)
    except MicaError:
        return (given,)
    return named.names if isinstance(named, Column) else (given,)


def meant(text: str, place: Place, schema: StructType) -> str:
    """The text of a value: for the word DEFAULT that of the column's default, or NULL, unless a column is called so."""
    if text.strip().upper() != "DEFAULT" or len(place) > 1 or schema.find("default") is not None:
        return text
    column = place[0]
    default = str(column.metadata.get(DEFAULT, "NULL"))
    # That of a struct may have other names of fields: a cast takes them by their places, as Spark does.
    is_plain = isinstance(column.type, Primitive)
    return default if is_plain else f"CAST(({default}) AS {type_to_ddl(loosened(column.type))})"


def stored_at(value: Expr, given: DataType, place: Place, text: str) -> Expr:
    """The value, of type `given`, as a column or a field of a struct stores it. Errors: INCOMPATIBLE_TYPE."""
    if len(place) == 1:
        return stored(value, given, place[0], text)
    field = replace(place[-1], name=shown(place))
    return as_bytes(stored(value, given, field, text), field.type)


def shown(place: Iterable[StructField]) -> str:
    """A place as it is written."""
    return spelled(f.name for f in place)


def together(values: Sequence[tuple[Place, Expr]], base: tuple[str, ...] = ()) -> dict[str, Expr]:
    """The new value of each column, from those of columns and fields; `base` are the names before the columns'.

    Errors: DUPLICATE_COLUMN if a column or field is set twice, or with a field of its own.
    """
    seen: set[tuple[str, ...]] = set()
    found: dict[str, Expr] = {}
    for place, value in values:
        names = tuple(f.name for f in place)
        if any(names[: len(other)] == other or other[: len(names)] == names for other in seen):
            raise UserError("DUPLICATE_COLUMN", f"the column {shown(place)!r} is set twice", column=names[0])
        seen.add(names)
        top = found.get(names[0], Column((*base, names[0])))
        found[names[0]] = _placed(top, names[1:], value)
    return found


def _placed(struct: Expr, names: tuple[str, ...], value: Expr) -> Expr:
    if not names:
        return value
    if len(names) == 1:
        return with_field(struct, names[0], value)
    return with_field(struct, names[0], _placed(field_of(struct, names[:1]), names[1:], value))
