"""Deletion vectors: which rows of a data file are no longer in the table.

The rule: a vector is used only if it matches its descriptor and its format: file version, length, checksum, magic
number and cardinality (PROTOCOL.md "Deletion Vectors", "Deletion Vector Format"). Row numbers start at 0 in the data
file.

    storageType  pathOrInlineDv
    u            optional directory, then the z85 form of a UUID: `[dir/]deletion_vector_<uuid>.bin` below the table
    p            an absolute URI of such a file
    i            the vector itself in z85; read, and never written: a VACUUM of delta-spark 4.4 fails on it
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mica.errors import CorruptDataError, StorageError
from mica.log.paths import decode_path
from mica.log.roaring import decode, encode
from mica.stats import z85
from mica.storage import Storage
from mica.storage.pieces import PIECES

_MAGIC = 1681511377
_UUID_LENGTH = 20
_PREFIX = "deletion_vector_"


def deleted_rows(
    table: Storage, descriptor: Mapping[str, Any], *, most: int | None = None, cached: bool = True
) -> np.ndarray:
    """Returns the deleted rows of one file, sorted, as uint64; `descriptor` is a row of `files["deletion_vector"]`. A
    megabyte can mark so many rows that their numbers fill all memory: more than `most`, the file's, are refused before.
    `cached`: what this process read of an object store before is valid, even if the file is no longer there."""
    kind, where = descriptor["storageType"], str(descriptor["pathOrInlineDv"])
    if None in (descriptor["sizeInBytes"], descriptor["cardinality"]):
        raise _corrupt(f"the deletion vector {where!r}", "the log does not say how many bytes and rows it has")
    size = int(descriptor["sizeInBytes"])
    if kind == "i":
        name, data = "an inline deletion vector", _bytes_of(where)[:size]
    else:
        storage, rel = _file(table, kind, where)
        name = storage.path(rel)
        # What is named by a UUID never changes; an absolute name may be any.
        unique = f"/{rel}".rpartition("/")[2].startswith(_PREFIX)
        data = _read(storage, rel, int(descriptor.get("offset") or 0), size, cached=cached and unique)
    if len(data) < 4 or int.from_bytes(data[:4], "little") != _MAGIC:
        raise _corrupt(name, "it does not begin with the magic number of a deletion vector")
    cardinality = int(descriptor["cardinality"])
    if most is not None and cardinality > most:
        raise _corrupt(name, f"the log says that it holds {cardinality} rows, and its file has {most}")
    rows = decode(data[4:], cardinality)
    if len(rows) != cardinality:
        raise _corrupt(name, f"it holds {len(rows)} rows, the log says {cardinality}")
    return rows


def vector_of(rows: np.ndarray) -> bytes:
    """Encodes sorted row numbers as a deletion vector."""
    return _MAGIC.to_bytes(4, "little") + encode(rows)


def write_vectors(
    table: Storage, vectors: Sequence[bytes], cardinalities: Sequence[int]
) -> tuple[list[dict[str, Any]], str | None]:
    """Returns descriptors of deletion vectors with so many rows each, and the name of their file, None without any.
    It is complete when this returns.
    """
    name = uuid.uuid4()
    where = z85.encode(name.bytes)
    packed, size = [b"\x01"], 1
    found = []
    for body, count in zip(vectors, cardinalities, strict=True):
        known = {"sizeInBytes": len(body), "cardinality": count}
        found.append({"storageType": "u", "pathOrInlineDv": where, "offset": size, **known})
        packed += [len(body).to_bytes(4, "big"), body, zlib.crc32(body).to_bytes(4, "big")]
        size += len(body) + 8
    if not found:
        return found, None
    data = b"".join(packed)
    table.put(_name(name), data)
    PIECES.keep(table, _name(name), data)
    return found, _name(name)


def file_of(table: Storage, descriptor: Mapping[str, Any]) -> str | None:
    """Returns the file of a vector: a name below the table, or an absolute one; None for an inline vector."""
    kind, where = descriptor["storageType"], str(descriptor["pathOrInlineDv"])
    if kind == "i":
        return None
    return decode_path(where) if kind == "p" else _file(table, kind, where)[1]


def _name(name: uuid.UUID) -> str:
    return f"{_PREFIX}{name}.bin"


def _file(table: Storage, kind: str, where: str) -> tuple[Storage, str]:
    if kind == "p":
        return table.at_of_log(decode_path(where))
    if kind != "u" or len(where) < _UUID_LENGTH:
        raise _corrupt(f"the deletion vector {where!r}", f"its storage type is {kind!r}")
    directory = where[:-_UUID_LENGTH]
    name = _name(uuid.UUID(bytes=_bytes_of(where[-_UUID_LENGTH:])))
    return table, f"{directory}/{name}" if directory else name


def _read(storage: Storage, rel: str, offset: int, size: int, *, cached: bool) -> bytes:
    """Reads one vector of a file: length (u32, big-endian), the vector, its CRC-32."""
    read = partial(PIECES.read_ranges, storage) if cached else storage.read_ranges
    name = storage.path(rel)
    try:
        head, body = read(rel, [(0, 1), (offset, offset + 4 + size + 4)])
    except StorageError as e:
        if e.code != "NOT_FOUND":
            raise
        message = f"{name} is gone: the log names a deletion vector in it"
        hint = "It was vacuumed or deleted. Put the file back: it alone says which rows are deleted."
        raise StorageError("NOT_FOUND", message, hint=hint, path=name) from None
    if head != b"\x01":
        raise _corrupt(name, f"its format version is {head[0]}, only 1 is supported")
    if int.from_bytes(body[:4], "big") != size:
        raise _corrupt(name, f"the vector at byte {offset} has another length than in the log ({size})")
    data = body[4 : 4 + size]
    if int.from_bytes(body[4 + size :], "big") != zlib.crc32(data):
        raise _corrupt(name, f"the vector at byte {offset} does not match its checksum")
    return data


def _bytes_of(text: str) -> bytes:
    """Decodes z85 without a tail, as the protocol requires."""
    data = z85.decode(text) if len(text) % 5 == 0 else None
    if data is None:
        raise _corrupt("a deletion vector", f"its text of {len(text)} characters is not z85")
    return data


def _corrupt(name: str, why: str) -> CorruptDataError:
    return CorruptDataError(
        "CORRUPT_DELETION_VECTOR", f"{name} cannot be used: {why}", hint="Restore the file.", path=name
    )
