"""`stats_parsed` never says more than the JSON, and says it in the columns' types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import orjson
import pyarrow as pa
import pytest

from mica.log.stats_struct import format_stats, parse_stats, stats_type
from mica.schema.ddl import parse_ddl
from mica.stats.variant import encode_bounds

DDL = (
    "i INT, x DECIMAL(10,2), f DOUBLE, s STRING, d DATE, t TIMESTAMP, u TIMESTAMP_NTZ, "
    "b BOOLEAN, y BINARY, a ARRAY<INT>"
)


def kind(ddl: str = DDL, *partitions: str, **configuration: str) -> pa.StructType:
    return stats_type(parse_ddl(ddl), partitions, {k.replace("__", "."): v for k, v in configuration.items()})


def parse(row: object, of: pa.StructType) -> dict[str, object] | None:
    text = row if isinstance(row, str) else orjson.dumps(row).decode()
    found: dict[str, object] | None = parse_stats(pa.array([text]), of).to_pylist()[0]
    return found


def test_the_type_mirrors_the_schema() -> None:
    of = kind()
    assert [field.name for field in of] == ["numRecords", "tightBounds", "minValues", "maxValues", "nullCount"]
    bounds = of.field("minValues").type
    assert [field.name for field in bounds] == ["i", "x", "f", "s", "d", "t", "u"]
    assert bounds.field("t").type == pa.timestamp("us", "UTC")
    assert of.field("maxValues").type == bounds
    assert [field.name for field in of.field("nullCount").type] == ["i", "x", "f", "s", "d", "t", "u", "b", "y", "a"]


@pytest.mark.parametrize(
    ("ddl", "partitions", "configuration", "bounded"),
    [
        ("a INT, b INT, c INT", (), {"delta__dataSkippingNumIndexedCols": "2"}, ["a", "b"]),
        ("a INT, b INT, c INT", (), {"delta__dataSkippingNumIndexedCols": "-1"}, ["a", "b", "c"]),
        ("a INT, b INT, c INT", (), {"delta__dataSkippingStatsColumns": "c"}, ["c"]),
        ("a INT, b INT, c INT", ("b",), {}, ["a", "c"]),
        ("s STRUCT<t: STRUCT<u: INT>, w: BINARY>, c INT", (), {"delta__dataSkippingNumIndexedCols": "1"}, ["s"]),
    ],
)
def test_only_columns_with_statistics_are_there(
    ddl: str, partitions: tuple[str, ...], configuration: dict[str, str], bounded: list[str]
) -> None:
    of = kind(ddl, *partitions, **configuration)
    assert [field.name for field in of.field("minValues").type] == bounded


def test_without_any_column_only_the_rows_are_counted() -> None:
    of = kind("a INT", delta__dataSkippingNumIndexedCols="0")
    assert [field.name for field in of] == ["numRecords", "tightBounds"]
    assert parse({"numRecords": 5, "minValues": {"a": 1}}, of) == {"numRecords": 5, "tightBounds": None}


def test_physical_names_are_used_where_columns_are_mapped() -> None:
    from mica.schema.json import loads

    schema = loads(
        '{"type":"struct","fields":[{"name":"a","type":"integer","nullable":true,'
        '"metadata":{"delta.columnMapping.physicalName":"col-1"}}]}'
    )
    assert [field.name for field in stats_type(schema, (), {}).field("minValues").type] == ["col-1"]


def test_values_come_in_the_types_of_their_columns() -> None:
    bounds = {
        "i": 5, "x": 1.25, "f": 2, "s": "ä", "d": "2024-02-29",
        "t": "2024-02-29T01:02:03.456-01:00", "u": "2024-02-29T01:02:03.456",
    }  # fmt: skip
    found = parse({"numRecords": 3, "minValues": bounds, "maxValues": {}, "nullCount": {"a": 2}}, kind())
    assert found is not None
    low = found["minValues"]
    assert low["i"] == 5
    assert low["x"] == Decimal("1.25")
    assert low["d"] == dt.date(2024, 2, 29)
    assert low["t"] == dt.datetime(2024, 2, 29, 2, 2, 3, 456_000, dt.UTC)
    assert low["u"] == dt.datetime(2024, 2, 29, 1, 2, 3, 456_000)  # noqa: DTZ001
    assert found["maxValues"] == dict.fromkeys(bounds)


@pytest.mark.parametrize(
    "bounds",
    [
        {"i": "five"},
        {"i": 2**40},
        {"i": 1.5},
        {"i": {"a": 1}},
        {"f": "NaN"},
        {"f": [1]},
        {"s": 5},
        {"d": "yesterday"},
        {"d": 19000},
        {"t": "2024-02-30T00:00:00Z"},
        {"x": 123456789012.5},
        {"x": 1.255},
    ],
    ids=str,
)
def test_a_bound_that_does_not_fit_is_left_out_and_costs_no_other(bounds: dict[str, object]) -> None:
    of = kind()
    texts = [{"numRecords": 1, "minValues": {**bounds, "u": "2024-01-01T00:00:00.000"}}, {"minValues": {"i": 7}}]
    bad, good = parse_stats(pa.array([orjson.dumps(text).decode() for text in texts]), of).to_pylist()
    assert good["minValues"]["i"] == 7
    ((name, _),) = bounds.items()
    assert bad["minValues"][name] is None
    assert bad["minValues"]["u"] is not None
    assert bad["numRecords"] == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "5", '"x"', '{"minValues":5}', '{"minValues":null}'])
def test_statistics_that_are_none_say_nothing(text: str) -> None:
    found = parse(text, kind())
    assert found is None or not any(v for v in found.values() if not isinstance(v, dict) or any(v.values()))


def test_null_stays_null() -> None:
    assert parse_stats(pa.array([None, None], pa.string()), kind()).null_count == 2
    assert format_stats(pa.nulls(2, kind())).null_count == 2
    assert len(parse_stats(pa.array([], pa.string()), kind())) == 0


def test_variant_bounds_go_through_variant_columns_and_back() -> None:
    of = kind("v VARIANT, s STRUCT<w: VARIANT>")
    text = encode_bounds({"$['a']": bytes([12, 5]), "$['b']['c']": bytes([0x0D]) + b"abc"})
    row = {"numRecords": 1, "minValues": {"v": text, "s": {"w": text}}, "maxValues": {"v": text}, "nullCount": {"v": 0}}
    parsed = parse_stats(pa.array([orjson.dumps(row).decode(), None]), of)
    bounds = parsed.field("minValues").field("v")
    assert [field.name for field in bounds.type] == ["metadata", "value"]
    assert orjson.loads(format_stats(parsed)[0].as_py()) == row
    damaged = {**row, "minValues": {"v": "no z85", "s": {"w": text}}}
    back = orjson.loads(format_stats(parse_stats(pa.array([orjson.dumps(damaged).decode()]), of))[0].as_py())
    assert back == {**row, "minValues": {"s": {"w": text}}}
