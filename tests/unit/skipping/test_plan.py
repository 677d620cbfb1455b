"""Each rule of the table in evaluate.py, over statistics as writers write them."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from mica.expressions.bind import bind
from mica.schema.ddl import parse_ddl
from mica.skipping.plan import plan_files
from mica.skipping.reasons import dropped_files
from mica.stats.read import Share, shares_of
from mica.stats.variant import encode_bounds

SCHEMA = parse_ddl(
    "id bigint, s string, ts timestamp, x double, n decimal(20,2), st struct<k: int>, v variant, p int, q string, "
    "arr array<int>, d date"
)


def i64(value: int) -> bytes:
    return b"\x18" + struct.pack("<q", value)


def f64(value: float) -> bytes:
    return b"\x1c" + struct.pack("<d", value)


def dec(unscaled: int, scale: int) -> bytes:
    return bytes([0x24, scale]) + struct.pack("<q", unscaled)


def text(value: str) -> bytes:
    return bytes([len(value.encode()) << 2 | 1]) + value.encode()


class Snapshot:
    schema = SCHEMA

    def __init__(self, *documents: Any, partitions: list[dict[str, str | None]] | None = None) -> None:
        self.texts = pa.array([d if isinstance(d, str | None) else json.dumps(d) for d in documents], pa.string())
        rows = [list(p.items()) for p in partitions or [{}] * len(documents)]
        self.files = pa.table({
            "path": [f"f{i}" for i in range(len(rows))],
            "partition_values": pa.array(rows, pa.map_(pa.string(), pa.string())),
        })  # fmt: skip
        self.reads = 0

    def stats(self) -> pa.Array:
        self.reads += 1
        return self.texts

    def stats_shares(self) -> Iterator[Share]:
        yield from shares_of(self.stats())

    def tags(self) -> pa.Array:
        return pa.nulls(self.files.num_rows, pa.map_(pa.string(), pa.string()))


def stats(
    low: dict[str, Any], high: dict[str, Any], nulls: dict[str, Any] | None = None, rows: int = 10
) -> dict[str, Any]:
    return {"numRecords": rows, "minValues": low, "maxValues": high, "nullCount": nulls or {}}


def variant(low: dict[str, bytes], high: dict[str, bytes], nulls: int = 0) -> dict[str, Any]:
    return stats({"v": encode_bounds(low)}, {"v": encode_bounds(high)}, {"v": nulls})


def kept(where: str, *documents: Any, **options: Any) -> list[int]:
    partitions = options.pop("partitions", None)
    bound = bind(where, SCHEMA, partition_columns=["p", "q"], **options)
    return plan_files(bound, Snapshot(*documents, partitions=partitions)).kept.tolist()


A = "$['a']"
ONE = stats(
    {"id": 5, "s": "b", "x": 1.0, "d": "2020-01-01"}, {"id": 9, "s": "d", "x": 2.0, "d": "2020-01-02"},
    {"id": 0, "s": 3, "x": 0, "d": 0},
)  # fmt: skip


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        ("id = 4", False), ("id = 5", True), ("id < 5", False), ("id <= 5", True), ("id > 9", False), ("id >= 9", True),
        ("4 > id", False), ("id <> 5", True), ("id in (1, 4, 10)", False), ("id in (1, 7)", True),
        ("id in (NULL)", False),
        ("id in (1,2,3,4,10,11,12,13,14,15)", False), ("id in (1,2,3,4,9,11,12,13,14,15)", True),
        ("id not in (5, NULL)", False), ("id between 10 and 12", False), ("not id >= 5", False), ("id is null", False),
        ("id is not null", True), ("id <=> 4", False), ("id <=> null", False), ("s <=> null", True),
        ("s is null", True),
        ("s = 'a'", False), ("s >= 'd'", True), ("s > 'd\U0010ffff'", False), ("id = 4.5", False),
        ("id = 5.5", True), ("id < 4.5", False),
        ("id = 4 or s = 'c'", True), ("id = 4 or s = 'e'", False), ("id = 4 and s = 'c'", False), ("id < s", True),
        ("null", False), ("false", False), ("true", True), ("not (id = 4 or id = 5)", True), ("id = 4e0", False),
        ("(id = 4) is null", False), ("(id = 4) = true", False), ("x > 2", True), ("x >= 3e0", True),
        ("x < 1e0", False), ("x = 3e0", False), ("x <> 1e0", True), ("x = cast('nan' as double)", True),
        ("arr is null", True),
        ("s like 'b%'", True), ("s like 'a%'", False), ("s like 'd%'", True), ("s like 'da%'", False),
        ("s like 'e%'", False), ("s like '%'", True), ("s like '%z'", True), ("s like 'a_%z'", False),
        ("s like 'a'", False), ("s like 'c'", True), ("s not like 'b%'", True), ("startswith(s, 'ca')", True),
        ("startswith(s, '')", True), ("not startswith(s, '')", False), ("startswith(s, 'e')", False),
        ("s like null", False), ("endswith(s, 'a')", True), ("id + 1 = 2", False), ("s like 'ba%'", True),
        ("x in (3e0, cast('nan' as double))", True), ("id = x", False), ("id > x", True), ("id < 3e0", False),
        ("id not in (5)", True), ("id not in (5, 9)", True), ("x in (3e0, 4e0)", False), ("x not in (1e0, 2e0)", True),
        ("cast(id as int) = 4", False), ("cast(id as int) = 5", True), ("cast(id as double) > 9e0", False),
        ("cast(x as float) < 1e0", False), ("cast(x as float) = 2e0", True), ("cast(s as int) = 7", True),
        ("d = date'2020-01-03'", False), ("cast(d as timestamp) < timestamp'2020-01-01'", False),
        ("cast(d as timestamp) <= timestamp'2020-01-01'", True), ("cast(d as string) = 'x'", False),
    ],
)  # fmt: skip
def test_plain_columns(where: str, keeps: bool) -> None:
    assert kept(where, ONE) == [0] * keeps


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        ("id + 1 > 10", False), ("id + 1 = 10", True), ("1 - id > -4", False), ("-(id) < -9", False),
        ("id * 0 = 1", True),
        ("id * -2 < -18", False), ("id / 2 > 4.5", False), ("id div 4 > 2", False), ("id div 4 = 2", True),
        ("id % 2 = 7", True), ("id + id > 18", False), ("id - id > 4", False), ("id - id = 4", True),
        ("id + 9223372036854775800 < 0", True), ("id + 9223372036854775790 < 0", False), ("x + 1e0 < 2e0", False),
        ("x * -1e0 < -2e0", False), ("x - x > 9e0", True), ("cast(id as double) * 1e308 > 1e0", True),
        ("cast(id as double) * 1e307 < 1e0", False), ("month(d) = 2", False), ("day(d) = 3", False),
        ("day(d) = 2", True),
        ("dayofyear(d) > 2", False), ("quarter(d) = 2", False), ("weekday(d) = 6", True), ("hour(d) = 0", True),
        ("year(d) * 10000 + month(d) * 100 + day(d) = 20200103", False),
        ("d + interval 1 month < date'2020-02-01'", False),
        ("d - interval 2 days > date'2019-12-31'", False), ("add_months(d, 1) = date'2020-02-03'", False),
        ("cast(d as string) like '2020-01-0%'", True), ("cast(d as string) like '2021%'", False),
        ("cast(id as timestamp) > timestamp'1970-01-01 00:00:09Z'", False), ("from_unixtime(id) > '1971'", False),
        ("cast(id / 1000 as bigint) > 0", False), ("cast(x as bigint) = 7", True), ("floor(id / 2) > 4", False),
        ("case when id > 9 then 1 else 2 end = 1", False), ("if(id > 4, 'a', 'b') = 'b'", False),
        ("coalesce(id > 9, false)", False), ("coalesce(id > 8, false)", True), ("nullif(id, 5) = 10", False),
        ("unix_timestamp(timestamp_micros(-id * 100000 - 600000)) = -1", True), ("id - unix_timestamp(d) > 0", False),
        ("cast(id * 1000000000000000 as timestamp) < timestamp'1970-01-01'", True),
    ],
)  # fmt: skip
def test_what_rises_or_falls_with_a_column(where: str, keeps: bool) -> None:
    assert kept(where, ONE) == [0] * keeps


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        ("date_trunc('day', ts) > timestamp'2020-01-02'", False), ("year(ts) = 2019", False), ("year(ts) = 2020", True),
        ("date_trunc('day', ts) >= timestamp'2020-01-02'", True), ("trunc(ts, 'year') < date'2020-01-01'", False),
        ("date_trunc('month', ts) = timestamp'2020-01-01'", True), ("unix_seconds(ts) < 1577836800", False),
        ("date_trunc('nope', ts) = timestamp'1970-01-01'", True), ("floor(n) > 9", False), ("ceil(n) >= 10", True),
        ("floor(n) = 1", True), ("s rlike '^e'", False), ("s rlike '^c.*x$'", True), ("s rlike 'e'", True),
        ("not s rlike '^b'", True), ("floor(x) > 9", True), ("date_trunc('day', ts) is null", True),
        ("round(n) > 100", False), ("to_date(ts) = date'2020-01-03'", False), ("to_date(ts) = date'2020-01-02'", True),
        ("left(s, 1) = 'e'", False), ("left(s, 1) = 'c'", True), ("substring(s, 1, 2) < 'b'", False),
        ("substring(s, 0, 1) = 'a'", False), ("substring(s, 2, 1) = 'x'", True), ("right(s, 1) = 'a'", True),
        ("date_add(ts, 3) < date'2020-01-04'", False), ("date_sub(ts, 1) = date'2020-01-01'", True),
        ("datediff(ts, date'2020-01-01') > 1", False), ("datediff(ts, date'2020-01-01') = 1", True),
        ("datediff(date'2020-01-05', ts) > 4", False), ("datediff(date'2020-01-05', ts) >= 4", True),
        ("datediff(date'2020-01-05', ts) < 3", False), ("date_add(ts, 2147465385) < date'0001-01-01'", True),
        ("timestamp_seconds(n) > timestamp'1970-01-01 00:00:10Z'", False), ("timestamp_seconds(x) < ts", True),
        ("timestamp_seconds(n) < timestamp'1970-01-01 00:00:02Z'", True), ("coalesce(n, 20) > 9.5", False),
        ("coalesce(n, 20) >= 9.5", True), ("last_day(date_add(ts, 2147465374)) < date'0001-01-01'", True),
        ("last_day(ts) < date'2020-01-31'", False), ("last_day(date_from_unix_date(st.k)) = date'1970-01-31'", True),
    ],
)  # fmt: skip
def test_functions_that_keep_the_order(where: str, keeps: bool) -> None:
    low, high = {"ts": "2020-01-01T00:00:00.000Z", "n": 1.5}, {"ts": "2020-01-02T03:00:00.000Z", "n": 9.5}
    zeros = {"ts": 0, "n": 0, "s": 0, "x": 0}
    all_days = [{"st": {"k": day}} for day in (-(2**31), 2**31 - 1)]
    file = stats({**low, "s": "b", "x": 1.0, **all_days[0]}, {**high, "s": "d", "x": 2.0, **all_days[1]}, zeros)
    assert kept(where, file) == [0] * keeps
    for zone in ("Europe/Berlin", "+01:00"):  # where these are the same days
        assert kept(where, file, timezone=zone) == [0] * keeps, zone


@pytest.mark.parametrize(
    ("where", "keeps"),
    [("> timestamp'2020-01-05 00:00:00Z'", False), ("= timestamp'2020-01-04 00:00:00Z'", True), ("is null", False)],
)
def test_the_first_time_of_several(where: str, keeps: bool) -> None:
    file = stats({"ts": "2020-01-01T00:00:00.000Z"}, {"ts": "2020-01-02T00:00:00.000Z"}, {"ts": 1})
    assert kept(f"coalesce(ts, timestamp'2020-01-04 00:00:00Z') {where}", file) == [0] * keeps


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        ("coalesce(n, 0) > 9.5", False), ("coalesce(n, 0) = 0", True), ("coalesce(n, 0) = -1", False),
        ("coalesce(n, 20) > 10", True), ("coalesce(n, id, 30) = 25", True), ("coalesce(n, 20) is null", False),
        ("coalesce(s, 'x') = 'x'", True), ("coalesce(s, 'x') < 'x'", False), ("coalesce(id, n) = 25", True),
    ],
)  # fmt: skip
def test_the_first_that_is_not_null(where: str, keeps: bool) -> None:
    file = stats({"n": 1.5}, {"n": 9.5}, {"n": 3, "s": 10})
    assert kept(where, file) == [0] * keeps


def test_prefixes_of_cut_bounds_and_of_characters_beyond_ascii() -> None:
    cut = stats({"s": "ab"}, {"s": "ab\U0010ffff"}, {"s": 0})
    assert kept("s like 'abc%'", cut) == [0]
    assert kept("s like 'ac%'", cut) == []
    assert kept("s not like 'ab%'", cut) == []
    assert kept("s not like 'ab%c'", cut) == [0]
    assert kept("s not like 'ab'", cut) == [0]
    wide = stats({"s": "\uffff"}, {"s": "\U0001f600b"}, {"s": 0})  # UTF-16 would have them the other way round
    assert kept("s like '\U0001f600%'", wide) == [0]
    assert kept("s like '\U0001f600c%'", wide) == []
    path = variant({A: text("post")}, {A: text("repost")})
    assert kept("v:a::string like 'q%'", path) == [0]
    assert kept("v:a like 's%'", path) == []
    assert kept("startswith(v:a, 'a')", path) == []
    assert kept("v:a::int like 'a%'", path) == [0]


def test_a_single_value() -> None:
    one = stats({"id": 5, "x": 5.0}, {"id": 5, "x": 5.0}, {"id": 0, "x": 0})
    assert kept("id <> 5", one) == []
    assert kept("id is distinct from 5", one) == []
    assert kept("id not in (4, 5)", one) == []
    assert kept("id not in (4, 6)", one) == [0]
    assert kept("cast(id as tinyint) <> 5", one, ansi=False) == [0]  # integers wrap around without ANSI
    assert kept("x <> 5e0", one) == [0]  # a NaN may be there: bounds leave it out


def test_all_null_columns_and_empty_files() -> None:
    nothing = stats({}, {}, {"id": 10, "v": 10})
    for where in ("id = 1", "id <> 1", "id is not null", "v:a::int = 1", "v:a::int is not null", "id in (1)"):
        assert kept(where, nothing) == []
    for where in ("id is null", "id <=> null", "v is null", "v:a::int is null", "id is distinct from 1"):
        assert kept(where, nothing) == [0]
    assert kept("id = 1", stats({}, {}, {"id": 0}, rows=0)) == []


def test_what_is_not_known_keeps_the_file() -> None:
    lies = [
        None, "", "[]", "nonsense", '{"numRecords": -1}', '{"minValues": {"id": "7"}, "maxValues": {"id": true}}',
        stats({"id": 9}, {"id": 7}), stats({"id": 1.5}, {"id": 2.5}), stats({"id": 10**30}, {"id": 10**30}),
        stats({"v": "no z85"}, {"v": "1"}), stats({}, {}, {"id": 11, "v": 99}), {"minValues": [1], "nullCount": 3},
    ]  # fmt: skip
    assert kept("id = 1000 and v:a::int = 5", *lies) == list(range(len(lies)))


def test_timestamps_are_cut_to_milliseconds() -> None:
    one = stats({"ts": "2020-01-01T00:00:00.000Z"}, {"ts": "2020-01-01T01:00:00.000+01:00"})
    assert kept("ts > '2020-01-01 00:00:00.000999'", one) == [0]
    assert kept("ts > '2020-01-01 00:00:00.001'", one) == []
    assert kept("ts < '2020-01-01 01:00:00'", one, timezone="Europe/Berlin") == []
    assert kept("ts < '2020'", stats({"ts": "2020-01-01T00:00:00.000"}, {})) == [0]  # whose wall clock?


def test_decimals_keep_their_digits() -> None:
    one = '{"numRecords":1,"minValues":{"n":123456789012345678.91},"maxValues":{"n":123456789012345678.91}}'
    assert kept("n = 123456789012345678.91", one) == [0]
    assert kept("n = 123456789012345678.90", one) == []


def test_nested_fields() -> None:
    one = stats({"st": {"k": 1}}, {"st": {"k": 3}}, {"st": {"k": 0}})
    assert kept("st.k = 5", one) == []
    assert kept("st.k is null", one) == [0]  # not every writer counts the nulls of a null struct
    assert kept("st is null", one) == [0]


@pytest.mark.parametrize(
    ("where", "keeps"),
    [
        ("v:a::bigint = 4", False), ("v:a::bigint = 5", True), ("v:a::int > 9", False), ("v:a::double > 9", False),
        ("v:a::decimal(10,1) < 5", False), ("v:a::float <= 5", True),
        ("try_variant_get(v, '$.a', 'bigint') = 4", False),
        # Another class may cast into the range.
        ("v:a::string = '4'", True), ("v:a::boolean", True), ("v:a::timestamp = '2020'", True),
        # A row without the path is null.
        ("v:a::bigint is null", True), ("v:a::bigint <=> null", True), ("v:a::bigint is distinct from 7", True),
        ("v:a::bigint <=> 4", False), ("v:a is null", True), ("v:b::bigint = 4", True), ("v is null", False),
        ("v is not null", True), ("v:a[0]::bigint = 4", True), ("not v:a::bigint >= 5", False),
    ],
)  # fmt: skip
def test_paths(where: str, keeps: bool) -> None:
    assert kept(where, variant({A: i64(5)}, {A: i64(9)})) == [0] * keeps


def test_classes_of_bounds() -> None:
    strings = variant({A: text("5")}, {A: text("6")})
    assert kept("v:a::bigint = 100", strings) == [0]  # '100' may be between '5' and '6'
    assert kept("v:a::string = '7'", strings) == []
    doubles = variant({A: f64(1.0)}, {A: f64(2.0)})
    assert kept("v:a::double < 1", doubles) == []
    assert kept("v:a::double > 2", doubles) == [0]  # NaN
    assert kept("v:a::bigint < 1", doubles) == [0]
    decimals = variant({A: dec(150, 2)}, {A: dec(250, 2)})
    assert kept("v:a::bigint = 2", decimals) == [0]
    assert kept("v:a::bigint = 1", decimals) == [0]  # 1.5 is cut to 1
    assert kept("v:a::bigint = 3", decimals) == []
    assert kept("v:a::decimal(2,0) = 3", decimals) == [0]  # 2.5 is rounded to 3
    mixed = variant({A: i64(5)}, {A: text("6")})
    assert kept("v:a::bigint = 1", mixed) == [0]


def day(value: int) -> bytes:
    return b"\x2c" + struct.pack("<i", value)


@pytest.mark.parametrize(
    ("low", "high", "where", "keeps"),
    [
        (dec(150, 2), dec(250, 2), "v:a::double > 2.6e0", False), (dec(150, 2), dec(250, 2), "v:a::float < 1.4", False),
        (dec(150, 2), dec(250, 2), "v:a::double = 1.5e0", True), (dec(150, 2), i64(3), "v:a::bigint < 1", False),
        (dec(150, 2), i64(3), "v:a::bigint = 1", True), (i64(1), i64(3), "v:a::double > 3e0", False),
        (i64(1), i64(3), "v:a::decimal(5,1) = 3.5", False), (i64(1), i64(3), "v:a::decimal(5,1) = 3", True),
        (i64(100000), i64(100000), "try_variant_get(v, '$.a', 'decimal(5,1)') = 3", True),
        (f64(1.0), f64(2.0), "v:a::float < 0.5", False), (f64(1.0), f64(2.0), "v:a::float = 1.5", True),
        (f64(1.0), f64(2.0), "v:a::decimal(5,1) = 9", True), (f64(1e300), f64(1e300), "v:a::float < 5", True),
        (f64(1.0), f64(float("inf")), "v:a::double = 1e308", True), (f64(1.0), f64(2.0), "v:a::double <> 5e0", True),
        (i64(127), i64(127), "v:a::tinyint < 127", False), (i64(-128), i64(-128), "v:a::tinyint > -128", False),
        (i64(128), i64(128), "try_variant_get(v, '$.a', 'tinyint') < 127", True),
        (i64(-129), i64(-129), "try_variant_get(v, '$.a', 'tinyint') > -128", True),
        (i64(5), i64(300), "try_variant_get(v, '$.a', 'tinyint') = 100", True),
        (i64(32767), i64(32767), "v:a::smallint < 32767", False),
        (day(18262), day(18263), "v:a::date > date'2020-01-02'", False),
        (day(18262), day(18263), "v:a::date = date'2020-01-02'", True),
        (day(18262), day(18263), "v:a::bigint = 5", True),
        (day(18262), day(18263), "v:a::timestamp > timestamp'2030-01-01'", True),
        (text("a"), text("b"), "v:a::date = date'2020-01-02'", True),
    ],
)  # fmt: skip
def test_classes_serve_the_types_that_their_values_cast_to(low: bytes, high: bytes, where: str, keeps: bool) -> None:
    assert kept(where, variant({A: low}, {A: high})) == [0] * keeps


def test_a_path_in_one_of_the_two_only() -> None:
    assert kept("v:a::int < 5", variant({A: i64(5)}, {})) == []
    assert kept("v:a::int > 5", variant({A: i64(5)}, {})) == [0]
    assert kept("v:a::int > 5", variant({}, {A: i64(5)})) == []
    assert kept("v:a::int > 5", variant({}, {})) == [0]


def test_partitions() -> None:
    parts = [{"p": "1", "q": "a b%"}, {"p": "2", "q": ""}, {"p": None, "q": None}]
    assert kept("p = 1", None, None, None, partitions=parts) == [0]
    assert kept("p <> 1", None, None, None, partitions=parts) == [1]
    assert kept("p is null or q = 'a b%'", None, None, None, partitions=parts) == [0, 2]
    assert kept("q is null", None, None, None, partitions=parts) == [1, 2]
    assert kept("p in (2, 3) and id = 4", ONE, ONE, None, partitions=parts) == []
    assert kept(
        f"p in ({', '.join(map(str, range(2, 12)))}, cast('nan' as double))", *[None] * 3, partitions=parts
    ) == [1]


def test_statistics_are_read_once_if_partition_values_leave_files() -> None:
    snapshot = Snapshot(ONE, ONE, partitions=[{"p": "1"}, {"p": "2"}])
    cache: dict[Any, Any] = {}

    def read(where: str) -> tuple[list[int], int]:
        found = plan_files(bind(where, SCHEMA, partition_columns=["p"]), snapshot, cache=cache)
        return found.kept.tolist(), snapshot.reads

    assert read("p = 3 and id = 5") == ([], 0)
    assert read("p = 2 and id = 5") == ([1], 1)
    assert read("id = 5") == ([0, 1], 1)
    assert read("id = 4 and p = 2") == ([], 1)
    assert read("x = 1.5") == ([0, 1], 2)


def test_explain() -> None:
    snapshot = Snapshot(ONE, variant({A: i64(5)}, {A: i64(9)}), partitions=[{"p": "1"}, {"p": "2"}])
    plan = plan_files(bind("p > 0 and id = 4 and v:a::bigint >= 10", SCHEMA, partition_columns=["p"]), snapshot)
    path_of = snapshot.files["path"].to_pylist().__getitem__
    assert dropped_files(plan, path_of) == [
        {"path": "f0", "bounds": {"id": {"min": 5, "max": 9, "no_nulls": True}},
         "reason": "no row can satisfy id = 4: id is between 5 and 9"},
        {"path": "f1", "bounds": {"v:a::bigint": {"min": 5, "max": 9}},
         "reason": "no row can satisfy v:a::bigint >= 10: v:a::bigint is between 5 and 9"},
    ]  # fmt: skip
    json.dumps(dropped_files(plan, path_of))
    assert dropped_files(plan_files(None, snapshot), path_of) == []
