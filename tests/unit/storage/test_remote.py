"""What an object store says, and never says: its secrets."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import obstore
import pyarrow as pa
import pytest
from obstore.store import MemoryStore

import mica
from mica.checking.inspect import inspect_file
from mica.errors import StorageError, UserError
from mica.storage import Storage
from mica.storage.remote import RemoteStorage
from tests.faulty_s3 import FaultyS3

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


def test_no_error_behind_an_error_has_a_secret() -> None:
    # What a store answers may hold the signed request; here obstore itself quotes an option.
    storage = Storage.open("s3://bucket/x", {"secret_access_key": SECRET, "access_key_id": SECRET, "timeout": SECRET})
    with pytest.raises(StorageError, match=r"\*\*\*") as caught:
        storage.read("y")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("status", [401, 403])
def test_a_table_that_may_not_be_listed_says_so(status: int) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(status)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    keys = {"access_key_id": "id", "secret_access_key": SECRET, "region": "r", "allow_http": "true"}
    with pytest.raises(StorageError) as caught:
        mica.Table.open("s3://bucket/t", storage_options={**keys, "endpoint": f"http://127.0.0.1:{server.server_port}"})
    server.shutdown()
    assert caught.value.code == "PERMISSION_DENIED"
    assert "credentials" in str(caught.value.hint)


def test_what_stands_for_a_folder_is_no_file() -> None:
    store = MemoryStore()
    for key, data in {"t": b"", "t/p=1": b"", "t/p=1/a": b"1", "t/empty": b""}.items():
        obstore.put(store, key, data)
    storage = RemoteStorage("s3://bucket", "t", None, store)
    assert [entry.path for entry in storage.list()] == ["empty", "p=1/a"]


def test_a_file_of_another_size_is_another_one() -> None:
    storage = RemoteStorage("s3://bucket", "t", None, MemoryStore())
    storage.put("a", b"1234")
    assert storage.read_same("a", 0, 4, None, size=4)[0] == b"1234"
    with pytest.raises(StorageError, match="another file"):
        storage.read_same("a", 0, 2, None, size=2)


class _Busy(BaseHTTPRequestHandler):
    """S3 that refuses the first put of a name: another one is under way (409 ConditionalRequestConflict)."""

    refused: ClassVar[set[str]] = set()

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        busy = self.path not in self.refused
        self.refused.add(self.path)
        body = b"<Error><Code>ConditionalRequestConflict</Code></Error>" if busy else b""
        self.send_response(409 if busy else 200)
        for name, value in {"Content-Length": str(len(body)), "ETag": '"1"'}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_put_beside_another_one_has_not_lost() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {"endpoint": f"http://127.0.0.1:{server.server_port}", "allow_http": "true", "region": "r"}
    storage = Storage.open("s3://bucket/t", options | {"access_key_id": "id", "secret_access_key": SECRET})
    with pytest.raises(StorageError, match="is being written by another request") as caught:
        storage.put_if_absent("a", b"1")
    assert caught.value.code == "IO"
    storage.put_if_absent("a", b"1")
    with pytest.raises(StorageError, match="deny it") as denied:
        Storage.open("s3://bucket/t", {**options, "conditional_put": "disabled"}).put_if_absent("b", b"1")
    assert denied.value.code == "NOT_SUPPORTED"
    server.shutdown()


def test_many_files_are_deleted_by_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, asked, real = MemoryStore(), list[int](), obstore.delete
    storage = RemoteStorage("s3://bucket", "t", None, memory)
    for number in range(50):
        storage.put(f"f{number}", b"1")

    def counted(store: MemoryStore, paths: str | list[str]) -> None:
        asked.append(1 if isinstance(paths, str) else len(paths))
        real(store, paths)

    monkeypatch.setattr(obstore, "delete", counted)
    storage.delete_all([f"f{number}" for number in range(40)])
    assert asked == [40]
    assert len(list(storage.list())) == 10
    storage.delete_all([])
    storage.delete_all(["f3", "f45"])  # one is not there any more
    storage.discard(f"f{number}" for number in range(45))
    assert {entry.path for entry in storage.list()} == {f"f{number}" for number in range(46, 50)}


def test_a_store_that_deletes_one_file_at_a_time_is_asked_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, real = MemoryStore(), obstore.delete
    storage = RemoteStorage("s3://bucket", "t", None, memory)
    for number in range(30):
        storage.put(f"f{number}", b"1")

    def one_by_one(store: MemoryStore, paths: str | list[str]) -> None:
        if not isinstance(paths, str) or paths == "t/f7":
            raise PermissionError(f"{paths}: access denied")
        real(store, paths)

    monkeypatch.setattr(obstore, "delete", one_by_one)
    with pytest.raises(StorageError, match="t/f7"):
        storage.delete_all([f"f{number}" for number in range(20)])
    storage.discard([f"f{number}" for number in range(30)])
    assert [entry.path for entry in storage.list()] == ["f7"]


@pytest.mark.parametrize("fault", ["lost", "late error", "half", "garbage"])
@pytest.mark.parametrize("by", ["put", "writer"])
def test_an_upload_whose_end_was_not_answered_is_there(fault: str, by: str) -> None:
    data = bytes(range(256)) * (44 << 10)
    with FaultyS3() as faulty:
        storage = Storage.open("s3://b/t", faulty.options)
        faulty.spoil(fault, "COMPLETE")
        if by == "put":
            storage.put("a", data)
        else:
            with storage.writer("a") as file:
                for start in range(0, len(data), 1 << 20):
                    file.write(data[start : start + (1 << 20)])
        assert storage.read("a") == data


def test_an_upload_that_was_not_ended_is_an_error_even_over_a_file_of_its_size() -> None:
    with FaultyS3() as faulty:
        storage = Storage.open("s3://b/t", faulty.options)
        storage.put("a", b"1" * (11 << 20))
        for status in (400, 404):
            faulty.spoil(status, "COMPLETE")
            with pytest.raises(StorageError, match="s3://b/t/a"):
                storage.put("a", b"2" * (11 << 20))
        assert storage.read("a")[:1] == b"1"


def test_whether_there_are_files_is_asked_of_the_first_ones() -> None:
    with FaultyS3() as faulty:
        storage = Storage.open("s3://b/t", faulty.options)
        assert not storage.has_files()
        storage.put("folder/", b"")
        assert storage.has_files(), "an empty file of no other one's folder is a file"
        faulty.spoil("half", "LIST")
        storage.put("folder/a", b"1")
        assert storage.has_files()


def test_a_place_without_a_table_is_told_as_on_a_disk() -> None:
    with FaultyS3() as faulty:
        options = faulty.options
        Storage.open("s3://b/files", options).put("a.parquet", b"1")
        mica.Table.create("s3://b/t", "n INT", storage_options=options)
        Storage.open("s3://b/t/p=1", options).put("a.parquet", b"1")
        for place, why, hint in (
            ("s3://b/none", "there is nothing at this path", r"Check the path\.$"),
            ("s3://b/files", "its _delta_log holds no commit", "convert_to_delta"),
            ("s3://b/t/p=1", "its _delta_log holds no commit", "inside of the table s3://b/t:"),
        ):
            with pytest.raises(UserError, match=why) as caught:
                mica.Table.open(place, storage_options=options)
            assert caught.value.code == "TABLE_NOT_FOUND"
            assert re.search(hint, str(caught.value.hint))


def test_a_folder_of_a_store_is_none_to_inspect() -> None:
    with FaultyS3() as faulty:
        mica.write_parquet(pa.table({"n": [1]}), "s3://b/f/a.parquet", storage_options=faulty.options)
        with pytest.raises(StorageError, match="is a directory of 1 Parquet file") as caught:
            inspect_file("s3://b/f", faulty.options)
        assert (caught.value.code, "s3://b/f/a.parquet" in str(caught.value.hint)) == ("IS_A_DIRECTORY", True)
        assert inspect_file("s3://b/f/a.parquet", faulty.options) == [], "no variant"


def test_a_fork_of_a_process_that_asked_a_store_is_told_that_it_cannot() -> None:
    code = textwrap.dedent(
        """
        import os
        from obstore.store import MemoryStore
        from mica.errors import StorageError
        from mica.storage.remote import RemoteStorage

        def forked(storage):
            child = os.fork()
            if not child:
                try:
                    os._exit(0 if storage.read("y") == b"1" else 2)
                except StorageError as error:
                    os._exit(3 if error.code == "FORKED" and "s3://bucket/x" in str(error) else 4)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        made = MemoryStore()
        made.put("x/y", b"1")
        storage = RemoteStorage("s3://bucket", "x", None, made).child("")
        print(forked(storage), storage.read("y"), forked(storage))
        """
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout == "0 b'1' 3\n", done.stderr
