"""Encodes Python values as Variants.

The rule: each value gets the type that holds it exactly; a value without such a type is rejected. Nothing is rounded or
converted to a string. `to_python` returns the value that was encoded.

Source: Parquet "VariantEncoding", "Encoding types".
"""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from mica.arguments import COUNT, VALUES, takes
from mica.arrays import arrow_array, from_numpy
from mica.errors import UserError
from mica.schema.arrow import MARKED_VARIANT

#: Maximum levels of nesting, as for JSON.
MAX_DEPTH = 1000

_NULL = b"\0"
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - the epoch of values without a zone
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
#: A day in milliseconds, which date64 counts.
_DAY = 86_400_000


@takes(values=VALUES, max_size=COUNT)
def from_python(values: Iterable[Any], *, max_size: int = 16 << 20) -> pa.StructArray:
    """Encodes Python values as Variants, `struct<metadata: binary, value: binary>`; the type marks them as such.

    Dicts (with strings as keys) become objects, lists and tuples arrays. bool, int, float, Decimal, str, bytes, date,
    datetime (with a zone: TIMESTAMP, without: TIMESTAMP_NTZ), time, UUID, numpy's numbers and Arrow's scalars of these
    get the type that holds them exactly; an int gets the narrowest, beyond 64 bits DECIMAL(38, 0). None is SQL NULL
    as a whole value and the JSON null inside one. A str is a string; use `from_json` for JSON texts.

    `max_size` limits the bytes of metadata and value of one row together. Errors: INVALID_VALUE, TOO_DEEP and
    TOO_LARGE, with the row and the path.
    """
    metadata: list[bytes | None] = []
    encoded: list[bytes | None] = []
    for row, value in enumerate(values):
        if is_null(value):
            metadata.append(None)
            encoded.append(None)
            continue
        names, body = encode(value, row)
        if len(names) + len(body) > max_size:
            raise UserError(
                "TOO_LARGE", f"the value of row {row} has {len(names) + len(body):,} bytes, more than {max_size:,}",
                hint="Raise max_size, up to 128 MiB.", row=row,
            )  # fmt: skip
        metadata.append(names)
        encoded.append(body)
    there = from_numpy(np.array([body is not None for body in encoded], np.bool_))
    parts = [arrow_array([part or b"" for part in column], pa.binary()) for column in (metadata, encoded)]
    # Of a mask pyarrow makes the bits itself, by `pyarrow.compute`.
    return pa.StructArray.from_buffers(MARKED_VARIANT, len(there), there.buffers()[1:], children=parts)


def is_null(value: Any) -> bool:
    """Whether the value is None, or the equivalent in pandas or Arrow."""
    if isinstance(value, pa.Scalar):
        return not value.is_valid
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def encode(value: Any, row: int | None = None) -> tuple[bytes, bytes]:
    """Encodes one value as (metadata, value); `row` is for errors. Not recursive: Python's stack is short."""
    # Parents come before their children, so a walk from the end finds all children encoded.
    nodes: list[Any] = [value]
    depths = [1]
    paths: list[tuple[int, str | int]] = [(-1, "")]
    children: list[list[int]] = [[]]
    names: dict[str, int] = {}
    at = 0
    while at < len(nodes):
        node = _unwrapped(nodes[at]) if isinstance(nodes[at], _WRAPPED) else nodes[at]
        inside: Iterable[tuple[Any, Any]] = ()
        try:
            if isinstance(node, pa.StructScalar | pa.ListScalar):
                node = nodes[at] = _parts(node)
            elif isinstance(node, np.ndarray) and node.ndim == 0:
                node = nodes[at] = node[()]
            if isinstance(node, Mapping):
                inside = _keyed(node).items()
            elif isinstance(node, list | tuple | np.ndarray):
                inside = enumerate(node)
        except ValueError as e:
            raise _bad(row, paths, at, str(e)) from None
        for key, child in inside:
            if isinstance(node, Mapping):
                names[key] = 0
            children[at].append(len(nodes))
            nodes.append(child)
            children.append([])
            paths.append((at, key))
            depths.append(depths[at] + 1)
        if depths[at] > MAX_DEPTH:
            raise UserError("TOO_DEEP", f"{_place(row, paths, at)[:80]} nests deeper than {MAX_DEPTH} levels", row=row)
        at += 1
    try:
        keys = tuple(sorted(names, key=str.encode))
    except UnicodeEncodeError as e:
        raise _bad(row, paths, 0, f"a key is not Unicode text: {e}") from None
    ids: Mapping[str | int, int] = {name: i for i, name in enumerate(keys)}
    made: list[bytes] = [b""] * len(nodes)
    for at in reversed(range(len(nodes))):
        node = nodes[at]
        if isinstance(node, Mapping):
            fields = sorted((ids[paths[child][1]], made[child]) for child in children[at])
            made[at] = object_of([i for i, _ in fields], [body for _, body in fields])
        elif isinstance(node, list | tuple | np.ndarray):
            made[at] = array_of([made[child] for child in children[at]])
        else:
            made[at] = _leaf(node, row, paths, at)
    return metadata_of(keys), made[0]


