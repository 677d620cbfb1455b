"""Casts of arrays, maps and structs: each part is cast as a value of its type is.

The rule: fields of structs are cast by their places, or by their names where that is asked for (`by_name`), and a row
fails where one of its parts does. What must not be null is cast from what is not null by a cast that cannot fail; so is
the key of a map, which stays distinct from the others. Where a value is stored (`by_name`), the integers of a key may
also become smaller ones, or texts: those that do not fit are an error, and the others stay distinct.

Source: Spark's Cast (canAnsiCast, resolvableNullability; castArray, castMap, castStruct).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.errors import UserError
from mica.expressions.coerce import holds, is_exact
from mica.expressions.plain_values import Made
from mica.schema.arrow import to_arrow_type
from mica.schema.ddl import type_to_ddl
from mica.schema.lists import entries_of, offsets_from_zero
from mica.schema.types import INTEGRALS, STRING, ArrayType, DataType, MapType, StructField, StructType, loosened

#: Casts a part.
Part = Callable[[pa.Array, DataType, DataType], Made]


def can_cast(source: DataType, target: DataType, part: Callable[[DataType, DataType], bool], *, by_name: bool) -> bool:
    """Whether a nested type is cast to another; `part` answers for the types inside."""

    def fits(one: DataType, other: DataType, may_be_null: bool, is_required: bool) -> bool:
        return part(one, other) if not is_required else not may_be_null and _is_exact(one, other)

    match source, target:
        case ArrayType(), ArrayType():
            return fits(source.element, target.element, source.contains_null, not target.contains_null)
        case MapType(), MapType():
            null, required = source.value_contains_null, not target.value_contains_null
            keys = _is_exact(source.key, target.key) or (by_name and _stays_distinct(source.key, target.key))
            return keys and fits(source.value, target.value, null, required)
        case StructType(), StructType() if len(source.fields) == len(target.fields):
            pairs = [(source.fields[at], other) for at, other in _pairs(source, target, by_name)]
            return all(fits(f.type, other.type, f.nullable, not other.nullable) for f, other in pairs)
    return False


def _pairs(source: StructType, target: StructType, by_name: bool) -> Iterator[tuple[int, StructField]]:
    """The fields of a struct of the target's type, each with the place of the one that it is cast from."""
    for at, other in enumerate(target.fields):
        yield source.fields.index(source.field(other.name)) if by_name else at, other


def _is_exact(source: DataType, target: DataType) -> bool:
    """Whether every value is one of the other type too."""
    same = loosened(source) == loosened(target)
    return same or (is_exact(source) and is_exact(target) and holds(target, source))


def _stays_distinct(source: DataType, target: DataType) -> bool:
    """Whether different keys are cast to different ones, or not at all, by a cast that is checked."""
    match source, target:
        case ArrayType(), ArrayType():
            may_be_null = target.contains_null or not source.contains_null
            return may_be_null and _stays_distinct(source.element, target.element)
        case StructType(), StructType() if source.has_fields_of(target):
            pairs = [(source.fields[at], other) for at, other in _pairs(source, target, by_name=True)]
            return all((g.nullable or not f.nullable) and _stays_distinct(f.type, g.type) for f, g in pairs)
    return _is_exact(source, target) or (source in INTEGRALS and target in (*INTEGRALS, STRING))


def cast_array(array: pa.Array, source: DataType, target: DataType, part: Part, *, by_name: bool) -> Made:
    """The cast array, and the rows in which a part failed (None: there is none).

    Errors: NULL_IN_NOT_NULL_COLUMN, for types that differ in nothing but what must not be null.
    """
    wanted = to_arrow_type(target)
    mask = array.is_null() if array.null_count else None
    match source, target:
        case ArrayType(element), ArrayType(other, may_be_null):
            offsets, own = offsets_from_zero(array), array.flatten()
            _check(target, may_be_null or not own.null_count)
            values, failed = part(own, element, other)
            return pa.ListArray.from_arrays(offsets, values, type=wanted, mask=mask), _rows(failed, offsets)
        case MapType(), MapType(value_contains_null=may_be_null):
            listed = entries_of(array)
            offsets, (keys, own) = offsets_from_zero(listed), listed.flatten().flatten()
            _check(target, may_be_null or not own.null_count)
            keys, wrong = part(keys, source.key, target.key)
            items, failed = part(own, source.value, target.value)
            if keys.null_count:  # of rows that fail, where Arrow allows none either
                keys = pc.fill_null(keys, 0)
            made = pa.MapArray.from_arrays(offsets, keys, items, type=wanted, mask=mask)
            every = [one for one in (wrong, failed) if one is not None]
            return made, _rows(reduce(pc.or_, every) if every else None, offsets)
        case StructType(fields), StructType():
            # Children with the nulls of their struct, but where they must have none.
            own, pairs = array.flatten(), [*_pairs(source, target, by_name)]
            _check(target, all(other.nullable or own[at].null_count <= array.null_count for at, other in pairs))
            shown = [own[at] if other.nullable else array.field(at) for at, other in pairs]
            cast = [part(a, fields[at].type, other.type) for a, (at, other) in zip(shown, pairs, strict=True)]
            made = pa.StructArray.from_arrays([values for values, _ in cast], fields=list(wanted), mask=mask)
            every = [failed for _, failed in cast if failed is not None]
            return made, reduce(pc.or_, every) if every else None
    raise TypeError(f"{source} is not cast to {target}")


def _check(target: DataType, held: bool) -> None:
    if not held:
        told = f"a value of the type {type_to_ddl(target)} has a null where there must be none"
        raise UserError("NULL_IN_NOT_NULL_COLUMN", told)


def _rows(failed: pa.Array | None, offsets: pa.Array) -> pa.Array | None:
    """The rows that hold a value that failed."""
    if failed is None:
        return None
    before = np.concatenate([[0], np.cumsum(to_numpy(failed))])[to_numpy(offsets)]
    return arrow_array(before[1:] > before[:-1])
