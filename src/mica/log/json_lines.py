"""Parses lines of JSON into Arrow columns, all at once.

The rule: input that pyarrow's fast reader would misread or crash on is rejected first: invalid UTF-8 (it accepts it), a
`null` in place of an object (it crashes, 26.0.1), two values on one line (it reads them as two lines). Input that is
not one object per line raises `BrokenLinesError`; nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.json as pj

from mica import compute as pc
from mica import late
from mica.arrays import arrow_array, batch_of, no_rows, to_numpy


class BrokenLinesError(ValueError):
    """The text is not one JSON object per line, or a value has another type than requested."""


def joined(commits: Iterable[bytes]) -> bytes:
    """The lines of commits as one text; one with lines stays as it is."""
    # `isspace` stops at the first character of a line; `strip` would copy megabytes.
    filled = [commit for commit in commits if commit and not commit.isspace()]
    return filled[0] if len(filled) == 1 else b"\n".join(commit.rstrip(b"\r\n") for commit in filled)


def split_lines(data: bytes) -> tuple[pa.Array, int]:
    """Returns the non-blank lines of a commit as one Arrow array over the same bytes, and the longest line's length."""
    buffer = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(buffer == 10) + 1
    if not len(ends) or ends[-1] != len(data):
        ends = np.append(ends, len(data))
    offsets = np.concatenate((np.zeros(1, np.int64), ends.astype(np.int64)))
    lengths = np.diff(offsets)
    if len(data) and int(lengths.min()) > 2:
        lines = pa.Array.from_buffers(
            pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)]
        )
        return lines, int(lengths.max())
    kept = [line for line in data.split(b"\n") if line.strip()]
    return arrow_array(kept, pa.large_binary()), max((len(line) for line in kept), default=0)


def read_lines(data: bytes, lines: pa.Array, longest: int, schema: pa.Schema) -> pa.Table:
    """Returns the columns of `schema` from `data`, one row per line; other keys are ignored. `lines` and `longest` come
    from `split_lines`."""
    if not len(lines):
        return no_rows(schema)
    if len(data) <= _FEW_BYTES and (found := _few(data, schema)) is not None:
        return found
    try:
        pc.cast(lines, pa.large_string())
    except pa.ArrowInvalid as error:
        raise BrokenLinesError(f"it is not valid text: {error}") from None
    _refuse_bare_null(data, lines)
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            # A line must not span more than two blocks; a few large blocks let the reader use its threads.
            read_options=pj.ReadOptions(block_size=max(1 << 20, longest + 1), use_threads=len(data) > 4 << 20),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid as error:
        raise BrokenLinesError(str(error).partition("\n")[0]) from None
    if table.num_rows != len(lines):
        raise BrokenLinesError("it holds lines that are not one object each")
    return table


#: So few bytes are parsed here: pyarrow's reader hands them to a thread, which may take longer to wake up than to read.
_FEW_BYTES = 1 << 14


def _few(data: bytes, schema: pa.Schema) -> pa.Table | None:
    """What pyarrow's reader makes of the lines; None if it might make something else of them. A line that orjson writes
    again, byte for byte, has no key twice, and no value that can be read in two ways."""
    rows: list[Any] = []
    for line in data.split(b"\n"):
        if line:
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                return None
            if orjson.dumps(value) != line:
                return None
            rows.append(value)
    fits = all(isinstance(row, dict) and _fits(row, schema) for row in rows)
    return pa.Table.from_batches([batch_of(rows, schema)]) if fits else None


def _fits(value: dict[str, Any], fields: Iterable[pa.Field]) -> bool:
    """Whether the values are exactly of these types."""
    for field in fields:
        found, kind = value.get(field.name), field.type
        if found is None:
            continue
        if pa.types.is_struct(kind):
            same = isinstance(found, dict) and _fits(found, kind.fields)
        elif pa.types.is_integer(kind):
            most = 1 << kind.bit_width - 1
            same = type(found) is int and -most <= found < most
        else:
            same = kind in _PLAIN and type(found) is _PLAIN[kind]
        if not same:
            return False
    return True


_PLAIN = {pa.string(): str, pa.bool_(): bool}

_NULL_AFTER_OBJECT = late.pattern(rb"}[ \t\r]*null")


def _refuse_bare_null(data: bytes, lines: pa.Array) -> None:
    if b"null" not in data:
        return
    _, offsets, texts = lines.buffers()
    first = np.frombuffer(texts, np.uint8)[np.frombuffer(offsets, np.int64)[: len(lines)]]
    suspects = set(np.flatnonzero(first != ord("{")).tolist())
    if _NULL_AFTER_OBJECT.search(data):
        suspects |= set(np.flatnonzero(to_numpy(pc.match_substring_regex(lines, r"}[ \t\r]*null"))).tolist())
    for row in suspects:
        try:
            value = orjson.loads(lines[row].as_buffer().to_pybytes())
        except orjson.JSONDecodeError as error:
            raise BrokenLinesError(str(error)) from None
        if not isinstance(value, dict):
            raise BrokenLinesError("a line is not a JSON object")
