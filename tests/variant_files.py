"""Variant columns made by hand, in Parquet files and back: what a test says of single bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

import mica
from tests.parquet_schema import Element, write

BINARY = pa.binary()
NULL, ONE, TWO, EMPTY, HELLO = b"\x00", b"\x0c\x01", b"\x0c\x02", b"\x02\x00\x00", b"\x15hello"


def metadata(*names: str, ordered: bool | None = None, width: int = 1) -> bytes:
    """A dictionary of these names in this order; the sorted bit says the truth unless `ordered` says otherwise."""
    encoded = [name.encode() for name in names]
    truth = all(a < b for a, b in pairwise(encoded))
    header = 1 | (truth if ordered is None else ordered) << 4 | (width - 1) << 6
    offsets = b"".join(sum(map(len, encoded[:i])).to_bytes(width, "little") for i in range(len(encoded) + 1))
    return bytes([header]) + len(names).to_bytes(width, "little") + offsets + b"".join(encoded)


ABC = metadata("a", "b", "c")


def container(
    values: Sequence[bytes], ids: Sequence[int] | None = None, *, width: int = 1, id_width: int = 1, large: bool = False
) -> bytes:
    """An object (with ids) or an array, exactly as it is asked for."""
    large = large or len(values) > 255
    offsets = b"".join(sum(map(len, values[:i])).to_bytes(width, "little") for i in range(len(values) + 1))
    count = len(values).to_bytes(4 if large else 1, "little")
    if ids is None:
        return bytes([large << 4 | (width - 1) << 2 | 3]) + count + offsets + b"".join(values)
    header = bytes([large << 6 | (id_width - 1) << 4 | (width - 1) << 2 | 2])
    return header + count + b"".join(i.to_bytes(id_width, "little") for i in ids) + offsets + b"".join(values)


def leaf(typed: pa.DataType | None = None, *, value: bool = True) -> pa.DataType:
    """The group of a field or element."""
    fields = [pa.field("value", BINARY)] if value else []
    return pa.struct([*fields, *([pa.field("typed_value", typed)] if typed is not None else [])])


def objects(**fields: pa.DataType) -> pa.DataType:
    """`typed_value` of an object: required groups."""
    return pa.struct([pa.field(name, group, nullable=False) for name, group in fields.items()])


def arrays(element: pa.DataType) -> pa.DataType:
    """`typed_value` of an array."""
    return pa.list_(pa.field("element", element, nullable=False))


AB = objects(a=leaf(pa.int32()), b=leaf(pa.int32()))
NEITHER: Mapping[str, Any] = {"a": {}, "b": {}}


def column(
    rows: Iterable[Any], typed: pa.DataType | None = None, *, value: bool = True, names: bytes = ABC
) -> pa.Array:
    """A storage struct. A row is bytes (its value), None, or what stands in value, typed_value and perhaps metadata."""
    fields = [pa.field("metadata", BINARY, nullable=False)]
    fields += [pa.field("value", BINARY, nullable=typed is not None)] if value else []
    fields += [pa.field("typed_value", typed)] if typed is not None else []
    cells = [{"value": row} if isinstance(row, bytes) else row for row in rows]
    return pa.array([None if row is None else {"metadata": names, **row} for row in cells], pa.struct(fields))


def file(
    path: Path, array: pa.Array, change: Callable[[dict[str, Element]], None] | None = None, **options: Any
) -> Path:
    """A file of the one column `v`, annotated VARIANT(1)."""
    return write(path, pa.table([array], schema=pa.schema([pa.field("v", array.type)])), change, **options)


def read(path: Path | Sequence[Path]) -> list[Any]:
    """The rows as Python values."""
    return mica.variant.to_python(mica.read_parquet(path).to_arrow().column("v"))
