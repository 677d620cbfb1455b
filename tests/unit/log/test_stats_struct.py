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
        {"i": True},
        {"f": True},
        {"x": True},
        {"s": True},
    ],
    ids=str,
)
def test_a_bound_that_does_not_fit_is_left_out_and_costs_no_other(bounds: dict[str, object]) -> None:
    of = kind()
    texts = [{"numRecords": 1, "minValues": {**bounds, "u": "2024-01-01T00:00:00.000"}, "tightBounds": 1}]
    texts.append(
        {"minValues": {"i": 7, "f": 2.5, "s": "a", "x": 3}, "maxValues": {"x": 1.25, "f": 4}, "tightBounds": True}
    )
    bad, good = parse_stats(pa.array([orjson.dumps(text).decode() for text in texts]), of).to_pylist()
    assert {name: good["minValues"][name] for name in "ifsx"} == {"i": 7, "f": 2.5, "s": "a", "x": Decimal(3)}
    assert (good["maxValues"]["x"], good["maxValues"]["f"]) == (Decimal("1.25"), 4.0)
    assert (good["tightBounds"], bad["tightBounds"]) == (True, None)
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


def of_bounds(bounds: pa.StructArray) -> list[object]:
    """The minima that the JSON has of `stats_parsed` with these."""
    parsed = pa.StructArray.from_arrays([pa.array([1] * len(bounds)), bounds], names=["numRecords", "minValues"])
    found = [orjson.loads(text) for text in format_stats(parsed).to_pylist()]
    assert all(row["numRecords"] == 1 for row in found)
    return [row.get("minValues") for row in found]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([-(2**63), 2**63 - 1, 0], pa.int64()).cast(pa.timestamp("us", "UTC")), "1970-01-01T00:00:00.000Z"),
        (pa.array([-(2**62), 253_402_300_800_000_000, 1999], pa.int64()).cast(pa.timestamp("us")),
         "1970-01-01T00:00:00.001"),
        (pa.array([-(2**40), 2**50, -1], pa.int64()).cast(pa.timestamp("s", "UTC")), "1969-12-31T23:59:59.000Z"),
        (pa.array([-(2**31), 2**31 - 1, 1], pa.int32()).cast(pa.date32()), "1970-01-02"),
        (pa.array([float("nan"), float("inf"), 1.5]), 1.5),
        (pa.array([None, None, Decimal("1.50")], pa.decimal128(38, 2)), 1.5),
    ],
)  # fmt: skip
def test_what_the_json_has_no_word_for_is_unknown(values: pa.Array, expected: object) -> None:
    bounds = pa.StructArray.from_arrays([values, pa.array([1, 2, 3])], names=["a", "b"])
    assert of_bounds(bounds) == [{"b": 1}, {"b": 2}, {"a": expected, "b": 3}]


def test_nanoseconds_are_cut_downwards_and_odd_types_cost_no_other_bound() -> None:
    times = pa.array([-1, 1_999_999], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    odd = [times, pa.array([b"\xff", b"a"]), pa.array([[1], []]), pa.array([dt.time(1), None]), pa.array(["x", "y"])]
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"\xffb")]
    )
    bounds = pa.StructArray.from_arrays(odd, names=["t", "y", "l", "c", "s"])
    assert of_bounds(bounds) == [
        {"t": "1969-12-31T23:59:59.999Z", "s": "x"}, {"t": "1970-01-01T00:00:00.001Z", "s": "y"}
    ]  # fmt: skip
    parsed = pa.StructArray.from_arrays([pa.array([1, 1]), broken], names=["numRecords", "s"])
    assert [text and orjson.loads(text) for text in format_stats(parsed).to_pylist()] == [
        None,
        {"numRecords": 1, "s": "b"},
    ]
    assert format_stats(pa.array(["no struct"])).to_pylist() == [None]


def test_shredded_bounds_without_value_are_read_and_a_damaged_one_is_unknown() -> None:
    text = encode_bounds({"$['a']": bytes([0x0D]) + b"abc"})
    parsed = parse_stats(pa.array([orjson.dumps({"minValues": {"v": text}}).decode()]), kind("v VARIANT"))
    metadata = parsed.field("minValues").field("v").field("metadata")[0].as_py()
    # The column's one field, typed; the object has no residual, so that a writer may leave `value` out.
    path = pa.StructArray.from_arrays([pa.array(["abc", "abc"])], names=["typed_value"])
    fields = pa.StructArray.from_arrays([path], fields=[pa.field("$['a']", path.type, nullable=False)])
    metadata = pa.array([metadata, b"\x09"], pa.binary())
    shredded = pa.StructArray.from_arrays([metadata, fields], names=["metadata", "typed_value"])
    found = of_bounds(pa.StructArray.from_arrays([shredded, pa.array([1, 2])], names=["v", "b"]))
    assert found == [{"v": text, "b": 1}, {"b": 2}]
    # Metadata or value that is not there, in a group that is.
    parts = [pa.array([metadata[0].as_py(), None], pa.binary()), pa.array([None, b"\0"], pa.binary())]
    broken = pa.StructArray.from_arrays(parts, names=["metadata", "value"])
    assert of_bounds(pa.StructArray.from_arrays([broken, pa.array([1, 2])], names=["v", "b"])) == [{"b": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.timestamp("s", "UTC"), -2, "1969-12-31T23:59:58.000Z"),
        (pa.timestamp("ms"), -1_001, "1969-12-31T23:59:58.999"),
        (pa.timestamp("us", "UTC"), -1_000_001, "1969-12-31T23:59:58.999Z"),
        (pa.timestamp("ns", "UTC"), -1_000_000_001, "1969-12-31T23:59:58.999Z"),
        (pa.date32(), -1, "1969-12-31"),
        (pa.date64(), -86_400_000, "1969-12-31"),
    ],
    ids=str,
)
def test_times_of_any_unit_are_spelled_and_rounded_down(kind: pa.DataType, value: int, text: str) -> None:
    values = pa.array([value, None], pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
    found = format_stats(pa.StructArray.from_arrays([values], names=["t"]))
    assert [orjson.loads(row) for row in found.to_pylist()] == [{"t": text}, {}]