#: Arrow's scalars around others: of a dictionary, of run ends, of a union, of an extension.
_WRAPPED = (pa.DictionaryScalar, pa.RunEndEncodedScalar, pa.UnionScalar, pa.ExtensionScalar)


def _unwrapped(value: Any) -> Any:
    """The struct or list inside; a value that has no parts as it is."""
    inner = value
    while isinstance(inner, _WRAPPED):
        inner = inner.value
    return inner if isinstance(inner, pa.StructScalar | pa.ListScalar) else value


def _parts(value: pa.StructScalar | pa.ListScalar) -> dict[str, pa.Scalar] | list[Any] | None:
    """The parts as Arrow's scalars, since Python has not all of their values. A map is a list of pairs."""
    if not value.is_valid:
        return None
    if isinstance(value, pa.MapScalar):
        return list(zip(*value.values.flatten(), strict=True))
    if isinstance(value, pa.ListScalar):
        return list(value)
    names = [f.name for f in value.type]
    found = {name: value[i] for i, name in enumerate(names)}
    if len(found) < len(names):
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


def _keyed(node: Mapping[Any, Any]) -> Mapping[str, Any]:
    """The parts by plain strings: members of an Enum are shown otherwise, and classes may compare and hash otherwise.
    Raises ValueError for a key that is no string, and for two with the same text."""
    if set(map(type, node)) <= {str}:
        return node
    found: dict[str, Any] = {}
    for key, part in node.items():
        if not isinstance(key, str):
            raise ValueError(f"the key {key!r} is not a string")
        text = str.__str__(key)
        if text in found:
            raise ValueError(f"the key {text!r} is there twice")
        found[text] = part
    return found


@lru_cache(maxsize=1024)
def metadata_of(keys: tuple[str, ...]) -> bytes:
    """Encodes the metadata for a dictionary of these keys, which must be sorted and distinct."""
    encoded = [key.encode() for key in keys]
    width = _width(max(sum(map(len, encoded)), len(keys)))
    head = bytes([0x11 | (width - 1) << 6]) + len(keys).to_bytes(width, "little")
    return head + _offsets(encoded, width) + b"".join(encoded)


def object_of(ids: Sequence[int], values: Sequence[bytes]) -> bytes:
    """Builds an object from encoded values; `ids` are those of its keys, in the order of the keys."""
    large = len(ids) > 255
    id_width = _width(max(ids, default=0))
    width = _width(sum(map(len, values)))
    header = (width - 1) << 2 | (id_width - 1) << 4 | large << 6 | 2
    head = bytes([header]) + len(ids).to_bytes(4 if large else 1, "little")
    return head + b"".join(i.to_bytes(id_width, "little") for i in ids) + _offsets(values, width) + b"".join(values)


def array_of(values: Sequence[bytes]) -> bytes:
    """Builds an array from encoded values."""
    large = len(values) > 255
    width = _width(sum(map(len, values)))
    head = bytes([(width - 1) << 2 | large << 4 | 3]) + len(values).to_bytes(4 if large else 1, "little")
    return head + _offsets(values, width) + b"".join(values)


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _offsets(parts: Iterable[bytes], width: int) -> bytes:
    at, out = 0, [b"\0" * width]
    for part in parts:
        at += len(part)
        out.append(at.to_bytes(width, "little"))
    return b"".join(out)


# --- values without parts --------------------------------------------------------------------------------------------


def _leaf(value: Any, row: int | None, paths: list[tuple[int, str | int]], at: int) -> bytes:
    try:
        if is_null(value):
            return _NULL
        for kind, write in _LEAVES:
            if isinstance(value, kind):
                return write(value)
    except (ValueError, OverflowError, struct.error, pa.ArrowException) as e:
        raise _bad(row, paths, at, str(e)) from None
    raise _bad(row, paths, at, f"there is no Variant type for a {type(value).__module__}.{type(value).__qualname__}")


