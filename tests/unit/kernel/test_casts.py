"""Hexadecimal texts as numbers, as Java and Python read them."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pyarrow as pa

import mica


def doubles(texts: list[str], path: Path) -> list[float | None]:
    mica.write_parquet(pa.table({"s": texts}), path)
    found = mica.read_parquet(path, columns={"x": "try_cast(s AS DOUBLE)"}).to_arrow()
    return found.column("x").to_pylist()  # type: ignore[no-any-return]


def test_hexadecimal_numbers(tmp_path: Path, rng: random.Random) -> None:
    texts = [
        "0x1p-1074",
        "0x1.8p-1074",
        "0x0.8p-1074",
        "0x0.80000000000000001p-1074",
        "0x1.fffffffffffff8p1023",
        "0x0p0",
    ]
    for _ in range(500):
        whole, rest = (f"{rng.getrandbits(rng.randrange(1, 90)):x}" for _ in range(2))
        texts.append(f"{rng.choice(['', '-', '+'])}0x{whole}.{rest}p{rng.randrange(-1250, 1100)}")
    found = doubles(texts, tmp_path / "f.parquet")
    for text, value in zip(texts, found, strict=True):
        try:
            wanted = float.fromhex(text)
        except OverflowError:
            wanted = math.copysign(math.inf, -1 if text[0] == "-" else 1)
        assert value == wanted, text


def test_texts_that_are_none(tmp_path: Path) -> None:
    assert doubles(["0x+1p3", "0x1", "0xp1", "0x1.gp1", "0x1p", "0x 1p1"], tmp_path / "f.parquet") == [None] * 6
