"""The changes of versions N+1 to M, replayed over the rows of version N, give the rows of version M."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import mica
from tests.support import CAMPAIGN

TABLES = 200 if CAMPAIGN else 6
STEPS = 9
WHERES = ["id % 5 = {k}", "v:a::int BETWEEN {k}0 AND {k}5", "p = {p}", "p = {p} AND id % 3 = 0", "n IS NULL", "true"]
VALUES = [{"n": "id + 1"}, {"p": "(p + 1) % 3"}, {"n": "NULL", "p": "0"}]


def rows(table: mica.Table, version: int) -> Counter[Any]:
    scan = mica.Table.open(table.path, version=version).scan(
        columns={"id": "id", "p": "p", "n": "n", "v": "to_json(v)"}
    )
    return Counter(tuple(row.values()) for row in scan.to_arrow().to_pylist())


def replayed(table: mica.Table, before: Counter[Any], first: int, last: int) -> Counter[Any]:
    columns = {"id": "id", "p": "p", "n": "n", "v": "to_json(v)", "t": "_change_type"}
    found = Counter(before)
    for row in table.changes(first, last, columns=columns).to_arrow().to_pylist():
        change = row.pop("t")
        found[tuple(row.values())] += 1 if change in ("insert", "update_postimage") else -1
    assert all(count >= 0 for count in found.values())
    return +found


@pytest.mark.parametrize("number", range(TABLES))
def test_replayed(tmp_path: Path, rng: random.Random, number: int) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": rng.choice(["true", "false"])}
    partitions = rng.choice([[], ["p"]])
    table = mica.Table.create(tmp_path, "id INT, p INT, n INT, v VARIANT", partitions, properties=properties)
    fresh = 0
    for step in range(STEPS):
        where = rng.choice(WHERES).format(k=rng.randrange(5), p=rng.randrange(3))
        what = (
            "append"
            if not step
            else rng.choice(["append", "delete", "update", "optimize", "restore", "overwrite", "merge"])
        )
        new = [{"id": i, "p": rng.randrange(3), "n": rng.choice([None, i]), "v": {"a": i % 60}}
               for i in range(fresh, fresh + 25)]  # fmt: skip
        if what == "append":
            table.append(new)
        elif what == "delete":
            table.delete(where)
        elif what == "update":
            table.update(rng.choice(VALUES), where)
        elif what == "optimize":
            table.optimize(zorder_by=rng.choice([None, ["v:a", "n"]]))
        elif what == "merge":
            shift = rng.randrange(40)
            merged = table.merge([{**row, "id": row["id"] - shift} for row in new], "source.id = target.id")
            merged = merged.when_matched_delete("target.n IS NULL").when_matched_update_all()
            merged.when_not_matched_insert_all().execute()
        elif what == "restore":
            table.restore(rng.randrange(max(0, table.version - 3), table.version + 1))
        else:
            table.overwrite(new)
        fresh += 25
    versions = [rows(table, version) for version in range(table.version + 1)]
    for _ in range(6):
        first = rng.randrange(1, table.version + 1)
        last = rng.randrange(first, table.version + 1)
        assert replayed(table, versions[first - 1], first, last) == versions[last], (first, last)
