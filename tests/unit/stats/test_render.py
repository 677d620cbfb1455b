"""What a writer puts into the log, and what it leaves out."""

import datetime as dt
import json
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mica.schema.ddl import parse_ddl
from mica.stats.columns import indexed_leaves
from mica.stats.paths import read_all
from mica.stats.render import PathBounds, stats_json, with_variant_bounds

SCHEMA = parse_ddl(
    "id bigint, b boolean, s struct<x: string, v: variant>, d decimal(20,2), f double, t timestamp, n timestamp_ntz, "
    "dd date, v variant, l array<int>, p int"
)


def i64(value: int) -> bytes:
    return b"\x18" + struct.pack("<q", value)


def side(k: int) -> dict[str, Any]:
    moment = dt.datetime(2020, 1, 1, 0, 0, 0, 123456, dt.UTC)
    return {
        "id": k, "b": True, "s": {"x": "a" * k}, "d": Decimal("123456789012345678.90"),
        "f": float("inf") if k > 1 else 0.5,
        "t": moment, "n": moment.replace(tzinfo=None), "dd": dt.date(2020, 1, 1),
    }  # fmt: skip


def facts(*found: tuple[list[str], str, int]) -> dict[str, Any]:
    nulls = {"id": 0, "s": {"x": 1, "v": 2}, "v": 3, "l": 4}
    batch = pa.RecordBatch.from_pylist(
        [{"column": c, "path": p, "rows": r, "min": i64(r), "max": i64(r + 1)} for c, p, r in found],
        pa.schema([("column", pa.list_(pa.string())), ("path", pa.string()), ("rows", pa.int64()), ("min", pa.binary()),
                   ("max", pa.binary())]),
    )  # fmt: skip
    plain = pa.RecordBatch.from_pylist([{"min": side(1), "max": side(2), "null_count": nulls}])
    return {"rows": 10, "plain": plain, "paths": batch}


def written(given: dict[str, Any], configuration: dict[str, str] | None = None, **options: Any) -> dict[str, Any]:
    options = {"variant_bounds": True, "partition_columns": ["p"], **options}
    text = stats_json(given, SCHEMA, configuration or {}, **options)
    document: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return document


def bounds(text: str) -> dict[str, Any]:
    return {key: found and found.value for key, found in read_all(text).items()}


def test_plain_columns() -> None:
    document = written(facts())
    assert document["numRecords"] == 10
    assert document["tightBounds"] is True
    assert document["minValues"] == {
        "id": 1, "s": {"x": "a"}, "d": Decimal("123456789012345678.90"), "f": Decimal("0.5"),
        "t": "2020-01-01T00:00:00.123Z", "n": "2020-01-01T00:00:00.123", "dd": "2020-01-01",
    }  # fmt: skip
    assert "f" not in document["maxValues"]  # infinity has no JSON
    assert document["nullCount"] == {"id": 0, "s": {"x": 1, "v": 2}, "v": 3, "l": 4}


def test_a_maximum_is_no_negative_zero() -> None:
    """For other readers -0.0 is less than 0.0, and a file that ends there would hold no zero."""
    given = facts()
    given["plain"] = pa.RecordBatch.from_pylist([{"min": {"f": -0.0}, "max": {"f": -0.0}, "null_count": {"f": 0}}])
    text = stats_json(given, SCHEMA, {}, variant_bounds=True)
    assert '"minValues":{"f":-0.0},"maxValues":{"f":0.0}' in text


def test_a_column_of_nulls_has_no_bounds() -> None:
    given = facts()
    ends = pa.struct({"dd": pa.date32(), "t": pa.timestamp("us", "UTC")})
    counts = pa.struct({"dd": pa.int64(), "t": pa.int64()})
    row = {"min": {"dd": None, "t": None}, "max": {"dd": None, "t": None}, "null_count": {"dd": 10, "t": 10}}
    given["plain"] = pa.RecordBatch.from_pylist([row], pa.schema({"min": ends, "max": ends, "null_count": counts}))
    document = written(given)
    assert (document["minValues"], document["maxValues"]) == ({}, {})
    assert document["nullCount"] == {"dd": 10, "t": 10}


