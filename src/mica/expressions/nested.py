"""array, map, named_struct, and what brackets and points take out of them.

The rule: a value is put together from whole columns, row after row; null is a value like any other, and what nothing
but nulls is given for is VOID. Keys of a map are constants, so that no two are equal and none is null.

Source: Spark's CreateArray, CreateMap, CreateNamedStruct; GetArrayItem, GetMapValue, GetStructField.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.errors import UserError
from mica.expressions.coerce import common_type_of_list, is_real
from mica.expressions.compare import Datum
from mica.expressions.generic import element_at, value_of
from mica.expressions.pairs import as_array
from mica.expressions.signatures import Asked, Signature
from mica.expressions.tree import Call, Compare, Expr, Literal, Op
from mica.schema.arrow import to_arrow_type
from mica.schema.lists import offsets_from_zero
from mica.schema.types import (
    INTEGRALS,
    LONG,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

_BEYOND = 2**31 - 1


def of_elements(asked: Asked) -> Signature | None:
    """Values of one type give an array of their common type; none at all an empty one."""
    if not asked.types:
        return (), ArrayType(VOID)
    common = _common(asked.types, ansi=asked.ansi)
    return None if common is None else ((common,) * len(asked.types), ArrayType(common))


def _common(types: Sequence[DataType], *, ansi: bool) -> DataType | None:
    if all(t == types[0] for t in types):
        return types[0]
    found = common_type_of_list(types, ansi=ansi)
    return None if found == VARIANT else found


def of_entries(asked: Asked) -> Signature | None:
    """Constant keys and values in turn give a map; none at all an empty one, whose keys Arrow wants a type for."""
    if not asked.types:
        return (), MapType(STRING, VOID)
    keys, values = asked.types[::2], asked.types[1::2]
    if len(keys) != len(values):
        return None
    key, value = _common(keys, ansi=asked.ansi), _common(values, ansi=asked.ansi)
    if key in (None, VOID) or value is None or any(k != key for k in keys):
        return None
    return tuple(itertools.chain(*[(key, value)] * len(keys))), MapType(key, value)


def check_keys(*entries: object) -> None:
    """Raises ValueError for keys of a map that are equal."""
    keys = ["NaN" if isinstance(key, float) and math.isnan(key) else key for key in entries[::2]]
    if len(set(keys)) < len(keys):
        raise ValueError("two keys of the map are equal")


def of_fields(asked: Asked) -> Signature | None:
    """Constant names and values in turn give a struct."""
    names, types = asked.values[::2], asked.types[1::2]
    if len(names) != len(types) or not all(isinstance(n, str) for n in names):
        return None
    fields = tuple(StructField(str(n), t) for n, t in zip(names, types, strict=True))
    return tuple(itertools.chain(*((STRING, t) for t in types))), StructType(fields)


def in_brackets(asked: Asked) -> Signature | None:
    """An array and a position from 0, a map and a key, a struct and a constant name."""
    match asked.types:
        case ArrayType(element) as array, place if place in (*INTEGRALS, VOID):
            return (array, LONG), element
        case MapType(key, value) as map_, given if _is_key(given, key):
            return (map_, key), value
        case StructType(), _:
            return named_field(asked)
    return None


def _is_key(given: DataType, key: DataType) -> bool:
    return given == VOID or (given == key and not is_real(key)) or {key, given} <= {*INTEGRALS}


def named_field(asked: Asked) -> Signature | None:
    """A struct and a constant name give the field's type; an array of structs one of its elements', a map its
    values'."""
    own, name = asked.types[0], asked.values[1]
    if isinstance(own, MapType):
        return ((own, STRING), own.value) if own.key == STRING else None
    struct_ = own.element if isinstance(own, ArrayType) else own
    if not isinstance(struct_, StructType) or not isinstance(name, str):
        return None
    found = struct_.find(name)
    if found is None:
        return None
    if len(alike := [one for one in struct_.names if one.lower() == name.lower()]) > 1:
        # Of a cast of a Variant alone: Spark refuses it too (AMBIGUOUS_REFERENCE_TO_FIELDS).
        raise UserError(
            "AMBIGUOUS_COLUMN",
            f"the field {name!r} may be any of {', '.join(alike)}, which differ only in case",
            hint="Take the one key instead: v:key::type.",
        )
    return (own, STRING), ArrayType(found.type) if isinstance(own, ArrayType) else found.type


