"""Snapshots: frozen, cheap, and the same by every way that leads to a version."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import CorruptDataError, UnsupportedTableError, UserError
from mica.log.actions import Metadata
from mica.log.checkpoint import PartSource
from mica.log.checkpoint_writer import parquet_bytes, write_checkpoint
from mica.log.replay import State
from mica.log.snapshot import load
from mica.log.transaction import Transaction
from mica.schema.ddl import parse_ddl
from mica.stats.variant import encode_bounds
from mica.storage import Storage
from mica.storage.local import LocalStorage
from tests.unit.log.tables import added, append, create, paths, same

LOG = "_delta_log"


def test_every_way_to_a_version_gives_the_same(storage: Storage) -> None:
    table = create(storage, delta__checkpointInterval="1000")
    first = table
    for number in range(7):
        transaction = Transaction(table, "WRITE")
        transaction.add_files([added(f"f{number}", tags={"n": str(number)})])
        if number % 3 == 2:
            transaction.remove_files([0])
        transaction.set_application_transactions({"app": number})
        table = transaction.commit().snapshot
        if number == 4:
            write_checkpoint(table)
    same(table, load(storage))
    same(table, first.refresh())
    same(load(storage, 3).refresh(7), table)
    same(load(storage, 5), load(storage, 4).refresh(5))
    same(table.refresh(5), load(storage, 5))
    storage.delete(f"{LOG}/_last_checkpoint")
    same(table, load(storage))
    storage.put(f"{LOG}/_last_checkpoint", b"{ broken")
    same(table, load(storage))
    storage.put(f"{LOG}/_last_checkpoint", b'{"version": 6}')  # points to a checkpoint that is not there
    same(table, load(storage))


def test_a_broken_checkpoint_is_no_loss_while_the_commits_are_there(storage: Storage) -> None:
    table = append(create(storage), "a").snapshot
    write_checkpoint(table)
    for broken in (b"PAR1 not really", b"\0" * 1000, parquet_bytes(pa.table({"x": [1]}))):
        storage.put(f"{LOG}/{1:020d}.checkpoint.parquet", broken)
        same(load(storage), table)
    storage.delete(f"{LOG}/{0:020d}.json")
    with pytest.raises(CorruptDataError) as caught:
        load(storage)
    assert caught.value.code == "CORRUPT_CHECKPOINT"
    assert "checkpoint.parquet" in str(caught.value)


def test_a_name_that_is_not_utf_8_is_one_of_no_file(tmp_path: Path) -> None:
    """Each call failed in Arrow."""
    table = mica.Table.create(tmp_path, "id INT", data=[{"id": 1}])
    (commit,) = (tmp_path / LOG).glob("*.json")
    name = table.files()["path"][0].as_py()
    commit.write_text(commit.read_text().replace(name, "%FF.parquet"))
    (tmp_path / name).rename(tmp_path / os.fsdecode(b"\xff.parquet"))
    damaged = mica.Table.open(tmp_path)
    for call in (damaged.to_arrow, lambda: damaged.delete("id = 1"), damaged.scan("id = 1").to_arrow):
        with pytest.raises(mica.MicaError, match=r"%FF\.parquet"):
            call()
    assert [(one.kind, one.file) for one in mica.check(tmp_path)] == [("missing_file", "%FF.parquet")]
    damaged.append([{"id": 2}])
    damaged.vacuum(0, enforce_retention=False)
    assert len(list(tmp_path.glob("*.parquet"))) == 2


def test_log_compactions_are_read(storage: Storage) -> None:
    table = create(storage)
    for number in range(4):
        table = append(table, f"f{number}").snapshot
    adds = b"\n".join(storage.read(f"{LOG}/{v:020d}.json").splitlines()[-1] for v in (1, 2, 3))
    storage.put(f"{LOG}/{1:020d}.{3:020d}.compacted.json", adds)
    for version in (1, 2, 3):
        storage.delete(f"{LOG}/{version:020d}.json")
    assert paths(load(storage)) == ["f0", "f1", "f2", "f3"]


def test_refreshing_reads_nothing_when_nothing_is_new(tmp_path: Path) -> None:
    table = append(create(tmp_path), "a").snapshot
    assert table.refresh() is table
    other = append(table, "b").snapshot
    assert table.refresh().version == other.version
    assert paths(table) == ["a"]


def test_refreshing_after_a_clean_up_reads_the_whole_log(tmp_path: Path) -> None:
    old = append(create(tmp_path), "a").snapshot
    new = append(append(old, "b").snapshot, "c").snapshot
    write_checkpoint(new)
    for version in range(3):
        (tmp_path / LOG / f"{version:020d}.json").unlink()
    same(old.refresh(), new)


def test_statistics_come_in_the_order_asked_for(tmp_path: Path) -> None:
    table = create(tmp_path, delta__checkpointInterval="1000")
    for number in range(4):
        table = append(table, f"f{number}", low=number).snapshot
        if number == 1:
            write_checkpoint(table)
            table = load(table.storage)
    names = table.files["path"].to_pylist()
    asked = [3, 0, 2, 2]
    lows = [orjson.loads(text)["minValues"]["id"] for text in table.stats(asked).to_pylist()]
    assert [f"f{low}" for low in lows] == [names[at] for at in asked]
    assert table.stats([]).to_pylist() == []
    assert len(table.stats()) == 4


@pytest.mark.parametrize("groups", [(5000, False), (100, True), (5000, True)])
def test_statistics_of_a_checkpoint_come_in_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: tuple[int, bool]
) -> None:
    """Those of the row groups, or of rows between pages, or, in a file that tells neither, as they are read."""
    rows, indexed = groups
    monkeypatch.setattr("mica.log.file_columns._FEW", 0)
    monkeypatch.setattr("mica.log.file_columns.SHARE", 128)
    monkeypatch.setattr("mica.log.checkpoint._BATCH", 50)
    table = create(tmp_path)
    transaction = Transaction(table, "WRITE", {"mode": "Append"})
    transaction.add_files([added(f"{n}.parquet", low=n, high=n + 1) for n in range(1000)])
    table = transaction.commit().snapshot
    write_checkpoint(table)
    [checkpoint] = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    whole = pq.read_table(checkpoint)
    pq.write_table(
        whole, checkpoint, row_group_size=rows, write_page_index=indexed, data_page_size=1000, write_batch_size=64
    )
    table = load(Storage.open(tmp_path))
    source = table.state.sources[0]
    assert isinstance(source, PartSource)
    shares = list(source.column_shares("stats", 128))
    assert [start for start, _, _ in shares] == list(range(0, len(whole), 100 if rows == 100 else 128))
    # Texts are read when they are asked for, or were read in their turn.
    read = [isinstance(texts.args[0], list) for _, _, texts in shares]  # type: ignore[attr-defined]
    assert read == [not indexed] * len(shares)
    every = table.stats()
    for asked in (None, np.arange(len(every))[::-1], np.array([999, 3, 500, 2, 130])):
        wanted = every if asked is None else every.take(pa.array(asked))
        found: list[str | None] = [None] * len(wanted)
        for places, texts in table.stats_shares(asked):
            some = [text for batch in texts() for text in batch.to_pylist()]
            for place, text in zip(places.tolist(), some, strict=True):
                found[place] = text
        assert found == wanted.to_pylist()


def test_a_table_that_cannot_be_read_still_shows_its_metadata(tmp_path: Path) -> None:
    table = create(tmp_path)
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["fromTheFuture"],
        "writerFeatures": ["fromTheFuture"],
    }
    (tmp_path / LOG / f"{1:020d}.json").write_bytes(orjson.dumps({"protocol": protocol}))
    found = table.refresh()
    assert found.schema == parse_ddl("id BIGINT")
    assert found.protocol.reader_features == {"fromTheFuture"}
    with pytest.raises(UnsupportedTableError, match="fromTheFuture"):
        _ = found.files
    with pytest.raises(UnsupportedTableError, match="fromTheFuture"):
        append(found, "a")


def test_unknown_keys_domains_and_tags_survive_commits_and_checkpoints(tmp_path: Path) -> None:
    table = create(tmp_path, **{"delta.feature.domainMetadata": "supported", "other.fromTheFuture": "x", "owner": "me"})
    transaction = Transaction(table, "WRITE")
    transaction.update_metadata(Metadata.parse({**table.metadata.action(), "fromTheFuture": {"deep": [1, 2]}}))
    transaction.set_domain("other.engine", '{"a":1}')
    transaction.add_files([added("a", tags={"SHREDDING_STATE": "x", "ä": "ö"})])
    table = transaction.commit().snapshot
    write_checkpoint(table)
    (tmp_path / LOG / f"{0:020d}.json").unlink()
    (tmp_path / LOG / f"{1:020d}.json").unlink()
    found = load(table.storage)
    assert found.properties == {"other.fromTheFuture": "x", "owner": "me"}
    assert found.metadata.rest == {"fromTheFuture": {"deep": [1, 2]}}
    assert found.domains == {"other.engine": '{"a":1}'}
    assert found.tags().to_pylist() == [[("SHREDDING_STATE", "x"), ("ä", "ö")]]


def test_files_are_located_wherever_their_uri_says(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    for uri, name in [("a%20b/c%2523", "a b/c%23"), ("x", "x")]:
        assert table.locate(uri) == (table.storage, name)
    elsewhere, name = table.locate(f"file://{tmp_path}/o%20o/x")
    assert (str(elsewhere), name) == (f"{tmp_path}/o o", "x")


def test_what_is_no_table_is_named(tmp_path: Path) -> None:
    log = tmp_path / "hint" / LOG
    log.mkdir(parents=True)
    (log / "_last_checkpoint").write_text('{"version": 1, "size": 1}')
    for place, said in (
        (tmp_path, "holds no commit"),
        (tmp_path / "nothing", "nothing is not a Delta table: there is nothing"),
        (f"file://{tmp_path}/nothing", "nothing is not a Delta table: there is nothing"),
        (tmp_path / "hint", "holds no commit"),
    ):
        with pytest.raises(UserError, match=said) as caught:
            load(Storage.open(place))
        assert caught.value.code == "TABLE_NOT_FOUND"


def test_a_folder_of_a_table_is_not_taken_for_files_without_one(tmp_path: Path) -> None:
    create(tmp_path)
    (tmp_path / "p=1").mkdir()
    for place in (tmp_path / "p=1", tmp_path / "p=2", tmp_path / LOG, f"file://{tmp_path}/p=1"):
        with pytest.raises(UserError, match="TABLE_NOT_FOUND") as caught:
            load(Storage.open(place))
        assert f"inside of the table {tmp_path}: read that" in (caught.value.hint or "")


@pytest.mark.parametrize("kept", ["protocol", "metaData"])
def test_a_log_without_protocol_or_metadata_is_corrupt(tmp_path: Path, kept: str) -> None:
    table = create(tmp_path)
    action = {"protocol": table.protocol, "metaData": table.metadata}[kept].action()
    (tmp_path / LOG / f"{0:020d}.json").write_bytes(orjson.dumps({kept: action}))
    with pytest.raises(CorruptDataError, match="metaData" if kept == "protocol" else "protocol"):
        load(table.storage)


@pytest.mark.parametrize("form", ["both", "struct"])
def test_variant_bounds_stand_in_checkpoints_as_variants(tmp_path: Path, form: str) -> None:
    properties = {"delta__checkpoint__writeStatsAsStruct": "true"}
    properties |= {"delta__checkpoint__writeStatsAsJson": "false"} if form == "struct" else {}
    table = create(tmp_path, "id BIGINT, v VARIANT, s STRUCT<w: VARIANT, x: INT>", **properties)
    text = encode_bounds({"$['a']": bytes([12, 5]), "$['b']": bytes([0x0D]) + b"abc"})
    bounds = {"id": 1, "v": text, "s": {"w": text, "x": 3}}
    stats = {
        "numRecords": 2,
        "minValues": bounds,
        "maxValues": {"id": 9},
        "nullCount": {"id": 0, "v": 1, "s": {"w": 0, "x": 0}},
    }
    transaction = Transaction(table, "WRITE")
    one = {"path": "a", "size": 1, "modification_time": 1}
    transaction.add_files([{**one, "stats": orjson.dumps(stats).decode()}, {**one, "path": "b"}])
    table = transaction.commit().snapshot
    write_checkpoint(table)
    for version in range(2):
        (tmp_path / LOG / f"{version:020d}.json").unlink()
    found = load(table.storage)
    assert [text and orjson.loads(text) for text in found.stats().to_pylist()] == [stats, None]
    same(found, table)
    schema = str(pq.ParquetFile(tmp_path / LOG / f"{1:020d}.checkpoint.parquet").schema)
    assert schema.count("(Variant(1))") == 4
    assert ("stats (String)" in schema) == (form == "both")


@pytest.mark.parametrize(
    ("properties", "kept"),
    [
        ({}, {"stats"}),
        ({"delta__checkpoint__writeStatsAsStruct": "true"}, {"stats", "stats_parsed"}),
        ({"delta__checkpoint__writeStatsAsJson": "false"}, {"stats_parsed"}),
        ({"delta__checkpoint__writeStatsAsJson": "false", "delta__checkpoint__writeStatsAsStruct": "false"}, {"stats"}),
    ],
    ids=lambda p: "-".join(sorted(p)) or "default",
)
def test_a_checkpoint_holds_the_statistics_that_the_protocol_asks_for(
    tmp_path: Path, properties: dict[str, str], kept: set[str]
) -> None:
    """JSON alone by default, columns where it is off; and a tombstone has neither statistics nor tags."""
    table = append(create(tmp_path, **properties), "a", tags={"x": "y"}).snapshot
    transaction = Transaction(table, "DELETE")
    transaction.remove_files()
    transaction.add_files([added("b")])
    write_checkpoint(transaction.commit().snapshot)
    (path,) = (tmp_path / LOG).glob("*.checkpoint.parquet")
    schema = pq.read_schema(path)
    assert {f.name for f in schema.field("add").type} & {"stats", "stats_parsed"} == kept
    assert not {f.name for f in schema.field("remove").type} & {"stats", "tags"}


def test_without_statistics_a_file_with_a_deletion_vector_has_its_rows_counted(storage: Storage) -> None:
    off = {"delta__checkpoint__writeStatsAsJson": "false", "delta__checkpoint__writeStatsAsStruct": "false"}
    table = create(storage, **off, delta__enableDeletionVectors="true")
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 1, "cardinality": 1}
    stats = orjson.dumps({"numRecords": 5, "minValues": {"id": 1}, "tightBounds": False}).decode()
    table = append(append(table, "a").snapshot, "b", stats=stats, deletion_vector=vector).snapshot
    write_checkpoint(table)
    for version in range(3):
        storage.delete(f"{LOG}/{version:020d}.json")
    found = dict(zip(paths(load(storage)), load(storage).stats().to_pylist(), strict=True))
    assert found == {"a": None, "b": '{"numRecords":5,"tightBounds":false}'}


def test_a_versions_time_is_that_of_its_commit_with_a_checkpoint_too(tmp_path: Path) -> None:
    table = append(create(tmp_path), "a").snapshot
    commit = tmp_path / LOG / f"{1:020d}.json"
    os.utime(commit, (1.6e9, 1.6e9))
    write_checkpoint(table)
    assert load(table.storage).timestamp == 1_600_000_000_000
    commit.unlink()
    assert load(table.storage).timestamp > 1_600_000_000_000  # the checkpoint's: nothing else is known


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ([1, "a"], False),
        ({"a": [1, "x"]}, False),
        ({"a": {}}, False),
        ([{}, 5], False),
        (2**63, False),
        ([], True),
        ({"a": None, "b": [None]}, True),
        ({"a": [{"b": 1}]}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("ddl", ["id INT", "v VARIANT"])
def test_an_unknown_key_that_no_column_can_hold_stops_no_checkpoint(
    storage: Storage, ddl: str, value: object, kept: bool
) -> None:
    table = create(storage, ddl, delta__checkpoint__writeStatsAsStruct="true")
    transaction = Transaction(table, "WRITE")
    transaction.update_metadata(Metadata.parse({**table.metadata.action(), "unknown": value}))
    write_checkpoint(transaction.commit().snapshot)
    storage.delete(f"{LOG}/{0:020d}.json")
    assert load(storage).metadata.rest == ({"unknown": value} if kept else {})


def test_a_version_that_this_process_appended_is_the_one_that_is_read(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "p STRING, id INT", partition_by=["p"])
    table.set_properties({"delta.checkpointInterval": "1000"})
    for number in range(5):
        table.append([{"p": "a" if number % 2 else None, "id": number}])
        if number == 2:
            mica.Table.open(tmp_path).append([{"p": "other", "id": 99}])  # meanwhile
    kept, read = table._snapshot, load(table._snapshot.storage)
    assert not isinstance(kept._held, State)  # nobody asked for its files
    assert (kept.version, kept.timestamp, kept.fingerprint) == (read.version, read.timestamp, read.fingerprint)
    assert kept.segment == read.segment
    assert kept.files.to_pylist() == read.files.to_pylist()
    assert kept.stats().to_pylist() == read.stats().to_pylist()
    assert isinstance(kept._held, State)
    table.delete("id = 4")
    table.append([{"p": "b", "id": 7}])
    assert sorted(table.to_arrow().column("id").to_pylist()) == [0, 1, 2, 3, 7, 99]
    assert table._snapshot.files.to_pylist() == load(kept.storage).files.to_pylist()


@pytest.mark.parametrize("numbered", ["false", "true"])
def test_no_commit_of_this_process_is_read_again(
    tmp_path: Path, numbered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"delta.enableInCommitTimestamps": numbered, "delta.enableRowTracking": numbered}
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableDeletionVectors": "true", **properties})

    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("the log is listed or read")

    for write in (
        lambda: table,
        lambda: table.append([{"id": number} for number in range(5)]),
        lambda: table.delete("id = 2"),
        lambda: table.update({"id": "id + 10"}, "id = 3"),
        lambda: table.set_properties({"a": "b"}),
        lambda: table.append([{"id": 5}], txn=("app", 1)),
        lambda: table.overwrite([{"id": 6}]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(LocalStorage, "list", refuse)
            patch.setattr(LocalStorage, "read", refuse)
            write()
        kept, read = table.snapshot, load(table.snapshot.storage)
        same(kept, read)
        assert (kept.timestamp, kept.fingerprint, kept.segment) == (read.timestamp, read.fingerprint, read.segment)


def test_a_damaged_commit_is_named_among_many(storage: Storage) -> None:
    create(storage)
    for number in range(6):
        append(load(storage), f"f{number}")
    name = f"{LOG}/{4:020}.json"
    storage.put(name, storage.read(name)[:-40])
    with pytest.raises(CorruptDataError) as error:
        load(storage)
    assert (error.value.context["path"], error.value.context["version"]) == (storage.path(name), 4)
    assert storage.path(name) in error.value.message


def test_a_version_that_is_followed_for_long_goes_on_from_a_newer_checkpoint(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mica.log.snapshot._FOLLOWED", 8)
    writer = create(storage, delta__checkpointInterval="3")
    reader = writer
    for number in range(60):
        transaction = Transaction(writer, "WRITE")
        transaction.add_files([added(f"f{number}")])
        if number:
            transaction.remove_files([0])
        writer = transaction.commit().snapshot
        reader = reader.refresh()
        read = load(storage)
        for kept in (writer, reader):
            same(kept, read)
            assert (kept.timestamp, kept.fingerprint, paths(kept)) == (read.timestamp, read.fingerprint, paths(read))
            assert kept.stats().to_pylist() == read.stats().to_pylist()
            # Lines of files that are gone are not kept for good.
            assert max(len(kept.segment.deltas), kept.state.removes.num_rows) <= 2 * 8


def test_a_version_that_was_followed_for_long_stays_where_it_cannot_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mica.log.snapshot._FOLLOWED", 2)
    table = create(tmp_path, delta__checkpointInterval="1000")
    for name in "abc":
        table = append(table, name).snapshot
    assert table.renewed(None) is table
    assert table.renewed(table.version + 1) is table
    renewed = table.renewed(write_checkpoint(table) and table.version)
    assert renewed is not table
    same(renewed, table)
    assert renewed.renewed(table.version) is renewed
    shutil.rmtree(tmp_path / LOG)
    assert table.renewed(table.version) is table
    create(tmp_path)
    for name in "xyz":
        append(load(table.storage), name)
    assert table.renewed(table.version) is table


def test_an_error_of_the_log_tells_which_version_is_whole(tmp_path: Path) -> None:
    """The hint was to restore the file, whether there is a copy or not, and a schema's error named no table."""
    create(tmp_path)
    for number in range(3):
        append(load(LocalStorage(str(tmp_path))), f"f{number}")
    last = tmp_path / LOG / f"{3:020d}.json"
    good = last.read_bytes()
    last.write_bytes(good[:-40])
    with pytest.raises(CorruptDataError) as error:
        load(LocalStorage(str(tmp_path)))
    assert error.value.hint == (
        "Restore the file from a copy, or read version 2. "
        "To write without a copy, move the file away: the table is at version 2 again."
    )
    assert load(LocalStorage(str(tmp_path)), 2).version == 2
    last.rename(tmp_path / "away")
    assert append(load(LocalStorage(str(tmp_path))), "again").version == 3
    (tmp_path / "away").unlink()
    middle = tmp_path / LOG / f"{2:020d}.json"
    whole = middle.read_bytes()
    middle.write_bytes(whole[:-40])
    with pytest.raises(CorruptDataError) as error:
        load(LocalStorage(str(tmp_path)))
    assert str(error.value.hint).endswith(
        "read version 1. To write without a copy, copy the rows of version 1 to another table."
    )
    middle.write_bytes(whole)
    last.write_bytes(good)
    metadata = {"id": "x", "format": {"provider": "parquet"}, "schemaString": "{", "partitionColumns": []}
    (tmp_path / LOG / f"{4:020d}.json").write_bytes(orjson.dumps({"metaData": metadata}))
    with pytest.raises(CorruptDataError, match=f"{tmp_path}, version 4: the table's schema cannot be read") as error:
        _ = load(LocalStorage(str(tmp_path))).schema
    assert error.value.hint == "Restore the table's metadata, or read an older version."
    (tmp_path / LOG / f"{2:020d}.json").unlink()
    with pytest.raises(CorruptDataError, match="has no commit 2") as error:
        load(LocalStorage(str(tmp_path)))
    assert error.value.hint == "Restore the missing file, or read version 1."
    assert load(LocalStorage(str(tmp_path)), 1).version == 1
