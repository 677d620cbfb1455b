"""Ranges of a file in a store, read like a file."""

from __future__ import annotations

from mica.storage import Storage
from mica.storage.range_file import RangeFile


def test_a_range_file_reads_like_a_file(storage: Storage) -> None:
    data = bytes(range(256)) * 10
    storage.put("x", data)
    file = RangeFile(storage, "x", len(data))
    assert file.read(3) == data[:3]
    assert file.seek(-4, 2) == len(data) - 4
    assert file.read() == data[-4:]
    assert file.read(5) == b""
    assert file.seek(10) == 10
    assert file.seek(5, 1) == 15
    buffer = bytearray(4)
    assert file.readinto(buffer) == 4
    assert bytes(buffer) == data[15:19]
