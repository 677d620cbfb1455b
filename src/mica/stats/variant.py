"""The bounds of a variant column: an object of normalized paths, as bytes.

The rule: the writer makes one canonical object, metadata then value; the reader expects any input. It distinguishes
metadata and value by their headers, ignores an incomplete object, and checks every length against the bytes
present before it uses the length.

Source: Delta RFC "Variant Shredding", "Statistics for Variant Columns"; Parquet "VariantEncoding".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from mica.stats import z85
from mica.variant.encode import metadata_of, object_of

#: Length of a primitive's bytes after its header, by type id; strings and binary say their own.
_SIZES = {0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 5, 9: 9, 10: 17, 11: 4, 12: 8, 13: 8, 14: 4, 17: 8}
_EXACT = Context(prec=40)  # the default one rounds at 28 digits
_SIZES |= {18: 8, 19: 8, 20: 16}


class Value(NamedTuple):
    """A bound. `kind` is its comparison class: exact, float, double, string, date, timestamp, timestamp_ntz.

    Dates are days, timestamps microseconds, exact numbers int or Decimal.
    """

    kind: str
    value: Any


def build_object(fields: Mapping[str, bytes]) -> tuple[bytes, bytes]:
    """(metadata, value) of an object with these keys and encoded values."""
    keys = tuple(sorted(fields, key=str.encode))
    return metadata_of(keys), object_of(range(len(keys)), [fields[key] for key in keys])


def encode_bounds(fields: Mapping[str, bytes]) -> str:
    """The z85 text of such an object."""
    metadata, value = build_object(fields)
    return z85.encode(metadata + value)


def split(data: bytes) -> tuple[bytes, bytes] | None:
    """Splits bytes that hold metadata and value in either order, with up to 3 zero bytes after them.

    Metadata begins with its version, 1, in the low four bits; an object with the basic type 2 in the low two. Returns
    None if the lengths in the headers do not fit.
    """
    if not data:
        return None
    metadata_first = data[0] & 3 != 2
    first = _metadata_length(data, 0) if metadata_first else _object_length(data, 0)
    if first is None:
        return None
    second = _object_length(data, first) if metadata_first else _metadata_length(data, first)
    if second is None or len(data) - first - second > 3 or any(data[first + second :]):
        return None
    parts = data[:first], data[first : first + second]
    return parts if metadata_first else (parts[1], parts[0])


class KeyPlace(NamedTuple):
    """Positions in an object, counted from its first byte; `at` is the offset of a key, -1 without the key.

    `ids_end`: the end of header, count and ids, which together with the metadata determine the layout. `last`: the
    position of the last offset (the length of all values). `values`: the first value. `width`: bytes of an offset.
    """

    at: int
    ids_end: int
    last: int
    values: int
    width: int


def key_place(metadata: bytes, value: bytes, key: str) -> KeyPlace:
    """Finds a key in the object `value`, which must come from `split`."""
    layout = _layout(value, 0)
    if layout is None:
        return KeyPlace(-1, min(2, len(value)), 0, 0, 1)
    _, ids, offsets, values, id_width, width = layout
    field_id = _ids(metadata).get(key)
    place = -1
    if field_id is not None:
        wanted = field_id.to_bytes(4, "little")[:id_width] if field_id < 1 << 8 * id_width else b""
        all_ids = (value[i : i + id_width] for i in range(ids, offsets, id_width))
        place = next((i for i, found in enumerate(all_ids) if found == wanted), -1)
    return KeyPlace(offsets + place * width if place >= 0 else -1, offsets, values - width, values, width)


def lookup(metadata: bytes, value: bytes, key: str) -> Value | None:
    """Returns the bound of that path; None if it is missing, damaged or of a type without an order."""
    place = key_place(metadata, value, key)
    if place.at < 0:
        return None
    return read_value(value, place.values + int.from_bytes(value[place.at : place.at + place.width], "little"))


def paths(metadata: bytes, value: bytes) -> dict[str, Value | None]:
    """Returns all bounds of the object, by path."""
    layout = _layout(value, 0) if value and value[0] & 3 == 2 else None
    if layout is None:
        return {}
    count, ids, _, _, id_width, _ = layout
    present = {int.from_bytes(value[ids + i * id_width : ids + (i + 1) * id_width], "little") for i in range(count)}
    names = [key for key, code in _ids(metadata).items() if code in present]
    return {key: lookup(metadata, value, key) for key in names}


def read_value(value: bytes, at: int) -> Value | None:
    """Reads the primitive that begins at `at`; None if it is truncated or of a type that has no bounds."""
    if at >= len(value):
        return None
    header = value[at]
    if header & 3 == 1:
        body = value[at + 1 : at + 1 + (header >> 2)]
        return _string(body) if len(body) == header >> 2 else None
    if header & 3 != 0:
        return None
    kind, at = header >> 2, at + 1
    if kind == 16:
        size = int.from_bytes(value[at : at + 4], "little")
        body = value[at + 4 : at + 4 + size]
        return _string(body) if len(value) >= at + 4 and len(body) == size else None
    size = _SIZES.get(kind, -1)
    body = value[at : at + size]
    if size < 0 or len(body) != size:
        return None
    match kind:
        case 3 | 4 | 5 | 6:
            return Value("exact", int.from_bytes(body, "little", signed=True))
        case 8 | 9 | 10:
            unscaled = int.from_bytes(body[1:], "little", signed=True)
            return Value("exact", Decimal(unscaled).scaleb(-body[0], _EXACT)) if body[0] <= 38 else None
        case 7:
            return Value("double", struct.unpack("<d", body)[0])
        case 14:
            return Value("float", struct.unpack("<f", body)[0])
        case 11:
            return Value("date", int.from_bytes(body, "little", signed=True))
        case 12:
            return Value("timestamp", int.from_bytes(body, "little", signed=True))
        case 13:
            return Value("timestamp_ntz", int.from_bytes(body, "little", signed=True))
    return None


def _string(body: bytes) -> Value | None:
    try:
        return Value("string", body.decode())
    except UnicodeDecodeError:
        return None


@lru_cache(maxsize=4096)
def _ids(metadata: bytes) -> dict[str, int]:
    """Key → id. Files of one writer share metadata."""
    if _metadata_length(metadata, 0) != len(metadata):
        return {}
    width = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    first = 1 + width * (count + 2)
    ends = [int.from_bytes(metadata[1 + width * i : 1 + width * (i + 1)], "little") for i in range(1, count + 2)]
    ids: dict[str, int] = {}
    for i in range(count):
        try:
            key = metadata[first + ends[i] : first + ends[i + 1]].decode()
        except UnicodeDecodeError:
            return {}
        if ends[i] > ends[i + 1] or key in ids:
            return {}
        ids[key] = i
    return ids


def _metadata_length(data: bytes, at: int) -> int | None:
    if at >= len(data) or data[at] & 0x0F != 1:
        return None
    width = (data[at] >> 6) + 1
    count = int.from_bytes(data[at + 1 : at + 1 + width], "little")
    first = at + 1 + width * (count + 2)
    if first > len(data):
        return None
    last = int.from_bytes(data[first - width : first], "little")
    return first - at + last if first + last <= len(data) else None


def _layout(data: bytes, at: int) -> tuple[int, int, int, int, int, int] | None:
    """count, start of ids, of offsets and of values, width of an id and of an offset of the object at `at`."""
    if at >= len(data) or data[at] & 3 != 2:
        return None
    info = data[at] >> 2
    offset_width, id_width = (info & 3) + 1, (info >> 2 & 3) + 1
    counted = 4 if info >> 4 & 1 else 1
    count = int.from_bytes(data[at + 1 : at + 1 + counted], "little")
    ids = at + 1 + counted
    offsets = ids + count * id_width
    values = offsets + (count + 1) * offset_width
    return (count, ids, offsets, values, id_width, offset_width) if values <= len(data) else None


def _object_length(data: bytes, at: int) -> int | None:
    layout = _layout(data, at)
    if layout is None:
        return None
    _, _, _, values, _, offset_width = layout
    total = int.from_bytes(data[values - offset_width : values], "little")
    return values - at + total if values + total <= len(data) else None
