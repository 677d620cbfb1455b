"""Arrow arrays from and to Python's values and numpy's, without `pyarrow.array`.

The rule: no other module calls `pyarrow.array`. The first such call of a process imports pandas if that is installed,
and so does the first of `pyarrow.scalar`, `to_numpy` or `Table.from_pylist`. That takes as long as all that a process
does else until it has read or written its first row.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import lib

if TYPE_CHECKING:
    from numpy.typing import NDArray as NDArray  # noqa: PLC0414 - the others have it from here
else:  # without numpy.typing, whose import formats the documentation of types
    NDArray = np.ndarray


def from_numpy(values: NDArray[Any], null: NDArray[np.bool_] | None = None) -> pa.Array:
    """Returns the numbers or booleans as an array, null where `null` is true; numbers are not copied."""
    kind = pa.from_numpy_dtype(values.dtype)
    held = _packed(values) if values.dtype == np.bool_ else np.ascontiguousarray(values)
    valid = None if null is None else pa.py_buffer(_packed(~null))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(held)])


def scalar(value: Any, kind: pa.DataType | None = None) -> pa.Scalar:
    """Returns what `pyarrow.scalar` does."""
    kind = _KINDS.get(type(value)) if kind is None else kind
    if value is None:
        return pa.nulls(1, kind)[0]
    made, held = _MADE.get(kind, (None, None))
    if type(value) is not made or held is None:
        return arrow_array([value], kind)[0]
    try:
        data = held(value)
    except OverflowError:
        return arrow_array([value], kind)[0]  # says what is wrong
    ends = [pa.py_buffer(np.array([0, len(data)], np.int32))] if made is str else []
    return pa.Array.from_buffers(kind, 1, [None, *ends, pa.py_buffer(data)])[0]


def _integer(width: int) -> Callable[[int], bytes]:
    return lambda value: value.to_bytes(width, sys.byteorder, signed=True)


#: The Python type of the values of a type, and the bytes of one: four times as fast as an array of one.
_MADE: dict[pa.DataType | None, tuple[type, Callable[[Any], bytes]]] = {
    pa.bool_(): (bool, lambda value: bytes([value])),
    pa.int8(): (int, _integer(1)), pa.int16(): (int, _integer(2)), pa.int32(): (int, _integer(4)),
    pa.int64(): (int, _integer(8)), pa.float64(): (float, struct.Struct("=d").pack), pa.string(): (str, str.encode),
}  # fmt: skip


def arrow_array(values: Any, kind: pa.DataType | None = None, *, mask: NDArray[np.bool_] | None = None) -> pa.Array:
    """Returns what `pyarrow.array` does; until pandas is imported it makes the commonest ones itself."""
    made = None if imports_nothing() else _made(values, kind, mask)
    return pa.array(values, kind, mask=mask) if made is None else made


def batch_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Returns what `pyarrow.RecordBatch.from_pylist` does."""
    return pa.RecordBatch.from_arrays([_field(rows, field) for field in schema], schema=schema)


def _field(rows: Sequence[Mapping[str, Any] | None], field: pa.Field) -> pa.Array:
    return arrow_array([None if row is None else row.get(field.name) for row in rows], field.type)


def _made(values: Any, kind: pa.DataType | None, mask: NDArray[np.bool_] | None) -> pa.Array | None:
    """The array; None of what only `pyarrow.array` makes, or refuses."""
    if type(values) is np.ndarray:
        plain = values.ndim == 1 and values.dtype.kind in "biuf" and values.dtype.isnative
        fits = plain and (mask is None or mask.shape == values.shape)
        return from_numpy(values, mask) if fits and kind in (None, pa.from_numpy_dtype(values.dtype)) else None
    if mask is not None or not isinstance(values, (list, tuple, range)) or len(values) > _MANY:
        return None
    given = [value for value in values if value is not None]
    types = set(map(type, given))
    if kind is None:
        kind = _KINDS.get(next(iter(types), type(None))) if len(types) < 2 else None
    if kind is None or not types <= _TYPES.get(kind.id, frozenset()):
        return None
    if not given:
        return pa.nulls(len(values), kind)
    there = np.fromiter((value is not None for value in values), np.bool_, len(values))
    try:
        buffers, children = _parts(values, given, there, kind)
    except (OverflowError, ValueError):  # of what `pyarrow.array` refuses, in its words
        return None
    valid = None if there.all() else pa.py_buffer(_packed(there))
    return pa.Array.from_buffers(kind, len(values), [valid, *buffers], children=children)


