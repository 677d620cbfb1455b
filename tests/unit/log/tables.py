"""Small tables whose files need not exist: what the log's tests commit to."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pyarrow as pa
import pytest

from mica.log import creation
from mica.log.conflicts import FilePredicate
from mica.log.file_lines import add_line
from mica.log.snapshot import Snapshot
from mica.log.transaction import Committed, Transaction
from mica.schema.ddl import parse_ddl
from mica.storage import Storage


def before_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Has another writer act right before the next commit is put."""
    put = Transaction._put

    def late(transaction: Transaction, version: int, data: bytes) -> bool:
        monkeypatch.setattr(Transaction, "_put", put)
        act()
        return put(transaction, version, data)

    monkeypatch.setattr(Transaction, "_put", late)


def create(location: object, ddl: str = "id BIGINT", partition_by: tuple[str, ...] = (), **properties: str) -> Snapshot:
    """A new table; properties are given with `__` for a dot."""
    storage = location if isinstance(location, Storage) else Storage.open(str(location))
    configuration = {name.replace("__", "."): text for name, text in properties.items()}
    protocol, metadata = creation.new_table(parse_ddl(ddl), partition_by, configuration, created_time=1)
    transaction = Transaction(storage, "CREATE TABLE")
    transaction.update_protocol(protocol)
    transaction.update_metadata(metadata)
    return transaction.commit().snapshot


def in_partition(value: str) -> FilePredicate:
    """The files of one partition."""

    def holds(files: pa.Table) -> pa.Array:
        maps = files["partition_values"].to_pylist(maps_as_pydicts="strict")
        return pa.array([row.get("p") == value for row in maps], pa.bool_())

    return holds


def added(name: str, *, rows: int = 1, low: int = 0, high: int = 9, **more: object) -> dict[str, object]:
    """A file that holds ids from `low` to `high`."""
    bounds = {"minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
    stats = orjson.dumps({"numRecords": rows, **bounds}).decode()
    return {"path": name, "size": 100, "modification_time": 1, "stats": stats, **more}


def line(name: str, **more: object) -> str:
    """Its line in the log."""
    return add_line(added(name, **more))  # type: ignore[arg-type]


def append(snapshot: Snapshot, *names: str, **more: object) -> Committed:
    """Appends files of these names."""
    transaction = Transaction(snapshot, "WRITE", {"mode": "Append"})
    transaction.add_files([added(name, **more) for name in names])
    return transaction.commit()


def paths(snapshot: Snapshot) -> list[str]:
    """The names of the snapshot's files in order."""
    return sorted(snapshot.files["path"].to_pylist())


def same(one: Snapshot, other: Snapshot) -> None:
    """Two snapshots hold the same table."""
    assert (one.version, one.protocol, one.metadata) == (other.version, other.protocol, other.metadata)
    assert (one.domains, one.app_transactions) == (other.domains, other.app_transactions)

    def rows(s: Snapshot) -> list[object]:
        table = s.files.append_column("stats", s.stats()).append_column("tags", s.tags())
        return table.sort_by("path").to_pylist()

    assert rows(one) == rows(other)
