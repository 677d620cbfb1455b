"""Arrow arrays from and to numpy's, without `pyarrow.array`.

The rule: a plain read calls none of `pyarrow.array`, `pyarrow.scalar` and `to_numpy`. The first such call of a process
imports pandas if that is installed, which takes as long as all else until the first row.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray as NDArray  # noqa: PLC0414 - the others have it from here
else:  # without numpy.typing, whose import formats the documentation of types
    NDArray = np.ndarray


def from_numpy(values: NDArray[Any], null: NDArray[np.bool_] | None = None) -> pa.Array:
    """Returns the numbers or booleans as an array, null where `null` is true; numbers are not copied."""
    kind = pa.from_numpy_dtype(values.dtype)
    held = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    valid = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(held)])


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Returns what `pyarrow.scalar` does; it makes the commonest ones itself."""
    if value is None:
        return pa.nulls(1, kind)[0]
    made, held = _MADE.get(kind, (None, None))
    if type(value) is not made or held is None:
        return pa.scalar(value, kind)
    try:
        data = held(value)
    except OverflowError:
        return pa.scalar(value, kind)  # says what is wrong
    ends = [pa.py_buffer(np.array([0, len(data)], np.int32))] if made is str else []
    return pa.Array.from_buffers(kind, 1, [None, *ends, pa.py_buffer(data)])[0]


def _integer(width: int) -> Callable[[int], bytes]:
    return lambda value: value.to_bytes(width, sys.byteorder, signed=True)


#: The Python type of the values of a type, and the bytes of one.
_MADE: dict[pa.DataType, tuple[type, Callable[[Any], bytes]]] = {
    pa.bool_(): (bool, lambda value: bytes([value])),
    pa.int8(): (int, _integer(1)), pa.int16(): (int, _integer(2)), pa.int32(): (int, _integer(4)),
    pa.int64(): (int, _integer(8)), pa.float64(): (float, struct.Struct("=d").pack), pa.string(): (str, str.encode),
}  # fmt: skip


def from_list(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Returns what `pyarrow.array` does; an array of one value is made of its scalar."""
    return pa.repeat(scalar(values[0], kind), 1) if len(values) == 1 else pa.array(values, kind)


TRUE, FALSE = scalar(True, pa.bool_()), scalar(False, pa.bool_())


def to_numpy(values: pa.Array) -> NDArray[Any]:
    """Returns numbers or booleans without nulls as a numpy array; numbers are not copied, and are read only."""
    if not pa.types.is_boolean(values.type):
        return np.from_dlpack(values)
    if not len(values):  # which may have no buffer
        return np.zeros(0, np.bool_)
    first, end = values.offset, values.offset + len(values)
    packed = np.frombuffer(values.buffers()[1], np.uint8)[first // 8 : -(-end // 8)]
    return np.unpackbits(packed, bitorder="little")[first % 8 :][: len(values)].view(np.bool_)


def no_rows(schema: pa.Schema) -> pa.Table:
    """Returns a table of this schema without rows."""
    return pa.Table.from_batches([], schema)


def imports_nothing() -> bool:
    """Whether `pyarrow.array` would import nothing now."""
    return "pandas" in sys.modules
