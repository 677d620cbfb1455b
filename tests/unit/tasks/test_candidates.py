"""Strings that may be a file's minimum or maximum by a collation, gathered batch by batch."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from mica.collation.narrow import ICU
from mica.stats.collated import CollatedColumn
from mica.tasks import candidates
from mica.tasks.candidates import Candidates

LEAF = CollatedColumn(("s",), ("s",), "spark.UTF8_LCASE")


def test_they_are_narrowed_again_while_they_come_and_hold_both_ends(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "GATHERED", 3)
    words = ["".join(rng.choices("aBcD", k=5)) for _ in range(400)] + [None]
    rng.shuffle(words)
    found = Candidates(LEAF, ICU)
    for at in range(0, len(words), 20):
        found.add(pa.array(words[at : at + 20], pa.string_view()))
        found.keep_few()
        assert not found.many
    kept = found.take().to_pylist()
    lower = sorted(word.lower() for word in words if word is not None)
    assert {lower[0], lower[-1]} <= {word.lower() for word in kept}
    assert len(kept) < 20


def test_if_they_are_too_many_none_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MAX_BYTES", 8)
    found = Candidates(LEAF, ICU)
    found.add(pa.array(["a" * 9]))
    assert found.many
    found.keep_few()
    found.add(pa.array(["b"]))
    assert (found.whole, found.take().to_pylist()) == (False, [])
