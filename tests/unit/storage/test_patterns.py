"""A pattern means the same on a disk and in a store, and a name that looks like one is a name where it is there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from mica.errors import StorageError
from mica.storage import Storage, patterns
from mica.storage.remote import RemoteStorage


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.parquet", ["a.parquet", "b.parquet"]),
        ("**/*.parquet", ["a.parquet", "b.parquet", "d/c.parquet", "d/e/f.parquet"]),
        ("d/?.parquet", ["d/c.parquet"]),
        ("[!b].parquet", ["a.parquet"]),
        ("[bx].parquet", ["b.parquet"]),
        ("*/*.parquet", ["d/c.parquet"]),
        ("[^b].parquet", ["a.parquet"]),
        ("[z-y].parquet", []),
        ("**.parquet", ["a.parquet", "b.parquet"]),
        ("**", ["a.parquet", "b.parquet", "d/c.parquet", "d/e/f.parquet"]),
        ("**/e/**/*.parquet", ["d/e/f.parquet"]),
        ("d/**/**/f*", ["d/e/f.parquet"]),
        (".*", [".a.parquet.crc"]),
        ("d/.*/*", ["d/.hidden/g.parquet"]),
    ],
)
@pytest.mark.parametrize("remote", [False, True])
def test_a_pattern_means_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, names: list[str], remote: bool
) -> None:
    where: Storage = Storage.open(tmp_path)
    if remote:
        where = RemoteStorage("s3://bucket", "x", None, MemoryStore())
        monkeypatch.setattr(Storage, "open", lambda place, _=None: where.child(str(place)[len("s3://bucket/x/") :]))
    files = ("a.parquet", "b.parquet", "d/c.parquet", "d/e/f.parquet", ".a.parquet.crc", "d/.hidden/g.parquet")
    for name in files:
        where.put(name, b"")
    root = "s3://bucket/x" if remote else str(tmp_path)
    found = [f"{storage}/{entry.path}" for storage, entry in patterns.matching(f"{root}/{pattern}")]
    assert sorted(found) == [f"{root}/{name}" for name in names]


def test_a_path_names_one_file_with_its_size(tmp_path: Path) -> None:
    (tmp_path / "a*b.parquet").write_bytes(b"123")
    (tmp_path / "aab.parquet").write_bytes(b"")
    for path in (f"{tmp_path}/a*b.parquet", f"file://{tmp_path}/a*b.parquet"):
        [(storage, entry)] = patterns.files_of(path)
        assert (storage.path(entry.path), entry.size) == (f"{tmp_path}/a*b.parquet", 3), "it is there: no pattern"
    assert [entry.path for _, entry in patterns.files_of(f"{tmp_path}/a?b.parquet")] == ["a*b.parquet", "aab.parquet"]
    assert patterns.files_of(f"{tmp_path}/*.none") == []
    with pytest.raises(StorageError) as caught:
        patterns.files_of(f"{tmp_path}/none")
    assert caught.value.code == "NOT_FOUND"


@pytest.mark.parametrize("remote", [False, True])
def test_a_file_or_folder_that_is_there_is_no_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: bool
) -> None:
    root = "s3://bucket/x" if remote else str(tmp_path)
    where: Storage = RemoteStorage(root, "", None, MemoryStore()) if remote else Storage.open(tmp_path)
    if remote:
        monkeypatch.setattr(Storage, "open", lambda place, _=None: where.child(str(place)[len(root) :].strip("/")))
    where.put("a?b/c[d].parquet", b"")
    for name in ("a?b", "a?b/", "a?b/c[d].parquet"):
        assert not patterns.is_pattern(f"{root}/{name}"), name
    for name in ("a*", "a?", "a?b/c[d]", "a?b/*.parquet", "?"):
        assert patterns.is_pattern(f"{root}/{name}"), name


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [("a/b/*.x", "a/b"), ("a/**/b/*.x", "a"), ("/*", "/"), ("*.x", "."), ("s3://b/p/x?", "s3://b/p"), ("a/b.x", "a")],
)
def test_the_folder_below_which_all_of_it_is(pattern: str, folder: str) -> None:
    assert patterns.fixed_part(pattern) == folder


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error was NOT_FOUND, with the hint to check the pattern."""
    assert patterns.matching(f"{tmp_path}/*.x") == []

    def closed(_: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(StorageError, match=f"{tmp_path} may not be accessed") as caught:
        patterns.matching(f"{tmp_path}/*.x")
    assert caught.value.code == "PERMISSION_DENIED"
    assert patterns.matching(f"{tmp_path}/none/*.x") == []
