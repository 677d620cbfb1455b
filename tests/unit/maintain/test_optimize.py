"""Optimize: the same rows in fewer files, and a commit that changes no data."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

import mica
from mica.errors import ConflictError, UserError

SCHEMA = "id INT, p STRING, l STRING COLLATE UTF8_LCASE, v VARIANT"


def table_of(path: Path, files: int = 6, **properties: str) -> mica.Table:
    table = mica.Table.create(path, SCHEMA, ["p"], properties=properties)
    for number in range(files):
        table.append([{"id": i, "p": "a b" if i % 2 else None, "l": f"L{i}", "v": {"a": i, "s": f"t{i}"}}
                      for i in range(number * 10, number * 10 + 10)])  # fmt: skip
    return table


def rows(table: mica.Table) -> list[tuple[object, ...]]:
    found = table.scan(columns={"id": "id", "p": "p", "l": "l", "a": "v:a::int"}).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_small_files_of_a_partition_become_one(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    before, version = rows(table), table.version
    done = table.optimize()
    assert (done.files, done.metrics["numRemovedFiles"], table.files().num_rows) == (2, 12, 2)
    assert rows(table) == rows(mica.Table.open(tmp_path)) == before == rows(mica.Table.open(tmp_path, version=version))
    ids = [mica.Table.open(tmp_path).scan(f"p IS {word} NULL", ["id"]).to_arrow().column("id").to_pylist()
           for word in ("", "NOT")]  # fmt: skip
    assert ids == [list(range(0, 60, 2)), list(range(1, 60, 2))]  # in their order
    lines = (tmp_path / "_delta_log" / f"{done.version:020}.json").read_bytes().splitlines()
    actions = [next(iter(orjson.loads(line).values())) for line in lines if b'"add"' in line or b'"remove"' in line]
    assert len(actions) == 14
    assert not any(action["dataChange"] for action in actions)
    assert len(table.scan("v:a::int = 100").plan.kept) == len(table.scan("l = 'zz'").plan.kept) == 0
    assert table.scan("v:s::string = 't7' AND l = 'l7'").count() == 1
    assert table.history(limit=1).to_pylist()[0]["operation"] == "OPTIMIZE"
    assert mica.check(table).ok
    assert table.optimize().version == done.version  # there is nothing left to do
    assert table.vacuum(0, enforce_retention=False).files == 12
    assert rows(table) == before


def test_files_are_filled_to_the_size_and_large_ones_stay(tmp_path: Path, rng: random.Random) -> None:
    table = mica.Table.create(tmp_path, "x BIGINT")
    values = [rng.getrandbits(62) for _ in range(320_000)]
    for start in range(0, len(values), 40_000):
        table.append(pa.table({"x": pa.array(values[start : start + 40_000])}))
    total = sum(table.files().column("size").to_pylist())
    done = table.optimize(target_file_size=total // 3)
    assert (done.files, done.metrics["numRemovedFiles"]) == (4, 8)  # two by two: three would be larger
    assert table.to_arrow().column("x").to_pylist() == values
    assert table.optimize(target_file_size="1KB").files == 0


def test_deleted_rows_go_and_partitions_are_chosen(tmp_path: Path) -> None:
    table = table_of(tmp_path, files=1, **{"delta.enableDeletionVectors": "true"})
    table.delete("id IN (3, 4)")
    done = table.optimize("p = 'a b'")
    assert (done.files, done.metrics["numDeletionVectorsRemoved"]) == (1, 1)
    assert [v is None for v in table.files().sort_by("modification_time").column("deletion_vector").to_pylist()].count(
        False
    ) == 1
    table.optimize()
    assert table.files().column("deletion_vector").null_count == 2
    assert [row[0] for row in rows(table)] == [0, 1, 2, 5, 6, 7, 8, 9]
    with pytest.raises(UserError) as raised:
        table.optimize("id = 1")
    assert raised.value.code == "NOT_A_PARTITION_PREDICATE"


def test_an_append_goes_on_beside_it_and_a_delete_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mica.write import compact as module

    joined, acts = module.join_files, list[Callable[[], object]]()

    def meanwhile(*arguments: object, **options: object) -> object:
        if acts:
            acts.pop()()
        return joined(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "join_files", meanwhile)
    table = table_of(tmp_path)
    acts.append(lambda: mica.Table.open(tmp_path).append([{"id": 900, "p": "z"}]))
    table.optimize()
    assert len(rows(table)) == 61
    mica.Table.open(tmp_path).append([{"id": 901, "p": "z"}])
    acts.append(lambda: mica.Table.open(tmp_path).delete("id = 901"))
    before = mica.Table.open(tmp_path).file_uris()
    with pytest.raises(ConflictError) as raised:
        table.optimize()
    assert raised.value.code == "CONCURRENT_DELETE"
    assert len(rows(mica.Table.open(tmp_path))) == 61
    assert {str(p) for p in tmp_path.glob("p=z/*.parquet")} == {uri for uri in before if "p=z" in uri}


def test_an_append_only_table_may_be_optimized(tmp_path: Path) -> None:
    table = table_of(tmp_path, **{"delta.appendOnly": "true"})
    assert table.optimize().files == 2
    assert table.count() == 60
