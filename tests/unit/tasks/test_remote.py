"""The whole job on an object store: nothing is on the local disk, bytes go through the storage alone."""

from __future__ import annotations

import gzip
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from obstore.store import MemoryStore

import mica
from mica.cli.events import lines
from mica.engines import local
from mica.maintain.vacuum import vacuum
from mica.storage import Storage
from mica.storage.remote import RemoteStorage
from mica.tasks import ingest
from mica.write import inputs


@pytest.mark.parametrize("split", [False, True])
def test_json_on_a_store_becomes_a_table_on_a_store(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, split: bool
) -> None:
    data = lines(0, 3_000, seed=2)
    home = RemoteStorage("s3://bucket", "", None, store)
    home.put("in/a.ndjson", data)
    home.put("in/b.ndjson.gz", gzip.compress(data))
    if split:
        monkeypatch.setattr(inputs, "LEAST_BYTES", 1)
        monkeypatch.setattr(inputs, "TASK_BYTES", 200_000)
    report = mica.ingest_json("s3://bucket/in/*", "s3://bucket/t", target_file_size="150KB")
    assert report.rows == 6_000
    assert report.files > 2
    table = mica.Table.open("s3://bucket/t")
    found = table.scan().to_arrow()
    texts = mica.variant.to_json(found.column("v").combine_chunks()).to_pylist()
    expected = sorted([orjson.dumps(orjson.loads(t), option=orjson.OPT_SORT_KEYS) for t in data.splitlines()] * 2)
    assert sorted(orjson.dumps(orjson.loads(t), option=orjson.OPT_SORT_KEYS) for t in texts) == expected
    where = "v:commit.collection::string = 'app.bsky.feed.post'"
    assert table.scan(where=where).count() == sum(b'"collection":"app.bsky.feed.post"' in t for t in expected)


@pytest.mark.parametrize("more", [{}, {"sort_by": ["n"]}, {"partition_by": ["n"]}])
@pytest.mark.parametrize("place", [None, "s3://bucket/bad", "local"])
def test_bad_lines_of_a_bucket_are_kept_there_or_where_it_is_said(
    store: MemoryStore, tmp_path: Path, place: str | None, more: dict[str, Any]
) -> None:
    home = RemoteStorage("s3://bucket", "", None, store)
    home.put("in/a.ndjson", b'{"a":1}\n{bad\n{"a":2}\n')
    home.put("in/b.ndjson.gz", gzip.compress(b'xx\n{"a":"q"}\n{"a":3}\n'))
    given: dict[str, Any] = {"on_error": "quarantine", "columns": {"n": "v:a::int"}, **more}
    where = str(tmp_path) if place == "local" else place
    report = mica.ingest_json("s3://bucket/in/*", "s3://bucket/t", quarantine=where, **given)
    assert (report.rows, report.bad_lines) == (3, 3)
    assert report.quarantine is not None
    assert report.quarantine.startswith(where or "s3://bucket/t/_quarantine/")
    kept = Storage.open(report.quarantine)
    bad = [orjson.loads(text) for file in kept.list() for text in kept.read(file.path).splitlines()]
    assert sorted((one["file"][-9:], one["line"], one["text"]) for one in bad[:-1]) == [
        ("/a.ndjson", 2, "{bad"), ("ndjson.gz", 1, "xx"),
    ]  # fmt: skip
    assert bad[-1]["text"] == '{"a":"q"}'


def test_a_file_of_a_bucket_is_ingested_once_however_it_is_spelled(store: MemoryStore) -> None:
    home = RemoteStorage("s3://bucket", "in", None, store)
    home.put("a.ndjson", b'{"a":1}')
    home.put("b b%25.ndjson", b'{"a":2}')
    every = ["s3://bucket/in/a.ndjson", "s3a://bucket/in/b b%25.ndjson"]
    counts = []
    for paths in ("s3://bucket/in/b*", "s3://bucket/in/*", every[:1], every[1:], "s3://bucket/in/*"):
        report = mica.ingest_json(paths, "s3://bucket/t", idempotent=True)
        counts.append((report.rows, report.skipped_files))
    assert counts == [(1, 0), (1, 1), (0, 1), (0, 1), (0, 2)]


