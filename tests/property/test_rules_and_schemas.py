"""Rules on rows and changes of the schema together: a model in Python and the table agree after every step.

Identity, default and generated columns and a constraint on a Variant path, on mapped and plain tables, with and without
deletion vectors and change files, through appends, evolutions, renames, updates, merges, deletes and optimizes.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica.errors import UserError
from tests.support import CAMPAIGN

STEPS = 400 if CAMPAIGN else 25
SCHEMA = (
    "id BIGINT GENERATED ALWAYS AS IDENTITY, n INT DEFAULT 7, g BIGINT GENERATED ALWAYS AS (CAST(n AS BIGINT) * 2), "
    "v VARIANT, t STRING"
)

Row = dict[str, Any]


class Model:
    """The rows that the table should have, and the names that its columns have now."""

    def __init__(self, table: mica.Table, rng: random.Random) -> None:
        self.table, self.rng = table, rng
        self.rows: list[Row] = []
        self.text, self.extra, self.fresh = "t", list[str](), 0

    def new(self, **values: Any) -> Row:
        n = values.get("n", 7)
        return {"n": n, "g": None if n is None else 2 * n, "a": values["a"], "t": values.get("t")} | {
            name: values.get(name) for name in self.extra
        }

    def append(self) -> None:
        given = self.rng.random() < 0.5
        rows: list[Row] = [
            {"v": {"a": self.rng.randrange(1, 50)}, self.text: "x", **({"n": self.rng.randrange(100)} if given else {})}
            for _ in range(3)
        ]
        self.table.append(rows)
        self.rows += [self.new(a=r["v"]["a"], t="x", **({"n": r["n"]} if given else {})) for r in rows]

    def evolve(self) -> None:
        self.fresh += 1
        name = f"e{self.fresh}"
        self.table.append([{"v": {"a": 1}, name: self.fresh}], schema_evolution=True)
        self.extra.append(name)
        for row in self.rows:
            row[name] = None
        self.rows.append(self.new(a=1, **{name: self.fresh}))

    def rename(self) -> None:
        if self.table.snapshot.mapping == "none":
            return
        self.fresh += 1
        name = f"t{self.fresh}"
        self.table.rename_column(self.text, name)
        self.text = name

    def update(self) -> None:
        limit = self.rng.randrange(50)
        self.table.update({"n": "n + 1", self.text: "'u'"}, f"v:a::int < {limit}")
        for row in self.rows:
            if row["a"] < limit:
                n = None if row["n"] is None else row["n"] + 1
                row |= {"n": n, "g": None if n is None else 2 * n, "t": "u"}

    def delete(self) -> None:
        n = self.rng.randrange(100)
        self.table.delete(f"n = {n} OR g IS NULL")
        self.rows = [row for row in self.rows if row["n"] != n and row["g"] is not None]

    def merge(self) -> None:
        keys = self.rng.sample(range(1, 120), 4)
        source = pa.table({"k": pa.array(keys, pa.int32()), "w": [f'{{"a": {key}}}' for key in keys]})
        merge = self.table.merge(source, "target.v:a::int = source.k").when_matched_update({"n": "source.k"})
        merge.when_not_matched_insert({"v": "source.w"}).execute()
        there = {row["a"] for row in self.rows}
        for row in self.rows:
            if row["a"] in keys:
                row |= {"n": row["a"], "g": 2 * row["a"]}
        self.rows += [self.new(a=key) for key in keys if key not in there]

    def optimize(self) -> None:
        self.table.optimize()

    def refused(self) -> None:
        for call in (
            lambda: self.table.append([{"v": {"a": 1}}, {"v": {"a": -1}}]),
            lambda: self.table.append([{"v": {"b": 1}}]),
            lambda: self.table.append([{"n": 1, "g": 3, "v": {"a": 1}}]),
            lambda: self.table.append([{"id": 1, "v": {"a": 1}}]),
        ):
            with pytest.raises(UserError) as caught:
                call()
            assert caught.value.code in ("CONSTRAINT_VIOLATED", "IDENTITY_GIVEN")

    def check(self, told: list[str]) -> dict[int, int]:
        names = {"id": "id", "n": "n", "g": "g", "a": "v:a::int", "t": self.text, **{name: name for name in self.extra}}
        found = mica.Table.open(self.table.path).scan(columns=names).to_arrow().to_pylist()
        ids = {row.pop("id"): row["a"] for row in found}
        assert len(ids) == len(found), told
        assert sorted(map(repr, found)) == sorted(map(repr, self.rows)), told
        return ids


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_a_table_and_its_model(tmp_path: Path, rng: random.Random, mode: str) -> None:
    properties = {
        "delta.columnMapping.mode": mode,
        "delta.enableDeletionVectors": rng.choice(["true", "false"]),
        "delta.enableChangeDataFeed": rng.choice(["true", "false"]),
        "delta.checkpointInterval": "5",
    }
    table = mica.Table.create(tmp_path / "t", SCHEMA, properties=properties).add_constraint("positive", "v:a::int > 0")
    model, told = Model(table, rng), [str(properties)]
    before: dict[int, int] = {}
    for _ in range(STEPS):
        what = rng.choice(["append", "append", "evolve", "rename", "update", "delete", "merge", "optimize", "refused"])
        told.append(what)
        getattr(model, what)()
        after = model.check(told)
        assert all(before[key] == a for key, a in after.items() if key in before), told  # ids stay with their rows
        before = after
    assert mica.check(table.path).ok
