"""Functions that look into arrays and maps, or make others of them, as in Spark.

The rule: elements are numbered, equal ones by the same number, in Spark's order (`compare`): what is asked of elements
is asked of these numbers, for all rows at once. Elements are plain values; of texts with a collation mica has none.

Source: Spark's collectionOperations.scala; SortArray, ArrayMax, ArrayMin, ArrayDistinct, ArrayPosition, ArrayJoin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy
from mica.expressions.coerce import is_number, is_plain, is_real, tightest_type
from mica.expressions.compare import Datum
from mica.expressions.generic import element_at
from mica.expressions.pairs import as_array, as_arrays, by_rows
from mica.expressions.plain_values import Made
from mica.expressions.signatures import Asked, Function, Resolve, Signature
from mica.schema.arrow import to_arrow_type
from mica.schema.lists import offsets_from_zero
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    INTEGER,
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

# --- types -----------------------------------------------------------------------------------------------------------


def _is_element(type_: DataType) -> bool:
    return is_plain(type_) and type_ not in (VARIANT, VOID)


def _of_array(result: DataType | None = None, *more: DataType, element: bool = False) -> Resolve:
    """An array of plain elements and arguments of these types give `result`, one of its elements, or such an array."""

    def found(asked: Asked) -> Signature | None:
        own, *others = asked.types
        if not isinstance(own, ArrayType) or not _is_element(own.element):
            return None
        fits = all(t in (w, VOID) or (w == INTEGER and t in INTEGRALS[:3]) for t, w in zip(others, more, strict=False))
        return ((own, *more[: len(others)]), result or (own.element if element else own)) if fits else None

    return found


def _common(one: DataType, other: DataType, *, ansi: bool) -> DataType | None:
    """The type of two kinds of numbers, or what both are."""
    if is_number(one) and is_number(other):
        return tightest_type(one, other, ansi=ansi)
    return one if one == other else None


def _with_value(result: DataType | None) -> Resolve:
    """An array and a value of its elements' type, or two kinds of numbers."""

    def found(asked: Asked) -> Signature | None:
        own, value = asked.types
        if not isinstance(own, ArrayType) or not _is_element(own.element) or (value == VOID and result is not None):
            return None
        common = own.element if value == VOID else _common(own.element, value, ansi=asked.ansi)
        return None if common is None else ((ArrayType(common), common), result or ArrayType(common))

    return found


def _with_array(result: DataType | None) -> Resolve:
    """Two arrays of one type, or of numbers."""

    def found(asked: Asked) -> Signature | None:
        one, other = asked.types
        if not isinstance(one, ArrayType) or not isinstance(other, ArrayType) or not _is_element(one.element):
            return None
        common = _common(one.element, other.element, ansi=asked.ansi)
        return None if common is None else ((ArrayType(common),) * 2, result or ArrayType(common))

    return found


def _of_text_or_array(asked: Asked) -> Signature | None:
    own = asked.types[0]
    if isinstance(own, ArrayType):
        return (own,), own
    if own == BINARY:
        return (own,), own
    return ((STRING,), STRING) if is_plain(own) or own == VOID else None


def _of_arrays(asked: Asked) -> Signature | None:
    own = asked.types[0]
    return ((own,), own.element) if isinstance(own, ArrayType) and isinstance(own.element, ArrayType) else None


def _of_repeated(asked: Asked) -> Signature | None:
    own, count = asked.types
    return ((own, INTEGER), ArrayType(own)) if _is_element(own) and count in (*INTEGRALS[:3], VOID) else None


def _of_place_or_key(asked: Asked) -> Signature | None:
    own, at = asked.types
    if isinstance(own, MapType):
        return ((own, own.key), own.value) if at == own.key and not is_real(at) else None
    return _of_place(asked)


def _of_place(asked: Asked) -> Signature | None:
    own, at = asked.types
    return ((own, INTEGER), own.element) if isinstance(own, ArrayType) and at in (*INTEGRALS[:3], VOID) else None


def _of_map(part: Callable[[MapType], DataType], *, key: bool = False) -> Resolve:
    def found(asked: Asked) -> Signature | None:
        own, *others = asked.types
        if not isinstance(own, MapType) or (key and (others[0] != own.key or is_real(own.key))):
            return None
        return asked.types, part(own)

    return found


