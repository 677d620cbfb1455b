"""z85: bytes as text, four bytes as five characters.

The rule: the encoder writes only the strict form, zero-padded to a multiple of 4 bytes, because delta-spark rejects any
other length. The decoder also accepts a short tail as in ascii85, which the RFC's example has; any other text is null,
so one damaged file does not affect the others.

Source: ZeroMQ RFC 32; Delta RFC "Variant Shredding", its example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_INVALID = 255
_TOP = 50_529_027
_CODES = np.full(256, _INVALID, np.uint8)
_CODES[np.frombuffer(_ALPHABET, np.uint8)] = np.arange(85, dtype=np.uint8)
_LETTERS = np.frombuffer(_ALPHABET, np.uint8)
_POWERS = np.array([85**4, 85**3, 85**2, 85, 1], np.uint64)


def encode(data: bytes) -> str:
    """Encodes in the strict form; `data` is padded with zeros to a multiple of 4 bytes."""
    padded = data + b"\0" * (-len(data) % 4)
    numbers = np.frombuffer(padded, ">u4").astype(np.uint64)
    digits = (numbers[:, None] // _POWERS) % np.uint64(85)
    return _LETTERS[digits.astype(np.uint8)].tobytes().decode("ascii")


def decode(text: str) -> bytes | None:
    """Decodes one text, strict or with a short tail; None for any other text."""
    raw = text.encode("utf-8", "replace")
    tail = len(raw) % 5
    if tail == 1:
        return None
    # A tail of n characters encodes n - 1 bytes; the missing characters count as the highest digit.
    numbers, wrong = _numbers(raw + b"#" * (-len(raw) % 5))
    if len(wrong):
        return None
    data = numbers.astype(">u4").tobytes()
    return data[: len(data) - (5 - tail)] if tail else data


@dataclass(frozen=True, slots=True)
class Joined:
    """Many decoded texts in one buffer: `rows` are those in it, with `starts` and `lengths` by row.

    `alone` holds the few texts with a short tail.
    """

    raw: bytes
    data: NDArray[np.uint8]
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    alone: dict[int, bytes]

    def bytes_of(self, row: int) -> bytes:
        """The bytes of one row of the buffer."""
        start = int(self.starts[row])
        return self.raw[start : start + int(self.lengths[row])]


def decode_joined(texts: Sequence[str | None]) -> Joined:
    """Decodes many texts at once; null and invalid texts are in neither `rows` nor `alone`."""
    strict, alone = [], {}
    for i, text in enumerate(texts):
        if text is None:
            continue
        if len(text) % 5 == 0 and text.isascii():
            strict.append(i)
        elif (data := decode(text)) is not None:
            alone[i] = data
    joined = "".join([texts[i] or "" for i in strict]).encode()
    numbers, wrong = _numbers(joined)
    rows = np.array(strict, np.int64)
    sizes = np.array([len(texts[i] or "") for i in strict], np.int64) // 5 * 4
    ends = np.cumsum(sizes)
    starts, lengths = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
    starts[rows], lengths[rows] = ends - sizes, sizes
    rows = np.delete(rows, np.unique(np.searchsorted(ends, wrong * 4, side="right")))
    raw = numbers.astype(">u4").tobytes()
    return Joined(raw, np.frombuffer(raw, np.uint8), rows, starts, lengths, alone)


def _numbers(text: bytes) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Returns the number of each five characters, and the positions of invalid ones."""
    codes = _CODES[np.frombuffer(text, np.uint8)].reshape(-1, 5)
    high = codes[:, 0].astype(np.uint32)
    for i in range(1, 4):
        high *= np.uint32(85)
        high += codes[:, i]
    # 2^32 - 1 is 85 times _TOP: above it the last digit would overflow.
    wrong = (high > _TOP) | ((high == _TOP) & (codes[:, 4] > 0))
    if codes.size and codes.max() == _INVALID:
        wrong |= (codes == _INVALID).any(axis=1)
    return high * np.uint32(85) + codes[:, 4], np.flatnonzero(wrong)


def decode_array(texts: pa.Array) -> list[bytes | None]:
    """Decodes many texts at once; null and invalid texts are None."""
    rows: list[str | None] = texts.to_pylist()
    joined = decode_joined(rows)
    found: list[bytes | None] = [joined.alone.get(i) for i in range(len(rows))]
    for row in joined.rows.tolist():
        found[row] = joined.bytes_of(row)
    return found
