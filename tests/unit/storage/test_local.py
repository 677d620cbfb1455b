"""What a local disk is beyond the contract of `test_base`: names, pipes, full disks, permissions, killed writers."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from mica.errors import StorageError
from mica.storage import Storage
from mica.storage.local import LocalStorage
from mica.variant import kernel

LOCAL_NAMES = ["hash#1", "back\\slash", "line\nbreak", "tab\there", "~tilde", "-dash"]


@pytest.mark.parametrize("name", LOCAL_NAMES)
def test_a_local_disk_takes_every_legal_name(tmp_path: Path, name: str) -> None:
    storage = Storage.open(tmp_path)
    storage.put_if_absent(name, b"1")
    assert storage.read(name) == b"1"
    assert [entry.path for entry in storage.list()] == [name]


@pytest.mark.parametrize("name", ["a/../../etc/passwd", "..", "/etc/passwd", "//etc/passwd", "a\0"])
def test_a_name_cannot_leave_the_location(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError) as caught:
        Storage.open(tmp_path).read(name)
    assert caught.value.code == "INVALID_NAME"


def test_a_relative_path_does_not_move_with_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = Storage.open("t")
    storage.put("x", b"1")
    monkeypatch.chdir("/")
    assert pickle.loads(pickle.dumps(storage)).read("x") == b"1"


def test_a_directory_for_a_file_is_named(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"1")
    for action in (lambda: storage.read("d"), lambda: storage.size("d"), lambda: storage.put("d", b"")):
        with pytest.raises(StorageError) as caught:
            action()
        assert caught.value.code == "IS_A_DIRECTORY"
    for action in (lambda: storage.read("f/x"), lambda: storage.put("f/x", b""), lambda: list(storage.list("f"))):
        with pytest.raises(StorageError) as caught:
            action()
        assert caught.value.code == "NOT_A_DIRECTORY"


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=False).returncode
    ):
        pytest.skip("only root can mount a small tmpfs here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_is_named_and_leaves_nothing(full_disk: Path) -> None:
    storage = Storage.open(full_disk)
    big = b"x" * 200_000
    for action in (lambda: storage.put("a", big), lambda: storage.put_if_absent("b", big), lambda: write(storage, big)):
        with pytest.raises(StorageError) as caught:
            action()
        assert caught.value.code == "DISK_FULL"
    assert [path.name for path in full_disk.iterdir()] == []


def write(storage: Storage, data: bytes) -> None:
    with storage.writer("c") as writer:
        writer.write(data)


def test_no_permission_is_named(tmp_path: Path) -> None:
    # root may do everything: the test runs as nobody.
    code = textwrap.dedent(
        """
        import sys
        from mica.errors import StorageError
        from mica.storage import Storage
        storage = Storage.open(sys.argv[1])
        for action in (lambda: storage.read("f"), lambda: storage.put("g", b""), lambda: list(storage.list("d"))):
            try:
                action()
                print("done")
            except StorageError as error:
                print(error.code)
        """
    )
    place = tmp_path / "closed"
    (place / "d").mkdir(parents=True)
    (place / "f").write_bytes(b"1")
    (place / "f").chmod(0)
    (place / "d").chmod(0)
    place.chmod(0o555)
    for parent in place.parents:
        if parent == Path("/tmp") or parent == Path("/"):
            break
        parent.chmod(0o755)
    command = [sys.executable, "-c", code, str(place)]
    if not os.geteuid():
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if "Permission denied" in done.stderr or "ModuleNotFoundError" in done.stderr:
        pytest.skip("another user cannot run this Python")
    assert done.stdout.split() == ["PERMISSION_DENIED"] * 3, done.stderr


@pytest.mark.parametrize("how", ["put", "put_if_absent", "writer"])
def test_a_checksum_of_hadoop_does_not_outlive_the_bytes_it_was_made_of(tmp_path: Path, how: str) -> None:
    storage = Storage.open(tmp_path)
    (tmp_path / ".x.crc").write_bytes(b"crc of what Spark wrote there before")
    if how == "writer":
        with storage.writer("x") as writer:
            writer.write(b"1")
    else:
        getattr(storage, how)("x", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_sync_makes_another_librarys_file_durable(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "x").write_bytes(b"1")
    storage.sync("x")
    with pytest.raises(StorageError):
        storage.sync("y")


def test_what_a_killed_writer_left_goes_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    program = f"""
        import os, signal
        from mica.storage import Storage
        Storage.open({str(tmp_path)!r}).writer("log/1.json").write(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    (tmp_path / "log" / ".hidden.tmp").touch()
    storage = Storage.open(tmp_path)
    living = storage.writer("log/2.json")
    living.write(b"whole")
    assert len(list((tmp_path / "log").iterdir())) == 3
    storage.sweep("log")  # too young to be looked at
    assert len(list((tmp_path / "log").iterdir())) == 3
    for file in (tmp_path / "log").iterdir():
        os.utime(file, (1, 1))
    storage.sweep("log")
    living.close()
    assert sorted(entry.path for entry in storage.list()) == ["log/.hidden.tmp", "log/2.json"]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_are_refused(tmp_path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(tmp_path / "x")
    else:
        (tmp_path / "x").symlink_to("/dev/zero")
    storage = Storage.open(tmp_path)
    for read in (storage.read, storage.size, lambda rel: storage.read_ranges(rel, [(0, 1)])):
        with pytest.raises(StorageError, match=r"named pipe|device") as caught:
            read("x")
        assert caught.value.code == "NOT_A_FILE"


def test_the_kernel_opens_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(StorageError, match="a pipe or a device"):
        kernel.FileReader(path=str(tmp_path / "x"), name="x", size=10)
    reader = kernel.JsonReader
    with pytest.raises(StorageError, match="a pipe or a device"):
        reader(path=str(tmp_path / "x"), column="v")


def test_links_to_directories_are_followed_but_by_those_who_delete(tmp_path: Path) -> None:
    (tmp_path / "root" / "p=1").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    for name in ("root/p=1/a", "other/b"):
        (tmp_path / name).write_bytes(b"1")
    links = {"latest": "p=1", "beside": "../other", "loop": ".", "p=1/up": ".."}
    for link, target in links.items():
        (tmp_path / "root" / link).symlink_to(target)
    storage = LocalStorage(str(tmp_path / "root"))
    assert [entry.path for entry in storage.list()] == ["beside/b", "latest/a", "p=1/a"]
    assert [entry.path for entry in storage.list(links=False)] == ["p=1/a"]
    assert [[*storage.list(link, links=False)] for link in links] == [[]] * len(links)
    assert [entry.path for entry in storage.list("p=1", links=False)] == ["p=1/a"]
    storage.clear()
    assert [entry.path for entry in storage.list()] == ["beside/b"]


def test_a_working_directory_that_was_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StorageError, match="the working directory does not exist") as caught:
        Storage.open("t")
    assert caught.value.code == "NOT_FOUND"
    assert Storage.open(tmp_path).local_path == str(tmp_path)