def _entry(type_: MapType) -> DataType:
    return ArrayType(StructType((StructField("key", type_.key), StructField("value", type_.value))))


# --- lists -----------------------------------------------------------------------------------------------------------


class Flat:
    """The elements of an array, row after row: their rows, and where each row begins."""

    def __init__(self, values: pa.Array) -> None:
        self.values, self.null = values, to_numpy(pc.is_null(values))
        self.flat = values.flatten()
        self.offsets = to_numpy(offsets_from_zero(values)).astype(np.int64)
        self.sizes = np.diff(self.offsets)
        self.rows = np.repeat(np.arange(len(values)), self.sizes)

    @property
    def places(self) -> Any:
        """The place of each element in its row, from 0."""
        return np.arange(len(self.rows)) - self.offsets[self.rows]

    def taken(self, at: Any, rows: Any) -> pa.Array:
        """The elements at these places of all, which belong to these rows in order."""
        return lists(self.flat.take(arrow_array(np.asarray(at, np.int64))), rows, self.null, self.values.type)


def lists(flat: pa.Array, rows: Any, null: Any, type_: pa.DataType) -> pa.Array:
    """An array of the values, which belong to these rows in order."""
    counts = np.bincount(rows, minlength=len(null))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    flat = flat if flat.type == type_.value_type else flat.cast(type_.value_type)
    return pa.ListArray.from_arrays(arrow_array(offsets), flat, type=type_, mask=arrow_array(null))


def ranks(*parts: pa.Array) -> list[Any]:
    """A number for each value of all parts, equal ones the same, in Spark's order; -1 for NULL."""
    every = pa.concat_arrays(parts)
    if pa.types.is_floating(every.type):
        every = pc.if_else(pc.equal(every, 0), scalar(0.0, every.type), every)  # -0.0 is 0.0
    if pa.types.is_boolean(every.type):
        every = every.cast(pa.int8())
    own = every.dictionary_encode()
    order = to_numpy(pc.array_sort_indices(own.dictionary))  # NaN comes last, as in Spark
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    codes = to_numpy(pc.fill_null(own.indices, -1))
    found = np.where(codes < 0, -1, place[codes]) if len(place) else np.full(len(codes), -1)
    return np.split(found, np.cumsum([len(part) for part in parts])[:-1])


def _firsts(rows: Any, codes: Any) -> Any:
    """The places of the first of equal codes in each row, in order."""
    if not len(rows):
        return np.zeros(0, np.int64)
    (keys,) = _keys((rows, codes))
    _, at = np.unique(keys, return_index=True)
    return np.sort(at)


def _keys(*parts: tuple[Any, Any]) -> list[Any]:
    """One number for a row and a code, of each part."""
    size = max(codes.max(initial=0) for _, codes in parts) + 2
    return [rows.astype(np.int64) * size + codes + 1 for rows, codes in parts]


def _set_of(values: pa.Array) -> Flat:
    """The elements as Spark's sets have them: -0.0 is 0.0."""
    own = Flat(values)
    if pa.types.is_floating(own.flat.type):
        own.flat = pc.add(own.flat, scalar(0.0, own.flat.type))
    return own


def distinct(values: pa.Array) -> pa.Array:
    """Each element once, NULL too."""
    own = _set_of(values)
    at = _firsts(own.rows, ranks(own.flat)[0])
    return own.taken(at, own.rows[at])


def _extreme(last: bool) -> Callable[[pa.Array], pa.Array]:
    def found(values: pa.Array) -> pa.Array:
        own = Flat(values)
        (codes,) = ranks(own.flat)
        there = np.flatnonzero(codes >= 0)
        # Of equal ones the first: 0.0 and -0.0 differ to those who print them.
        order = there[np.lexsort((-there if last else there, codes[there], own.rows[there]))]
        rows = own.rows[order]
        ends = np.flatnonzero(np.diff(rows, append=-1) if last else np.diff(rows, prepend=-1))
        at = np.full(len(values), -1)
        at[rows[ends]] = order[ends]
        return own.flat.take(arrow_array(np.where(at < 0, 0, at), mask=at < 0))

    return found


