"""Converts plain Arrow columns to Variants: JSON texts are parsed, structs and lists become objects and arrays.

The rule: the kernel converts whole arrays, and every value keeps its type. A struct's null field becomes the JSON null,
because Arrow cannot express a missing field; a null row is SQL NULL. Ambiguous input is rejected: a number
alone, bytes, a map, a Variant inside a struct.

Source: Spark's `parse_json` for texts; Parquet "VariantShredding" for the layout that makes objects of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from mica import compute as pc
from mica.arrays import scalar
from mica.errors import CorruptDataError, UserError
from mica.schema.arrow import from_arrow_type, is_list, is_variant, to_arrow_type, variant_field
from mica.schema.evolution import cast_to, decoded
from mica.schema.lists import offsets_from_zero
from mica.schema.types import StructField
from mica.variant import kernel
from mica.variant.encode import metadata_of

#: The largest Variant that Spark reads.
MAX_SIZE = 128 << 20

_NULL = b"\0"


def to_variants(source: pa.Field, at: str) -> Callable[[pa.Array], pa.Array] | None:
    """Returns the function that converts arrays of `source` to Variants; None if they are Variants or not convertible.

    Errors of the function: INVALID_JSON, DUPLICATE_KEY, TOO_DEEP, TOO_LARGE with the column and the text's beginning.
    """
    type_ = _values(source.type)
    t = pa.types
    if t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_):
        return lambda array: _parsed(decoded(array), at)
    names = {f.name for f in type_} if t.is_struct(type_) else set()
    if (not is_list(type_) and not names) or is_variant(source) or {"metadata", "value"} <= names:
        return None
    metadata = metadata_of(tuple(sorted(set(_names(type_)), key=str.encode)))
    layout = _layout(pa.field(source.name, type_), at)
    return lambda array: _shredded(decoded(array), layout, metadata)


def of_values(array: pa.Array) -> pa.Array:
    """Converts plain values, or arrays of them, to Variants of the same types, as Spark's CAST(… AS VARIANT)."""
    return _shredded(array, _layout(pa.field("value", array.type), "value"), metadata_of(()))


def of_structs(array: pa.Array) -> pa.Array:
    """Converts structs, or arrays, to Variants; their strings stay strings, as in Spark's to_variant_object."""
    names = tuple(sorted(set(_names(array.type)), key=str.encode))
    return _shredded(array, _layout(pa.field("value", array.type), "value"), metadata_of(names))


def _values(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_) else type_


def _parsed(texts: pa.Array, at: str) -> pa.Array:
    if pa.types.is_string_view(texts.type):
        texts = texts.cast(pa.large_string())
    try:
        return kernel.json_to_variant(pa.record_batch([texts], names=["json"]), max_size=MAX_SIZE).column(0)
    except CorruptDataError as e:
        row = e.context.get("row")
        text = texts[row].as_py()[:60] if isinstance(row, int) and row < len(texts) else None
        raise CorruptDataError(
            e.code,
            f"the column {at!r} is VARIANT and requires JSON texts; in {text!r} {e.message}",
            hint="Fix the text; use mica.variant.from_python for values that are not JSON.",
            column=at,
        ) from None


# --- structs and lists -----------------------------------------------------------------------------------------------

#: Builds the column pair `struct<value, typed_value>` from an array.
_Layout = Callable[[pa.Array], pa.StructArray]


def _names(type_: pa.DataType) -> Iterator[str]:
    """Yields every key of the objects that the type becomes."""
    if pa.types.is_struct(type_):
        for f in type_:
            yield f.name
            yield from _names(f.type)
    elif is_list(type_):
        yield from _names(type_.value_type)


def _layout(f: pa.Field, at: str) -> _Layout:
    if is_variant(f):
        raise _no_value(f.type, at)
    if pa.types.is_struct(f.type):
        if {child.name for child in f.type} == {"metadata", "value"}:
            raise _no_value(f.type, at)
        if len({child.name for child in f.type}) < f.type.num_fields:
            raise UserError("DUPLICATE_COLUMN", f"the struct {at!r} has two fields of one name")
        children = [_layout(child, f"{at}.{child.name}") for child in f.type]
        names = [child.name for child in f.type]

        def of_struct(array: pa.Array) -> pa.StructArray:
            parts = [make(part) for make, part in zip(children, array.flatten(), strict=True)]
            return _pair(array, pa.StructArray.from_arrays(parts, names, mask=array.is_null()))

        return of_struct
    if is_list(f.type):
        inner = _layout(f.type.value_field, f"{at}.element")

        def of_list(array: pa.Array) -> pa.StructArray:
            offsets = offsets_from_zero(array)
            return _pair(array, pa.ListArray.from_arrays(offsets, inner(array.flatten()), mask=array.is_null()))

        return of_list
    cast = _leaf(f, at)
    return lambda array: _pair(array, cast(array))


def _leaf(f: pa.Field, at: str) -> Callable[[pa.Array], pa.Array]:
    """Returns the cast to the Variant type that holds all values of an Arrow type."""
    t = pa.types
    if t.is_map(f.type):
        raise _no_value(f.type, at)
    if t.is_timestamp(f.type) and f.type.unit == "ns":
        return lambda array: array.cast(pa.timestamp("ns", None if f.type.tz is None else "UTC"))
    if t.is_time(f.type):
        return lambda array: array.cast(pa.time64("us"))
    try:
        wanted = from_arrow_type(f.type, at)
        _ = to_arrow_type(wanted)
        return cast_to(f, StructField(f.name, wanted), at)
    except UserError:
        raise _no_value(f.type, at) from None


def _pair(array: pa.Array, typed: pa.Array) -> pa.StructArray:
    # A null here is inside an object or an array, so it is the JSON null; a null row is masked by its parent.
    null = pc.if_else(array.is_null(), scalar(_NULL, pa.binary()), scalar(None, pa.binary()))
    if pa.types.is_null(typed.type):
        return pa.StructArray.from_arrays([null], ["value"])
    return pa.StructArray.from_arrays([null, typed], ["value", "typed_value"])


def _shredded(array: pa.Array, layout: _Layout, metadata: bytes) -> pa.Array:
    """Builds the fully shredded array, as a file would hold it, and lets the kernel reconstruct the Variants."""
    pair = layout(array)
    parts = [pa.repeat(scalar(metadata, pa.binary()), len(array)), *pair.flatten()]
    group = pa.StructArray.from_arrays(parts, ["metadata", *(f.name for f in pair.type)], mask=array.is_null())
    field = variant_field("v").with_type(group.type)
    return kernel.unshred(pa.record_batch([group], schema=pa.schema([field]))).column(0)


def _no_value(type_: pa.DataType, at: str) -> UserError:
    return UserError(
        "INCOMPATIBLE_TYPE",
        f"the column {at!r} becomes part of a VARIANT, which has no type for values of Arrow type {type_}",
        hint="Cast it first, or pass Variants (mica.variant.from_python).",
    )
