"""Vacuum: what a kept version names stays, everything else that is old goes."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

import mica
from mica.errors import StorageError, UserError
from mica.log.checkpoint_writer import write_checkpoint
from mica.maintain.vacuum import millis, vacuum
from mica.storage.local import LocalStorage
from tests.unit.log.tables import before_commit


def older(path: Path, days: float = 30) -> None:
    """Everything below the table, and what its log says of times, as if it were of long ago."""
    for file in [*path.rglob("*.parquet"), *path.rglob("*.bin")]:
        if "_delta_log" not in file.parts:
            at = file.stat().st_mtime - days * 86_400
            os.utime(file, (at, at))


def data(path: Path) -> set[str]:
    return {
        str(file.relative_to(path)) for file in path.rglob("*") if file.is_file() and "_delta_log" not in file.parts
    }


def live(table: mica.Table) -> set[str]:
    return set(table.files().column("path").to_pylist())


def table_of(path: Path, **properties: str) -> mica.Table:
    table = mica.Table.create(path, "id INT, p STRING", ["p"], properties=properties)
    for number in range(3):
        table.append([{"id": number, "p": "a b"}, {"id": -number, "p": None}])
    return table


def test_removed_files_go_when_their_retention_is_over(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.overwrite([{"id": 9, "p": "x"}])
    older(tmp_path)
    before = data(tmp_path)
    kept = table.vacuum()  # removed a moment ago
    assert (kept.files, data(tmp_path)) == (0, before)
    late = vacuum(table.snapshot, clock=lambda: os.times().elapsed * 0 + 4_000_000_000)
    assert late.files == 6
    assert data(tmp_path) == {name.replace("%20", " ") for name in live(table)}
    assert table.refresh().count() == 1
    assert [row["operation"] for row in table.history(limit=2).to_pylist()] == ["VACUUM END", "VACUUM START"]


@pytest.mark.parametrize(("makes_room", "recorded"), [(True, ["VACUUM END"]), (False, [])])
def test_a_full_disk_does_not_refuse_what_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, makes_room: bool, recorded: list[str]
) -> None:
    table = table_of(tmp_path)
    table.overwrite([{"id": 9, "p": "x"}])
    version, files = table.version, len(data(tmp_path))
    own = LocalStorage.put_if_absent

    def full(storage: LocalStorage, rel: str, body: bytes) -> None:
        if len(data(tmp_path)) == files or not makes_room:
            raise StorageError("DISK_FULL", "no space left")
        own(storage, rel, body)

    monkeypatch.setattr(LocalStorage, "put_if_absent", full)
    assert table.vacuum(0, enforce_retention=False).files == 6
    assert data(tmp_path) == {name.replace("%20", " ") for name in live(table)}
    assert [row["operation"] for row in table.history().to_pylist()][: -version - 1] == recorded
    assert table.count() == 1


def test_a_schema_that_changes_while_files_are_deleted_does_not_hide_that_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end was refused as a conflict, which said that nothing was written: the files were gone."""
    table = table_of(tmp_path)
    table.overwrite([{"id": 9, "p": "x"}])
    older(tmp_path)
    deleted = LocalStorage.delete_all

    def meanwhile(storage: LocalStorage, files: Sequence[str]) -> None:
        mica.Table.open(tmp_path).add_columns("more INT")
        deleted(storage, files)

    monkeypatch.setattr(LocalStorage, "delete_all", meanwhile)
    done = table.vacuum(0, enforce_retention=False)
    assert (done.files, table.schema.names) == (6, ["id", "p", "more"])
    operations = [row["operation"] for row in table.history(limit=3).to_pylist()]
    assert operations == ["VACUUM END", "ADD COLUMNS", "VACUUM START"]


