"""Optimize along a curve: the same rows, fewer files for each predicate, bounds for the paths of the order."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import orjson
import pytest

import mica
from mica.engines import local
from mica.errors import MicaError, UserError
from mica.write.zorder import unique

#: Files are small enough for ten: of six, a range may meet five by chance.
SIZE = 6_000
WHERES = {
    "a": "v:a::int BETWEEN 500 AND 900", "b": "v:b::string BETWEEN 'u040' AND 'u049'", "n": "n BETWEEN 10 AND 14",
    "s": "s >= 'D2' AND s < 'D4'",
}  # fmt: skip


def table_of(path: Path, rng: random.Random, **options: Any) -> mica.Table:
    """Six files whose values are in no order: each predicate of `WHERES` needs all of them."""
    ddl = "id INT NOT NULL, p STRING, n INT, s STRING COLLATE UTF8_LCASE, v VARIANT"
    table = mica.Table.create(path, ddl, **options)
    for file in range(6):
        table.append([
            {"id": i, "p": "ab"[i % 2], "n": rng.choice([None, *range(200)]),
             "s": rng.choice("aAbBcCdDeE") + str(rng.randrange(1000)),
             "v": {"a": rng.randrange(20_000), "t": None, "o": {"x": i},
                   "b": rng.randrange(9) if rng.random() < 0.02 else f"u{rng.randrange(500):03}"}}
            for i in range(file * 800, file * 800 + 800)
        ])  # fmt: skip
    return table


def rows(table: mica.Table) -> list[str]:
    columns = {"id": "id", "p": "p", "n": "n", "s": "s", "v": "to_json(v)"}
    return sorted(map(str, table.scan(columns=columns).to_arrow().to_pylist()))


def share(table: mica.Table, name: str) -> float:
    """The share of the files that a predicate leaves."""
    return len(table.scan(where=WHERES[name]).plan.kept) / table.files().num_rows


@pytest.mark.slow
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("partitions", [[], ["p"]])
def test_predicates_on_any_of_the_columns_skip(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, on_disk: bool, partitions: list[str]
) -> None:
    if on_disk:
        monkeypatch.setattr(local, "SORT_BYTES", 0)
    table = table_of(tmp_path, rng, partition_by=partitions)
    before = rows(table)
    assert {name: share(table, name) for name in WHERES} == dict.fromkeys(WHERES, 1.0)
    done = table.optimize(zorder_by=["v:a", "v:b"], target_file_size=SIZE)
    assert share(table, "a") <= 0.75 >= share(table, "b")
    assert (rows(table), table.version, done.rows) == (before, 7, 4800)
    table.optimize(zorder_by=["n", "s"], target_file_size=SIZE)
    assert share(table, "n") <= 0.75 >= share(table, "s")
    table.optimize(zorder_by=["v:a::int"], target_file_size=SIZE)
    assert share(table, "a") <= (0.5 if partitions else 0.3)
    assert rows(table) == rows(mica.Table.open(tmp_path)) == before
    assert mica.check(table).ok


def test_the_commit_says_what_delta_spark_says(tmp_path: Path, rng: random.Random) -> None:
    table = table_of(tmp_path, rng, partition_by=["p"])
    sizes = {
        file["path"]: file["size"] for file in table.files().to_pylist() if dict(file["partition_values"])["p"] == "a"
    }
    done = table.optimize("p = 'a'", zorder_by=["V:a", "n"], target_file_size=SIZE)
    info = table.history(limit=1).to_pylist()[0]
    assert dict(info["operation_parameters"]) == {
        "predicate": '["(p = \'a\')"]', "zOrderBy": '["V:a","n"]', "auto": "false",
    }  # fmt: skip
    new = {
        file["path"]: file["size"] for file in table.files().to_pylist() if dict(file["partition_values"])["p"] == "a"
    }
    assert not sizes.keys() & new.keys()
    metrics = done.metrics
    assert (metrics["numRemovedFiles"], metrics["numRemovedBytes"]) == (len(sizes), sum(sizes.values()))
    assert (metrics["numAddedFiles"], metrics["numAddedBytes"]) == (len(new), sum(new.values()))
    assert (metrics["minFileSize"], metrics["maxFileSize"]) == (min(new.values()), max(new.values()))
    lines = (tmp_path / "_delta_log" / f"{table.version:020d}.json").read_bytes().splitlines()
    actions = [action for line in lines for kind, action in orjson.loads(line).items() if kind in ("add", "remove")]
    assert {action["dataChange"] for action in actions} == {False}


def test_paths_of_the_order_get_bounds_first(tmp_path: Path) -> None:
    properties = {"mica.variantStats.maxPaths": "1"}
    table = mica.Table.create(tmp_path, "v VARIANT", properties=properties)
    table.append([{"v": {"usual": i, **({"rare": i} if i % 2 else {})}} for i in range(100)])
    assert len(table.scan(where="v:rare::int < 0").plan.kept) == 1
    table.optimize(zorder_by=["v:rare"])
    assert len(table.scan(where="v:rare::int < 0").plan.kept) == 0


def test_an_append_meanwhile_is_no_conflict_and_deleted_rows_go(tmp_path: Path, rng: random.Random) -> None:
    table = table_of(tmp_path, rng, properties={"delta.enableDeletionVectors": "true"})
    table.delete("id % 10 = 3")
    stale = mica.Table.open(tmp_path)
    stale.append([{"id": -1, "p": "a", "n": 1, "s": "x", "v": None}])
    done = table.optimize(zorder_by=["n"])
    assert done.metrics["numDeletionVectorsRemoved"] == 6
    assert table.refresh().count() == 4321
    table.delete("id >= 0 AND n IS NOT NULL OR n IS NULL OR id < 0")
    assert table.count() == 0
    assert table.optimize(zorder_by=["n"]).files == 0


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ([], "INVALID_ARGUMENT"), (["n", "N"], "INVALID_ARGUMENT"), (["p"], "INVALID_PARTITION_COLUMN"),
        (["nope"], "UNKNOWN_COLUMN"), (["st"], "TYPE_MISMATCH"), (["n +"], "INVALID_EXPRESSION"),
        ("n", "INVALID_ARGUMENT"),
    ],
)  # fmt: skip
def test_orders_that_cannot_be(tmp_path: Path, asked: Any, code: str) -> None:
    table = mica.Table.create(tmp_path, "p STRING, n INT, st STRUCT<a: INT>", ["p"])
    table.append([{"p": "a", "n": 1, "st": {"a": 1}}])
    with pytest.raises(MicaError) as raised:
        table.optimize(zorder_by=asked)
    assert (raised.value.code, table.version) == (code, 1)


def test_of_a_path_that_no_row_has_a_warning_tells_and_of_a_rare_one_none(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "v VARIANT", properties={"mica.variantStats.maxPaths": "1"})
    table.append([{"v": {"usual": i, "none": None}} for i in range(9_000)] + [{"v": {"usual": 1, "rare": 1}}])
    for asked in (["v:usuel"], ["v:usual", "v:usuel::int"]):
        with pytest.warns(match=r"v:usuel.*, a path that no row of .* has; the nearest path with bounds is v:usual$"):
            table.optimize(zorder_by=asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for asked in (["v:rare::int"], ["v:rare"], ["v:none"]):
            table.optimize(zorder_by=asked)
    assert (table.version, table.count()) == (6, 9_001)


def test_keys_of_a_variant_differ_in_case() -> None:
    assert unique(["v:a", "v:A", "V:`a`"]) == ["v:a", "v:A", "V:`a`"]
    for same in (["id", "ID"], ["v:a", "V:a"]):
        with pytest.raises(UserError, match="distinct"):
            unique(same)