OWN = ("/a/t/", "s3a://bucket/a/t/", "S3://bucket/a/t/", "s3n://bucket//a/t/")


@pytest.mark.parametrize(
    "whole", [*OWN, "abfss://c@account.dfs.core.windows.net/a/t/", "https://account.blob.core.windows.net/c/a/t/"]
)
def test_a_vacuum_keeps_the_files_that_are_named_by_their_whole_paths(store: MemoryStore, whole: str) -> None:
    """A path without a scheme is one of the bucket, as Hadoop has it: such a file was read, and deleted. Names of other
    stores are not followed; but one store has several names, and the file may be this one."""
    table = mica.Table.create("s3://bucket/a/t", "a INT")
    table.append([{"a": 1}])
    table.append([{"a": 2}])
    home = RemoteStorage("s3://bucket", "a/t", None, store)
    log = f"_delta_log/{1:020}.json"
    home.put(log, home.read(log).replace(b'"path":"part', f'"path":"{whole}part'.encode()))
    home.delete(f"_delta_log/{2:020}.crc")
    table = mica.Table.open("s3://bucket/a/t")
    day = 86_400 + time.time()
    done = vacuum(table.snapshot, 0, enforce_retention=False, clock=lambda: day)
    assert done.files == 0
    assert len([entry for entry in home.list() if entry.path.endswith(".parquet")]) == 2
    if whole in OWN:
        assert sorted(mica.Table.open("s3://bucket/a/t").scan().to_arrow().column("a").to_pylist()) == [1, 2]


@pytest.mark.parametrize("fetch", [1, 7, 8 << 20])
@pytest.mark.parametrize(
    "first", [b'{"a":1}', b'\n {"a":1}', gzip.compress(b'{"a":1}\n', mtime=0), b'[{"a":1}]', b"", b"\n"]
)
def test_the_first_rows_say_what_becomes_columns_however_they_come(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, first: bytes, fetch: int
) -> None:
    """A row whose end is the end of the file, gzip that holds its bytes back, a row that is longer than a fetch."""
    monkeypatch.setattr(ingest, "FETCH_BYTES", fetch)
    home = RemoteStorage("s3://bucket", "", None, store)
    home.put("in/a", first)
    home.put("in/b", b"".join(b'{"a":%d}\n' % i for i in range(100)))
    mica.ingest_json("s3://bucket/in/*", "s3://bucket/t")
    table = mica.Table.open("s3://bucket/t")
    assert table.scan("v:a::int > 99").explain().to_dict()["files"]["kept"] == 0


