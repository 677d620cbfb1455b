"""Bounds of a path in many files: the quick way gives what the slow way gives, and no bytes make it fail."""

import random
import struct
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mica.stats import z85
from mica.stats.paths import CODES, PathSide, read_side
from mica.stats.variant import Value, build_object, lookup, paths, read_value, split

KEYS = ["$", "$['a']", "$['b']", "$['ä']['c']", "$['x'][" + "'y'" + "]"]
VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(lambda v: b"\x18" + struct.pack("<q", v)),
    st.integers(-128, 127).map(lambda v: b"\x0c" + struct.pack("<b", v)),
    st.integers(-(2**15), 2**15 - 1).map(lambda v: b"\x10" + struct.pack("<h", v)),
    st.floats(allow_nan=False).map(lambda v: b"\x1c" + struct.pack("<d", v)),
    st.floats(width=32, allow_nan=False).map(lambda v: b"\x38" + struct.pack("<f", v)),
    st.integers(-1000, 1000).map(lambda v: b"\x20\x02" + struct.pack("<i", v)),
    st.integers(-1000, 1000).map(lambda v: b"\x2c" + struct.pack("<i", v)),
    st.integers(-(2**60), 2**60).map(lambda v: b"\x30" + struct.pack("<q", v)),
    st.text(max_size=15).map(lambda v: bytes([len(v.encode()) << 2 | 1]) + v.encode()),
    st.text(max_size=90).map(lambda v: b"\x40" + struct.pack("<I", len(v.encode())) + v.encode()),
    st.sampled_from([b"\x00", b"\x04", b"\x02\x00\x00", b"\x3c\0\0\0\0", b"\xf8"]),
    # null, true, an object, binary, unknown
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5)


def side_values(side: PathSide) -> list[Any]:
    kinds = {code: kind for kind, code in CODES.items()}
    found: list[Any] = []
    for i, code in enumerate(side.kinds.tolist()):
        content = side.others.get(
            i, float(side.reals[i]) if kinds.get(code) in ("float", "double") else int(side.ints[i])
        )
        found.append(Value(kinds[code], content) if code else None)
    return found


def slowly(text: str | None, key: str) -> Value | None:
    data = None if text is None else z85.decode(text)
    parts = None if data is None else split(data)
    return None if parts is None else lookup(*parts, key)


@given(st.lists(st.tuples(OBJECTS, st.booleans()), max_size=12), st.sampled_from(KEYS))
def test_groups_give_what_single_files_give(found: list[tuple[dict[str, bytes], bool]], key: str) -> None:
    texts: list[str | None] = []
    expected: list[Value | None] = []
    for fields, swapped in found:
        metadata, value = build_object(fields)
        texts.append(z85.encode(value + metadata if swapped else metadata + value))
        expected.append(read_value(fields[key], 0) if key in fields else None)
    side = read_side(texts, key)
    assert repr(side_values(side)) == repr(expected)
    assert [slowly(t, key) for t in texts] == expected
    rows = np.arange(len(texts))[::-1]
    assert repr(side_values(side.take(rows))) == repr(expected[::-1])


def test_damaged_bytes_say_nothing_or_something_but_never_fail(rng: random.Random) -> None:
    metadata, value = build_object({k: b"\x18" + struct.pack("<q", i) for i, k in enumerate(KEYS)})
    whole = metadata + value
    texts: list[str | None] = []
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 255, rng.randrange(256)])
        texts.append(z85.encode(bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])))
    for key in KEYS:
        assert repr(side_values(read_side(texts, key))) == repr([slowly(t, key) for t in texts])


def test_wide_objects_and_all_bounds() -> None:
    fields = {f"$['k{i}']": b"\x18" + struct.pack("<q", i) for i in range(700)}
    metadata, value = build_object(fields)
    assert split(metadata + value + b"\0\0") == (metadata, value)
    assert paths(metadata, value) == {f"$['k{i}']": Value("exact", i) for i in range(700)}
    side = read_side([z85.encode(metadata + value)] * 3 + [None], "$['k699']")
    assert side_values(side) == [Value("exact", 699)] * 3 + [None]


def test_decimals() -> None:
    metadata, value = build_object({"$": b"\x28\x26" + (10**38 - 1).to_bytes(16, "little")})
    assert lookup(metadata, value, "$") == Value("exact", Decimal("0." + "9" * 38))