def position(values: pa.Array, sought: Datum) -> pa.Array:
    """The place of the first equal element, from 1; 0 if there is none."""
    own, wanted = Flat(values), as_array(sought, len(values))
    codes, others = ranks(own.flat, wanted)
    hits = np.flatnonzero((codes == others[own.rows]) & (codes >= 0))[::-1]
    found = np.zeros(len(values), np.int64)
    found[own.rows[hits]] = own.places[hits] + 1
    return arrow_array(found, mask=own.null | to_numpy(pc.is_null(wanted)))


def remove(values: pa.Array, unwanted: Datum) -> pa.Array:
    """Without the elements that equal a value."""
    own, other = Flat(values), as_array(unwanted, len(values))
    codes, others = ranks(own.flat, other)
    at = np.flatnonzero((codes != others[own.rows]) | (codes < 0))
    own.null |= to_numpy(pc.is_null(other))
    at = at[~own.null[own.rows[at]]]
    return own.taken(at, own.rows[at])


def compact(values: pa.Array) -> pa.Array:
    """Without NULL."""
    own = Flat(values)
    at = np.flatnonzero(to_numpy(pc.is_valid(own.flat)))
    return own.taken(at, own.rows[at])


def sort(values: pa.Array, ascending: pa.Scalar | None = None) -> pa.Array:
    """In order, NULL first; or in the other one, NULL last."""
    own = Flat(values)
    (codes,) = ranks(own.flat)
    order = np.lexsort((codes if ascending is None or ascending.as_py() else -codes, own.rows))
    return own.taken(order, own.rows[order])


def sort_nulls_last(values: pa.Array) -> pa.Array:
    """In order, NULL last."""
    own = Flat(values)
    (codes,) = ranks(own.flat)
    order = np.lexsort((np.where(codes < 0, len(codes), codes), own.rows))
    return own.taken(order, own.rows[order])


def reverse(values: pa.Array) -> pa.Array:
    """The elements, or the code points, from the last to the first."""
    if pa.types.is_string(values.type):
        return pc.utf8_reverse(values)
    if pa.types.is_binary(values.type):
        return by_rows(BINARY, lambda data: data[::-1], values)
    own = Flat(values)
    at = own.offsets[own.rows] + own.offsets[own.rows + 1] - 1 - np.arange(len(own.rows))
    return own.taken(at, own.rows)


def append(values: pa.Array, value: Datum) -> pa.Array:
    """With a value behind the last element."""
    own, more = Flat(values), as_array(value, len(values))
    return _put(own, more, own.offsets[1:])


def prepend(values: pa.Array, value: Datum) -> pa.Array:
    """With a value before the first element."""
    own, more = Flat(values), as_array(value, len(values))
    return _put(own, more, own.offsets[:-1])


def _put(own: Flat, more: pa.Array, before: Any) -> pa.Array:
    """With one value in each row, before the element at that place of all."""
    kept = np.flatnonzero(~own.null)
    at = np.insert(np.arange(len(own.rows)), before[kept], len(own.rows) + kept)
    rows = np.insert(own.rows, before[kept], kept)
    flat = pa.concat_arrays([own.flat, more if more.type == own.flat.type else more.cast(own.flat.type)])
    return lists(flat.take(arrow_array(at)), rows, own.null, own.values.type)


def _united(keeps: Callable[[Any, Any], Any]) -> Callable[[Datum, Datum], pa.Array]:
    """The function of two sets: which elements of the first one stay, by their keys and those of the other one."""

    def found(left: Datum, right: Datum) -> pa.Array:
        own, other = _two(left, right)
        codes, others = ranks(own.flat, other.flat)
        keys, known = _keys((own.rows, codes), (other.rows, others))
        at = np.flatnonzero(keeps(keys, known))
        at = at[_firsts(own.rows[at], codes[at])]
        own.null |= other.null
        at = at[~own.null[own.rows[at]]]
        return own.taken(at, own.rows[at])

    return found


def _two(left: Datum, right: Datum) -> tuple[Flat, Flat]:
    one, other = map(_set_of, as_arrays(left, right))
    return one, other


def union(left: Datum, right: Datum) -> pa.Array:
    """The elements of both, each once."""
    own, other = _two(left, right)
    null = own.null | other.null
    rows = np.concatenate([own.rows, other.rows])
    order = np.argsort(rows, kind="stable")
    flat = pa.concat_arrays([own.flat, other.flat.cast(own.flat.type)]).take(arrow_array(order))
    rows = rows[order]
    at = _firsts(rows, ranks(flat)[0])
    at = at[~null[rows[at]]]
    return lists(flat.take(arrow_array(at)), rows[at], null, own.values.type)


