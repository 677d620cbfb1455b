"""Converts between Delta schemas and Arrow schemas.

The rule: a Delta type has one Arrow type (`TYPES`); each of Arrow's other types is read as the Delta type that
holds all its values, and rejected if there is none. VARIANT is `struct<metadata: binary, value:
binary>` whose field carries the extension name `arrow.parquet.variant`.

Source: Arrow "Canonical Extension Types" (parquet variant); Delta protocol, "Schema Serialization Format".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from mica.errors import UserError
from mica.schema.interval_types import arrow_type, is_interval
from mica.schema.types import (
    TYPES,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    Primitive,
    StructField,
    StructType,
    decimal,
    refuse_twice,
)

EXTENSION_KEY = b"ARROW:extension:name"
VARIANT_EXTENSION = b"arrow.parquet.variant"

#: A Variant type that marks itself in any table, with Spark's mark on an inner field. An extension type registered in
#: Python under Arrow's name would be clearer, but the Parquet writer of Arrow C++ takes any type of that name for its
#: own C++ class: `pyarrow.parquet.write_table` crashes the process (pyarrow 26).
MARKED_VARIANT = pa.struct(
    [pa.field("metadata", pa.binary(), False, {b"variant": b"true"}), pa.field("value", pa.binary(), False)]
)

#: More Arrow types that are read, by their text. Unsigned ones become the next wider signed type.
_ALSO_READ: Mapping[pa.DataType, str] = {
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.date64(): "date",
}

_READ: Mapping[pa.DataType, str] = {**_ALSO_READ, **{r.arrow: r.delta for r in TYPES.values() if r.delta != "variant"}}


def to_arrow(schema: StructType, *, marked: bool = False) -> pa.Schema:
    """Returns the Arrow schema of the table's rows, without comments and other Delta metadata."""
    return pa.schema([to_arrow_field(f, marked=marked) for f in schema.fields])


def to_arrow_field(f: StructField, *, marked: bool = False) -> pa.Field:
    """Returns the Arrow field; a VARIANT field carries the extension's name."""
    metadata = {EXTENSION_KEY: VARIANT_EXTENSION} if f.type == VARIANT else None
    # The elements of `array()` have no type and cannot be null, for there are none; Arrow has no such field.
    return pa.field(f.name, to_arrow_type(f.type, marked=marked), f.nullable or f.type == VOID, metadata)


def to_arrow_type(type_: DataType, *, marked: bool = False) -> pa.DataType:
    """Returns the Arrow type. With `marked`, VARIANT becomes `MARKED_VARIANT`, for arrays returned to users. Errors:
    UNSUPPORTED_TYPE for a name that is not in `TYPES`."""
    match type_:
        case Primitive("variant") if marked:
            return MARKED_VARIANT
        case Primitive(name):
            if name in TYPES:
                return TYPES[name].arrow
            if (ps := type_.decimal) is not None:
                return pa.decimal128(*ps)
            if is_interval(type_):
                return arrow_type(type_)
            raise UserError("UNSUPPORTED_TYPE", f"columns of type {name!r} cannot be read or written")
        case ArrayType(element, contains_null):
            return pa.list_(to_arrow_field(StructField("element", element, contains_null), marked=marked))
        case MapType(key, value, value_contains_null):
            if key == VOID:
                raise UserError(
                    "UNSUPPORTED_TYPE",
                    "a map whose keys have no type cannot be read or written",
                    hint="Give an empty map its type: cast(map() AS MAP<STRING, INT>).",
                )
            k = to_arrow_field(StructField("key", key, nullable=False))
            return pa.map_(k, to_arrow_field(StructField("value", value, value_contains_null), marked=marked))
        case StructType(fields):
            return pa.struct([to_arrow_field(f, marked=marked) for f in fields])
    raise TypeError(f"{type_!r} is not a type of a schema")


def from_arrow(schema: pa.Schema, *, strict: bool = True) -> StructType:
    """Returns the Delta schema that holds all values of an Arrow schema. Names must differ by more than case. Unless
    `strict`, a type that no Delta type holds is a type by its Arrow name, which is not `known`."""
    fields = tuple(from_arrow_field(f, f.name, strict=strict) for f in schema)
    refuse_twice(schema.names)
    return StructType(fields)


def from_arrow_field(f: pa.Field, at: str, *, strict: bool = True) -> StructField:
    """Returns the Delta field; `at` names the column in errors."""
    return StructField(f.name, VARIANT if is_variant(f) else from_arrow_type(f.type, at, strict=strict), f.nullable)


