"""Statistics as `mica stats` shows them, of columns and of paths."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson

import mica
from mica.stats.shown import decoded


def test_bounds_of_paths_are_values_that_json_can_hold(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 1, 1, 1, 2, 3, 4, dt.UTC)
    plain: dict[str, Any] = {"f": 0.5, "i": 7, "s": "x"}
    row = {
        **plain,
        "d": moment.date(),
        "t": moment,
        "n": moment.replace(tzinfo=None),
        "m": Decimal("1.25"),
        "b": 10**20,
    }
    table = mica.Table.create(tmp_path, "v VARIANT")
    table.append([{"v": {**row, "a b": 1}}])
    found = decoded(mica.Table.open(tmp_path).files()["stats"][0].as_py(), table.schema)
    assert orjson.loads(orjson.dumps(found)) == found
    assert {one["column"]: one["min"] for one in found["columns"]} == {
        "v": None, **{f"v:{name}": value for name, value in plain.items()}, "v:['a b']": 1, "v:d": "2020-01-01",
        "v:t": "2020-01-01T01:02:03.000004Z", "v:n": "2020-01-01T01:02:03.000004", "v:m": "1.25", "v:b": str(10**20),
    }  # fmt: skip