def overlap(left: Datum, right: Datum) -> pa.Array:
    """Whether an element of the one equals one of the other; NULL if none does and one is NULL in two that have any."""
    own, other = _two(left, right)
    codes, others = ranks(own.flat, other.flat)
    keys, known = _keys((own.rows, codes), (other.rows, others))
    hits = np.isin(keys, known[others >= 0]) & (codes >= 0)
    count = len(own.values)
    found = np.bincount(own.rows[hits], minlength=count) > 0
    nulls = np.bincount(own.rows[codes < 0], minlength=count) + np.bincount(other.rows[others < 0], minlength=count)
    unknown = (nulls > 0) & (own.sizes > 0) & (other.sizes > 0) & ~found
    return arrow_array(found, mask=own.null | other.null | unknown)


def slice_of(values: pa.Array, start: Datum, size: Datum) -> Made:
    """So many elements from a place on, which counts from the end if negative. 0 and a negative size fail."""
    own = Flat(values)
    starts, lengths = as_array(start, len(values)), as_array(size, len(values))
    own.null |= to_numpy(pc.or_(pc.is_null(starts), pc.is_null(lengths)))
    begin, count = (to_numpy(pc.fill_null(v, 1)).astype(np.int64) for v in (starts, lengths))
    failed = ~own.null & ((begin == 0) | (count < 0))
    first = np.where(begin > 0, begin - 1, own.sizes + begin)
    inside = (own.places >= first[own.rows]) & (own.places < (first + count)[own.rows]) & (first >= 0)[own.rows]
    at = np.flatnonzero(inside & ~(own.null | failed)[own.rows])
    return own.taken(at, own.rows[at]), arrow_array(failed) if failed.any() else None


def flatten(values: pa.Array) -> pa.Array:
    """The elements of the arrays in an array; NULL if one of them is NULL."""
    own = Flat(values)
    inner = Flat(own.flat)
    null = own.null | (np.bincount(own.rows[inner.null], minlength=len(values)) > 0)
    rows = own.rows[inner.rows]
    at = np.flatnonzero(~null[rows])
    return lists(inner.flat.take(arrow_array(at)), rows[at], null, own.flat.type)


def repeat(value: Datum, count: Datum) -> pa.Array:
    """An array of one value several times."""
    values, counts = as_arrays(value, count)
    null = to_numpy(pc.is_null(counts))
    parents = np.repeat(np.arange(len(values)), np.maximum(to_numpy(pc.fill_null(counts, 0)), 0))
    element = pa.field("element", values.type)
    return lists(values.take(arrow_array(parents)), parents, null, pa.list_(element))


def join(values: pa.Array, mark: Datum, missing: Datum | None = None) -> pa.Array:
    """The texts joined by a mark, without NULL or with a text in its place."""
    own = Flat(values)
    flat = own.flat
    if missing is not None:
        others = as_array(missing, len(values))
        flat = pc.coalesce(flat, others.take(arrow_array(own.rows)))
        own.null |= to_numpy(pc.is_null(others))
    at = np.flatnonzero(to_numpy(pc.is_valid(flat)) & ~own.null[own.rows])
    return pc.binary_join(lists(flat.take(arrow_array(at)), own.rows[at], own.null, pa.list_(pa.string())), mark)


def get(values: pa.Array, place: Datum) -> pa.Array:
    """The element at a place from 0; NULL if there is none."""
    places = as_array(place, len(values))
    outside = pc.or_(pc.less(places, 0), pc.greater_equal(places, 2**31 - 1))
    return element_at(values, pc.if_else(outside, 2**31 - 1, pc.add(places, 1)), False)[0]


def tried_element(values: pa.Array, place: Datum) -> Made:
    """`element_at`, NULL outside of an array; place 0 fails there."""
    return element_at(values, place, False)


