"""Where each request waits for an object store, an operation makes several at once, and does what it does on a disk."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import MemoryStore

import mica
from mica.log.transaction import Transaction
from mica.storage import Storage, local
from mica.storage import remote as stores
from mica.storage.remote import RemoteStorage
from mica.tasks.each_file import each_file
from mica.tasks.read import read_file

FILES, ROWS, SEVERAL = 12, 20, 4
PLACE = "s3://bucket"
AtOnce = Callable[..., bool]
DATA, LOG = r"^(?!.*_delta_log).*\.(parquet|json)$", "_delta_log.*json$"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> AtOnce:
    """Runs an operation on a store that answers for a file of a kind when several are asked for; whether they were."""
    lock, under_way, counted, met = threading.Lock(), 0, DATA, threading.Event()

    def waiting(owner: type, name: str, file: Callable[..., str]) -> None:
        real = getattr(owner, name)

        def ask(*args: Any, **options: Any) -> Any:
            nonlocal under_way
            if not re.search(counted, file(*args)):
                return real(*args, **options)
            with lock:
                under_way += 1
                if under_way >= SEVERAL:
                    met.set()
            try:
                met.wait(3)
                return real(*args, **options)
            finally:
                with lock:
                    under_way -= 1

        monkeypatch.setattr(owner, name, ask)

    for name in ("read", "read_ranges", "read_same", "read_up_to", "stat"):
        waiting(RemoteStorage, name, lambda _, rel, *__: rel)
    waiting(stores._RemoteWriter, "close", lambda file: file._rel)

    def of(operation: Callable[[], Any], files: str = DATA) -> bool:
        nonlocal counted
        counted = files
        met.clear()
        operation()
        found = met.is_set()
        met.set()
        return found

    met.set()
    return of


def table_at(place: str, **properties: str) -> mica.Table:
    kinds = {"delta.enableChangeDataFeed": "true", **properties}
    table = mica.Table.create(place, "id BIGINT, p INT, s STRING, v VARIANT", properties=kinds)
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        rows = [{"id": i, "p": i % 3, "s": f"s{i * 7 % 11}", "v": {"a": i, "b": {"c": str(i)}}} for i in ids]
        table.append(rows)
    return table


SOURCE = [{"id": i, "p": 9, "s": "new", "v": {"a": -i}} for i in range(0, 300, 7)]


def merged(table: mica.Table) -> Any:
    merge = table.merge(SOURCE, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all()
    return merge.when_not_matched_by_source_delete("target.id % 10 = 9").execute()


CHANGES: dict[str, Callable[[mica.Table], Any]] = {
    "delete": lambda table: table.delete("id % 5 = 3"),
    "delete by a path": lambda table: table.delete("v:a::int % 5 = 3"),
    "delete all": lambda table: table.delete(),
    "update": lambda table: table.update({"s": "upper(s)", "v": "variant_set(v, '$.x', id)"}, where="id % 5 = 3"),
    "update all": lambda table: table.update({"p": "p + 1"}),
    "merge": merged,
    "erase": lambda table: table.erase("v:b.c"),
    "optimize": lambda table: table.optimize(),
    "zorder": lambda table: table.optimize(zorder_by=["s", "v:a::int"]),
    "reshred": lambda table: table.reshred("STRUCT<a BIGINT>"),
    "unshred": lambda table: table.drop_feature("variantShredding"),
}


def rows_of(table: mica.Table) -> list[Any]:
    found = table.scan(columns={"id": "id", "p": "p", "s": "s", "v": "to_json(v)"}).to_arrow().to_pylist()
    return sorted((row["id"], row["p"], row["s"], row["v"]) for row in found)


def changes_of(table: mica.Table) -> list[Any]:
    columns = {name: name for name in ("id", "p", "s", "_change_type", "_commit_version")}
    found = table.changes(FILES + 1, columns={**columns, "v": "to_json(v)"}).to_arrow().to_pylist()
    return sorted(tuple(map(str, row.values())) for row in found)


@pytest.mark.parametrize(
    ("change", "vectors"),
    [*((one, "false") for one in CHANGES), *((one, "true") for one in ("delete", "update", "merge"))],
)
def test_a_change_asks_at_once_and_does_what_it_does_on_a_disk(
    store: MemoryStore, at_once: AtOnce, tmp_path: Path, change: str, vectors: str
) -> None:
    far, near = (table_at(at, **{"delta.enableDeletionVectors": vectors}) for at in (f"{PLACE}/t", str(tmp_path / "t")))
    far = mica.Table.open(f"{PLACE}/t")  # with nothing read
    if change != "delete all":
        assert at_once(lambda: CHANGES[change](far))
    else:
        CHANGES[change](far)
    CHANGES[change](near)
    assert rows_of(mica.Table.open(f"{PLACE}/t")) == rows_of(near)
    told = [table.history(limit=1).column("operation_metrics")[0].as_py() for table in (far, near)]
    far_told, near_told = ({k: v for k, v in one or () if not re.search("Ms$|Bytes|Size", k)} for one in told)
    assert far_told == near_told
    if change != "unshred":
        assert changes_of(mica.Table.open(f"{PLACE}/t")) == changes_of(near)
    assert mica.check(f"{PLACE}/t").ok


LOOKS: dict[str, Callable[[], Any]] = {
    "check": lambda: mica.check(f"{PLACE}/t"),
    "drift": lambda: mica.drift(f"{PLACE}/t"),
    "suggest": lambda: mica.suggest(f"{PLACE}/t"),
    "check_erased": lambda: mica.check_erased(f"{PLACE}/t", "v:b.c"),
    "convert_files": lambda: mica.convert_files(f"{PLACE}/t", f"{PLACE}/u"),
    "changes": lambda: mica.Table.open(f"{PLACE}/t").changes(1).to_arrow(),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_all_files_asks_at_once(store: MemoryStore, at_once: AtOnce, look: str) -> None:
    table_at(f"{PLACE}/t")
    assert at_once(LOOKS[look])


def test_the_history_asks_at_once(store: MemoryStore, at_once: AtOnce) -> None:
    table = table_at(f"{PLACE}/t")
    assert at_once(table.history, LOG)


def test_commits_that_came_first_are_read_at_once(store: MemoryStore, at_once: AtOnce) -> None:
    table = table_at(f"{PLACE}/t")
    first = table.snapshot.refresh(1)
    mine = Transaction(first, "WRITE")
    assert at_once(lambda: list(mine._winners(first, table.version)), LOG)
    assert [version for version, _ in mine._winners(first, table.version)] == list(range(2, FILES + 1))


def test_partitions_end_at_once(store: MemoryStore, at_once: AtOnce) -> None:
    table = mica.Table.create(f"{PLACE}/t", "id BIGINT, p INT", partition_by=["p"])
    assert at_once(lambda: table.append(pa.table({"id": range(400), "p": [i % 40 for i in range(400)]})))
    assert (table.count(), len(table.file_uris())) == (400, 40)


def test_small_files_are_ingested_at_once(store: MemoryStore, at_once: AtOnce, tmp_path: Path) -> None:
    home = Storage.open(PLACE)
    for number in range(FILES):
        text = "".join(json.dumps({"a": number * 10 + row, "t": "x" * number}) + "\n" for row in range(10))
        home.put(f"in/{number:02}.json", text.encode())
        (tmp_path / f"{number:02}.json").write_text(text)
    orders: dict[str, Any] = {"plain": {}, "sorted": {"sort_by": ["-v:a::int"]}}
    for name, order in orders.items():
        assert at_once(lambda n=name, o=order: mica.ingest_json(f"{PLACE}/in/*", f"{PLACE}/{n}", **o))
        mica.ingest_json(f"{tmp_path}/*.json", tmp_path / name, **order)
        places = (f"{PLACE}/{name}", tmp_path / name)
        far, near = (mica.Table.open(at).scan(columns={"v": "to_json(v)"}).to_arrow() for at in places)
        assert far.column("v").to_pylist() == near.column("v").to_pylist()


def test_a_folder_of_parquet_is_read_and_adopted_at_once(store: MemoryStore, at_once: AtOnce, tmp_path: Path) -> None:
    home = Storage.open(PLACE)
    for number in range(FILES):
        pq.write_table(pa.table({"id": range(number, number + 5)}), tmp_path / "one.parquet")
        home.put(f"p/{number:02}.parquet", (tmp_path / "one.parquet").read_bytes())
    assert at_once(lambda: mica.read_parquet(f"{PLACE}/p").to_arrow())
    assert at_once(lambda: mica.Table.convert_to_delta(f"{PLACE}/p"))
    assert mica.Table.open(f"{PLACE}/p").count() == 5 * FILES


def test_what_fails_among_others_leaves_nothing(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of many uploads that run is refused: the commit does not happen, and no file of it stays."""
    table = table_at(f"{PLACE}/t")
    before, files = rows_of(table), {entry.path for entry in Storage.open(f"{PLACE}/t").list()}
    real, lock, count = stores._RemoteWriter.close, threading.Lock(), 0

    def close(self: Any) -> None:
        nonlocal count
        with lock:
            count += 1
            refused = count >= 9
        if refused:
            raise mica.StorageError("PERMISSION_DENIED", "no more")
        real(self)

    monkeypatch.setattr(stores._RemoteWriter, "close", close)
    for change in ("update all", "merge", "optimize"):
        count = 0 if change != "optimize" else 9
        with pytest.raises(mica.StorageError, match="no more"):
            CHANGES[change](table)
        assert rows_of(mica.Table.open(f"{PLACE}/t")) == before
        assert {entry.path for entry in Storage.open(f"{PLACE}/t").list()} == files