def from_arrow_type(type_: pa.DataType, at: str = "", *, strict: bool = True) -> DataType:
    """Returns the Delta type of an Arrow type; `at` names the column in errors."""
    name = _READ.get(type_)
    if name is not None:
        return Primitive(name)
    if pa.types.is_decimal(type_) and type_.precision <= 38 and type_.scale >= 0:
        return decimal(type_.precision, type_.scale)
    if pa.types.is_timestamp(type_):
        return Primitive("timestamp_ntz" if type_.tz is None else "timestamp")
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return from_arrow_type(type_.value_type, at, strict=strict)
    if pa.types.is_fixed_size_binary(type_):
        return Primitive("binary")
    if is_list(type_):
        element = from_arrow_field(type_.value_field, f"{at}.element", strict=strict)
        return ArrayType(element.type, element.nullable)
    if pa.types.is_map(type_):
        key = from_arrow_field(type_.key_field, f"{at}.key", strict=strict)
        value = from_arrow_field(type_.item_field, f"{at}.value", strict=strict)
        return MapType(key.type, value.type, value.nullable)
    if pa.types.is_struct(type_):
        return StructType(tuple(from_arrow_field(f, f"{at}.{f.name}", strict=strict) for f in type_))
    if strict:
        raise _unsupported(type_, at)
    return Primitive(str(type_))


def is_list(type_: pa.DataType) -> bool:
    """Whether the type is any of Arrow's list layouts."""
    t = pa.types
    return bool(
        t.is_list(type_)
        or t.is_large_list(type_)
        or t.is_fixed_size_list(type_)
        or t.is_list_view(type_)
        or t.is_large_list_view(type_)
    )


def has_extension(f: pa.Field) -> bool:
    """Whether the field is marked as a Variant by the extension's name."""
    if isinstance(f.type, pa.BaseExtensionType):
        return bool(f.type.extension_name == VARIANT_EXTENSION.decode())
    return pa.types.is_struct(f.type) and (f.metadata or {}).get(EXTENSION_KEY) == VARIANT_EXTENSION


def is_variant(f: pa.Field) -> bool:
    """Whether the field is a Variant: marked by the extension's name, or as Spark marks one.

    Spark passes a Variant to Python as struct<value, metadata> with `variant: true` on the field `metadata`.
    """
    if has_extension(f):
        return True
    if not pa.types.is_struct(f.type):
        return False
    index = f.type.get_field_index("metadata")
    if index < 0 or f.type.get_field_index("value") < 0:
        return False
    return (f.type.field(index).metadata or {}).get(b"variant") == b"true"


def marked(variants: pa.StructArray) -> pa.StructArray:
    """Returns an array of unshredded Variants with the mark in its type; no bytes are copied."""
    mask = variants.is_null() if variants.null_count else None
    return pa.StructArray.from_arrays([variants.field(0), variants.field(1)], fields=list(MARKED_VARIANT), mask=mask)


def looks_like_variant(type_: DataType) -> bool:
    """Whether a struct has the two fields of a Variant but no mark: Spark wrote Variants like this before the
    annotation existed, and polars and pandas return arrays like this."""
    fields = type_.fields if isinstance(type_, StructType) else ()
    return sorted((f.name, f.type) for f in fields) == [(n, Primitive("binary")) for n in ("metadata", "value")]


def variant_field(name: str) -> pa.Field:
    """Returns the Arrow field of an unshredded Variant column."""
    return to_arrow_field(StructField(name, VARIANT))


def _unsupported(type_: pa.DataType, at: str) -> UserError:
    where = f"the column {at!r} has" if at else "there is"
    return UserError(
        "UNSUPPORTED_TYPE", f"{where} the Arrow type {type_}, which no Delta type holds", hint="Cast it first."
    )


def with_leaves(
    f: pa.Field, of: Callable[[pa.Field], pa.Field], is_leaf: Callable[[pa.Field], bool] = lambda _: False
) -> pa.Field:
    """The field with others for its leaves: whatever is neither a struct, a list nor a map, or is a leaf as it is."""

    def inside(child: pa.Field) -> pa.Field:
        return with_leaves(child, of, is_leaf)

    type_, t = f.type, pa.types
    if is_leaf(f):
        return of(f)
    if t.is_struct(type_):
        return f.with_type(pa.struct([inside(child) for child in type_]))
    if t.is_list(type_):
        return f.with_type(pa.list_(inside(type_.value_field)))
    if t.is_large_list(type_):
        return f.with_type(pa.large_list(inside(type_.value_field)))
    if t.is_map(type_):
        return f.with_type(pa.map_(inside(type_.key_field), inside(type_.item_field), type_.keys_sorted))
    return of(f)