def test_a_small_file_is_asked_for_once(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    home = RemoteStorage("s3://bucket", "", None, store)
    texts = {"in/a": b'{"a":1}\n' * 3, "in/b": gzip.compress(b'{"a":2}\n', mtime=0), "in/c": b'[{"a":3}]', "in/d": b""}
    for name, text in texts.items():
        home.put(name, text)
    asked, real = Counter[str](), RemoteStorage.read_same

    def counted(self: RemoteStorage, rel: str, *places: Any, **size: Any) -> Any:
        asked[self.path(rel)] += 1
        return real(self, rel, *places, **size)

    monkeypatch.setattr(RemoteStorage, "read_same", counted)
    assert mica.ingest_json("s3://bucket/in/*", "s3://bucket/t").rows == 5
    assert asked == {f"s3://bucket/{name}": 1 for name, text in texts.items() if text}


def test_a_broken_line_leaves_nothing_on_the_store(store: MemoryStore) -> None:
    home = RemoteStorage("s3://bucket", "", None, store)
    home.put("in/a.ndjson", lines(0, 3_000, seed=2) + b"{\n")
    with pytest.raises(mica.CorruptDataError, match=r"a\.ndjson"):
        mica.ingest_json("s3://bucket/in/a.ndjson", "s3://bucket/t", target_file_size="100KB")
    assert [entry.path for entry in home.list()] == ["in/a.ndjson"]


def test_a_table_on_a_store_is_converted_there_and_back(store: MemoryStore) -> None:
    home = RemoteStorage("s3://bucket", "", None, store)
    rows = b"".join(b'{"a":%d,"b":{"c":"x"}}\n' % i for i in range(3_000))
    home.put("in/a.ndjson", rows)
    mica.ingest_json("s3://bucket/in/a.ndjson", "s3://bucket/t")
    there = mica.convert_files("s3://bucket/t", "s3://bucket/early", layout="early")
    assert (there.rows, there.copied, there.rebuilt) == (3_000, 0, 0)
    back = mica.convert_files("s3://bucket/early", "s3://bucket/back")
    again = mica.convert_files("s3://bucket/back", "s3://bucket/again")
    assert (back.rows, again.copied) == (3_000, 3_000)
    for name in ("t", "back", "again"):
        found = mica.Table.open(f"s3://bucket/{name}").scan(columns={"a": "v:a::int", "c": "v:b.c::string"}).to_arrow()
        assert found.to_pydict() == {"a": list(range(3_000)), "c": ["x"] * 3_000}
    home.put("early/z.parquet", b"PAR1")
    before = [entry.path for entry in home.list()]
    with pytest.raises(mica.MicaError):
        mica.convert_files("s3://bucket/early", "s3://bucket/more")
    assert [entry.path for entry in home.list()] == before


@pytest.mark.slow
def test_a_scan_asks_a_store_for_several_things_at_once(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few requests wait for each other before the first row; row groups and small files are asked for ahead."""
    home = RemoteStorage("s3://bucket", "", None, store)
    for name in "abcdef":
        home.put(f"in/{name}.ndjson", lines(0, 3_000, seed=ord(name)))
    mica.ingest_json("s3://bucket/in/*", "s3://bucket/t", target_file_size="150KB")
    asked: list[str] = []
    real, turn = RemoteStorage.read_ranges, threading.Barrier(2, timeout=20)

    def slow(self: RemoteStorage, rel: str, ranges: Any) -> list[bytes]:
        asked.append(rel)
        if len(asked) <= 2:
            turn.wait()  # nobody gets an answer before a second request is under way
        return real(self, rel, ranges)

    monkeypatch.setattr(local, "threads", lambda: 1)
    values = {"did": "v:did::string", "at": "v:time_us::bigint"}
    for where in (None, "v:time_us::bigint % 2 = 0"):
        expected = mica.Table.open("s3://bucket/t").scan(columns=values, where=where).to_arrow()
        for limit in (None, 700):
            asked.clear()
            scan = mica.Table.open("s3://bucket/t").scan(columns=values, where=where, limit=limit)
            with monkeypatch.context() as patch:
                patch.setattr(RemoteStorage, "read_ranges", slow)
                assert scan.to_arrow().equals(expected.slice(0, limit))
            assert max(Counter(asked).values()) <= 3, "an end, a filter, its rows"


def test_deletion_vectors_of_small_files_are_asked_for_at_once(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store is not None
    properties = {"delta.enableDeletionVectors": "true"}
    table = mica.Table.create("s3://bucket/t", "id INT", properties=properties)
    for number in range(6):
        table.append([{"id": 10 * number + n} for n in range(10)])
    for number in range(6):
        table.delete(f"id = {11 * number}")
    real, all_of_them = RemoteStorage.read_ranges, threading.Barrier(6, timeout=20)

    def together(self: RemoteStorage, rel: str, ranges: Any) -> list[bytes]:
        if rel.endswith(".bin"):
            all_of_them.wait()
        return real(self, rel, ranges)

    monkeypatch.setattr(RemoteStorage, "read_ranges", together)
    monkeypatch.setattr(local, "threads", lambda: 1)
    found = mica.Table.open("s3://bucket/t").scan().to_arrow().column("id").to_pylist()
    assert sorted(found) == [n for n in range(60) if n % 11]
