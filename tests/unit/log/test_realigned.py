"""A table that is kept while another writer replaces or removes the checkpoint that it was read from."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from mica.errors import CorruptDataError
from mica.log.checkpoint_rows import checkpoint_table
from mica.log.checkpoint_writer import parquet_bytes, write_checkpoint
from mica.log.snapshot import Snapshot, load
from mica.log.tombstones import tombstones
from mica.log.transaction import Transaction
from mica.storage import Storage
from tests.unit.log.tables import added, append, create

LOG = "_delta_log"
NAME = f"{LOG}/{2:020d}.checkpoint.parquet"
FILES = 120


def kept(storage: Storage) -> tuple[Snapshot, pa.Table]:
    """A table of files with bounds and tags, read from its checkpoint; and that one's rows. It has a tombstone."""
    table = append(create(storage, delta__checkpointInterval="1000"), "gone").snapshot
    transaction = Transaction(table, "WRITE", {"mode": "Overwrite"})
    transaction.remove_files([0])
    transaction.add_files([added(f"{n}", low=n, high=n, tags={"n": str(n)}) for n in range(FILES)])
    table = transaction.commit().snapshot
    rows = checkpoint_table(table, now=0)
    write_checkpoint(table)
    return load(storage), rows


def shuffled(rows: pa.Table, rng: random.Random) -> pa.Table:
    return rows.take(rng.sample(range(len(rows)), len(rows)))


def in_another_order(storage: Storage, rows: pa.Table, rng: random.Random) -> None:
    storage.put(NAME, parquet_bytes(shuffled(rows, rng)))


def in_parts(storage: Storage, rows: pa.Table, rng: random.Random) -> None:
    storage.delete(NAME)
    for part in range(2):
        half = shuffled(rows, rng).slice(0, 0) if part else shuffled(rows, rng)
        storage.put(NAME.replace(".parquet", f".{part + 1:010d}.{2:010d}.parquet"), parquet_bytes(half))


def by_its_commits(storage: Storage, rows: pa.Table, rng: random.Random) -> None:
    storage.delete(NAME)


WAYS = (in_another_order, in_parts, by_its_commits)


def names(snapshot: Snapshot, texts: pa.Array) -> None:
    """The statistics are those of the files."""
    lows = [orjson.loads(text)["minValues"]["id"] for text in texts.to_pylist()]
    assert [str(low) for low in lows] == snapshot.files["path"].to_pylist()


@pytest.mark.parametrize("replace", WAYS)
def test_columns_are_those_of_their_files(storage: Storage, replace: Callable[..., None]) -> None:
    rng = random.Random(7)
    table, rows = kept(storage)
    order = table.files["path"].to_pylist()
    replace(storage, rows, rng)
    assert [gone["path"] for gone in tombstones(table).to_pylist()] == ["gone"]
    replace(storage, rows, rng)
    assert [dict(tags)["n"] for tags in table.tags().to_pylist()] == order
    replace(storage, rows, rng)
    names(table, table.stats())
    table = append(load(storage), str(FILES), low=FILES).snapshot
    replace(storage, rows, rng)
    # In shares, as a plan asks: what was read before the replacement is noticed must not be kept.
    shares = [(places, pa.concat_arrays(list(texts()))) for places, texts in table.stats_shares()]
    order = np.argsort(np.concatenate([places for places, _ in shares]))
    names(table, pa.concat_arrays([texts for _, texts in shares]).take(pa.array(order)))


@pytest.mark.parametrize("replace", WAYS)
def test_it_may_happen_between_two_shares(
    storage: Storage, replace: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mica.log.file_columns._FEW", 0)
    monkeypatch.setattr("mica.log.file_columns.SHARE", 32)
    monkeypatch.setattr("mica.log.checkpoint._BATCH", 10)
    rng = random.Random(11)
    for after in (0, 3):
        for entry in list(storage.list()):
            storage.delete(entry.path)
        table, rows = kept(storage)
        asked = np.array(rng.sample(range(FILES), 100))
        found: list[str | None] = [None] * len(asked)
        done = 0
        for places, texts in table.stats_shares(asked):
            parts = []
            for text in texts():
                parts += text.to_pylist()
                done += 1
                if done == after:
                    replace(storage, rows, rng)
            for place, text in zip(places.tolist(), parts, strict=True):
                found[place] = text
            if not after and not done:
                replace(storage, rows, rng)
        assert found == table.stats(asked).to_pylist()
        names(table, table.stats())


def test_what_is_of_another_version_or_gone_is_refused(storage: Storage) -> None:
    table, rows = kept(storage)
    less = pc.not_equal(pc.fill_null(pc.struct_field(rows["add"], "path"), ""), "7")
    storage.put(NAME, parquet_bytes(rows.filter(less)))
    with pytest.raises(CorruptDataError, match="was replaced") as caught:
        table.stats()
    assert caught.value.code == "CORRUPT_CHECKPOINT"
    assert "Open the table again" in str(caught.value)
    with pytest.raises(CorruptDataError, match="was replaced"):
        table.stats()
    table = load(storage)
    for entry in list(storage.list(LOG)):
        storage.delete(entry.path)
    with pytest.raises(CorruptDataError, match="missing"):
        table.stats()
