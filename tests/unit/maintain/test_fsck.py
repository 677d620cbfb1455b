"""Fsck: files that are gone leave the table, and all others can be read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mica
from mica.errors import ConflictError, StorageError, UserError
from mica.log.transaction import Transaction
from mica.maintain.fsck import MISSING
from mica.storage.local import LocalStorage


def ids(table: mica.Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def table_of(path: Path, properties: dict[str, str] | None = None) -> mica.Table:
    table = mica.Table.create(path, "id INT, p STRING", ["p"], properties)
    for n, name in enumerate(("a", "b/ü %", "c")):
        table.append([{"id": 10 * n, "p": name}, {"id": 10 * n + 1, "p": name}])
    return table


def file_of(table: mica.Table, ident: int) -> Path:
    (part,) = table.scan(f"id = {ident}").whole_files()
    storage, name = table.snapshot.storage.locate(part.path)
    return Path(storage.path(name))


def test_a_whole_table_stays_as_it_is(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    version = table.version
    done = table.fsck()
    assert (done.version, done.files, done.bytes, done.rows) == (version, 0, 0, 0)
    assert done.missing.schema == MISSING
    assert str(done) == f"{table.path}, version {version}: every file is there"
    assert mica.Table.open(table.path).version == version


def test_a_file_that_is_gone_leaves_the_table(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    lost = file_of(table, 10)
    size = lost.stat().st_size
    lost.unlink()
    with pytest.raises(StorageError, match="is gone") as caught:
        table.to_arrow()
    assert "fsck" in caught.value.hint
    version = table.version
    listed = table.fsck(dry_run=True)
    assert (listed.version, listed.files, listed.bytes, listed.rows) == (version, 1, size, 2)
    assert "1 file would leave the table" in str(listed)
    done = table.fsck()
    assert done.missing.to_pylist() == [
        {
            "data_file_path": str(lost),
            "data_file_missing": True,
            "deletion_vector_path": None,
            "deletion_vector_missing": False,
        }
    ]
    assert (done.version, done.files, done.rows, done.to_dict()["missing"]) == (
        version + 1, 1, 2, done.missing.to_pylist(),
    )  # fmt: skip
    assert ids(table) == ids(mica.Table.open(table.path)) == [0, 1, 20, 21]
    assert mica.check(table.path).ok
    last = table.history(limit=1).to_pylist()[0]
    assert last["operation"] == "FSCK"
    assert dict(last["operation_metrics"])["numRemovedFiles"] == "1"
    assert table.fsck().files == 0


def test_a_file_whose_deletion_vector_is_gone_leaves_the_table(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", {"delta.enableDeletionVectors": "true"})
    table.delete("id = 0")
    table.delete("id = 11")
    first, second = sorted((tmp_path / "t").glob("**/deletion_vector*.bin"), key=lambda file: file.stat().st_mtime_ns)
    data = file_of(table, 1)
    first.unlink()
    done = table.fsck()
    assert done.missing.to_pylist() == [
        {
            "data_file_path": str(data),
            "data_file_missing": False,
            "deletion_vector_path": str(first),
            "deletion_vector_missing": True,
        }
    ]
    assert done.rows == 1
    assert (data.exists(), second.exists()) == (True, True)
    assert ids(table) == [10, 20, 21]


def test_files_of_a_clones_source_are_looked_for_where_they_are(tmp_path: Path) -> None:
    source = table_of(tmp_path / "s")
    clone = source.clone(tmp_path / "c")
    clone.append([{"id": 30, "p": "d"}])
    assert clone.fsck().files == 0
    file_of(source, 20).unlink()
    assert clone.fsck().rows == 2
    assert ids(clone) == [0, 1, 10, 11, 30]
    assert source.fsck().files == 1


def test_files_behind_links_are_there(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    moved = tmp_path / "elsewhere"
    (tmp_path / "t" / "p=a").rename(moved)
    (tmp_path / "t" / "p=a").symlink_to(moved)
    file = file_of(table, 20)
    file.rename(tmp_path / "one.parquet")
    file.symlink_to(tmp_path / "one.parquet")
    assert table.fsck().files == 0
    (tmp_path / "one.parquet").unlink()
    assert table.fsck().files == 1
    assert ids(table) == [0, 1, 10, 11]


@pytest.mark.parametrize("name", ["delta.enableChangeDataFeed", "delta.enableRowTracking"])
def test_the_lost_rows_are_in_no_feed_and_ids_stay(tmp_path: Path, name: str) -> None:
    table = table_of(tmp_path / "t", {name: "true"})
    lost, version = file_of(table, 0), table.version
    lost.unlink()
    table.fsck()
    table.append([{"id": 40, "p": "a"}])
    assert ids(table) == [10, 11, 20, 21, 40]
    if name == "delta.enableChangeDataFeed":
        with pytest.raises(StorageError, match="is gone: a commit up to version"):
            table.changes(version + 1).to_arrow()
        assert table.changes(version + 2).to_arrow().column("id").to_pylist() == [40]


def test_a_table_of_new_rows_only_is_not_changed(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", {"delta.appendOnly": "true"})
    file_of(table, 0).unlink()
    assert table.fsck(dry_run=True).files == 1
    with pytest.raises(UserError) as caught:
        table.fsck()
    assert caught.value.code == "APPEND_ONLY"
    assert mica.Table.open(table.path).version == table.version


def test_what_another_writer_removed_meanwhile_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(tmp_path / "t")
    file_of(table, 0).unlink()
    commit = Transaction.commit

    def later(self: Transaction) -> object:
        monkeypatch.setattr(Transaction, "commit", commit)
        mica.Table.open(table.path).delete("p = 'a'")
        return commit(self)

    monkeypatch.setattr(Transaction, "commit", later)
    with pytest.raises(ConflictError):
        table.fsck()
    assert ids(mica.Table.open(table.path)) == [10, 11, 20, 21]
    assert table.fsck().files == 0


def test_an_append_beside_it_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(tmp_path / "t")
    file_of(table, 0).unlink()
    commit = Transaction.commit

    def later(self: Transaction) -> object:
        monkeypatch.setattr(Transaction, "commit", commit)
        mica.Table.open(table.path).append([{"id": 50, "p": "a"}])
        return commit(self)

    monkeypatch.setattr(Transaction, "commit", later)
    assert table.fsck().files == 1
    assert ids(table) == [10, 11, 20, 21, 50]


def test_a_store_that_does_not_say_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(tmp_path / "t")
    lost = file_of(table, 0)
    lost.unlink()
    size: Callable[[LocalStorage, str], int] = LocalStorage.size

    def denied(self: LocalStorage, rel: str) -> int:
        if rel.endswith(lost.name):
            raise StorageError("PERMISSION_DENIED", "no", hint="Ask.", path=rel)
        return size(self, rel)

    monkeypatch.setattr(LocalStorage, "size", denied)
    with pytest.raises(StorageError) as caught:
        table.fsck()
    assert caught.value.code == "PERMISSION_DENIED"
    assert mica.Table.open(table.path).version == table.version
