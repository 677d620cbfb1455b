"""Parquet files that no writer would write: pyarrow writes the columns, and the schema in the footer is edited after.

The footer is Thrift in the compact protocol: read into (field id, type, value) triples, changed, written again. Only
what a footer holds is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12

Struct = list[tuple[int, int, Any]]

#: Fields of a SchemaElement, and what its repetition may be.
TYPE, LENGTH, REPETITION, NAME, CHILDREN, CONVERTED, LOGICAL = 1, 2, 3, 4, 5, 6, 10
REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
#: Members of the union LogicalType.
VARIANT, UUID = 16, 14


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == I8:
            return self.byte()
        if kind in (I16, I32, I64):
            return self.zigzag()
        if kind in (DOUBLE, BINARY):
            size = 8 if kind == DOUBLE else self.varint()
            self.at += size
            return self.data[self.at - size : self.at]
        if kind == LIST:
            head = self.byte()
            size = head >> 4 if head >> 4 < 15 else self.varint()
            return head & 15, [
                self.byte() == TRUE if head & 15 in (TRUE, FALSE) else self.value(head & 15) for _ in range(size)
            ]
        assert kind == STRUCT, kind
        return self.struct()

    def struct(self) -> Struct:
        fields: Struct = []
        last = 0
        while head := self.byte():
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            fields.append((last, head & 15, self.value(head & 15)))
        return fields


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _write(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE):
        return b""
    if kind == I8:
        return bytes([value])
    if kind in (I16, I32, I64):
        return _varint(value << 1 if value >= 0 else (-value << 1) - 1)
    if kind == DOUBLE:
        return bytes(value)
    if kind == BINARY:
        return _varint(len(value)) + value
    if kind == LIST:
        of, values = value
        head = bytes([len(values) << 4 | of]) if len(values) < 15 else bytes([0xF0 | of]) + _varint(len(values))
        flags = of in (TRUE, FALSE)
        return head + b"".join(bytes([TRUE if v else FALSE]) if flags else _write(of, v) for v in values)
    return _write_struct(value)


def _write_struct(fields: Struct) -> bytes:
    out, last = b"", 0
    for number, kind, value in sorted(fields, key=lambda f: f[0]):
        of = (TRUE if value else FALSE) if kind in (TRUE, FALSE) else kind
        out += bytes([(number - last) << 4 | of]) if 0 < number - last < 16 else bytes([of]) + _write(I16, number)
        out += _write(kind, value)
        last = number
    return out + b"\0"


class Element:
    """One node of a footer's schema, named by its path (`v.typed_value.a`)."""

    def __init__(self, fields: Struct, path: str) -> None:
        self.fields, self.path = fields, path

    def get(self, number: int) -> Any:
        return next((value for found, _, value in self.fields if found == number), None)

    def set(self, number: int, kind: int, value: Any) -> None:
        self.drop(number)
        self.fields.append((number, kind, value))

    def drop(self, number: int) -> None:
        self.fields[:] = [field for field in self.fields if field[0] != number]

    def variant(self, version: int | None = 1) -> None:
        """Annotates the group VARIANT, with this version or without one."""
        self.set(LOGICAL, STRUCT, [(VARIANT, STRUCT, [] if version is None else [(1, I8, version)])])

    def repetition(self, value: int) -> None:
        self.set(REPETITION, I32, value)


def edit(path: Path, change: Callable[[dict[str, Element]], None]) -> None:
    """Rewrites the footer with its schema elements, by path, changed."""
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    footer = _Reader(data[-8 - size : -8]).struct()
    elements: dict[str, Element] = {}
    schema = next(value for number, _, value in footer if number == 2)[1]
    above: list[tuple[str, int]] = []
    for fields in schema:
        element = Element(fields, "")
        name = element.get(NAME).decode()
        if elements or above:
            element.path = ".".join([*(n for n, _ in above[1:]), name])
            elements[element.path] = element
            above[-1] = (above[-1][0], above[-1][1] - 1)
        above.append((name, element.get(CHILDREN) or 0))
        while above and above[-1][1] == 0:
            above.pop()
    change(elements)
    written = _write_struct(footer)
    path.write_bytes(data[: -8 - size] + written + len(written).to_bytes(4, "little") + b"PAR1")


def write(
    path: Path,
    table: pa.Table,
    change: Callable[[dict[str, Element]], None] | None = None,
    variants: Sequence[str] = ("v",),
    **options: Any,
) -> Path:
    """The table as a Parquet file with the groups `variants` annotated VARIANT(1); then `change` has its way."""
    pq.write_table(table, path, store_schema=False, **options)

    def both(elements: dict[str, Element]) -> None:
        for name in variants:
            elements[name].variant()
        if change is not None:
            change(elements)

    edit(path, both)
    return path
