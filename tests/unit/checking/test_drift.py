"""Drift: which paths are new, gone or of another type, since when, and with which example."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import mica
from mica.checking.survey import looks
from mica.cli.app import app
from mica.schema.ddl import type_to_ddl
from mica.variant import from_python
from tests.unit.pictures.test_page import Read

Rows = Callable[[int], dict[str, Any]]


def filled(path: Path, *versions: Rows) -> mica.Table:
    table = mica.Table.create(path, "`V 1` VARIANT", properties={"delta.columnMapping.mode": "name"})
    for rows in versions:
        table.append([{"V 1": rows(i)} for i in range(50)])
    return table


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    """Versions 1 and 2 are alike, 3 has what is new, 4 everything."""
    return filled(
        tmp_path / "t",
        lambda i: {"kind": "a", "price": i, "old": i, "mix": i},
        lambda i: {"kind": "b", "price": i, "old": i, "mix": i},
        lambda i: {"kind": "c", "price": f"{i} EUR", "mix": i, "deep": {"fresh": f"f{i:02}"}},
        lambda i: {"kind": "d", "price": f"{i} EUR", "mix": "x" if i % 4 == 3 else i, "deep": {"fresh": "g"}},
    )


def test_files_of_one_version_came_in_no_order(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "kind STRING, v VARIANT", ["kind"])
    for more in range(3):
        rows = [{"kind": kind, "v": {kind: i}} for kind in "abcdefgh" for i in range(20 + more)]
        table.append(rows)
        assert mica.drift(table).paths == []
    table.optimize()
    assert mica.drift(table).paths == []
    table.append([{"kind": "a", "v": {"late": i}} for i in range(20)])
    assert {(p.path, p.kind) for p in mica.drift(table).paths} >= {("v:late", "new"), ("v:b", "vanished")}


def test_what_changed_and_when(table: mica.Table) -> None:
    found = mica.drift(table)
    changes = {(p.path, p.kind): (p.before, p.after, p.version, p.example) for p in found.paths}
    assert changes == {
        ("`V 1`:deep.fresh", "new"): (None, "STRING", 3, "f00"),
        ("`V 1`:old", "vanished"): ("BIGINT", None, 3, None),
        ("`V 1`:price", "type"): ("BIGINT", "STRING", 3, "0 EUR"),
        ("`V 1`:mix", "residual"): ("BIGINT", "BIGINT", 4, None),  # in half of the newer files a quarter are texts
    }
    assert [m.version for m in found.moments] == [1, 2, 3, 4]
    assert found.files == found.total_files == 4
    (late,) = [p for p in mica.drift(table, since=3).paths if p.path.endswith("mix")]
    assert (late.kind, late.before, late.after, late.version) == ("residual", "BIGINT", "BIGINT", 4)
    assert mica.drift(table, since=1).since == 1


def test_the_rules_that_follow_can_be_set_and_hold_for_every_file(table: mica.Table) -> None:
    rules = mica.drift(table).rules
    assert rules == "`V 1`:deep.fresh: STRING, `V 1`:price: STRING, `V 1`:mix: BIGINT"
    table.set_properties({"mica.shredding": rules})
    table.append([{"V 1": {"other": 1}}])
    [look] = looks(table.snapshot, [table.snapshot.files.num_rows - 1])
    types = {path.steps: type_to_ddl(one.type) for path, one in look.paths.items()}
    assert types == {("deep", "fresh"): "STRING", ("price",): "STRING", ("mix",): "BIGINT", ("other",): "BIGINT"}


def test_what_changed_in_arrays(tmp_path: Path) -> None:
    table = filled(
        tmp_path / "t",
        lambda i: {"items": [{"sku": "a", "price": i, "tags": ["x"]}] * 2, "mix": [i] * 4},
        lambda i: {"items": [{"sku": "b", "price": f"{i} EUR", "n": {"c": i}}], "mix": [i, i, i, "x"]},
    )
    found = mica.drift(table)
    assert {(p.path, p.kind): (p.before, p.after, p.example) for p in found.paths} == {
        ("`V 1`:items[*].n.c", "new"): (None, "BIGINT", None),
        ("`V 1`:items[*].tags[*]", "vanished"): ("STRING", None, None),
        ("`V 1`:items[*].price", "type"): ("BIGINT", "STRING", None),
        ("`V 1`:mix[*]", "residual"): ("BIGINT", "BIGINT", None),
    }
    table.set_properties({"mica.shredding": found.rules})
    table.append([{"V 1": {"items": [{"price": 1}]}}])
    [look] = looks(table.snapshot, [table.snapshot.files.num_rows - 1])
    assert type_to_ddl(look.paths[("V 1",), ("items", None, "price")].type) == "STRING"


def test_a_path_that_rows_may_still_have_has_not_vanished(tmp_path: Path) -> None:
    cases: dict[str, tuple[Rows, Rows, str]] = {
        "in another case too": (lambda i: {"id": i, "x": 1}, lambda i: {"id": i, "ID": "u", "x": 1}, "id"),
        "now an object": (lambda i: {"a": i}, lambda i: {"a": {"b": i}}, "a"),
    }
    for name, (old, new, path) in cases.items():
        found = mica.drift(filled(tmp_path / name, old, new))
        assert {p.kind for p in found.paths if p.path == f"`V 1`:{path}"} == {"unshredded"}, name
        assert "unshredded paths have no column any more" in str(found)


def test_types_that_no_column_has(tmp_path: Path) -> None:
    moment = pd.Timestamp("2020-01-01 00:00:00.000000001")
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    for new in (False, True):
        values = {
            "time": dt.time(1, 2, 3), "id": uuid.UUID(int=7) if new else "7", "at": moment if new else 7,
            "zoned": moment.tz_localize("UTC") if new else 7,
        }  # fmt: skip
        table.append(pa.table({"v": from_python([values | {"n": i} for i in range(50)])}))
    found = mica.drift(table)
    assert {(p.path, p.kind): (p.before, p.after, p.typed_after) for p in found.paths} == {
        ("v:id", "type"): ("STRING", "UUID", 1.0),
        ("v:at", "type"): ("BIGINT", "TIMESTAMP_NTZ(9)", 1.0),
        ("v:zoned", "type"): ("BIGINT", "TIMESTAMP(9)", 1.0),
    }
    assert found.rules == ""


def test_variants_in_structs(tmp_path: Path) -> None:
    mode = {"delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path / "t", "v VARIANT, s STRUCT<v: VARIANT, `a b`: STRUCT<w: VARIANT>>", [], mode)
    for name in ("old", "new"):
        values = [f"{i} EUR" if name == "new" else i for i in range(50)]
        table.append([{"s": {"v": {"price": value}, "a b": {"w": {name: i}}}} for i, value in enumerate(values)])
    found = mica.drift(table)
    assert {(p.path, p.kind): (p.before, p.after, p.version, p.example) for p in found.paths} == {
        ("s.`a b`.w:new", "new"): (None, "BIGINT", 2, "0"),
        ("s.`a b`.w:old", "vanished"): ("BIGINT", None, 2, None),
        ("s.v:price", "type"): ("BIGINT", "STRING", 2, "0 EUR"),
    }
    table.set_properties({"mica.shredding": found.rules})


def test_people_programs_and_ci_are_told(table: mica.Table) -> None:
    runner = CliRunner()
    text = runner.invoke(app, ["drift", table.path, "--fail-on", "new, type"])
    assert text.exit_code == 1
    assert "price" in text.output
    done = runner.invoke(app, ["drift", table.path, "--json", "--since", "2", "--fail-on", "vanished"])
    assert done.exit_code == 1
    assert orjson.loads(done.stdout) == orjson.loads(orjson.dumps(mica.drift(table.path, since=2).to_dict()))
    assert runner.invoke(app, ["drift", table.path, "--since", "1", "--fail-on", "vanished"]).exit_code == 0
    assert "Files over time" in Read(mica.drift(table).to_html()).text
    first, *lines = str(mica.drift(table)).splitlines()
    assert first == f"{table.path}, version {table.version}"
    assert "  type `V 1`:price: BIGINT (100.0%) -> STRING (100.0%), since version 3, such as 0 EUR" in lines
    assert runner.invoke(app, ["drift", table.path, "--fail-on", "newer"]).exit_code == 2


def test_tables_without_a_before(tmp_path: Path) -> None:
    empty = mica.Table.create(tmp_path / "e", "id INT, v VARIANT")
    assert mica.drift(empty).paths == mica.drift(empty).moments == []
    one = filled(tmp_path / "o", lambda i: {"k": i})
    assert mica.drift(one).paths == []
    with pytest.raises(mica.UserError, match="no file is newer than version 9"):
        mica.drift(one, since=9)
    with pytest.raises(mica.UserError, match="is not a Delta table"):
        mica.drift(tmp_path / "nothing")


def test_a_table_whose_commits_are_gone_goes_by_time(table: mica.Table) -> None:
    table.checkpoint()
    for commit in Path(table.path, "_delta_log").glob("*[123].json"):
        commit.unlink()
    found = mica.drift(table.path)
    assert {p.path for p in found.paths} == {"`V 1`:deep.fresh", "`V 1`:mix", "`V 1`:old", "`V 1`:price"}
    assert [m.version for m in found.moments].count(None) == 3


@pytest.mark.parametrize("call", [mica.drift, mica.suggest])
def test_a_file_that_is_gone_has_a_way_out(table: mica.Table, call: Callable[[mica.Table], object]) -> None:
    for file in Path(table.path).glob("*.parquet"):
        file.unlink()
    with pytest.raises(mica.StorageError, match="is gone: version") as caught:
        call(table)
    assert (caught.value.code, "fsck" in str(caught.value.hint)) == ("NOT_FOUND", True)
