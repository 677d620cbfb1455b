"""How often each operation asks an object store, and what for: nothing twice, but whether the table still stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import obstore
import pyarrow as pa
import pytest
from obstore.store import MemoryStore

import mica
from mica.log import deletion_vectors
from mica.storage.pieces import Pieces
from mica.storage.remote import RemoteStorage

PLACE = "s3://bucket/t"


@pytest.fixture
def asked(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], str]:
    """Runs an operation; returns its requests, such as `1 get, 2 put`."""
    found = Counter[str]()

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(obstore, name)

        def ask(*args: Any, **options: Any) -> Any:
            found[name] += 1
            return real(*args, **options)

        return ask

    names = ("get", "get_ranges", "head", "list", "put", "delete", "open_writer")
    for name in names:
        monkeypatch.setattr(obstore, name, counted(name))

    def of(operation: Callable[[], Any]) -> str:
        found.clear()
        operation()
        return ", ".join(f"{found[name]} {name}" for name in names if found[name])

    return of


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "s": [f"s{n}" for n in ids]})


def test_each_write_asks_for_what_it_needs(asked: Callable[[Callable[[], Any]], str]) -> None:
    """`get_ranges` and `head` are the version before, which must still be there, and the time of the new one."""
    properties = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "1000"}
    made = asked(lambda: mica.Table.create(PLACE, "id BIGINT, s STRING", properties=properties))
    assert made == "1 get, 1 head, 1 list, 1 put"
    table = mica.Table.open(PLACE)
    commit, append = "1 get_ranges, 1 head, 1 put", "1 get_ranges, 1 head, 1 put, 1 open_writer"
    assert asked(lambda: table.append(rows(*range(100)))) == append
    assert asked(lambda: table.set_properties({"a": "b"})) == commit
    assert asked(lambda: table.append(rows(100), txn=("app", 1))) == append
    # The file is read too, and its deletion vector written, which is known then.
    assert asked(lambda: table.delete("id = 5")) == "2 get_ranges, 1 head, 2 put"
    assert asked(lambda: table.delete("id = 6")) == "2 get_ranges, 1 head, 2 put"
    merge = table.merge(rows(7, 8, 200), "target.id = source.id").when_matched_update_all()
    merge = merge.when_not_matched_insert_all()
    assert asked(merge.execute) == "2 get_ranges, 1 head, 2 put, 2 open_writer"
    assert asked(table.count) == "", "the log says it"
    assert asked(lambda: table.overwrite(rows(1))) == append
    # New commits, the log, and all files; two commits record it.
    assert "2 head, 3 list, 2 put" in asked(lambda: table.vacuum(0, enforce_retention=False))


def test_the_vectors_of_many_files_are_one_request(
    store: MemoryStore, asked: Callable[[Callable[[], Any]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One operation writes them into one file; a process that did not write it fetches it once, for all its scans."""
    table = mica.Table.create(PLACE, "id BIGINT", properties={"delta.enableDeletionVectors": "true"})
    for start in range(0, 400, 10):
        table.append(pa.table({"id": range(start, start + 10)}))
    table.delete("id % 10 = 3")
    monkeypatch.setattr(deletion_vectors, "PIECES", Pieces())
    again = mica.Table.open(PLACE)
    again.scan().to_arrow()  # the footers too
    vectors = [entry["path"] for batch in store.list() for entry in batch if entry["path"].endswith(".bin")]
    assert len(vectors) == 1
    monkeypatch.setattr(deletion_vectors, "PIECES", Pieces())
    assert asked(lambda: again.scan().to_arrow()) == "1 get", "the small files are cached by the table"
    assert asked(lambda: again.scan().to_arrow()) == ""
    assert again.scan(where="id < 100").to_arrow().num_rows == 90


def test_files_that_are_no_table_are_listed_once(asked: Callable[[Callable[[], Any]], str]) -> None:
    folder = "s3://bucket/a"
    mica.write_parquet(rows(1), folder)
    # Whether the folder is a table, or in one.
    assert asked(lambda: mica.read_parquet(folder)) == "1 get, 1 get_ranges, 4 list"
    assert asked(lambda: mica.Table.convert_to_delta(folder)) == "1 get_ranges, 1 head, 4 list, 1 put"


def test_an_ingest_into_a_new_table_looks_for_it_once(
    store: MemoryStore, asked: Callable[[Callable[[], Any]], str]
) -> None:
    RemoteStorage("s3://bucket", "in", None, store).put("a.json", b'{"a":1}')
    found = asked(lambda: mica.ingest_json("s3://bucket/in/a.json", PLACE))
    assert found == "2 get, 2 head, 1 list, 1 put, 1 open_writer"
