"""Ranges of a file in a store, read like a file."""

from __future__ import annotations

from typing import Any

import pytest

from mica.storage import Storage, range_file
from mica.storage.range_file import RangeFile


@pytest.mark.parametrize("whole", [True, False])
def test_a_range_file_reads_like_a_file(storage: Storage, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    data = bytes(range(256)) * 10
    monkeypatch.setattr(range_file, "WHOLE_BYTES", len(data) - (not whole))
    asked: list[tuple[int, int]] = []
    real = type(storage).read_same

    def counted(
        self: Storage, rel: str, start: int, end: int, tag: str | None, **more: Any
    ) -> tuple[bytes, str | None]:
        asked.append((start, end))
        return real(self, rel, start, end, tag, **more)

    monkeypatch.setattr(type(storage), "read_same", counted)
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
    assert asked == ([(0, len(data))] if whole else [(0, 3), (len(data) - 4, len(data)), (15, 19)])
