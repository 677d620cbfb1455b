"""Bounds of paths: many files at once and one alone, and no bytes make it fail."""

import json
import random
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mica.stats import z85
from mica.stats.paths import DOUBLE, FLOAT, KINDS, STRING, PathSide, Value, read_all, side_of
from mica.stats.variant import build_object
from mica.variant import kernel

KEYS = ["$", "$['a']", "$['b']", "$['ä']['c']", "$['x'][" + "'y'" + "]"]
WHOLE = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(
    WHOLE.map(lambda v: (b"\x18" + struct.pack("<q", v), Value("exact", v))),
    st.integers(-128, 127).map(lambda v: (b"\x0c" + struct.pack("<b", v), Value("exact", v))),
    st.integers(-(2**15), 2**15 - 1).map(lambda v: (b"\x10" + struct.pack("<h", v), Value("exact", v))),
    st.floats(allow_nan=False).map(lambda v: (b"\x1c" + struct.pack("<d", v), Value("double", v))),
    st.floats(width=32, allow_nan=False).map(lambda v: (b"\x38" + struct.pack("<f", v), Value("float", v))),
    st.integers(-1000, 1000).map(lambda v: (b"\x20\x02" + struct.pack("<i", v), Value("exact", Decimal(v).scaleb(-2)))),
    st.integers(-1000, 1000).map(lambda v: (b"\x2c" + struct.pack("<i", v), Value("date", v))),
    WHOLE.map(lambda v: (b"\x30" + struct.pack("<q", v), Value("timestamp", v))),
    WHOLE.map(lambda v: (b"\x34" + struct.pack("<q", v), Value("timestamp_ntz", v))),
    st.text(max_size=15).map(lambda v: (bytes([len(v.encode()) << 2 | 1]) + v.encode(), Value("string", v))),
    st.text(max_size=90).map(lambda v: (b"\x40" + struct.pack("<I", len(v.encode())) + v.encode(), Value("string", v))),
    # null, true, an object, binary, a decimal of too many digits, a string that is not UTF-8
    st.sampled_from([b"\x00", b"\x04", b"\x02\x00\x00", b"\x3c\0\0\0\0", b"\x20\x02\xff\xff\xff\x7f", b"\x05\xff"]).map(
        lambda v: (v, None)
    ),
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5)


def read_side(texts: list[str | None], *keys: str) -> list[PathSide]:
    """The bounds of paths in z85 texts, each in statistics of its own."""
    found = pa.array([json.dumps({"minValues": {"v": text}}) for text in texts], pa.string())
    return [side_of(one) for one in kernel.stats_leaves(found, [(("minValues", "v"), key) for key in keys]).columns]


def values(side: PathSide) -> list[Any]:
    found: list[Any] = []
    for i, code in enumerate(side.kinds.tolist()):
        content = {DOUBLE: side.reals[i].item(), FLOAT: side.reals[i].item(), STRING: side.texts[i].as_py()}
        value = content.get(code, side.ints[i].item())
        found.append(Value(KINDS[code], side.decimals.get(i, value)) if code else None)
    return found


@given(st.lists(st.tuples(OBJECTS, st.booleans()), max_size=12), st.sampled_from(KEYS))
def test_many_files_and_one_alone(found: list[tuple[dict[str, tuple[bytes, Value | None]], bool]], key: str) -> None:
    texts: list[str | None] = [None]
    expected: list[Value | None] = [None]
    for fields, swapped in found:
        metadata, value = build_object({path: content for path, (content, _) in fields.items()})
        texts.append(z85.encode(value + metadata if swapped else metadata + value))
        expected.append(fields[key][1] if key in fields else None)
        assert repr(read_all(texts[-1] or "")) == repr({k: fields[k][1] for k in sorted(fields, key=str.encode)})
    side, other, again = read_side(texts, key, "$['none']", key)
    assert repr(values(side)) == repr(values(again)) == repr(expected)
    assert values(other) == [None] * len(texts)
    assert repr(values(side.take(np.arange(len(texts))[::-1]))) == repr(expected[::-1])


def test_damaged_bytes_say_nothing_or_something_but_never_fail(rng: random.Random) -> None:
    metadata, value = build_object({k: b"\x18" + struct.pack("<q", i) for i, k in enumerate(KEYS)})
    whole = metadata + value
    texts: list[str] = []
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 255, rng.randrange(256)])
        texts.append(z85.encode(bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])))
    alone = [read_all(text) for text in texts]
    for key, side in zip(KEYS, read_side(texts, *KEYS), strict=True):
        assert [bounds[key] for bounds in alone if bounds.get(key)] == [bound for bound in values(side) if bound]


def test_wide_objects_and_all_bounds() -> None:
    fields = {f"$['k{i}']": b"\x18" + struct.pack("<q", i) for i in range(700)}
    text = z85.encode(b"".join(build_object(fields)) + b"\0\0")
    assert read_all(text) == {f"$['k{i}']": Value("exact", i) for i in range(700)}
    (side,) = read_side([text] * 3 + [None], "$['k699']")
    assert values(side) == [Value("exact", 699)] * 3 + [None]


def test_decimals() -> None:
    text = z85.encode(b"".join(build_object({"$": b"\x28\x26" + (10**38 - 1).to_bytes(16, "little")})))
    assert read_all(text) == {"$": Value("exact", Decimal("0." + "9" * 38))}


def test_bounds_are_a_variant_too() -> None:
    metadata, value = build_object({"$": b"\x0c\x01"})
    texts = pa.array([z85.encode(value + metadata), None, "no z85", z85.encode(b"\x01\0\0")])
    found = kernel.bounds_variants(texts)
    assert found.to_pylist() == [{"metadata": metadata, "value": value}, None, None, None]
