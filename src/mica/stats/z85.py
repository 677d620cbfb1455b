"""z85: bytes as text, four bytes as five characters.

The rule: written is only the strict form, zero-padded to a multiple of 4 bytes, since delta-spark refuses any other
length. Read is also a short tail as in ascii85, which the RFC's own example has; a text that is neither is null, so
that one damaged file costs only itself.

Source: ZeroMQ RFC 32; Delta RFC "Variant Shredding", its example.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_CODES = np.full(256, 255, np.uint8)
_CODES[np.frombuffer(_ALPHABET, np.uint8)] = np.arange(85, dtype=np.uint8)
_LETTERS = np.frombuffer(_ALPHABET, np.uint8)
_POWERS = np.array([85**4, 85**3, 85**2, 85, 1], np.uint64)


def encode(data: bytes) -> str:
    """The strict form; `data` is padded with zeros to a multiple of 4 bytes."""
    padded = data + b"\0" * (-len(data) % 4)
    numbers = np.frombuffer(padded, ">u4").astype(np.uint64)
    digits = (numbers[:, None] // _POWERS) % np.uint64(85)
    return _LETTERS[digits.astype(np.uint8)].tobytes().decode("ascii")


def decode(text: str) -> bytes | None:
    """The bytes of one text, strict or with a short tail; None where it is neither."""
    raw = text.encode("utf-8", "replace")
    tail = len(raw) % 5
    if tail == 1:
        return None
    # A tail of n characters stands for n - 1 bytes; the missing characters count as the highest digit.
    codes = _CODES[np.frombuffer(raw + b"#" * (-len(raw) % 5), np.uint8)]
    numbers = codes.reshape(-1, 5).astype(np.uint64) @ _POWERS
    if (codes == 255).any() or (numbers > 0xFFFFFFFF).any():
        return None
    data = numbers.astype(">u4").tobytes()
    return data[: len(data) - (5 - tail)] if tail else data


def decode_array(texts: pa.Array) -> list[bytes | None]:
    """Many texts at once; null and what is no z85 are None."""
    rows: list[str | None] = texts.to_pylist()
    strict = [i for i, row in enumerate(rows) if row is not None and len(row) % 5 == 0 and row.isascii()]
    found: list[bytes | None] = [None] * len(rows)
    if strict:
        joined = "".join([rows[i] or "" for i in strict]).encode()
        codes = _CODES[np.frombuffer(joined, np.uint8)].reshape(-1, 5)
        numbers = codes.astype(np.uint64) @ _POWERS
        wrong = np.flatnonzero((codes == 255).any(axis=1) | (numbers > 0xFFFFFFFF))
        data = numbers.astype(">u4").tobytes()
        ends = np.cumsum([len(rows[i] or "") for i in strict]) // 5
        damaged = set(np.searchsorted(ends, wrong, side="right").tolist())
        start = 0
        for place, (i, end) in enumerate(zip(strict, ends.tolist(), strict=True)):
            if place not in damaged:
                found[i] = data[start * 4 : end * 4]
            start = end
    for i, row in enumerate(rows):
        if row is not None and len(row) % 5:
            found[i] = decode(row)
    return found