def _whole_number(value: Any) -> bytes:
    if isinstance(value, np.timedelta64):  # numpy takes it for one
        raise ValueError("there is no Variant type for a numpy.timedelta64")
    number = int(value)
    for kind, size in ((3, 1), (4, 2), (5, 4), (6, 8)):
        if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
            return bytes([kind << 2]) + number.to_bytes(size, "little", signed=True)
    return _decimal(Decimal(number))


def _decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not finite, and a decimal must be")
    if exponent > 38:
        raise ValueError(f"{value} has more than 38 digits")
    unscaled: int = int("".join(map(str, digits)) or "0") * 10 ** max(exponent, 0) * (-1 if sign else 1)
    scale = max(-exponent, 0)
    precision = max(len(str(abs(unscaled))), scale)
    if precision > 38:
        raise ValueError(f"{value} has more than 38 digits")
    kind, size = (8, 4) if precision <= 9 else (9, 8) if precision <= 18 else (10, 16)
    return bytes([kind << 2, scale]) + unscaled.to_bytes(size, "little", signed=True)


def _text(value: str) -> bytes:
    body = value.encode()
    if len(body) < 64:
        return bytes([len(body) << 2 | 1]) + body
    return bytes([16 << 2]) + len(body).to_bytes(4, "little") + body


def _binary(value: Any) -> bytes:
    body = bytes(value)
    return bytes([15 << 2]) + len(body).to_bytes(4, "little") + body


def _datetime(value: Any) -> bytes:
    aware: bool = value.utcoffset() is not None
    if getattr(value, "nanosecond", 0):  # a pandas Timestamp
        return _counted(18 if aware else 19, value.as_unit("ns").value)
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    return _counted(12 if aware else 13, (value - (_EPOCH_UTC if aware else _EPOCH)) // _MICROSECOND)


def _counted(kind: int, count: int, size: int = 8) -> bytes:
    return bytes([kind << 2]) + count.to_bytes(size, "little", signed=True)


def _time(value: dt.time) -> bytes:
    if value.tzinfo is not None:
        raise ValueError("a time with a zone has no Variant type")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _counted(17, seconds * 1_000_000 + value.microsecond)


def _scalar(value: pa.Scalar) -> bytes:
    """Encodes Arrow scalars: dates and timestamps, whose range exceeds Python's, times of whole microseconds, and those
    with a Python value."""
    if isinstance(value, pa.Date32Scalar):
        return _counted(11, value.value, 4)
    if isinstance(value, pa.Date64Scalar):
        return _counted(11, value.value // _DAY, 4)
    if isinstance(value, pa.TimestampScalar):
        aware = value.type.tz is not None
        if value.type.unit == "ns":
            return _counted(18 if aware else 19, value.value)
        return _counted(12 if aware else 13, value.cast(pa.timestamp("us", value.type.tz)).value)
    if isinstance(value, pa.Time64Scalar):
        value = value.cast(pa.time64("us"))
    plain = value.as_py()
    for kind, write in _LEAVES[:-1]:
        if isinstance(plain, kind):
            return write(plain)
    raise ValueError(f"there is no Variant type for an Arrow {value.type}")


#: Python type → its encoder. The first match applies: bool is an int, datetime is a date.
_LEAVES: tuple[tuple[Any, Callable[[Any], bytes]], ...] = (
    (str, _text),
    (bool | np.bool_, lambda value: b"\x04" if value else b"\x08"),
    (Integral, _whole_number),
    (float, lambda value: b"\x1c" + struct.pack("<d", value)),
    (np.float32 | np.float16, lambda value: b"\x38" + struct.pack("<f", value)),
    (Decimal, _decimal),
    (bytes | bytearray | memoryview, _binary),
    (dt.datetime, _datetime),
    (dt.date, lambda value: _counted(11, value.toordinal() - _EPOCH.toordinal(), 4)),
    (dt.time, _time),
    (uuid.UUID, lambda value: bytes([20 << 2]) + value.bytes),
    (pa.Scalar, _scalar),
)


def _bad(row: int | None, paths: list[tuple[int, str | int]], at: int, why: str) -> UserError:
    return UserError("INVALID_VALUE", f"{_place(row, paths, at)}: {why}", row=row)


def _place(row: int | None, paths: list[tuple[int, str | int]], at: int) -> str:
    steps = []
    while at > 0:
        at, key = paths[at]
        steps.append(f"[{key!r}]")
    return f"{'' if row is None else f'row {row}, '}${''.join(reversed(steps))}"
