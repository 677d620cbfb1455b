"""One contract for disks and object stores: names, atomic creates, ranges, listings, and where a location is."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from obstore.store import MemoryStore

import mica
from mica.errors import StorageError, UserError
from mica.storage import SCHEMES, AlreadyExistsError, Storage, split_scheme
from mica.storage.remote import RemoteStorage

SECRET = "hush-hush-very-secret"

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


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_written_read_and_listed_as_it_is(storage: Storage, name: str) -> None:
    storage.put(name, b"12345")
    assert storage.read(name) == b"12345"
    assert storage.size(name) == 5
    assert [entry.path for entry in storage.list()] == [name]


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
    for spelled in ["s3a://bucket/some/where/x", "/some/where/x", "s3n://bucket//some/where/x"]:
        assert remote.at(spelled) == (remote, "x")
    assert [str(remote.at("/some/whereas/x")[0]), remote.at("/some/whereas/x")[1]] == ["s3://bucket", "some/whereas/x"]
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


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:{}@bucket/t", "s3://{}@bucket/t", "https://u:{}@host/t", "abfss://u:{}@a/t", "s3a://key:{}/x@bucket/t",
        "s3:/key:{}@bucket/t", "s3://bucket/t?token={}", "s3://bucket/t?X-Amz-Security-Token={}&v=1",
        "az://container@a/t?sv=1&sig={}", "s3://bucket/t#sig={}", "s3://bucket/t;sig={}",
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


STRICT = {"allow_external_paths": "false"}


@pytest.mark.parametrize(
    ("table", "name", "outside"),
    [
        ("s3://bucket/t", "s3a://bucket/t/f", False),
        ("s3://bucket/t", "/t/f", False),
        ("s3://bucket/t", "f", False),
        ("s3://bucket/t", "s3://bucket/tt/f", True),
        ("s3://bucket/t", "/elsewhere/f", True),
        ("/t", "file:/t/f", False),
        ("/t", "/t/a/../f", False),
        ("/t", "f", False),
        ("/t", "/t/../elsewhere/f", True),
        ("/t", "/tt/f", True),
        ("/t", "file:///etc/passwd", True),
    ],
)
def test_a_log_may_be_kept_to_the_folder_of_its_table(table: str, name: str, outside: bool) -> None:
    storage = pickle.loads(pickle.dumps(Storage.open(table, STRICT)))
    if not outside:
        assert storage.locate(name)[0].path(storage.locate(name)[1]).endswith("t/f")
        return
    with pytest.raises(StorageError, match="outside of the table's folder") as caught:
        storage.locate(name)
    assert caught.value.code == "EXTERNAL_PATH"


def test_no_link_leads_out_of_the_folder_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "t").symlink_to("real")
    (tmp_path / "real" / "inside").symlink_to("f")
    (tmp_path / "real" / "outside").symlink_to(tmp_path)
    storage = Storage.open(tmp_path / "t", STRICT)
    assert storage.locate("inside")[1] == "inside"
    with pytest.raises(StorageError, match="outside of the table's folder"):
        storage.locate("outside/f")
    assert Storage.open(tmp_path / "t").locate("outside/f")[1] == "outside/f"