@pytest.mark.parametrize("far", [True, False])
def test_a_file_that_is_replaced_stays_if_the_new_one_fails(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, far: bool
) -> None:
    """It was deleted as a leftover of the write that failed."""
    place = f"{PLACE}/one.parquet" if far else str(tmp_path / "one.parquet")
    mica.write_parquet(pa.table({"id": [1, 2, 3]}), place, mode="overwrite")

    def refused(_: Any) -> None:
        raise mica.StorageError("DISK_FULL", "no more")

    with monkeypatch.context() as patch:
        patch.setattr(stores._RemoteWriter if far else local._LocalWriter, "close", refused)
        with pytest.raises(mica.StorageError, match="no more"):
            mica.write_parquet(pa.table({"id": [7]}), place, mode="overwrite")
    assert mica.read_parquet(place).to_arrow().column("id").to_pylist() == [1, 2, 3]


def test_a_change_file_that_fails_leaves_no_data_file(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change was done again, and the commit named the files of the second time alone."""
    table = table_at(f"{PLACE}/t")
    files = {entry.path for entry in Storage.open(f"{PLACE}/t").list()}
    real, refused = stores._RemoteWriter.close, list[str]()

    def close(self: Any) -> None:
        if "/cdc-" in self._rel and not refused:
            refused.append(self._rel)
            raise mica.StorageError("IO", "this time")
        real(self)

    monkeypatch.setattr(stores._RemoteWriter, "close", close)
    with pytest.raises(mica.StorageError, match="this time"):
        CHANGES["update"](table)
    assert {entry.path for entry in Storage.open(f"{PLACE}/t").list()} == files


def test_what_is_lent_is_given_back(store: MemoryStore) -> None:
    table_at(f"{PLACE}/t")
    scan = mica.Table.open(f"{PLACE}/t").scan()
    spec, parts = scan.spec(), scan.whole_files()
    rows = each_file(partial(read_file, spec), parts, spec)
    assert next(rows).num_rows == ROWS
    rows.close()  # type: ignore[attr-defined]
    assert spec.tails._lent == {}
    assert sum(batch.num_rows for batch in each_file(partial(read_file, spec), parts, spec)) == FILES * ROWS
    assert spec.tails._lent == {}
