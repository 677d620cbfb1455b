"""Texts and bytes in other writings, their lengths and checksums, as in Spark.

The rule: bytes are those of UTF-8; a text that has not the form that is read gives what Spark gives for it.

Source: Spark's Hex, Unhex, Bin, Base64, UnBase64, Encode, Decode, UrlCodec, BitLength, OctetLength, Sha1, Crc32, Conv;
java.util.Base64.getMimeDecoder.
"""

from __future__ import annotations

import re
from binascii import b2a_base64, crc32
from collections.abc import Mapping

import pyarrow as pa

from mica import compute as pc
from mica import late
from mica.expressions.coerce import is_number, is_plain
from mica.expressions.pairs import by_rows, tried_by_rows
from mica.expressions.signatures import Asked, Function, Signature
from mica.expressions.tokens import OnlySparkError
from mica.schema.types import BINARY, INTEGER, LONG, STRING, VARIANT, VOID

_BASE64 = {ord(c): n for n, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.*_-")


def _of_hex(asked: Asked) -> Signature | None:
    """A number, bytes, or a text, which all else is cast to."""
    own = asked.types[0]
    if is_number(own) or own == VOID:
        return (LONG,), STRING
    return ((BINARY if own == BINARY else STRING,), STRING) if is_plain(own) and own != VARIANT else None


def hexadecimal(values: pa.Array) -> pa.Array:
    """The digits of the 64 bits of a number, without zeros in front, or of all bytes."""
    if pa.types.is_integer(values.type):
        return by_rows(STRING, lambda n: f"{n & (1 << 64) - 1:X}", values)
    return by_rows(STRING, lambda data: data.hex().upper(), values.cast(pa.binary()))


def unhex(values: pa.Array) -> pa.Array:
    """The bytes of hexadecimal digits, to which an odd number gets a zero in front; NULL for other texts."""

    def one(text: str) -> bytes | None:
        if re.fullmatch("[0-9A-Fa-f]*", text) is None:
            return None
        return bytes.fromhex("0" * (len(text) % 2) + text)

    return by_rows(BINARY, one, values)


def binary(values: pa.Array) -> pa.Array:
    """The 64 bits of a number, without zeros in front."""
    return by_rows(STRING, lambda n: f"{n & (1 << 64) - 1:b}", values)


#: How many bytes Spark writes in a line of Base64, of 76 characters (MIME; `spark.sql.chunkBase64String.enabled`).
_LINE = 57


def base64(values: pa.Array) -> pa.Array:
    """In Base64, in lines as Spark has them; the last one has no end."""

    def lines(data: bytes) -> str:
        parts = (data[at : at + _LINE] for at in range(0, len(data), _LINE))
        return "\r\n".join(b2a_base64(part, newline=False).decode() for part in parts)

    return by_rows(STRING, lines, values)


def unbase64(values: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """The bytes that Base64 writes. Other characters are passed over; a wrong end fails."""
    return tried_by_rows(BINARY, _decoded, values)


def _decoded(text: str) -> bytes | None:
    found, bits, count = bytearray(), 0, 0
    data = iter(text.encode())
    for byte in data:
        if byte == ord("="):
            if count == 0 or (count == 2 and next(data, None) != ord("=")):
                return None
            break
        if byte not in _BASE64:
            continue
        bits, count = bits << 6 | _BASE64[byte], count + 1
        if count == 4:
            found += bits.to_bytes(3, "big")
            bits = count = 0
    if count == 1 or any(byte in _BASE64 for byte in data):
        return None
    return bytes(found + (bits << 6 * (4 - count) & 0xFFFFFF).to_bytes(3, "big")[: count - 1] if count else found)


def check_charset(_values: None, name: str) -> None:
    """Raises OnlySparkError for another character set than UTF-8."""
    if name.upper() != "UTF-8":
        raise OnlySparkError(f"the character set {name!r} cannot be used here")


def encode(values: pa.Array, _charset: pa.Scalar) -> pa.Array:
    """The bytes of texts."""
    return values.cast(pa.binary())


def decode(values: pa.Array, _charset: pa.Scalar) -> tuple[pa.Array, pa.Array | None]:
    """The texts of bytes. What is no UTF-8 fails."""

    def one(data: bytes) -> str | None:
        try:
            return data.decode()
        except UnicodeDecodeError:
            return None

    return tried_by_rows(STRING, one, values)


def url_encode(values: pa.Array) -> pa.Array:
    """As in the query of a URL."""

    def one(text: str) -> str:
        return "".join(chr(b) if b in _SAFE else "+" if b == 32 else f"%{b:02X}" for b in text.encode())

    return by_rows(STRING, one, values)


def octet_length(values: pa.Array) -> pa.Array:
    """The number of bytes."""
    return pc.binary_length(values).cast(pa.int32())


def bit_length(values: pa.Array) -> pa.Array:
    """The number of bits."""
    return pc.multiply(octet_length(values), 8).cast(pa.int32())


def _of_bytes(asked: Asked) -> Signature | None:
    """Bytes, or a text, which all else is cast to."""
    own = asked.types[0]
    return ((BINARY if own == BINARY else STRING,), INTEGER) if is_plain(own) and own != VARIANT else None


def sha1(values: pa.Array) -> pa.Array:
    """SHA-1, of 40 digits."""
    return by_rows(STRING, lambda data: late.hashlib.sha1(data, usedforsecurity=False).hexdigest(), values)


def checksum(values: pa.Array) -> pa.Array:
    """CRC-32."""
    return by_rows(LONG, crc32, values)


def _of_bytes_and_text(asked: Asked) -> Signature | None:
    fits = asked.types[0] in (STRING, BINARY, VOID) and asked.types[1] in (STRING, VOID)
    return ((BINARY, STRING), STRING) if fits else None


FUNCTIONS: Mapping[str, Function] = {
    "hex": Function((VOID,), STRING, hexadecimal, resolve=_of_hex),
    "unhex": Function((STRING,), BINARY, unhex),
    "bin": Function((LONG,), STRING, binary),
    "base64": Function((BINARY,), STRING, base64),
    "unbase64": Function((STRING,), BINARY, unbase64),
    "encode": Function((STRING, STRING), BINARY, encode, constants=(1,), check=check_charset),
    "decode": Function((BINARY, STRING), STRING, decode, constants=(1,), resolve=_of_bytes_and_text,
                       check=check_charset),
    "url_encode": Function((STRING,), STRING, url_encode),
    "octet_length": Function((VOID,), INTEGER, octet_length, resolve=_of_bytes),
    "bit_length": Function((VOID,), INTEGER, bit_length, resolve=_of_bytes),
    "sha1": Function((BINARY,), STRING, sha1),
    "crc32": Function((BINARY,), LONG, checksum),
}  # fmt: skip