def taken(call: Call) -> Expr:
    """What brackets and points take out of a value that is put together right there: that part alone, as Spark's
    optimizer does (SimplifyExtractValueOps), so that a part that fails and is not asked for is no error."""
    match call:
        case Call("[]", (Call("array", parts), Literal(int(place)))) if 0 <= place < len(parts):
            return parts[place]
        case Call("[]", (Call("map", parts), key)):
            pairs = zip(parts[::2], parts[1::2], strict=True)
            cases = [part for own, value in pairs for part in (Compare(Op.EQ, key, own, at=call.at), value)]
            assert call.type is not None
            return Call("case", (*cases, Literal(None, call.type)), call.type, at=call.at)
        case Call("[]" | ".", (Call("named_struct", parts), Literal(str(name)))):
            names = [str(n.value) for n in parts[::2] if isinstance(n, Literal)]
            at = names.index(name) if name in names else [n.lower() for n in names].index(name.lower())
            return parts[2 * at + 1]
    return call


def array(*values: Datum, result: DataType) -> pa.Array:
    """The values of each row as an array."""
    assert isinstance(result, ArrayType)
    wanted = to_arrow_type(result)
    return pa.ListArray.from_arrays(*_in_turn(values, wanted.value_type), type=wanted)


def map_of(*entries: Datum, result: DataType) -> pa.Array:
    """The keys and values of each row as a map."""
    wanted = to_arrow_type(result)
    count = _count(entries)
    keys = [as_array(k, count) for k in entries[::2]]
    offsets, flat = _in_turn(keys, wanted.key_type)
    _, items = _in_turn([as_array(v, count) for v in entries[1::2]], wanted.item_type)
    return pa.MapArray.from_arrays(offsets, flat, items, type=wanted)


def struct(*entries: Datum, result: DataType) -> pa.Array:
    """The values of each row as the fields of a struct."""
    count = _count(entries)
    return pa.StructArray.from_arrays([as_array(v, count) for v in entries[1::2]], fields=list(to_arrow_type(result)))


def _count(values: Sequence[Datum]) -> int:
    return max(len(v) for v in values if isinstance(v, pa.Array))


def _in_turn(values: Sequence[Datum], type_: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """The offsets of the rows and the values, row after row."""
    count, width = _count(values), len(values)
    columns = [_of_type(as_array(v, count), type_) for v in values]
    order = np.arange(count * width).reshape(width, count).T.ravel()
    offsets = arrow_array(np.arange(0, (count + 1) * width, width, dtype=np.int32))
    return offsets, pa.concat_arrays(columns).take(arrow_array(order))


def at_brackets(values: pa.Array, place: Datum, ansi: bool) -> tuple[pa.Array, pa.Array | None]:
    """The element at a position from 0, or the value of a key. Beyond the array it is an error with ANSI, else null; of
    a position beyond 32 bits too, of which Spark takes the low ones."""
    if pa.types.is_struct(values.type):
        return field(values, place), None
    places = as_array(place, len(values))
    if pa.types.is_map(values.type):
        return value_of(values, places), None
    # element_at counts from 1, and from the end if negative; no array has so many elements.
    beyond = pc.or_(pc.less(places, 0), pc.greater_equal(places, _BEYOND))
    return element_at(values, pc.if_else(beyond, _BEYOND, pc.add(places, 1)), ansi)


def at_point(values: pa.Array, name: pa.Scalar, result: DataType) -> pa.Array:
    """A field of structs, or of each in arrays; the value of a key of maps."""
    if pa.types.is_map(values.type):
        return value_of(values, as_array(name, len(values)))
    if not pa.types.is_list(values.type):
        return field(values, name)
    found, wanted = field(values.flatten(), name), to_arrow_type(result)
    found = _of_type(found, wanted.value_type)
    return pa.ListArray.from_arrays(offsets_from_zero(values), found, type=wanted, mask=values.is_null())


def _of_type(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """The values in a type that may differ in its names: a cast of Arrow's loses nulls without a type in lists."""
    return values if values.type == type_ else values.cast(type_)


def field(values: pa.Array, name: pa.Scalar) -> pa.Array:
    """A field of structs, by its name in any case."""
    names = [f.name for f in values.type]
    wanted = name.as_py()
    at = names.index(wanted) if wanted in names else [n.lower() for n in names].index(wanted.lower())
    return pc.struct_field(values, at)