def test_variants_only_where_the_protocol_has_them() -> None:
    given = facts((["v"], "$['a']", 5), (["s", "v"], "$['q']", 6))
    document = written(given)
    assert bounds(document["minValues"]["v"]) == {"$['a']": 5}
    assert bounds(document["maxValues"]["s"]["v"]) == {"$['q']": 7}
    assert "v" not in written(given, variant_bounds=False)["minValues"]


def test_limits_take_the_paths_of_most_rows_first() -> None:
    given = facts(*[(["v"], f"$['k{i}']", 100 - i % 7) for i in range(60)])
    found = bounds(written(given, {"mica.variantStats.maxPaths": "10"})["minValues"]["v"])
    assert list(found) == sorted([f"$['k{i}']" for i in range(0, 60, 7)] + ["$['k1']"])
    assert len(bounds(written(given)["minValues"]["v"])) == 32
    for limit in (300, 1000, 4096):
        text = stats_json(given, SCHEMA, {"mica.variantStats.maxBytes": str(limit)}, variant_bounds=True)
        assert len(text) <= max(limit, len(stats_json(given, SCHEMA, {}, variant_bounds=False)))


def test_named_paths() -> None:
    given = facts((["v"], "$['a']", 9), (["v"], "$['c, d']", 1), (["s", "v"], "$['q']", 6))
    document = written(given, {"mica.variantStats.paths": "V:['c, d'], v:absent, s.v:q"})
    assert bounds(document["minValues"]["v"]) == {"$['c, d']": 1}
    assert bounds(document["minValues"]["s"]["v"]) == {"$['q']": 6}


@pytest.mark.parametrize(
    ("configuration", "columns"),
    [
        ({"delta.dataSkippingNumIndexedCols": "3"}, ["id", "b", "s.x"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, []),
        ({"delta.dataSkippingStatsColumns": "S, id"}, ["id", "s.x", "s.v"]),
        ({"delta.dataSkippingStatsColumns": "`s`.`v`", "delta.dataSkippingNumIndexedCols": "0"}, ["s.v"]),
    ],
)
def test_indexed_columns(configuration: dict[str, str], columns: list[str]) -> None:
    assert [".".join(leaf.column) for leaf in indexed_leaves(SCHEMA, configuration, ["p"])] == columns


def test_all_columns_when_asked() -> None:
    wide = parse_ddl(", ".join(f"c{i} int" for i in range(50)))
    assert len(indexed_leaves(wide, {})) == 32
    assert len(indexed_leaves(wide, {"delta.dataSkippingNumIndexedCols": "-1"})) == 50


def test_new_variant_bounds_take_the_place_of_the_old_ones() -> None:
    old = stats_json(facts((["v"], "$['a']", 5), (["s", "v"], "$['q']", 6)), SCHEMA, {}, variant_bounds=True)

    def replaced(stats: str | None, *columns: tuple[str, ...], found: tuple[str, ...] = ("v",)) -> dict[str, Any]:
        new = [PathBounds(found, "$['b']", 3, i64(1), i64(2))]
        document: dict[str, Any] = json.loads(with_variant_bounds(stats, new, SCHEMA, {}, columns))
        return document

    before, after = json.loads(old), replaced(old, ("v",), ("s", "v"))
    assert [bounds(after[side].pop("v")) for side in ("minValues", "maxValues")] == [{"$['b']": 1}, {"$['b']": 2}]
    for side in ("minValues", "maxValues"):
        assert before[side].pop("v")
        assert before[side]["s"].pop("v"), "the old bounds of a column without new ones are gone"
    assert after == before
    other = replaced(old, ("v",), found=("s", "v"))
    assert "v" not in other["minValues"]
    assert bounds(other["minValues"]["s"]["v"]) == {"$['q']": 6}, "a column that was not asked for keeps its own"
    for nothing in (None, "{}", '{"minValues":{"s":1}}', '{"minValues":[1],"maxValues":"a"}'):
        found = replaced(nothing, ("v",), ("s", "v"))
        assert bounds(found["maxValues"]["v"]) == {"$['b']": 2}