def _parts(
    values: Sequence[Any], given: list[Any], there: NDArray[np.bool_], kind: pa.DataType
) -> tuple[list[pa.Buffer], list[pa.Array]]:
    """The buffers after that of the nulls, and the children."""
    if pa.types.is_struct(kind):
        return [], [_field(values, field) for field in kind]
    if pa.types.is_list(kind):
        return [_offsets(given, there, np.int32)], [arrow_array([*chain(*given)], kind.value_type)]
    if pa.types.is_map(kind):
        maps = [[*value.items()] if type(value) is dict else value for value in given]
        pairs = [*chain(*maps)]
        if not all(type(pair) is tuple and len(pair) == 2 and pair[0] is not None for pair in pairs):
            raise ValueError
        keys = arrow_array([key for key, _ in pairs], kind.key_type)
        items = arrow_array([item for _, item in pairs], kind.item_type)
        entries = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
        return [_offsets(maps, there, np.int32)], [entries]
    if (offset := _OFFSETS.get(kind.id)) is not None:
        data = [value.encode() if type(value) is str else value for value in given]
        return [_offsets(data, there, offset), pa.py_buffer(b"".join(data))], []
    whole: NDArray[Any] = np.zeros(len(there), _WIDEST.get(kind.id, np.int64))
    whole[there] = given
    if pa.types.is_boolean(kind):
        return [pa.py_buffer(_packed(whole))], []
    stored = whole if kind.bit_width == 64 else whole.astype(f"i{kind.bit_width // 8}")
    if kind.bit_width < 64 and (stored != whole).any():
        raise OverflowError
    return [pa.py_buffer(stored)], []


def _packed(bits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.packbits(bits, bitorder="little")


def _offsets(given: Sequence[Any], there: NDArray[np.bool_], dtype: type[np.signedinteger[Any]]) -> pa.Buffer:
    """Where each value begins, and the last ends."""
    ends = np.zeros(len(there) + 1, np.int64)
    ends[1:][there] = [len(value) for value in given]
    ends = ends.cumsum()
    if ends[-1] > np.iinfo(dtype).max:
        raise OverflowError
    return pa.py_buffer(ends.astype(dtype))


#: Longer lists repay the import.
_MANY = 1 << 16
#: The types that Python's values have if none is asked for.
_KINDS = {
    type(None): pa.null(), bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary(),
}  # fmt: skip
#: The types of the values that an array of a type is made of here.
_TYPES: dict[int, frozenset[type]] = {
    lib.Type_NA: frozenset(), lib.Type_BOOL: frozenset({bool}), lib.Type_DOUBLE: frozenset({float}),
    lib.Type_INT8: frozenset({int}), lib.Type_INT16: frozenset({int}), lib.Type_INT32: frozenset({int}),
    lib.Type_INT64: frozenset({int}), lib.Type_DATE32: frozenset({int}), lib.Type_TIMESTAMP: frozenset({int}),
    lib.Type_DURATION: frozenset({int}), lib.Type_STRING: frozenset({str}), lib.Type_LARGE_STRING: frozenset({str}),
    lib.Type_BINARY: frozenset({bytes}), lib.Type_LARGE_BINARY: frozenset({bytes}), lib.Type_STRUCT: frozenset({dict}),
    lib.Type_LIST: frozenset({list, tuple}), lib.Type_MAP: frozenset({list, tuple, dict}),
}  # fmt: skip
_WIDEST: dict[int, type[np.generic]] = {lib.Type_BOOL: np.bool_, lib.Type_DOUBLE: np.float64}
_OFFSETS: dict[int, type[np.signedinteger[Any]]] = {
    lib.Type_STRING: np.int32, lib.Type_BINARY: np.int32,
    lib.Type_LARGE_STRING: np.int64, lib.Type_LARGE_BINARY: np.int64,
}  # fmt: skip


def to_numpy(values: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Returns what `numpy.asarray` does; numbers in one piece are not copied, and are read only."""
    values = one_array(values)
    kind = values.type
    if values.null_count or not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.asarray(values)
    if not pa.types.is_boolean(kind):
        return np.from_dlpack(values)
    if not len(values):  # which may have no buffer
        return np.zeros(0, np.bool_)
    first, end = values.offset, values.offset + len(values)
    packed = np.frombuffer(values.buffers()[1], np.uint8)[first // 8 : -(-end // 8)]
    return np.unpackbits(packed, bitorder="little")[first % 8 :][: len(values)].view(np.bool_)


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns the column as one array; a single chunk is not copied."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.nulls(0, column.type)


def no_rows(schema: pa.Schema) -> pa.Table:
    """Returns a table of this schema without rows."""
    return pa.Table.from_batches([], schema)


def imports_nothing() -> bool:
    """Whether `pyarrow.array` would import nothing now."""
    return "pandas" in sys.modules


TRUE, FALSE = scalar(True, pa.bool_()), scalar(False, pa.bool_())
