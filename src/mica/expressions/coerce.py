"""The type in which two values are compared: Spark's implicit casts.

The rule: integers and decimals are compared by value. They are cast only if no decimal of 38 digits holds both, because
Spark rounds then. Every other pair gets the common type that Spark chooses, with or without ANSI, or is rejected as in
Spark.

| pair | ANSI | not ANSI |
|---|---|---|
| integer, decimal | by value | by value |
| float with an integer, decimal or double | double | double (integer with float: float) |
| string with an integer | long | the integer's type |
| string with float, double | double | double (float: float) |
| string with a decimal | double | double; without digits after the point: that decimal |
| string with date, timestamp, timestamp_ntz, boolean, binary | that type | that type |
| date with timestamp(_ntz) | timestamp(_ntz) | timestamp(_ntz) |
| timestamp with timestamp_ntz | timestamp | timestamp |
| an interval with one of its kind | the units of both | the units of both |
| NULL with anything | that type | that type |
| array, map or struct with one of its kind | part by part | part by part; string with another: string |
| the same beside `=` or `<` | see `tightest_type` | see `tightest_type` |

Source: Spark's AnsiTypeCoercion.findWiderTypeForTwo and TypeCoercion.findCommonTypeForBinaryComparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mica.schema.interval_types import is_interval, wider
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRALS,
    LONG,
    MAX_PRECISION,
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
    decimal,
    loosened,
    renamed,
)

TIMES = (DATE, TIMESTAMP_NTZ, TIMESTAMP)  # each is cast to those after it


def is_exact(type_: DataType) -> bool:
    """Whether the type is an integer or a decimal: one class of numbers, compared by value."""
    return type_ in INTEGRALS or (isinstance(type_, Primitive) and type_.decimal is not None)


def is_plain(type_: DataType) -> bool:
    """Whether values of the type can be compared: all but nested ones and what has no values here."""
    return isinstance(type_, Primitive) and (type_.known or is_interval(type_))


def is_ordered(type_: DataType) -> bool:
    """Whether values of the type can be compared: plain ones, and arrays and structs of such."""
    match type_:
        case ArrayType(element):
            return is_ordered(element)
        case StructType(fields):
            return all(is_ordered(f.type) for f in fields)
    return is_plain(type_) and type_ != VARIANT


def is_argument(type_: DataType, wanted: DataType) -> bool:
    """Whether Spark casts an argument of one type to another by itself: numbers to numbers, times to times, texts and
    NULL to anything, and anything plain to a text. (Spark's implicitCast)"""
    if type_ in (wanted, STRING, VOID) or wanted in (STRING, VARIANT, VOID) or not isinstance(wanted, Primitive):
        return True
    if wanted in TIMES:
        return type_ in TIMES
    return (is_exact(wanted) or is_real(wanted)) and (is_exact(type_) or is_real(type_))


def is_real(type_: DataType) -> bool:
    """Whether the type is float or double."""
    return type_ in (FLOAT, DOUBLE)


def has_bounds(type_: DataType) -> bool:
    """Whether values of the type have bounds by which files are skipped."""
    return is_number(type_) or type_ in (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)


def is_number(type_: DataType) -> bool:
    """Whether the type is one of numbers, exact or real."""
    return is_exact(type_) or is_real(type_)


def common_type(left: DataType, right: DataType, *, ansi: bool) -> DataType | None:
    """The type in which Spark compares the two, or None if it rejects them. Two exact types give the wider of both."""
    if left == right:
        return left
    if VOID in (left, right):
        return right if left == VOID else left
    if loosened(left) == loosened(right):
        return loosened(left)
    if is_exact(left) and is_exact(right):
        return _wider_exact(left, right)
    if (is_exact(left) or is_real(left)) and (is_exact(right) or is_real(right)):
        integer = left in INTEGRALS or right in INTEGRALS
        return FLOAT if FLOAT in (left, right) and integer and not ansi else DOUBLE
    if is_interval(left) and is_interval(right):
        return wider(left, right)
    if left in TIMES and right in TIMES:
        return max(left, right, key=TIMES.index)
    if STRING in (left, right):
        return _with_string(right if left == STRING else left, ansi=ansi)
    return _common_nested(left, right, lambda *types: common_type_of_list(types, ansi=ansi))


def tightest_type(left: DataType, right: DataType, *, ansi: bool) -> DataType | None:
    """The type in which `=` and `<` compare parts of nested values: of texts and decimals with no other type, unless a
    decimal holds every integer of the other one. (Spark's findTightestCommonType)
    """
    if VOID in (left, right):
        return common_type(left, right, ansi=ansi)
    if alike(left, right):
        return loosened(left)
    decimals = [t for t in (left, right) if is_exact(t) and t not in INTEGRALS]
    if decimals:
        (other,) = [t for t in (left, right) if t != decimals[0]]
        return decimals[0] if other in INTEGRALS and holds(decimals[0], other) else None
    if isinstance(left, Primitive):
        return None if STRING in (left, right) else common_type(left, right, ansi=ansi)
    return _common_nested(left, right, lambda *types: tightest_type(*types, ansi=ansi))


def alike(left: DataType, right: DataType) -> bool:
    """Whether the types differ in the names of fields, and in what may be null, at most."""
    return loosened(renamed(left, right)) == loosened(right)


def _common_nested(
    left: DataType, right: DataType, part: Callable[[DataType, DataType], DataType | None]
) -> DataType | None:
    """Part by part; fields of structs have the same names in the same order. (Spark's findTypeForComplex)"""
    match left, right:
        case ArrayType(), ArrayType():
            element = part(left.element, right.element)
            return None if element is None else ArrayType(element)
        case MapType(), MapType():
            key, value = part(left.key, right.key), part(left.value, right.value)
            sound = key == left.key == right.key or (key is not None and is_exact(key))
            return MapType(key, value) if sound and key is not None and value is not None else None
        case StructType(), StructType() if left.has_names_of(right):
            types = [part(f.type, g.type) for f, g in zip(left.fields, right.fields, strict=True)]
            fields = [StructField(f.name, t) for f, t in zip(left.fields, types, strict=True) if t is not None]
            return StructType(tuple(fields)) if len(fields) == len(types) else None
    return None


def common_type_of_list(types: Iterable[DataType], *, ansi: bool) -> DataType | None:
    """The type in which `x IN (…)` compares. Without ANSI one string makes all of them strings."""
    every = list(types)
    if not ansi and STRING in every:
        return STRING if all(isinstance(t, Primitive) and t not in (BOOLEAN, BINARY) for t in every) else None
    found: DataType | None = every[0]
    for other in every[1:]:
        found = None if found is None else common_type(found, other, ansi=ansi)
    return found


def boolean_equality(left: DataType, right: DataType) -> DataType | None:
    """Without ANSI a boolean may equal a number: true is 1, false is 0."""
    if BOOLEAN not in (left, right) or left == right:
        return BOOLEAN if left == right == BOOLEAN else None
    other = right if left == BOOLEAN else left
    return other if is_exact(other) or is_real(other) else None


def _with_string(other: DataType, *, ansi: bool) -> DataType | None:
    if other in INTEGRALS:
        return LONG if ansi else other
    if is_real(other):
        return DOUBLE if ansi else other
    if is_exact(other):
        return DOUBLE if ansi or digits(other)[1] else other
    return other if other in (BOOLEAN, BINARY, *TIMES) else None


def _wider_exact(left: DataType, right: DataType) -> DataType:
    if left in INTEGRALS and right in INTEGRALS:
        return max(left, right, key=INTEGRALS.index)
    (p1, s1), (p2, s2) = digits(left), digits(right)
    scale, whole = max(s1, s2), max(p1 - s1, p2 - s2)
    # If 38 digits are too few, Spark keeps the digits before the point and rounds the others away.
    return decimal(min(MAX_PRECISION, whole + scale), min(scale, MAX_PRECISION - whole))


def holds(wide: DataType, narrow: DataType) -> bool:
    """Whether an exact type holds every value of another."""
    (p1, s1), (p2, s2) = digits(wide), digits(narrow)
    return p1 - s1 >= p2 - s2 and s1 >= s2


def digits(type_: DataType) -> tuple[int, int]:
    """Returns the (precision, scale) that hold every value of an exact type."""
    if type_ in INTEGRALS:
        return (3, 5, 10, 20)[INTEGRALS.index(type_)], 0
    ps = type_.decimal if isinstance(type_, Primitive) else None
    assert ps is not None, f"{type_} is not an exact type"
    return ps
