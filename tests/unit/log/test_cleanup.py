"""The log's old files: what may go, and that every version from the cutoff on can still be opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import UserError
from mica.log import cleanup
from mica.log.cleanup import clean_log, cutoff, expired, oldest_kept
from mica.log.listing import log_entries, read_listing
from mica.storage import Entry, Storage

DAY = 86_400_000
NOW = 1_800_000_000_000


def aged(path: Path, ages: dict[int, float]) -> None:
    """Gives the files of versions an age in days before `NOW`."""
    for file in (path / "_delta_log").iterdir():
        version = file.name[:20]
        if version.isdigit() and int(version) in ages:
            at = NOW / 1000 - ages[int(version)] * 86_400
            os.utime(file, (at, at))


def table_of(path: Path, commits: int, checkpoints: tuple[int, ...]) -> mica.Table:
    table = mica.Table.create(path, "id INT", properties={"delta.checkpointInterval": "1000"})
    for number in range(commits):
        table.append([{"id": number}])
        if table.version in checkpoints:
            table.checkpoint()
    return table


def versions(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "_delta_log").iterdir() if file.name[:1] == "0")


def test_the_log_begins_with_the_newest_checkpoint_before_the_cutoff(tmp_path: Path) -> None:
    table = table_of(tmp_path, 8, (2, 5))
    aged(tmp_path, {n: 60 - n for n in range(7)} | {7: 1, 8: 0})
    (tmp_path / "_delta_log" / f"{1:020}.crc").write_text("{}")
    assert clean_log(table.snapshot, now=NOW) == 7  # the commits 0 to 4, a checkpoint and a checksum
    names = versions(tmp_path)
    assert names[0] == f"{5:020}.checkpoint.parquet"
    assert len(names) == 5
    for version in range(5, 9):
        assert mica.Table.open(tmp_path, version=version).count() == version
    with pytest.raises(UserError) as raised:
        mica.Table.open(tmp_path, version=0)
    assert raised.value.code == "VERSION_EXPIRED"
    assert clean_log(table.snapshot, now=NOW) == 0


def test_nothing_goes_where_all_of_it_is_needed(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4, (3,))
    aged(tmp_path, dict.fromkeys(range(5), 40))
    aged(tmp_path, {3: 2, 4: 1})
    before = versions(tmp_path)
    assert clean_log(table.snapshot, now=NOW) == 0  # the checkpoint is younger than the cutoff
    table.set_properties({"delta.enableExpiredLogCleanup": "false"})
    aged(tmp_path, dict.fromkeys(range(6), 40))
    assert clean_log(table.snapshot, now=NOW) == 0
    table.set_properties({"delta.enableExpiredLogCleanup": None})
    (tmp_path / "_delta_log" / f"{3:020}.checkpoint.parquet").write_bytes(b"PAR1 nonsense PAR1")
    assert clean_log(table.snapshot, now=NOW) == 0  # nothing rests on a checkpoint that cannot be read
    assert versions(tmp_path)[: len(before)] == before


def test_a_log_behind_a_link_is_not_this_tables(tmp_path: Path) -> None:
    table_of(tmp_path / "own", 8, (2, 5))
    aged(tmp_path / "own", {n: 60 - n for n in range(7)} | {7: 1, 8: 0})
    before = versions(tmp_path / "own")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "_delta_log").symlink_to(tmp_path / "own" / "_delta_log")
    assert clean_log(mica.Table.open(tmp_path / "other").snapshot, now=NOW) == 0
    assert versions(tmp_path / "own") == before
    (tmp_path / "again").symlink_to(tmp_path / "own")
    assert clean_log(mica.Table.open(tmp_path / "again").snapshot, now=NOW) == 6


def test_a_young_log_is_not_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(tmp_path, 6, (3,))
    (tmp_path / "_delta_log" / "0.note").write_text("")
    read: list[str] = []

    def entries(storage: Storage) -> Iterator[Entry]:
        for entry in log_entries(storage):
            read.append(entry.path)
            yield entry

    monkeypatch.setattr(cleanup, "log_entries", entries)
    aged(tmp_path, dict(enumerate([6.0, 5, 4, 3, 2, 1, 0])))
    assert clean_log(table.snapshot, now=NOW) == 0
    assert read == ["_delta_log/0.note", f"_delta_log/{0:020}.json"]
    aged(tmp_path, {0: 40, 1: 31})
    assert clean_log(table.snapshot, now=NOW) == 0
    assert len(read) > 8


def test_a_commit_cleans_the_log_with_its_checkpoint(tmp_path: Path) -> None:
    properties = {"delta.checkpointInterval": "3", "delta.logRetentionDuration": "interval 1 days"}
    table = mica.Table.create(tmp_path, "id INT", properties=properties)
    for number in range(5):
        table.append([{"id": number}])
    for file in (tmp_path / "_delta_log").iterdir():
        os.utime(file, (1_000_000_000, 1_000_000_000))
    table.append([{"id": 5}])
    assert versions(tmp_path)[0] == f"{3:020}.checkpoint.parquet"
    assert mica.Table.open(tmp_path).count() == 6


def test_the_newest_properties_say_what_may_go_whatever_version_is_checkpointed(tmp_path: Path) -> None:
    old = table_of(tmp_path, 3, ())
    mica.Table.open(tmp_path).set_properties({"delta.enableExpiredLogCleanup": "false"})
    for file in (tmp_path / "_delta_log").glob("*.json"):
        os.utime(file, (0, 0))
    old.checkpoint()
    assert f"{0:020}.json" in versions(tmp_path)


def test_rules() -> None:
    assert cutoff(NOW, 0) % DAY == 0
    assert NOW - DAY < cutoff(NOW, 0) <= NOW
    names = [
        f"{0:020}.json", f"{1:020}.json", f"{1:020}.checkpoint.parquet", f"{1:020}.{3:020}.compacted.json",
        f"{0:020}.checkpoint.{1:010}.{2:010}.parquet", "_last_checkpoint", f"{2:020}.json", "note.json",
    ]  # fmt: skip
    entries = [Entry(f"_delta_log/{name}", 10, 5) for name in names]
    assert [path[11:] for path in expired(entries, 1)] == [names[0], names[3], names[4]]
    kept = oldest_kept(read_listing(entries), 10)
    assert kept is not None
    assert kept.version == 1
    assert oldest_kept(read_listing(entries), 4) is None


def test_sidecars_go_with_the_last_checkpoint_that_names_them(tmp_path: Path) -> None:
    """One of a kept checkpoint stays, and a young one of an unfinished checkpoint."""
    properties = {"delta.checkpointInterval": "1000", "delta.checkpointPolicy": "v2"}
    table = mica.Table.create(tmp_path, "id INT", properties=properties)
    for number in range(4):
        table.append([{"id": number}])
        table.checkpoint()
    folder = tmp_path / "_delta_log" / "_sidecars"
    (folder / "killed.parquet").write_bytes(b"")
    assert len(list(folder.iterdir())) == 5
    aged(tmp_path, dict.fromkeys(range(4), 60))
    aged(tmp_path, {4: 0})
    for file in folder.iterdir():
        os.utime(file, (NOW / 1000 - 40 * 86_400,) * 2)
    os.utime(folder / "killed.parquet", (NOW / 1000 - 3_600,) * 2)
    assert clean_log(table.snapshot, now=NOW) == 3 + 2 + 2  # commits, checkpoints and sidecars before version 3
    assert len(list(folder.iterdir())) == 3
    assert [mica.Table.open(tmp_path, version=version).count() for version in (3, 4)] == [3, 4]


def test_sidecars_that_a_checkpoint_of_json_names_are_kept(tmp_path: Path) -> None:
    """mica writes none, other engines do."""
    properties = {"delta.checkpointInterval": "1000", "delta.checkpointPolicy": "v2"}
    table = mica.Table.create(tmp_path, "id INT", properties=properties)
    for number in range(2):
        table.append([{"id": number}])
        table.checkpoint()
    (written,) = (tmp_path / "_delta_log").glob(f"{1:020}.checkpoint.*.parquet")
    rows = pq.read_table(written).to_pylist(maps_as_pydicts="strict")
    actions = [{kind: action for kind, action in row.items() if action is not None} for row in rows]
    written.with_suffix(".json").write_bytes(b"\n".join(map(orjson.dumps, actions)))
    written.unlink()
    aged(tmp_path, {0: 60, 1: 40, 2: 0})
    for file in (tmp_path / "_delta_log" / "_sidecars").iterdir():
        os.utime(file, (NOW / 1000 - 40 * 86_400,) * 2)
    assert clean_log(table.snapshot, now=NOW) == 1
    assert [mica.Table.open(tmp_path, version=version).count() for version in (1, 2)] == [1, 2]


def test_what_lies_behind_a_link_is_nobodys_sidecar(tmp_path: Path) -> None:
    """A link in the place of the sidecars led a cleanup into another folder, of which it deleted all."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_bytes(b"dear")
    os.utime(other / "letter.txt", (1, 1))
    table = mica.Table.create(tmp_path / "t", "id INT", properties={"delta.checkpointInterval": "1000"})
    for number in range(2):
        table.append([{"id": number}])
        table.checkpoint()
    (tmp_path / "t" / "_delta_log" / "_sidecars").symlink_to(other)
    aged(tmp_path / "t", {0: 60, 1: 60, 2: 60})
    assert clean_log(table.snapshot, now=NOW) > 0
    table.vacuum(0, enforce_retention=False)
    assert (other / "letter.txt").exists()
