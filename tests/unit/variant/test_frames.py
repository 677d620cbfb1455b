"""Rows as JSON lines: spelled as Spark's to_json spells them (the rows here were held against it once by hand)."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

import mica
from mica.variant.frames import json_lines


def _lines(tmp_path: Path, ddl: str, rows: pa.Table) -> list[bytes]:
    table = mica.Table.create(tmp_path / "t", ddl)
    table.append(rows)
    scan = table.scan()
    return b"".join(json_lines(scan.batches(), scan.schema)).splitlines()


def test_maps_are_objects_and_what_json_lacks_is_text(tmp_path: Path) -> None:
    ddl = (
        "m MAP<STRING, INT>, n MAP<INT, ARRAY<MAP<STRING, DOUBLE>>>, f DOUBLE, g FLOAT, r DECIMAL(5, 2), b BINARY, "
        "s STRUCT<x: DOUBLE, y: MAP<DATE, STRING>>, l ARRAY<DOUBLE>"
    )
    row: dict[str, Any] = {
        "m": [("a", 1), ("b", None)], "n": [(1, [[("x", math.nan)], None])], "f": math.nan, "g": -math.inf,
        "r": Decimal("1.50"), "b": b"\x00\xff", "s": {"x": math.inf, "y": [(dt.date(2020, 1, 1), "z")]},
        "l": [1.5, math.nan, None],
    }  # fmt: skip
    from mica.schema.arrow import to_arrow
    from mica.schema.ddl import parse_ddl

    schema = to_arrow(parse_ddl(ddl))
    rows = pa.Table.from_pylist([row, dict.fromkeys(row), {**row, "f": 2.5, "g": 0.5}], schema=schema)
    first, second, third = _lines(tmp_path, ddl, rows)
    assert first == (
        b'{"m":{"a":1,"b":null},"n":{"1":[{"x":"NaN"},null]},"f":"NaN","g":"-Infinity","r":1.50,"b":"AP8=",'
        b'"s":{"x":"Infinity","y":{"2020-01-01":"z"}},"l":[1.5,"NaN",null]}'
    )
    assert orjson.loads(second) == dict.fromkeys(row)
    assert orjson.loads(third)["f"] == 2.5


def test_variants_are_spelled_alike_at_every_depth(tmp_path: Path) -> None:
    variant = mica.variant.from_json(['{"a":1.50,"b":[null]}'])
    nested = pa.StructArray.from_arrays([variant], names=["v"])
    (line,) = _lines(tmp_path, "v VARIANT, s STRUCT<v: VARIANT>", pa.table({"v": variant, "s": nested}))
    assert line == b'{"v":{"a":1.5,"b":[null]},"s":{"v":{"a":1.5,"b":[null]}}}'


def test_floats_have_their_own_digits_and_late_times_are_spelled_as_others(tmp_path: Path) -> None:
    late = 2**60 - 846_976  # in the year 38504
    rows = pa.table({
        "f": pa.array([0.1, 1e20], pa.float32()),
        "s": pa.array([{"f": 0.1}, {"f": 3.4028234e38}], pa.struct([("f", pa.float32())])),
        "t": pa.array([1, late], pa.timestamp("us", "UTC")),
        "n": pa.array([0, late + 1], pa.timestamp("us")),
        "d": pa.array([0, 2 * 10**7], pa.date32()),
    })  # fmt: skip
    ddl = "f FLOAT, s STRUCT<f: FLOAT>, t TIMESTAMP, n TIMESTAMP_NTZ, d DATE"
    first, second = map(orjson.loads, _lines(tmp_path, ddl, rows))
    assert first == {
        "f": 0.1, "s": {"f": 0.1}, "t": "1970-01-01T00:00:00.000001+00:00", "n": "1970-01-01T00:00:00",
        "d": "1970-01-01",
    }  # fmt: skip
    assert second == {
        "f": 1e20, "s": {"f": 3.4028235e38}, "t": "38504-08-17T21:30:06+00:00", "n": "38504-08-17T21:30:06.000001",
        "d": "56728-02-22",
    }  # fmt: skip


def test_integers_that_are_no_doubles_stay_integers_beside_nulls_in_pandas(tmp_path: Path) -> None:
    big = 2**53 + 1
    rows = pa.table({
        "n": [big, None], "small": [1, None], "s": [{"a": -big}, {"a": None}], "l": [[big, None], None],
        "m": pa.array([[("k", big), ("z", None)], None], pa.map_(pa.string(), pa.int64())),
    })  # fmt: skip
    ddl = "n BIGINT, small BIGINT, s STRUCT<a: BIGINT>, l ARRAY<BIGINT>, m MAP<STRING, BIGINT>"
    table = mica.Table.create(tmp_path / "t", ddl)
    table.append(rows)
    frame = table.scan().to_pandas()
    assert frame.iloc[0].to_dict() == {
        "n": big, "small": 1.0, "s": {"a": -big}, "l": [big, None], "m": [("k", big), ("z", None)],
    }  # fmt: skip
    assert frame.dtypes.astype(str).to_dict() == dict.fromkeys("nslm", "object") | {"small": "float64"}
