"""Input files: found by path and pattern, shared out so that every byte is in one task."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from mica.errors import MicaError
from mica.storage import Storage
from mica.storage.remote import RemoteStorage
from mica.tasks.ingest import Split
from mica.write import inputs


def _files(directory: Path, **sizes: int) -> list[Split]:
    storage = Storage.open(directory)
    for name, size in sizes.items():
        (directory / name).touch()
        os.truncate(directory / name, size)  # sparse: it takes no room
    return [Split(storage, name, size) for name, size in sizes.items()]


def test_paths_patterns_and_lists_keep_their_order(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "c.txt", "[x].json"):
        (tmp_path / name).write_text("1")
    (tmp_path / "sub.json").mkdir()
    found = [f.path for f in inputs.find([str(tmp_path / "c.txt"), str(tmp_path / "*.json")])]
    assert found == ["c.txt", "[x].json", "a.json", "b.json"]


def test_a_name_that_looks_like_a_pattern_is_a_name_where_there_is_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "[x].json").write_text("1")
    assert [f.path for f in inputs.find(tmp_path / "[x].json")] == ["[x].json"]


@pytest.mark.parametrize(
    ("name", "code"), [("none.json", "NOT_FOUND"), ("*.none", "NOT_FOUND"), ("", "IS_A_DIRECTORY")]
)
def test_what_names_no_file_is_an_error(tmp_path: Path, name: str, code: str) -> None:
    with pytest.raises(MicaError) as raised:
        inputs.find(str(tmp_path / name) if name else str(tmp_path))
    assert raised.value.code == code


@pytest.mark.parametrize("remote", [False, True])
def test_a_folder_is_named_as_one_with_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: bool
) -> None:
    root = "s3://bucket/x" if remote else tmp_path.as_uri()
    where: Storage = RemoteStorage("s3://bucket/x", "", None, MemoryStore()) if remote else Storage.open(tmp_path)
    if remote:
        monkeypatch.setattr(Storage, "open", lambda place, _=None: where.child(str(place)[len(root) :].strip("/")))
    where.put("in/a.json", b"1")
    for name in ("in", "in/"):
        with pytest.raises(MicaError) as raised:
            inputs.find(f"{root}/{name}")
        assert (raised.value.code, raised.value.hint) == ("IS_A_DIRECTORY", f"Write {root}/in/*.")


def test_a_large_plain_file_is_cut_and_every_byte_is_in_one_task(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": 1}\n')
    tasks = inputs.share(_files(tmp_path, a=1 << 30), 2)
    splits = [split for task in tasks for split in task]
    assert len(tasks) == 2
    assert splits[0].start == 0
    assert splits[-1].end == 1 << 30
    assert all(before.end == after.start for before, after in itertools.pairwise(splits))


@pytest.mark.parametrize("text", ["[1,\n 2]", '{\n "a": 1\n}\n'])
def test_what_spans_lines_is_not_cut(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text)
    assert [[s.end for s in task] for task in inputs.share(_files(tmp_path, a=1 << 30), 4)] == [[None]]


def test_small_files_share_a_task_and_keep_their_order(tmp_path: Path) -> None:
    files = _files(tmp_path, **{f"f{i:03d}": 1 << 20 for i in range(100)})
    tasks = inputs.share(files, 4)
    assert 3 <= len(tasks) <= 5
    assert [s.path for task in tasks for s in task] == [f.path for f in files]


def test_tasks_beyond_the_cores_come_in_whole_rounds(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("{}\n")
    assert len(inputs.share(_files(tmp_path, a=inputs.TASK_BYTES * 5), 2)) == 6


def test_tasks_are_of_equal_size_whatever_the_files_are(tmp_path: Path) -> None:
    names = {f"f{i}": 239 << 20 for i in range(10)}
    files = _files(tmp_path, **names)
    for name, size in names.items():
        (tmp_path / name).write_text("{}\n")
        os.truncate(tmp_path / name, size)
    tasks = inputs.share(files, 2)
    assert len(tasks) == 6
    sizes = [sum(split.bytes for split in task) for task in tasks]
    assert sum(sizes) == 10 * (239 << 20)
    assert max(sizes) - min(sizes) < max(sizes) // 8
    assert all(split.bytes >= inputs.LEAST_BYTES for task in tasks for split in task)


@pytest.mark.parametrize("seed", range(30))
def test_every_byte_is_in_one_task_in_the_order_of_the_files(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    names = {
        f"f{i}{chance.choice(['', '', '.gz'])}": chance.choice([0, 5, 1 << 20, 30 << 20, 700 << 20, 3 << 30])
        for i in range(chance.randrange(1, 12))
    }
    files = _files(tmp_path, **names)
    for name, size in names.items():
        if size:
            (tmp_path / name).write_text("{}\n")
            os.truncate(tmp_path / name, size)
    cores = chance.choice([1, 2, 3, 16])
    tasks = inputs.share(files, cores)
    assert all(tasks)
    splits = [split for task in tasks for split in task]
    found: dict[str, int] = {}
    for split in splits:
        assert split.start == found.get(split.path, 0)
        found[split.path] = split.size if split.end is None else split.end
    assert list(found.items()) == list(names.items())
    plain = [split for task in tasks for split in task if not split.path.endswith(".gz")]
    assert max((split.bytes for split in plain), default=0) <= inputs.TASK_BYTES * 5 // 4