def _map_part(part: str) -> Callable[..., pa.Array]:
    def found(values: pa.Array, result: DataType) -> pa.Array:
        wanted, offsets = to_arrow_type(result), to_numpy(values.offsets).astype(np.int64)
        at = arrow_array(np.arange(offsets[0], offsets[-1]))
        starts = arrow_array((offsets - offsets[0]).astype(np.int32))
        keys, items = values.keys.take(at), values.items.take(at)
        flat = keys if part == "keys" else items
        if part == "entries":
            flat = pa.StructArray.from_arrays([keys, items], fields=list(wanted.value_type))
        flat = flat if flat.type == wanted.value_type else flat.cast(wanted.value_type)
        return pa.ListArray.from_arrays(starts, flat, type=wanted, mask=values.is_null())

    return found


def contains_key(values: pa.Array, key: Datum) -> pa.Array:
    """Whether a map has a key."""
    keys = as_array(key, len(values))
    offsets = to_numpy(values.offsets).astype(np.int64)
    rows = np.repeat(np.arange(len(values)), np.diff(offsets))
    own = values.keys.take(arrow_array(np.arange(offsets[0], offsets[-1])))
    codes, others = ranks(own, keys)
    found = np.bincount(rows[codes == others[rows]], minlength=len(values)) > 0
    return arrow_array(found, mask=to_numpy(pc.or_(pc.is_null(values), pc.is_null(keys))))


_ANY = (VOID, VOID)
_TABLE: Mapping[str, Function] = {
    "reverse": Function((VOID,), VOID, reverse, resolve=_of_text_or_array),
    "array_distinct": Function((VOID,), VOID, distinct, resolve=_of_array()),
    "array_compact": Function((VOID,), VOID, compact, resolve=_of_array()),
    "array_max": Function((VOID,), VOID, _extreme(last=True), resolve=_of_array(element=True)),
    "array_min": Function((VOID,), VOID, _extreme(last=False), resolve=_of_array(element=True)),
    "array_position": Function(_ANY, LONG, position, resolve=_with_value(LONG)),
    "array_remove": Function(_ANY, VOID, remove, resolve=_with_value(None)),
    "array_append": Function(_ANY, VOID, append, of_null=True, resolve=_with_value(None)),
    "array_prepend": Function(_ANY, VOID, prepend, of_null=True, resolve=_with_value(None)),
    "array_union": Function(_ANY, VOID, union, resolve=_with_array(None)),
    "array_intersect": Function(_ANY, VOID, _united(np.isin), resolve=_with_array(None)),
    "array_except": Function(_ANY, VOID, _united(lambda keys, known: ~np.isin(keys, known)),
                             resolve=_with_array(None)),
    "arrays_overlap": Function(_ANY, BOOLEAN, overlap, resolve=_with_array(BOOLEAN)),
    "array_repeat": Function(_ANY, VOID, repeat, of_null=True, resolve=_of_repeated),
    "array_join": Function((VOID, STRING, STRING), STRING, join, optional=1,
                           resolve=lambda asked: _of_array(STRING, STRING, STRING)(asked)
                           if asked.types[0] == ArrayType(STRING) else None),
    "sort_array": Function((VOID, BOOLEAN), VOID, sort, optional=1, constants=(1,), resolve=_of_array(None, BOOLEAN)),
    "array_sort": Function((VOID,), VOID, sort_nulls_last, resolve=_of_array()),
    "slice": Function((VOID, INTEGER, INTEGER), VOID, slice_of, resolve=_of_array(None, INTEGER, INTEGER)),
    "flatten": Function((VOID,), VOID, flatten, resolve=_of_arrays),
    "get": Function(_ANY, VOID, get, resolve=_of_place),
    "try_element_at": Function(_ANY, VOID, tried_element, resolve=_of_place_or_key),
    "map_keys": Function((VOID,), VOID, _map_part("keys"), resolve=_of_map(lambda own: ArrayType(own.key)),
                         needs=("result",)),
    "map_values": Function((VOID,), VOID, _map_part("values"), resolve=_of_map(lambda own: ArrayType(own.value)),
                           needs=("result",)),
    "map_entries": Function((VOID,), VOID, _map_part("entries"), resolve=_of_map(_entry), needs=("result",)),
    "map_contains_key": Function(_ANY, BOOLEAN, contains_key, resolve=_of_map(lambda _own: BOOLEAN, key=True)),
}  # fmt: skip
FUNCTIONS: Mapping[str, Function] = {name: replace(one, elements=True) for name, one in _TABLE.items()}
