"""Variant bytes as Python values, exactly."""

import datetime as dt
import math
import struct
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.variant.values import decode, from_json, to_python

NO_KEYS = b"\x11\x00\x00"


def primitive(kind: int, payload: bytes = b"") -> bytes:
    return bytes([kind << 2]) + payload


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (primitive(0), None), (primitive(1), True), (primitive(2), False),
        (primitive(3, b"\xff"), -1), (primitive(4, struct.pack("<h", -300)), -300),
        (primitive(5, struct.pack("<i", 1 << 30)), 1 << 30), (primitive(6, struct.pack("<q", -(1 << 62))), -(1 << 62)),
        (primitive(7, struct.pack("<d", 0.1)), 0.1), (primitive(14, struct.pack("<f", 0.5)), 0.5),
        (primitive(8, b"\x02" + struct.pack("<i", -100)), Decimal("-1.00")),
        (primitive(10, b"\x26" + (10**38 - 1).to_bytes(16, "little")), Decimal("0." + "9" * 38)),
        (primitive(11, struct.pack("<i", -1)), dt.date(1969, 12, 31)),
        (primitive(12, struct.pack("<q", 1)), dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC)),
        (primitive(13, struct.pack("<q", -1)), dt.datetime.fromisoformat("1969-12-31T23:59:59.999999")),
        (primitive(19, struct.pack("<q", 2000)), dt.datetime.fromisoformat("1970-01-01T00:00:00.000002")),
        (primitive(15, b"\x02\0\0\0\xff\x00"), b"\xff\x00"), (primitive(16, b"\x02\0\0\0\xc3\xb6"), "ö"),
        (bytes([2 << 2 | 1]) + b"hi", "hi"), (primitive(17, struct.pack("<q", 1_000_000)), dt.time(0, 0, 1)),
        (primitive(17, struct.pack("<q", -1)), dt.time(23, 59, 59, 999999)),
        (primitive(17, struct.pack("<q", 1 << 62)), dt.time(14, 0, 27, 387904)),
        (primitive(20, bytes(range(16))), uuid.UUID(bytes=bytes(range(16)))),
    ],
)  # fmt: skip
def test_primitives(value: bytes, expected: object) -> None:
    found = decode(NO_KEYS, value)
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(expected, Decimal):
        assert found.as_tuple() == expected.as_tuple()


def test_what_python_cannot_hold_stays_an_arrow_scalar() -> None:
    assert decode(NO_KEYS, primitive(18, struct.pack("<q", 1))) == pa.scalar(1, pa.timestamp("ns", "UTC"))
    assert isinstance(decode(NO_KEYS, primitive(11, struct.pack("<i", 1 << 30))), pa.Date32Scalar)
    assert isinstance(decode(NO_KEYS, primitive(12, struct.pack("<q", 1 << 62))), pa.TimestampScalar)
    assert math.isnan(decode(NO_KEYS, primitive(7, struct.pack("<d", math.nan))))


def test_containers() -> None:
    metadata = b"\x11\x02\x00\x01\x02ab"
    inner = b"\x03\x02\x00\x01\x04" + primitive(0) + bytes([2 << 2 | 1]) + b"hi"
    value = b"\x02\x02\x00\x01\x00\x02\x0b" + primitive(3, b"\x05") + inner
    assert decode(metadata, value) == {"a": 5, "b": [None, "hi"]}
    assert decode(metadata, b"\x02\x00\x00") == {}
    assert decode(metadata, b"\x03\x00\x00") == []


def test_depth_needs_no_stack() -> None:
    value = primitive(0)
    for _ in range(2000):
        value = bytes([3 | 3 << 2, 1]) + (0).to_bytes(4, "little") + len(value).to_bytes(4, "little") + value
    found, depth = decode(NO_KEYS, value), 0
    while isinstance(found, list):
        found, depth = found[0], depth + 1
    assert depth == 2000


def test_half_of_a_surrogate_pair_is_refused_with_its_row() -> None:
    with pytest.raises(UserError) as raised:
        from_json(['"a"', '"\ud800"'])
    assert (raised.value.code, raised.value.context["row"]) == ("INVALID_JSON", 1)


def test_a_struct_of_other_types_is_no_variant() -> None:
    with pytest.raises(UserError) as raised:
        to_python(pa.array([{"value": 1, "metadata": "x"}]))
    assert raised.value.code == "INVALID_ARGUMENT"
