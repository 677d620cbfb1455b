"""What a table suggests about itself can be pasted, and is true of its rows."""

from __future__ import annotations

import datetime as dt
import random
import shlex
import uuid
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import mica
from mica.cli.app import app
from mica.format import read
from mica.format.options import Options
from mica.variant import from_python

NAMES = ("id", "a b", "it's", "deep", "`q`", "v", "Kind", "kind", "é.x")


def document(rng: random.Random, number: int, depth: int = 0) -> dict[str, object]:
    found: dict[str, object] = {
        "id": number << (number % 3 * 16), "a b": f"x{number}", "it's": number / 4, "v": number % 2 == 0,
        "Kind": "k", "kind": "K", "é.x": None if number % 40 == 0 else number, "list": [number],
        "odd": number if rng.random() < 0.5 else str(number), "mostly": "odd" if number % 50 == 0 else number,
    }  # fmt: skip
    if number % 300 == 0:
        found["rare"] = 1
    if depth < 2:
        found["deep"] = document(rng, number, depth + 1)
    return found


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "name"}], ids=["plain", "mapped"])
def test_typed_paths_are_columns_of_the_paths_values(
    tmp_path: Path, rng: random.Random, properties: dict[str, str]
) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, `v` VARIANT", properties=properties)
    for start in (0, 400):
        table.append([{"id": i, "v": document(rng, i)} for i in range(start, start + 400)])
    (found,) = mica.suggest(tmp_path / "t")
    paths = {one["path"]: one for one in found.details}
    assert paths["v:['a b']"] == {"name": "a b", "type": "STRING", "path": "v:['a b']", "rows": 1.0, "typed": 1.0}
    assert {one["type"] for path, one in paths.items() if path.endswith(":id")} == {"BIGINT"}
    assert not [path for path in paths if "list" in path or "odd" in path or "rare" in path]
    assert len({one["name"].lower() for one in found.details} | {"id", "v"}) == len(found.details) + 2
    options = Options.of({"path": str(tmp_path / "t"), "typedPaths": found.value, "columns": "id"})
    columns = read.columns_of(read.opened(options), options)
    rows = table.scan(columns=columns.spelled).to_arrow()
    for one in found.details:
        values = rows.column(one["name"])
        assert 1 - values.null_count / len(values) == pytest.approx(one["rows"] * one["typed"], abs=0.001), one


def test_types_that_no_column_has_are_not_suggested(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    values = {"t": dt.time(1), "u": uuid.UUID(int=7), "at": pd.Timestamp("2020-01-01 00:00:00.000000001")}
    for place in ("n", "t", "at"):  # shredded differently, too
        table.append(pa.table({"v": from_python([values | {"n": i, place: i} for i in range(50)])}))
    assert [(one.kind, one.value) for one in mica.suggest(table)] == [("typed_paths", "n BIGINT")]


def test_what_is_applied_or_unknown_is_not_suggested(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, v VARIANT")
    assert mica.suggest(table) == []
    table.append([{"id": i, "v": {"k": i, "s": {"t": "x"}}} for i in range(10)])
    (found,) = mica.suggest(table)
    assert found.value == "k BIGINT, t STRING AS v:s.t"
    assert found.command == f"mica alter {table.path} --set 'mica.paths={found.value}'"
    table.set_properties({"mica.paths": found.value})
    assert mica.suggest(table) == []
    with pytest.raises(mica.UserError, match="is not a Delta table"):
        mica.suggest(tmp_path / "none")


@pytest.mark.parametrize(("schema", "v"), [("v VARIANT", "v"), ("s STRUCT<`a b`: VARIANT>", "s.`a b`")])
def test_each_suggestion_names_what_it_is_about_and_its_command_runs(
    tmp_path: Path, rng: random.Random, schema: str, v: str
) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path / "t", schema, properties={"mica.variantStats.maxPaths": "2", **mapped})
    for file in range(5):
        documents = [
            {
                "id": rng.randbytes(16).hex(), "n": rng.random(), "time_us": 17 * 10**14 + rng.getrandbits(30),
                "was": i if file else str(i), "wide": {f"f{i % 40}": i},
            }
            for i in range(400 if file else 40)
        ]  # fmt: skip
        table.append([{"v": one} if v == "v" else {"s": {"a b": one}} for one in documents])
    found = {one.kind: one for one in mica.suggest(table)}
    assert {kind: one.value for kind, one in found.items() if kind != "typed_paths"} == {
        "shredding": f"{v}:wide.*: skip, {v}:was: BIGINT",
        "bounds": f"{v}:time_us, {v}:was, {v}:id, {v}:n",
        "bloom_filters": f"{v}:id",
        "order": f"{v}:n",
    }
    found.pop("order")
    for one in found.values():
        for command in one.command.split(" && "):
            done = CliRunner().invoke(app, shlex.split(command)[1:])
            assert done.exit_code == 0, (command, done.output)
    left = {one.kind: one for one in mica.suggest(table.path)}
    assert left.keys() <= {"order", "typed_paths"}, left  # `was` has become a path of one type
    order = left["order"]
    assert order.value == f"{v}:time_us, {v}:n"
    assert "meets those of 100% of the files" in order.reason
    assert CliRunner().invoke(app, shlex.split(order.command)[1:]).exit_code == 0
    after = mica.Table.open(table.path)
    assert mica.check(after.path).ok
    assert after.scan(f"{v}:id::string = 'no'").to_arrow().num_rows == 0
