"""Whatever stands in a log: damaged lines, statistics, z85 texts and deletion vectors give an error of ours or an
answer, never another exception; what is no bound is unknown.

A fixed share runs with the tests; with MICA_FUZZ_SECONDS (`make fuzz`) each goes on for that long.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import mica
from mica.cli.events import lines
from mica.errors import MicaError
from mica.log.checkpoint_writer import write_checkpoint
from mica.log.deletion_vectors import deleted_rows
from mica.log.replay import State, apply, parse_commits
from mica.log.roaring import decode as decode_roaring
from mica.log.snapshot import load
from mica.schema.types import VARIANT, Primitive
from mica.stats import z85
from mica.stats.paths import read_all
from mica.stats.read import Wanted, read_stats
from mica.stats.variant import encode_bounds
from mica.storage import Storage
from mica.variant import kernel
from mica.variant.path import VariantPath
from tests.support import SHARED

SECONDS = float(os.environ.get("MICA_FUZZ_SECONDS", "0"))
ODD = [b'"', b"{", b"}", b"[", b":", b"null", b"-1", b"1e999", b"\\u0000", b"\xff", b"\x00", b"99999999999999999999"]


@pytest.fixture
def inputs(rng: random.Random) -> Callable[[int], Iterator[int]]:
    """Numbers of inputs: so many, or as long as the fuzz lasts."""

    def numbers(fixed: int) -> Iterator[int]:
        began, number = time.monotonic(), 0
        while number < fixed or time.monotonic() - began < SECONDS:
            yield number
            number += 1

    return numbers


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The bytes with a few changes."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(6):
            case 0 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                del out[at:]
            case 2:
                out[at:at] = rng.choice(ODD)
            case 3 if at < len(out):
                out[at : at + rng.randint(1, 9)] = rng.choice(ODD)
            case 4 if at < len(out):
                del out[at : at + rng.randint(1, 20)]
            case _:
                start = rng.randrange(len(out) + 1)
                out[at:at] = out[start : start + rng.randint(1, 40)]
    return bytes(out)


def ours(function: Callable[[], object]) -> bool:
    """Whether it gave an answer; an error of ours with a code is the other thing that it may give."""
    try:
        function()
    except MicaError as e:
        if e.code == "INTERNAL":
            raise
        return False
    return True


ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def plainly(text: str) -> bytes | None:
    """z85 by its definition, five characters at a time; a short tail counts as if the highest digit followed."""
    if len(text) % 5 == 1 or not set(text) <= set(ALPHABET):
        return None
    out = b""
    for at in range(0, len(text), 5):
        group = text[at : at + 5]
        number = sum(ALPHABET.index(c) * 85 ** (4 - i) for i, c in enumerate(group.ljust(5, "#")))
        if number >= 1 << 32:
            return None
        out += number.to_bytes(4, "big")[: len(group) - 1]
    return out


def test_z85_texts(rng: random.Random, inputs: Any) -> None:
    seeds = [encode_bounds({f"$['{k}']": bytes([12, n]) for n, k in enumerate("abc")}), "0rr9300000", "", "00000"]
    read = 0
    for _ in inputs(6_000):
        text = damaged(rng, rng.choice(seeds).encode()).decode("utf-8", "replace")
        data = z85.decode(text)
        assert data == plainly(text), text
        assert kernel.decode_z85(pa.array([text, None, text])).to_pylist() == [data, None, data]
        read += len(read_all(text))
    assert read > 20


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    (root / "e.ndjson").write_bytes(lines(0, 300, seed=4))
    mica.ingest_json(root / "e.ndjson", root / "t", columns={"kind": "v:kind::string"}, partition_by=["kind"])
    return root / "t"


def test_statistics(rng: random.Random, inputs: Any, table: Path) -> None:
    texts = [text.encode() for text in mica.Table.open(table).files().column("stats").to_pylist()]
    names = ["id", "s", "d", "t", "n"]
    types = ["long", "string", "date", "timestamp", "decimal(10,2)"]
    wanted = [Wanted((name,), Primitive(type_)) for name, type_ in zip(names, types, strict=True)]
    wanted += [Wanted(("v",), VARIANT, VariantPath(("time_us",))), Wanted(("v",), VARIANT)]
    extra = {"id": 1, "s": "a", "d": "2024-01-01", "t": "2024-01-01T00:00:00.000Z", "n": 1.25}
    documents = []
    for text in texts:
        document = orjson.loads(text)
        for side in ("minValues", "maxValues"):
            document[side] |= extra
        documents.append(orjson.dumps(document))
    for _ in inputs(1_000):
        text = damaged(rng, rng.choice(documents)).decode("utf-8", "replace")
        found = read_stats(pa.array([text, None]), wanted[:6])
        assert all(len(leaf.num_rows) == 2 for leaf in found)


def test_log_lines(rng: random.Random, inputs: Any, table: Path) -> None:
    log = b"\n".join(path.read_bytes() for path in sorted((table / "_delta_log").glob("*.json")))
    seeds = [log] + [
        path.read_bytes() for path in sorted(SHARED.glob("conformance/delta-tables/*/_delta_log/*.json"))[:40]
    ]
    taken = refused = 0
    for _ in inputs(800):
        data = damaged(rng, rng.choice(seeds))
        sound = ours(lambda data=data: apply(State(), parse_commits([data], ["kind"], "log")))
        taken, refused = taken + sound, refused + (not sound)
    assert taken
    assert refused


WHERE = "v:time_us::bigint > 0 AND kind = 'commit'"


def test_whole_tables(rng: random.Random, inputs: Any, table: Path, tmp_path: Path) -> None:
    root = tmp_path / "t"
    shutil.copytree(table, root)
    (path,) = (root / "_delta_log").glob("*.json")
    sound, taken, refused = path.read_bytes(), 0, 0
    for _ in inputs(80):
        path.write_bytes(damaged(rng, sound))
        read = ours(lambda: mica.Table(load(Storage.open(root))).scan(where=WHERE).count())
        taken, refused = taken + read, refused + (not read)
    assert taken
    assert refused


def test_deletion_vectors(rng: random.Random, inputs: Any) -> None:
    bitmap = struct.pack("<QI", 1, 0) + struct.pack("<IIHHI", 12346, 1, 0, 2, 16) + struct.pack("<HHH", 1, 5, 9)
    text = z85.encode((1681511377).to_bytes(4, "little") + bitmap).encode()
    for _ in inputs(5_000):
        ours(lambda: decode_roaring(damaged(rng, bitmap), 3))
        inline = {"storageType": "i", "pathOrInlineDv": damaged(rng, text).decode("latin-1"), "cardinality": 3}
        ours(lambda inline=inline: deleted_rows(Storage.open("."), {**inline, "sizeInBytes": len(bitmap) + 4}))


def test_checkpoints(rng: random.Random, inputs: Any, table: Path, tmp_path: Path) -> None:
    """The only place of the actions: a page that lost rows would give a file the statistics of another."""
    root = tmp_path / "t"
    shutil.copytree(table, root)
    write_checkpoint(load(Storage.open(root)))
    (path,) = (root / "_delta_log").glob("*.checkpoint.parquet")
    for commit in (root / "_delta_log").glob("*.json"):
        commit.unlink()
    sound = path.read_bytes()
    footer = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")
    taken = refused = 0
    for _ in inputs(150):
        data = bytearray(sound)
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(footer, len(sound) - 8) if rng.random() < 0.8 else rng.randrange(len(sound))
            data[at] = rng.choice([0, 1, 2, 0x15, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        path.write_bytes(data)
        answered = ours(lambda: mica.Table(load(Storage.open(root))).scan(where=WHERE).count())
        taken, refused = taken + answered, refused + (not answered)
    assert taken
    assert refused
