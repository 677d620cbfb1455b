"""Checkpoints of all forms give the state that the commits before them give."""

from __future__ import annotations

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica.errors import CorruptDataError, UserError
from mica.log.checkpoint_rows import checkpoint_table
from mica.log.checkpoint_writer import parquet_bytes, write_checkpoint
from mica.log.snapshot import load
from mica.storage import Storage
from tests.unit.log.tables import append, create, paths, same

LOG = "_delta_log"


def test_a_checkpoint_stands_for_the_commits_before_it(storage: Storage) -> None:
    table = append(append(create(storage), "a").snapshot, "b").snapshot
    write_checkpoint(table)
    for version in range(3):
        storage.delete(f"{LOG}/{version:020d}.json")
    same(load(storage), table)
    assert paths(append(load(storage), "c").snapshot) == ["a", "b", "c"]
    with pytest.raises(UserError) as caught:
        load(storage, 1)
    assert caught.value.code == "VERSION_EXPIRED"


def test_multi_part_checkpoints_are_read(storage: Storage) -> None:
    table = append(create(storage), *(f"f{n}" for n in range(10))).snapshot
    rows = checkpoint_table(table, now=0)
    for part, (start, length) in enumerate([(0, 4), (4, 4), (8, 100)]):
        name = f"{LOG}/{1:020d}.checkpoint.{part + 1:010d}.{3:010d}.parquet"
        storage.put(name, parquet_bytes(rows.slice(start, length)))
    for version in range(2):
        storage.delete(f"{LOG}/{version:020d}.json")
    same(load(storage), table)


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_v2_checkpoints_with_sidecars_are_read(storage: Storage, form: str) -> None:
    table = append(create(storage), *(f"f{n}" for n in range(10))).snapshot
    rows = checkpoint_table(table, now=0)
    files = rows.filter(rows["add"].is_valid()).select(["add", "remove"])
    sidecars = []
    for number, (start, length) in enumerate([(0, 7), (7, 7)]):
        data = parquet_bytes(files.slice(start, length))
        storage.put(f"{LOG}/_sidecars/s{number} ä.parquet", data)
        sidecars.append({"path": f"s{number}%20%C3%A4.parquet", "sizeInBytes": len(data), "modificationTime": 1})
    name = f"{LOG}/{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{form}"
    if form == "json":
        lines = [{"checkpointMetadata": {"version": 1}}, *({"sidecar": s} for s in sidecars)]
        lines += [{"protocol": table.protocol.action()}, {"metaData": table.metadata.action()}]
        storage.put(name, b"\n".join(map(orjson.dumps, lines)))
    else:
        others = rows.filter(rows["add"].is_null()).select(["metaData", "protocol"])
        kind = pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])
        count = others.num_rows
        top = pa.concat_tables(
            [
                others.append_column("sidecar", pa.nulls(count, kind)),
                pa.table({"sidecar": pa.array(sidecars, kind)}),
            ],
            promote_options="default",
        )
        storage.put(name, parquet_bytes(top))
    for version in range(2):
        storage.delete(f"{LOG}/{version:020d}.json")
    same(load(storage), table)


@pytest.mark.parametrize("damage", ["x", [], {"path": 5}, {"path": "lost.parquet", "sizeInBytes": "x"}])
def test_a_checkpoint_whose_sidecar_is_none_is_left_for_the_commits(storage: Storage, damage: object) -> None:
    """One that is no object was passed over, and the table had no rows."""
    table = append(create(storage), "a", "b").snapshot
    lines = [{"checkpointMetadata": {"version": 1}}, {"sidecar": damage}]
    lines += [{"protocol": table.protocol.action()}, {"metaData": table.metadata.action()}]
    name = f"{LOG}/{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    storage.put(name, b"\n".join(map(orjson.dumps, lines)))
    assert paths(load(storage)) == ["a", "b"]


def test_a_changed_byte_of_a_checkpoint_is_never_another_file(storage: Storage) -> None:
    """Pages are written with checksums, and read by them: a flipped name would be a file that is not there."""
    table = append(create(storage), "a-file-with-a-long-name.parquet", "another.parquet").snapshot
    write_checkpoint(table)
    name = f"{LOG}/{1:020d}.checkpoint.parquet"
    sound = bytes(storage.read(name))
    at = sound.index(b"a-file-with-a-long-name")
    storage.delete(f"{LOG}/{0:020d}.json")
    for place in range(at, at + 20, 3):
        storage.put(name, sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        with pytest.raises(CorruptDataError) as caught:
            load(storage)
        assert caught.value.code == "CORRUPT_CHECKPOINT"


def test_bounds_of_int96_in_a_checkpoint_are_instants_of_any_year(storage: Storage) -> None:
    """Spark writes TIMESTAMP so where statistics are columns; what is read goes back into the log."""
    table = create(storage, "t TIMESTAMP, s STRUCT<t: TIMESTAMP>", delta__checkpoint__writeStatsAsJson="false")
    low, high = "1500-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"
    bounds = [("minValues", {"t": low, "s": {"t": low}}), ("maxValues", {"t": high, "s": {"t": high}})]
    table = append(table, "a", stats=orjson.dumps(dict(bounds)).decode()).snapshot
    checkpoint = pa.BufferOutputStream()
    pq.write_table(checkpoint_table(table, now=1), checkpoint, use_deprecated_int96_timestamps=True)
    storage.put(f"{LOG}/{1:020d}.checkpoint.parquet", checkpoint.getvalue().to_pybytes())
    storage.delete(f"{LOG}/{0:020d}.json")
    (text,) = load(storage).stats().to_pylist()
    assert orjson.loads(text) == dict(bounds)
