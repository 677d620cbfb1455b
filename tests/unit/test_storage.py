"""One contract for disks and object stores: names, atomic creates, ranges, listings, and errors that say no secret."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

import mica
from mica.errors import StorageError, UserError
from mica.storage import SCHEMES, AlreadyExistsError, Storage, options, split_scheme
from mica.storage.local import LocalStorage
from mica.storage.range_file import RangeFile
from mica.storage.remote import RemoteStorage
from mica.variant import kernel

NAMES = [
    "plain",
    "a b",
    "per%20cent%",
    "ä/ö*?{}[]",
    "day=2024-01-01 00%3A00/x",
    "a+b&c=d;e,f@g!",
    "quote'\"`",
    "日本/𝄞",
]
LOCAL_NAMES = ["hash#1", "back\\slash", "line\nbreak", "tab\there", "~tilde", "-dash"]


@pytest.fixture(params=["local", "remote"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return Storage.open(tmp_path / "t")
    return RemoteStorage("s3://bucket", "some/where", None, MemoryStore())


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_written_read_and_listed_as_it_is(storage: Storage, name: str) -> None:
    storage.put(name, b"12345")
    assert storage.read(name) == b"12345"
    assert storage.size(name) == 5
    assert [entry.path for entry in storage.list()] == [name]


@pytest.mark.parametrize("name", LOCAL_NAMES)
def test_a_local_disk_takes_every_legal_name(tmp_path: Path, name: str) -> None:
    storage = Storage.open(tmp_path)
    storage.put_if_absent(name, b"1")
    assert storage.read(name) == b"1"
    assert [entry.path for entry in storage.list()] == [name]


def test_a_name_cannot_leave_the_location(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        Storage.open(tmp_path).read("a/../../etc/passwd")
    assert caught.value.code == "INVALID_NAME"


def test_put_if_absent_creates_once(storage: Storage) -> None:
    storage.put_if_absent("d/x", b"first")
    with pytest.raises(AlreadyExistsError) as caught:
        storage.put_if_absent("d/x", b"second")
    assert caught.value.code == "FILE_EXISTS"
    assert storage.read("d/x") == b"first"


def test_of_many_creators_one_wins(storage: Storage) -> None:
    def create(number: int) -> bool:
        try:
            storage.put_if_absent("d/x", str(number).encode())
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        won = [n for n, first in enumerate(pool.map(create, range(64))) if first]
    assert len(won) == 1
    assert storage.read("d/x") == str(won[0]).encode()
    assert [entry.path for entry in storage.list()] == ["d/x"]


def test_ranges_are_read_in_their_order(storage: Storage) -> None:
    storage.put("x", b"0123456789")
    assert storage.read_ranges("x", [(8, 10), (0, 0), (2, 5)]) == [b"89", b"", b"234"]
    assert storage.read_ranges("x", []) == []


def test_a_range_beyond_the_end_is_an_error(storage: Storage) -> None:
    storage.put("x", b"0123456789")
    for span in [(5, 20), (10, 11), (50, 60)]:
        with pytest.raises(StorageError) as caught:
            storage.read_ranges("x", [(0, 2), span])
        assert caught.value.code == "FILE_TOO_SHORT"


def test_a_listing_is_in_order_and_starts_after_a_name(storage: Storage) -> None:
    for name in ["log/2", "log/10", "log/1", "log/sub/3", "logs", "z"]:
        storage.put(name, b"")
    assert [e.path for e in storage.list("log")] == ["log/1", "log/10", "log/2", "log/sub/3"]
    assert [e.path for e in storage.list("log", start_after="log/10")] == ["log/2", "log/sub/3"]
    assert [e.path for e in storage.list("log", recursive=False)] == ["log/1", "log/10", "log/2"]
    assert list(storage.list("nothing")) == []


def test_a_listing_says_size_and_time(storage: Storage) -> None:
    storage.put("x", b"123")
    (entry,) = storage.list()
    assert entry.size == 3
    assert entry.modified > 1_600_000_000_000


def test_a_written_file_appears_when_it_is_closed(storage: Storage) -> None:
    with storage.writer("d/x") as writer:
        writer.write(b"12")
        assert not storage.exists("d/x")
        writer.write(b"3")
    assert storage.read("d/x") == b"123"


def test_an_aborted_file_leaves_nothing(storage: Storage) -> None:
    def fail() -> None:
        with storage.writer("d/x") as writer:
            writer.write(b"12")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    writer = storage.writer("d/y")
    writer.write(b"1")
    writer.abort()
    assert list(storage.list()) == []


def test_deleting_twice_is_no_error(storage: Storage) -> None:
    storage.put("x", b"1")
    storage.delete("x")
    storage.delete("x")
    assert not storage.exists("x")


def test_what_is_missing_is_not_found(storage: Storage) -> None:
    with pytest.raises(StorageError) as caught:
        storage.read("d/x")
    assert caught.value.code == "NOT_FOUND"
    assert "d/x" in str(caught.value)
    assert not storage.exists("d/x")


def test_a_child_is_the_same_place(storage: Storage) -> None:
    storage.put("d/x", b"1")
    assert storage.child("d").read("x") == b"1"


def test_an_absolute_name_below_the_location_is_relative(storage: Storage) -> None:
    for rel in ["x", "d/x"]:
        where, name = storage.at(storage.path(rel))
        assert (where, name) == (storage, rel)


def test_an_absolute_name_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x").write_bytes(b"1")
    table = Storage.open(tmp_path / "t")
    for spelled in [f"{tmp_path}/other/x", f"file:{tmp_path}/other/x", f"file://{tmp_path}/other/x"]:
        where, name = table.at(spelled)
        assert where.read(name) == b"1"
    remote = RemoteStorage("s3://bucket", "some/where", None, MemoryStore())
    assert str(remote.at("s3a://bucket/else/x")[0]) == "s3://bucket"
    assert remote.at("s3a://bucket/some/where/x") == (remote, "x")
    assert str(remote.at("s3://other/else/x")[0]) == "s3://other/else"


@pytest.mark.parametrize("scheme", ["hdfs", "dbfs", "viewfs", "http", "wasbs"])
def test_a_scheme_that_is_not_in_the_table_is_refused_by_name(scheme: str) -> None:
    with pytest.raises(UserError, match=scheme) as caught:
        Storage.open(f"{scheme}:/x/y" if scheme == "dbfs" else f"{scheme}://x/y")
    assert caught.value.code == "UNSUPPORTED_SCHEME"


@pytest.mark.parametrize("scheme", sorted(set(SCHEMES) - {"file"}))
def test_sparks_schemes_open(scheme: str) -> None:
    host = "bucket" if SCHEMES[scheme] in ("s3", "gs") else "bucket@account.dfs.core.windows.net"
    assert Storage.open(f"{scheme}://{host}/a b/c").uri.endswith("/a b/c")


def test_a_plain_path_and_a_file_uri_are_one_place(tmp_path: Path) -> None:
    spelled = [str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}", f"file://localhost{tmp_path}", f"{tmp_path}/"]
    assert {Storage.open(text).local_path for text in spelled} == {str(tmp_path)}
    with pytest.raises(UserError):
        Storage.open("file://elsewhere/x")


def test_a_drive_or_a_colon_in_a_path_is_no_scheme() -> None:
    assert split_scheme("C:x") == (None, "C:x")
    assert split_scheme("a/b:c") == (None, "a/b:c")
    assert split_scheme("S3A://b/k") == ("s3a", "//b/k")


def test_a_location_without_a_bucket_is_refused() -> None:
    with pytest.raises(UserError, match="no bucket"):
        Storage.open("s3:///x")


def test_a_relative_path_does_not_move_with_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = Storage.open("t")
    storage.put("x", b"1")
    monkeypatch.chdir("/")
    assert pickle.loads(pickle.dumps(storage)).read("x") == b"1"


SECRET = "hush-hush-very-secret"


def test_secrets_stand_in_no_text() -> None:
    options = {"secret_access_key": SECRET, "access_key_id": "id-" + SECRET, "region": "r", "nonsense": "1"}
    with pytest.raises(UserError) as caught:
        Storage.open("s3://bucket/x", options)
    assert caught.value.code == "UNKNOWN_STORAGE_OPTION"
    del options["nonsense"]
    storage = Storage.open("s3://bucket/x", options)
    for text in [repr(storage), str(storage), str(caught.value), repr(caught.value), storage.uri, storage.path("x")]:
        assert SECRET not in text
    assert caught.value.__cause__ is None


def test_a_store_that_cannot_be_reached_is_an_error_without_secrets() -> None:
    options = {
        "secret_access_key": SECRET,
        "access_key_id": "id",
        "region": "r",
        "endpoint": "http://127.0.0.1:1",
        "allow_http": "true",
        "timeout": "1s",
    }
    code = textwrap.dedent(
        f"""
        from obstore.store import S3Store
        from mica.storage.remote import RemoteStorage
        from mica.errors import StorageError
        store = S3Store("bucket", config={{"secret_access_key": {SECRET!r}, "access_key_id": "id", "region": "r",
            "endpoint": "http://127.0.0.1:1"}},
            client_options={{"allow_http": True}}, retry_config={{"max_retries": 0}})
        try:
            RemoteStorage("s3://bucket", "x", {options!r}, store).read("y")
        except StorageError as error:
            print(error.code, error)
        """
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("IO "), done.stderr
    assert SECRET not in done.stdout + done.stderr


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


def test_a_range_file_reads_like_a_file(storage: Storage) -> None:
    data = bytes(range(256)) * 10
    storage.put("x", data)
    file = RangeFile(storage, "x", len(data))
    assert file.read(3) == data[:3]
    assert file.seek(-4, 2) == len(data) - 4
    assert file.read() == data[-4:]
    assert file.read(5) == b""
    assert file.seek(10) == 10
    assert file.seek(5, 1) == 15
    buffer = bytearray(4)
    assert file.readinto(buffer) == 4
    assert bytes(buffer) == data[15:19]


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


S3 = ("access_key_id", "secret_access_key", "endpoint")


@pytest.mark.parametrize(
    ("given", "means"),
    [
        ({"AWS_ACCESS_KEY_ID": "a", "aws_secret_access_key": "b"}, {"access_key_id": "a", "secret_access_key": "b"}),
        ({"Aws_Region": "r", "AWS_ENDPOINT_URL": "http://e"}, {"region": "r", "endpoint": "http://e"}),
        ({"AWS_ALLOW_HTTP": "TRUE", "AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, {"allow_http": "TRUE"}),
        ({"fs.s3a.access.key": "a", "spark.hadoop.fs.s3a.secret.key": "b"}, dict(zip(S3, "ab", strict=False))),
        (
            {"fs.s3a.endpoint": "host:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {"endpoint": "http://host:9000", "allow_http": "true"},
        ),
        ({"fs.s3a.path.style.access": "true"}, {"virtual_hosted_style_request": "false"}),
        ({"region": "r", "AWS_REGION": "r"}, {"region": "r"}),
    ],
)
def test_options_are_read_as_deltalake_and_spark_spell_them(given: dict[str, str], means: dict[str, str]) -> None:
    assert options.normalized(given, "s3") == means


def test_options_of_azure_and_google_are_read_too() -> None:
    key = "fs.azure.account.key.acct.dfs.core.windows.net"
    assert options.normalized({key: "k"}, "abfss") == {"account_key": "k", "account_name": "acct"}
    assert options.normalized({"AZURE_STORAGE_SAS_TOKEN": "t"}, "az") == {"sas_key": "t"}
    both = {"GOOGLE_SERVICE_ACCOUNT": "f", "AWS_REGION": "r", "fs.s3a.access.key": "a"}  # one set for several stores
    assert options.normalized(both, "gs") == {"service_account": "f"}


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"AWS_REGION": "one", "region": "two"}, "INVALID_ARGUMENT", "two values of region"),
        ({"acces_key_id": SECRET}, "UNKNOWN_STORAGE_OPTION", "Is access_key_id meant"),
        ({"secret_access_key": [SECRET]}, "INVALID_ARGUMENT", "a value of type list under 'secret_access_key'"),
        (SECRET, "INVALID_ARGUMENT", "storage_options is a str"),
    ],
)
def test_wrong_options_are_refused_without_their_values(given: Any, code: str, says: str) -> None:
    for call in (
        lambda: Storage.open("s3://bucket/x", given).read("y"),
        lambda: mica.Table.open("s3://bucket/x", storage_options=given),
        lambda: mica.read_parquet("s3://bucket/x.parquet", storage_options=given),
        lambda: mica.check("s3://bucket/x", storage_options=given),
    ):
        with pytest.raises(UserError, match=says) as caught:
            call()
        assert caught.value.code == code
        text = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert SECRET not in text.replace(repr(given), "")


def test_every_spelling_makes_a_store_and_none_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    """obstore panics where two families of names are mixed."""
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    mixed = {"AWS_ALLOW_HTTP": "true", "access_key_id": "a", "fs.s3a.secret.key": "b", "aws_region": "r"}
    with pytest.raises(StorageError) as caught:
        Storage.open("s3://bucket/x", {**mixed, "endpoint": "http://127.0.0.1:1", "timeout": "1s"}).read("y")
    assert "anic" not in caught.value.message
    assert options.normalized({}, "s3") == {"allow_http": "true"}


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:{}@bucket/t", "s3://{}@bucket/t", "https://u:{}@host/t", "abfss://u:{}@a/t", "s3a://key:{}/x@bucket/t",
        "s3:/key:{}@bucket/t", "s3://bucket/t?token={}", "s3://bucket/t?X-Amz-Security-Token={}&v=1",
        "az://container@a/t?sv=1&sig={}",
    ],
)  # fmt: skip
def test_credentials_in_a_url_are_refused_and_not_shown(url: str) -> None:
    for call in (mica.Table.open, mica.read_parquet, mica.check, lambda p: mica.ingest_json(p, "nowhere")):
        with pytest.raises(UserError, match="holds credentials") as caught:
            call(url.format(SECRET))
        assert SECRET not in str(caught.value) + repr(caught.value) + str(caught.value.context)


@pytest.mark.parametrize(
    ("table", "name", "beyond"),
    [
        ("s3://bucket/t", "s3://other/f", True),
        ("s3://bucket/t", "gs://bucket/f", True),
        ("s3://bucket/t", "file:///etc/passwd", True),
        ("s3://bucket/t", "s3a://bucket/elsewhere/f", False),
        ("s3://bucket/t", "/elsewhere/f", False),
        ("/t", "s3://bucket/f", True),
        ("/t", "file:/elsewhere/f", False),
        ("/t", "/elsewhere/f", False),
    ],
)
def test_a_log_names_no_file_beyond_its_storage(table: str, name: str, beyond: bool) -> None:
    storage = Storage.open(table)
    if beyond:
        with pytest.raises(StorageError, match="beyond the table's own storage") as caught:
            pickle.loads(pickle.dumps(storage)).child("x").at_of_log(name)
        assert caught.value.code == "EXTERNAL_PATH"
    else:
        storage.at_of_log(name)
    allowed = Storage.open(table, {"allow_external_paths": "true"})
    assert pickle.loads(pickle.dumps(allowed)).at_of_log(name)[1]
