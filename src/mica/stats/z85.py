"""z85: bytes as text, four bytes as five characters, by the kernel.

The rule: the strict form is written, zero-padded to a multiple of 4 bytes, because delta-spark rejects any other
length. A short tail as in ascii85 is read too, which the RFC's example has; any other text is null, so one damaged file
does not affect the others.

Source: ZeroMQ RFC 32; Delta RFC "Variant Shredding", its example.
"""

from __future__ import annotations

import pyarrow as pa

from mica.arrays import arrow_array
from mica.variant import kernel


def encode(data: bytes) -> str:
    """Encodes in the strict form; `data` is padded with zeros to a multiple of 4 bytes."""
    text: str = kernel.encode_z85(arrow_array([data], pa.binary()))[0].as_py()
    return text


def decode(text: str) -> bytes | None:
    """Decodes one text, strict or with a short tail; None for any other text."""
    if not text.isascii():  # lone surrogates cannot be in Arrow
        return None
    found: bytes | None = kernel.decode_z85(arrow_array([text], pa.string()))[0].as_py()
    return found
