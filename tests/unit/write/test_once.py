"""Writes that carry an application and a version happen once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

import mica
from mica.errors import UserError
from mica.write import once

ROWS = [{"id": i} for i in range(4)]
WRITES: dict[str, Callable[[mica.Table, Any], Any]] = {
    "append": lambda table, txn: table.append(ROWS, txn=txn),
    "overwrite": lambda table, txn: table.overwrite(ROWS, txn=txn),
    "dynamic_partition_overwrite": lambda table, txn: table.dynamic_partition_overwrite(ROWS, txn=txn),
    "delete": lambda table, txn: table.delete("id = 1", txn=txn),
    "delete all": lambda table, txn: table.delete(txn=txn),
    "update": lambda table, txn: table.update({"id": "id + 10"}, txn=txn),
    "merge": lambda table, txn: (
        table.merge([{"id": 2}, {"id": 9}], "source.id = target.id")
        .when_matched_delete()
        .when_not_matched_insert_all()
        .execute(txn=txn)
    ),
    "merge nothing": lambda table, txn: (
        table.merge([{"id": 77}], "source.id = target.id").when_matched_delete().execute(txn=txn)
    ),
    "restats": lambda table, txn: table.restats(txn=txn),
    "restore": lambda table, txn: table.restore(1, txn=txn),
    "delete nothing": lambda table, txn: table.delete("id = 77", txn=txn),
}


def table_of(path: Path) -> mica.Table:
    table = mica.Table.create(path, "id INT")
    table.append(ROWS)
    return table


@pytest.mark.parametrize("name", WRITES)
def test_a_write_of_a_version_happens_once(tmp_path: Path, name: str) -> None:
    table, write = table_of(tmp_path), WRITES[name]
    stale = mica.Table.open(tmp_path)
    first = write(table, ("job", 3))
    assert (first.version, first.repeated) == (2, False)
    files = set(tmp_path.rglob("*.parquet"))
    for version in (3, 2):
        again = write(table, ("job", version))
        assert (again.version, again.repeated) == (2, True)
        again = write(mica.Table(stale.snapshot), ("job", version))  # its conflict tells
        assert (again.version, again.repeated) == (2, True)
    assert set(tmp_path.rglob("*.parquet")) == files
    assert mica.Table.open(tmp_path).version == 2
    assert write(table, ("job", 4)).version == write(table, ("other", 1)).version - 1 == 3
    assert table.snapshot.app_transactions == {"job": 4, "other": 1}


def test_a_delete_that_finds_nothing_does_not_find_later_rows(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.delete("id = 77", txn=("job", 1))
    table.append([{"id": 77}])
    assert table.delete("id = 77", txn=("job", 1)).repeated
    assert table.count() == 5


def test_of_many_at_once_one_commits(tmp_path: Path) -> None:
    table_of(tmp_path)
    done: list[mica.Commit] = []
    barrier = threading.Barrier(4)

    def run() -> None:
        table = mica.Table.open(tmp_path)
        barrier.wait()
        done.append(table.append(ROWS, txn=("job", 1)))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(commit.repeated for commit in done) == [False, True, True, True]
    assert mica.Table.open(tmp_path).count() == 8


def test_an_ingest_happens_once(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    source.write_bytes(b"\n".join(orjson.dumps({"a": i}) for i in range(3)))
    runs = [mica.ingest_json(source, tmp_path / "t", txn=("job", version)) for version in (1, 1, 2)]
    assert [run.rows for run in runs] == [3, 0, 3]
    assert runs[1].notes == ["the table has version 1 of the application 'job', or a later one: nothing was read"]
    again = mica.ingest_json(source, tmp_path / "t", txn=("job", 2), idempotent=True, mode="append")
    assert (again.rows, again.version) == (0, 1)
    first = mica.ingest_json(source, tmp_path / "t", txn=("job", 3), idempotent=True)
    assert (first.rows, mica.ingest_json(source, tmp_path / "t", txn=("job", 4), idempotent=True).rows) == (3, 0)


def test_names_and_versions_that_cannot_be(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    for txn in (("", 1), ("mica.ingest:/x", 1), ("a", -1), ("a", 1 << 63), ("a", "1"), "ab", ("a",), (1, 1)):
        with pytest.raises(UserError) as raised:
            table.append(ROWS, txn=txn)  # type: ignore[arg-type]
        assert raised.value.code == "INVALID_ARGUMENT"
    assert once.repeats(None, ("a", 1)) is False
