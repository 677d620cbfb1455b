"""Columns of a table as they stand in a file.

The rule: a column is found by its physical name, which column mapping may have made another one than people see; what
a file lacks is null, what it holds in a narrower type is widened, and anything else is an error.

Source: Delta protocol, "Column Mapping"; "Reader Requirements for Column Mapping".
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from mica.schema.arrow import from_arrow_field, to_arrow_field, to_arrow_type
from mica.schema.evolution import cast_to
from mica.schema.types import ArrayType, DataType, MapType, StructField, StructType
from mica.stats.schema import physical_name


def field_at(schema: StructType, names: tuple[str, ...]) -> StructField:
    """The field that a path of names through structs leads to."""
    field = schema.field(names[0])
    for name in names[1:]:
        assert isinstance(field.type, StructType)
        field = field.type.field(name)
    return field


def physical_field(field: StructField) -> StructField:
    """The field with physical names, inside too."""
    return replace(field, name=physical_name(field), type=_physical(field.type))


def _physical(type_: DataType) -> DataType:
    match type_:
        case StructType(fields):
            return StructType(tuple(physical_field(f) for f in fields))
        case ArrayType(element, contains_null):
            return ArrayType(_physical(element), contains_null)
        case MapType(key, value, value_contains_null):
            return MapType(_physical(key), _physical(value), value_contains_null)
    return type_


def find(schema: pa.Schema, names: tuple[str, ...]) -> pa.Field | None:
    """The field of a file at a path of physical names, or None where the file lacks it."""
    at = schema.get_field_index(names[0])
    field = schema.field(at) if at >= 0 else None
    for name in names[1:]:
        if field is None or not pa.types.is_struct(field.type):
            return None
        at = field.type.get_field_index(name)
        field = field.type.field(at) if at >= 0 else None
    return field


def check_type(found: pa.Field, wanted: StructField) -> None:
    """Whether `align` can be done. Errors: INCOMPATIBLE_TYPE."""
    mapped = replace(physical_field(wanted), nullable=True)
    if from_arrow_field(found, wanted.name).type != mapped.type:
        cast_to(found, mapped, wanted.name)


def align(array: pa.Array, found: pa.Field, wanted: StructField) -> pa.Array:
    """A whole column of a file (Variants unshredded) in the table's type and under the table's names."""
    target = to_arrow_type(wanted.type)
    if array.type == target:
        return array
    mapped = replace(physical_field(wanted), nullable=True)
    if from_arrow_field(found, wanted.name).type != mapped.type:
        source = pa.field(found.name, array.type, metadata=found.metadata)
        array = cast_to(source, mapped, wanted.name)(array)
    return relabel(array, wanted.type)


def relabel(array: pa.Array, type_: DataType) -> pa.Array:
    """The same values under the names of `type_`; structures agree already."""
    wanted = to_arrow_type(type_)
    if array.type == wanted:
        return array
    mask = array.is_null() if array.null_count else None
    match type_:
        case StructType(fields):
            children = [relabel(array.field(i), f.type) for i, f in enumerate(fields)]
            inner = [to_arrow_field(f).with_nullable(True) for f in fields]
            return pa.StructArray.from_arrays(children, fields=inner, mask=mask)
        case ArrayType(element):
            values = relabel(array.values, element)
            return pa.ListArray.from_arrays(_offsets(array), values, type=wanted)
        case MapType(key, value):
            return pa.MapArray.from_arrays(
                _offsets(array), relabel(array.keys, key), relabel(array.items, value), type=wanted
            )
    return array.cast(wanted)


def _offsets(array: pa.Array) -> pa.Array:
    """Offsets with nulls where the list is null, which is how `from_arrays` is told of them; slices are respected."""
    import pyarrow.compute as pc

    if array.null_count == 0:
        return array.offsets
    missing = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(missing, pa.scalar(None, array.offsets.type), array.offsets)
