"""Recognises inputs that are not JSON text by their first bytes.

The rule: the error names the format of the file and the command that makes it readable, instead of a JSON parser's
error. Nothing that could be JSON is refused: no document begins with these bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from mica.errors import UserError
from mica.storage.base import split_scheme

#: (offset, bytes there, what the file is, the command whose output mica reads, or mica's own that reads the file).
#: Longer marks come before those that they begin with. `{}` is the file, on a disk but for mica's own command.
MARKS: Sequence[tuple[int, bytes, str, str | None]] = (
    (4, b"1AY&SY", "compressed with bzip2", "bzip2 -dc {}"),
    (0, b"\xfd7zXZ\x00", "compressed with xz", "xz -dc {}"),
    (0, b"\x5d\x00\x00", "compressed with lzma", "xz -dc {}"),
    (0, b"\x04\x22\x4d\x18", "compressed with lz4", "lz4 -dc {}"),
    (0, b"\xff\x06\x00\x00sNaPpY", "compressed with snappy", "python -m snappy -d {}"),
    (0, b"PK\x03\x04", "a zip archive", "unzip -p {}"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z e -so {}"),
    (257, b"ustar", "a tar archive", "tar -xOf {}"),
    (0, b"PAR1\x15", "a Parquet file", "mica convert {} TABLE"),
    (0, b"Obj\x01", "an Avro file", None),
    (0, b"\xff\xfe\x00\x00", "text in UTF-32", "iconv -f UTF-32 -t UTF-8 {}"),
    (0, b"\x00\x00\xfe\xff", "text in UTF-32", "iconv -f UTF-32 -t UTF-8 {}"),
    (0, b"\xff\xfe", "text in UTF-16", "iconv -f UTF-16 -t UTF-8 {}"),
    (0, b"\xfe\xff", "text in UTF-16", "iconv -f UTF-16 -t UTF-8 {}"),
)


def refuse(name: str, head: bytes) -> None:
    """Raises UNSUPPORTED_INPUT if a file with these first (decompressed) bytes is not JSON text."""
    found = next(((what, way) for at, mark, what, way in MARKS if head[at:].startswith(mark)), None) or _unmarked(head)
    if found is None:
        return
    what, command = found
    if command is None:
        hint = "Write its rows as NDJSON first."
    elif command.startswith("mica "):
        hint = f"Make a table of it: {command.format(quote(name))}"
    else:
        scheme, rest = split_scheme(name)
        copied = quote(name if scheme is None else rest.rpartition("/")[2])
        way = "Pipe it in" if scheme is None else "Copy it to a disk and pipe it in"
        hint = f"{way}: {command.format(copied)} | mica ingest - TABLE"
    raise UserError("UNSUPPORTED_INPUT", f"{name} is {what}, not JSON text in UTF-8", hint=hint, path=name)


def _unmarked(head: bytes) -> tuple[str, str] | None:
    """UTF-16 without a byte order mark: JSON begins with ASCII, whose other byte is 0. No JSON text holds a NUL."""
    if len(head) >= 4 and head[0] != 0 and head[1] == 0 and head[2] != 0 and head[3] == 0:
        return "text in UTF-16", "iconv -f UTF-16LE -t UTF-8 {}"
    if len(head) >= 4 and head[0] == 0 and head[1] != 0 and head[2] == 0 and head[3] != 0:
        return "text in UTF-16", "iconv -f UTF-16BE -t UTF-8 {}"
    return None
