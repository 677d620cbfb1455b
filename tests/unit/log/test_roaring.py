"""Roaring bitmaps: every kind of container, and nothing for bytes that break the format."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.errors import CorruptDataError
from mica.log.roaring import decode, encode


def container(values: list[int], kind: str) -> bytes:
    if kind == "array":
        return np.array(values, "<u2").tobytes()
    if kind == "bitmap":
        bits = np.zeros(1 << 16, np.uint8)
        bits[values] = 1
        return np.packbits(bits, bitorder="little").tobytes()
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][0] + runs[-1][1] + 1 == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 0])
    return struct.pack("<H", len(runs)) + np.array(runs, "<u2").tobytes()


def bitmap_32(values: list[int], with_runs: bool) -> bytes:
    keys = sorted({value >> 16 for value in values})
    groups = [[value & 0xFFFF for value in values if value >> 16 == key] for key in keys]
    header = b"".join(struct.pack("<HH", key, len(group) - 1) for key, group in zip(keys, groups, strict=True))
    if with_runs:
        flags = np.packbits(np.ones(len(keys), np.uint8), bitorder="little").tobytes()
        head = struct.pack("<I", 12347 | (len(keys) - 1) << 16) + flags + header
        head += b"\0" * 4 * len(keys) if len(keys) >= 4 else b""
        return head + b"".join(container(group, "run") for group in groups)
    head = struct.pack("<II", 12346, len(keys)) + header + b"\0" * 4 * len(keys)
    return head + b"".join(container(g, "array" if len(g) <= 4096 else "bitmap") for g in groups)


def bitmap_64(values: list[int], with_runs: bool = False) -> bytes:
    highs = sorted({value >> 32 for value in values})
    parts = [
        struct.pack("<I", high) + bitmap_32([v & 0xFFFFFFFF for v in values if v >> 32 == high], with_runs)
        for high in highs
    ]
    return struct.pack("<Q", len(highs)) + b"".join(parts)


@given(st.sets(st.integers(0, 2**34), max_size=50), st.sets(st.integers(60_000, 70_000), max_size=80), st.booleans())
def test_any_rows_come_back(far: set[int], near: set[int], with_runs: bool) -> None:
    values = sorted(far | near)
    assert decode(bitmap_64(values, with_runs), len(values)).tolist() == values


@pytest.mark.parametrize("with_runs", [True, False])
@pytest.mark.parametrize("count", [4096, 4097, 65536, 70000])
def test_dense_rows_come_back(count: int, with_runs: bool) -> None:
    values = list(range(0, count * 2, 2)) if not with_runs else list(range(count))
    assert decode(bitmap_64(values, with_runs), count).tolist() == values


def test_a_run_longer_than_the_log_says_is_refused_before_it_is_made() -> None:
    data = bitmap_64(list(range(65536)), with_runs=True)
    with pytest.raises(CorruptDataError, match="more rows than the log says"):
        decode(data, 100)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1" * 7,
        struct.pack("<Q", 2**63),
        struct.pack("<QI", 1, 0),
        struct.pack("<QII", 1, 0, 99),
        struct.pack("<QIII", 1, 0, 12346, 2**31),
        struct.pack("<QIII", 1, 0, 12346, 1),
    ],
    ids=range(7),
)
def test_bytes_that_are_no_bitmap_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptDataError) as caught:
        decode(data, 10)
    assert caught.value.code == "CORRUPT_DELETION_VECTOR"


def test_no_mutation_does_more_than_refuse(rng: random.Random) -> None:
    sources = [bitmap_64([1, 5, 70000, 2**33], r) for r in (True, False)] + [bitmap_64(list(range(5000)))]
    for _ in range(2000):
        data = bytearray(rng.choice(sources))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            rows = decode(bytes(data[: rng.randint(0, len(data))] if rng.random() < 0.3 else data), 10_000)
        except CorruptDataError:
            continue
        assert len(rows) <= 10_000
        assert bool(np.all(rows[1:] > rows[:-1]))


@given(st.sets(st.one_of(st.integers(0, 300_000), st.integers(0, 2**33)), min_size=1, max_size=300))
def test_rows_go_there_and_back(rows: set[int]) -> None:
    values = np.array(sorted(rows), np.uint64)
    assert decode(encode(values), len(values)).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("values", "size"),
    [
        (range(65_536), 8 + 4 + 4 + 1 + 4 + 2 + 4),  # one run
        (range(0, 65_536, 2), 8 + 4 + 8 + 4 + 4 + 8192),  # a bitmap
        (range(0, 8_000, 2), 8 + 4 + 8 + 4 + 4 + 2 * 4_000),  # an array
        ([*range(70_000), 2**32], None),
        ([n * 65_536 + k for n in range(6) for k in (0, 1, 2, 3, 9)], None),
    ],
)
def test_a_container_takes_its_smallest_form(values: list[int], size: int | None) -> None:
    data = encode(np.array(list(values), np.uint64))
    assert decode(data, 1 << 20).tolist() == list(values)
    assert size is None or len(data) == size


@pytest.mark.parametrize("with_runs", [True, False])
def test_offsets_point_at_the_containers(with_runs: bool) -> None:
    """Other readers seek to a container by its offset; this one does not need them."""
    every = [[*range(9)] if with_runs and n == 1 else [n, n + 2, n + 9] for n in range(5)]
    data = encode(np.array([n * 65_536 + v for n, some in enumerate(every) for v in some], np.uint64))[12:]
    at = (4 + 1 if with_runs else 8) + 4 * 5
    offsets = struct.unpack_from("<5I", data, at)
    for n, (offset, some) in enumerate(zip(offsets, every, strict=True)):
        body = container(some, "run" if with_runs and n == 1 else "array")
        assert data[offset : offset + len(body)] == body
    assert offsets[0] == at + 4 * 5


def test_containers_of_one_key_are_refused() -> None:
    twice = struct.pack("<QIII", 1, 0, 12346, 2) + struct.pack("<HHHHII", 3, 0, 3, 0, 0, 0) + struct.pack("<HH", 7, 8)
    with pytest.raises(CorruptDataError, match="not in order"):
        decode(twice, 10)
