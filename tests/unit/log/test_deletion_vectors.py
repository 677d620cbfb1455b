"""Deletion vectors: inline, beside the table and elsewhere; used only when all that is said about them holds."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import mica
from mica.errors import CorruptDataError, StorageError
from mica.log.deletion_vectors import deleted_rows, file_of, vector_of, write_vectors
from mica.stats import z85
from mica.storage import Storage
from tests.unit.log.test_roaring import bitmap_64

MAGIC = struct.pack("<I", 1681511377)
ROWS = [0, 7, 70_000]
UUID_TEXT = "ab^-aqEH.-t@S}K{vb[*k^"  # of the protocol's own example, with the directory "ab"


def file_with(data: bytes, offset: int = 1) -> bytes:
    return b"\x01".ljust(offset, b"?") + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def descriptor(kind: str, where: str, size: int, offset: int | None = 1, rows: int = len(ROWS)) -> dict[str, object]:
    return {"storageType": kind, "pathOrInlineDv": where, "offset": offset, "sizeInBytes": size, "cardinality": rows}


DATA = MAGIC + bitmap_64(ROWS)


@pytest.mark.parametrize("offset", [1, 4, 100])
def test_a_vector_beside_the_table(tmp_path: Path, offset: int) -> None:
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / name).write_bytes(file_with(DATA, offset))
    found = deleted_rows(Storage.open(tmp_path), descriptor("u", UUID_TEXT, len(DATA), offset))
    assert found.tolist() == ROWS


def test_a_vector_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a b.bin").write_bytes(file_with(DATA))
    found = deleted_rows(Storage.open(tmp_path / "t"), descriptor("p", f"file:{tmp_path}/a%20b.bin", len(DATA)))
    assert found.tolist() == ROWS


def test_an_inline_vector_is_cut_to_its_size() -> None:
    found = deleted_rows(Storage.open("/nowhere"), descriptor("i", z85.encode(DATA), len(DATA), None))
    assert found.tolist() == ROWS


def broken(change: str) -> tuple[bytes, dict[str, object]]:
    whole, said = bytearray(file_with(DATA)), descriptor("u", UUID_TEXT, len(DATA))
    if change == "version":
        whole[0] = 2
    elif change == "length":
        whole[4] += 1
    elif change == "checksum":
        whole[-1] ^= 1
    elif change == "data":
        whole[12] ^= 1
    elif change == "cardinality":
        said["cardinality"] = 2
    elif change == "more rows":
        said["cardinality"] = 4
    elif change == "magic":
        whole = bytearray(file_with(b"\0" * 4 + DATA[4:]))
    elif change == "type":
        said["storageType"] = "x"
    elif change == "uuid":
        said["pathOrInlineDv"] = "short"
    return bytes(whole), said


@pytest.mark.parametrize(
    "change", ["version", "length", "checksum", "data", "cardinality", "more rows", "magic", "type", "uuid"]
)
def test_a_vector_that_is_not_as_said_is_refused(tmp_path: Path, change: str) -> None:
    data, said = broken(change)
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin").write_bytes(data)
    with pytest.raises(CorruptDataError) as caught:
        deleted_rows(Storage.open(tmp_path), said)
    assert caught.value.code == "CORRUPT_DELETION_VECTOR"


def test_a_vector_that_is_missing_or_cut_short_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        deleted_rows(Storage.open(tmp_path), descriptor("u", UUID_TEXT, len(DATA)))
    (tmp_path / "ab").mkdir()
    path = tmp_path / "ab" / "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    path.write_bytes(file_with(DATA)[:-3])
    with pytest.raises(StorageError):
        deleted_rows(Storage.open(tmp_path), descriptor("u", UUID_TEXT, len(DATA)))


def test_no_vector_is_read_that_marks_more_rows_than_its_file_has(tmp_path: Path) -> None:
    # 65,536 runs of 65,536 rows are a megabyte, and their numbers would be 34 GB.
    heads = b"".join(struct.pack("<HH", key, 0xFFFF) for key in range(1 << 16))
    runs = struct.pack("<HHH", 1, 0, 0xFFFF) * (1 << 16)
    bitmap = struct.pack("<I", 12347 | 0xFFFF << 16) + b"\xff" * (1 << 13) + heads + b"\0" * (4 << 16) + runs
    data = MAGIC + struct.pack("<QI", 1, 0) + bitmap
    inline = descriptor("i", z85.encode(data), len(data), None, 1 << 32)
    table = mica.Table.create(tmp_path, "a BIGINT", properties={"delta.enableDeletionVectors": "true"})
    table.append([{"a": 1}, {"a": 2}])
    log = tmp_path / "_delta_log/00000000000000000001.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["deletionVector"] = inline
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(CorruptDataError, match="4294967296 rows, and its file has 2") as caught:
        mica.Table.open(tmp_path).to_arrow()
    assert caught.value.code == "CORRUPT_DELETION_VECTOR"
    assert "deletion_vector" in [found.kind for found in mica.check(tmp_path)]


@pytest.mark.parametrize("text", ["Hell", "Hell\u00f6", "#####"])
def test_a_text_that_is_no_z85_is_a_corrupt_vector(tmp_path: Path, text: str) -> None:
    with pytest.raises(CorruptDataError, match="not z85"):
        deleted_rows(Storage.open(tmp_path), descriptor("i", text, len(DATA)))


def test_written_vectors_are_read_again(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    small, large = np.array([3, 9], np.uint64), np.arange(0, 100_000, 3, dtype=np.uint64)
    sets = (small, large, large + np.uint64(1))
    written, name = write_vectors(storage, [vector_of(rows) for rows in sets], [len(rows) for rows in sets])
    assert [one["storageType"] for one in written] == ["u"] * 3
    for one, rows in zip(written, sets, strict=True):
        assert deleted_rows(storage, one).tolist() == rows.tolist()
    (file,) = tmp_path.glob("*.bin")  # packed: one file for all of a commit
    assert [file_of(storage, one) for one in written] == [file.name] * 3 == [name] * 3
    assert write_vectors(storage, [], []) == ([], None)
    assert len(list(tmp_path.glob("*.bin"))) == 1