def test_a_dry_run_deletes_nothing_and_lists_what_would_go(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    version = table.version
    table.overwrite([{"id": 9, "p": "x"}])
    older(tmp_path)
    before = data(tmp_path)
    found = table.vacuum(0, dry_run=True, enforce_retention=False)
    assert data(tmp_path) == before
    assert table.version == version + 1
    gone = table.vacuum(0, enforce_retention=False)
    assert found.to_dict()["deleted"] == gone.to_dict()["deleted"]
    assert before - data(tmp_path) == set(gone.to_dict()["deleted"])
    assert gone.bytes > 0
    with pytest.raises(StorageError):
        mica.Table.open(tmp_path, version=version).to_arrow()


def test_what_a_killed_writer_left_goes_and_what_is_hidden_stays(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    for name in ("part-left.parquet", "p=x/part-left.parquet", "_quarantine/bad.ndjson", ".hidden", "_x=1/y.parquet",
                 "_change_data/cdc-1.parquet"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"?")
        os.utime(tmp_path / name, (1_000_000_000, 1_000_000_000))
    young = tmp_path / "part-young.parquet"
    young.write_bytes(b"?")  # its writer may be about to commit
    done = table.vacuum()
    assert set(done.to_dict()["deleted"]) == {
        "part-left.parquet",
        "p=x/part-left.parquet",
        "_change_data/cdc-1.parquet",
    }
    assert young.exists()
    assert table.count() == 6


def test_partial_files_of_killed_writers_go_from_every_folder(tmp_path: Path) -> None:
    """Nothing removed them but from the log, and there only with a checkpoint: a killed write of a deletion vector or
    of bad lines left one for good."""
    table = mica.Table.create(tmp_path, "id INT, p STRING", ["p"])
    table.append([{"id": 1, "p": "a"}])
    folders = ("", "p=a", "_change_data", "_mica_ingested", "_quarantine", "_delta_log", "_delta_log/_sidecars")
    name = f".{'0123456789abcdef' * 2}.tmp"
    for folder in folders:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_bytes(b"half")
        os.utime(tmp_path / folder / name, (1, 1))
        (tmp_path / folder / name.replace("0", "f")).write_bytes(b"a writer that lives")
        (tmp_path / folder / ".other.tmp").write_bytes(b"of somebody else")
        os.utime(tmp_path / folder / ".other.tmp", (1, 1))
    table.vacuum(dry_run=True)
    assert len(list(tmp_path.rglob("*.tmp"))) == 3 * len(folders)
    table.vacuum()
    assert {file.name for file in tmp_path.rglob("*.tmp")} == {name.replace("0", "f"), ".other.tmp"}
    assert len(list(tmp_path.rglob(name.replace("0", "f")))) == len(folders)


def test_a_partition_column_may_begin_with_an_underscore(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, _p INT", ["_p"])
    table.append([{"id": 1, "_p": 1}])
    stray = tmp_path / "_p=1" / "part-left.parquet"
    stray.write_bytes(b"?")
    os.utime(stray, (1_000_000_000, 1_000_000_000))
    assert table.vacuum().to_dict()["deleted"] == ["_p=1/part-left.parquet"]
    assert table.count() == 1


def test_less_than_the_tables_retention_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    with pytest.raises(UserError) as raised:
        table.vacuum(24)
    assert raised.value.code == "RETENTION_TOO_SHORT"
    assert "168 hours" in str(raised.value)
    table.set_properties({"delta.deletedFileRetentionDuration": "interval 1 hours"})
    assert table.vacuum(24).retention_hours == 24
    for wrong in (-1, True, "soon", float("nan"), timedelta(-1), 10**12):
        with pytest.raises(UserError):
            table.vacuum(wrong)
    assert millis("2 days") == millis(48) == millis(timedelta(days=2)) == 172_800_000


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_longer_retention_is_kept_though_checkpoints_forget(tmp_path: Path, checkpoint: bool) -> None:
    """A checkpoint keeps tombstones for the table's retention alone; the commits know of older ones."""
    table = table_of(tmp_path, **{"delta.deletedFileRetentionDuration": "interval 0 seconds"})
    version = table.version
    table.overwrite([{"id": 9, "p": "x"}])
    if checkpoint:
        table.checkpoint()
    older(tmp_path)
    assert mica.Table.open(tmp_path).vacuum("1 hour").files == 0
    assert mica.Table.open(tmp_path, version=version).count() == 6
    assert mica.Table.open(tmp_path).vacuum(0).files == 6


def test_files_that_are_named_by_their_whole_paths_stay(tmp_path: Path) -> None:
    """Shallow clones and other writers name files absolutely; links may lead to the table."""
    real, link = tmp_path / "real", tmp_path / "link"
    table = table_of(real)
    link.symlink_to(real)
    log = real / "_delta_log" / f"{table.version:020}.json"
    text = log.read_text()
    relative = [name for name in live(table) if name in text]
    for name in relative:
        text = text.replace(f'"{name}"', f'"file://{link}/{name}"')
    log.write_text(text)
    older(real)
    table = mica.Table.open(real, storage_options={"allow_external_paths": "true"})
    assert table.vacuum(0, enforce_retention=False).files == 0
    assert table.count() == 6


@pytest.mark.parametrize(
    "spelled", ["./sub/{}", "sub/./{}", "sub//{}", "file://localhost{root}/sub/{}", "FILE://{root}/sub/{}", "s%75b/{}"]
)
def test_files_that_another_writer_spells_in_its_way_stay(tmp_path: Path, spelled: str) -> None:
    table = mica.Table.create(tmp_path, "id INT")
    table.append([{"id": 1}])
    [name] = live(table)
    (tmp_path / "sub").mkdir()
    (tmp_path / name).rename(tmp_path / "sub" / name)
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    log.write_text(log.read_text().replace(f'"{name}"', f'"{spelled.format(name, root=tmp_path)}"'))
    older(tmp_path)
    table = mica.Table.open(tmp_path)
    assert table.vacuum(0, enforce_retention=False).files == 0
    assert table.count() == 1


def test_no_kept_version_loses_a_file(tmp_path: Path, rng: random.Random) -> None:
    """The law: whatever happened to a table, every version within the retention reads as before."""
    table = mica.Table.create(tmp_path, "id INT, p INT", ["p"], properties={"delta.checkpointInterval": "3"})
    counts = {0: 0}
    for step in range(14):
        rows = [{"id": step * 10 + n, "p": rng.randrange(3)} for n in range(rng.randrange(1, 4))]
        if rng.random() < 0.4:
            table.overwrite(rows)
        elif rng.random() < 0.2:
            table.restore(version=rng.randrange(table.version + 1))
        else:
            table.append(rows)
        counts[table.version] = table.count()
    older(tmp_path)
    assert table.vacuum().files == 0
    for version, rows in counts.items():
        assert mica.Table.open(tmp_path, version=version).to_arrow().num_rows == rows
    table.vacuum(0, enforce_retention=False)
    assert data(tmp_path) == live(table)
    assert table.to_arrow().num_rows == counts[max(counts)]


def test_change_files_stay_while_a_commit_within_the_retention_names_them(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableChangeDataFeed": "true"})
    table.append([{"id": i} for i in range(4)])
    table.delete("id = 1")
    table.delete("id = 2")
    older(tmp_path)
    first = tmp_path / "_delta_log" / f"{2:020d}.json"
    os.utime(first, (1_000_000_000, 1_000_000_000))
    done = table.vacuum()
    assert [path.startswith("_change_data/") for path in done.deleted.column("path").to_pylist()] == [True]
    assert [row["id"] for row in table.changes(3, 3).to_arrow().to_pylist()] == [2]
    with pytest.raises(StorageError):
        table.changes(2, 2).to_arrow()


def test_sidecars_that_no_checkpoint_names_go(tmp_path: Path) -> None:
    table = table_of(tmp_path, **{"delta.checkpointPolicy": "v2"})
    table.checkpoint()
    folder = tmp_path / "_delta_log" / "_sidecars"
    (named,) = folder.iterdir()
    for name in ("killed.parquet", "young.parquet"):
        (folder / name).write_bytes(named.read_bytes())
    for file in (named, folder / "killed.parquet"):
        os.utime(file, (0, 0))
    assert table.vacuum(dry_run=True).deleted["path"].to_pylist() == ["_delta_log/_sidecars/killed.parquet"]
    table.vacuum()
    assert sorted(folder.iterdir()) == sorted([named, folder / "young.parquet"])
    (checkpoint,) = (tmp_path / "_delta_log").glob("*.checkpoint.*")
    checkpoint.write_bytes(b"PAR1 nonsense PAR1")  # in doubt, all stay
    (folder / "killed.parquet").write_bytes(b"")
    os.utime(folder / "killed.parquet", (0, 0))
    assert table.vacuum().files == 0


def test_files_are_kept_for_the_retention_of_today(tmp_path: Path) -> None:
    """A checkpoint had dropped the tombstone by the shorter retention of its day."""
    table = table_of(tmp_path)
    table.overwrite([{"id": 9, "p": "x"}])
    older(tmp_path, 40)
    now, day = time.time(), 86_400
    write_checkpoint(table.snapshot, now=int((now + 8 * day) * 1000))
    table = mica.Table.open(tmp_path)
    table.set_properties({"delta.deletedFileRetentionDuration": "interval 30 days"})
    assert vacuum(table.snapshot, clock=lambda: now + 10 * day).files == 0
    assert mica.Table.open(tmp_path, version=3).count() == 6
    assert vacuum(table.refresh().snapshot, clock=lambda: now + 31 * day).files == 6


def test_what_is_restored_while_a_vacuum_begins_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(tmp_path)
    table.overwrite([{"id": 9, "p": "x"}])
    older(tmp_path)
    before_commit(monkeypatch, lambda: mica.Table.open(tmp_path).restore(3))
    done = vacuum(table.snapshot, clock=lambda: time.time() + 30 * 86_400)
    table.refresh()
    assert (done.files, table.count()) == (0, 6)
    assert [row["operation"] for row in table.history(limit=3).to_pylist()] == ["VACUUM END", "VACUUM START", "RESTORE"]


def test_what_a_vacuum_deletes_while_a_restore_begins_is_not_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path)
    table.overwrite([{"id": 9, "p": "x"}])
    older(tmp_path)
    before_commit(
        monkeypatch, lambda: vacuum(mica.Table.open(tmp_path).snapshot, clock=lambda: time.time() + 30 * 86_400)
    )
    with pytest.raises(StorageError, match="cannot be restored"):
        table.restore(3)
    assert mica.Table.open(tmp_path).count() == 1


def test_names_that_are_no_text_stay(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    odd = os.fsencode(tmp_path) + b"/x\xff.parquet"
    with open(odd, "wb") as file:  # noqa: PTH123 - a Path has no such name
        file.write(b"x")
    os.utime(odd, (0, 0))
    assert vacuum(table.snapshot, clock=lambda: time.time() + 30 * 86_400).files == 0
    assert os.path.exists(odd)  # noqa: PTH110 - as above


def test_files_that_the_log_names_by_links_stay(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    (tmp_path / "store").mkdir()
    first, *_ = sorted(tmp_path.glob("p=*/*.parquet"))
    first.rename(tmp_path / "store" / first.name)
    first.symlink_to(tmp_path / "store" / first.name)
    last = max(tmp_path.glob("p=*"))
    last.rename(tmp_path / "moved")
    last.symlink_to("moved")
    older(tmp_path)
    assert table.vacuum().files == 0
    assert table.count() == 6


def test_links_lead_to_no_file_that_a_vacuum_deletes(tmp_path: Path) -> None:
    """They were deleted under the name of the link, which no log knows."""
    table, other = table_of(tmp_path / "t"), table_of(tmp_path / "other")
    (tmp_path / "t" / "again").symlink_to("p=a%20b" if (tmp_path / "t" / "p=a%20b").exists() else "p=a b")
    (tmp_path / "t" / "other").symlink_to("../other")
    older(tmp_path)
    assert table.vacuum().files == 0
    assert (table.count(), other.count()) == (6, 6)
