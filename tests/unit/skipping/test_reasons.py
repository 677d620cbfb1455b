"""Why a file is skipped, in words and as values, for each type that has bounds."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

import mica

MOMENT = dt.datetime(2020, 1, 1, 1, 2, 3, 4, dt.UTC)
ROW = {"d": dt.date(2020, 1, 1), "t": MOMENT, "n": MOMENT.replace(tzinfo=None), "m": Decimal("1.25"), "s": "x1", "i": 1}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    columns = "d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, m DECIMAL(10,2), s STRING, i INT, e STRING, v VARIANT"
    table = mica.Table.create(tmp_path_factory.mktemp("t"), columns)
    table.append([{**ROW, "v": ROW}, {**ROW, "i": 3, "v": {**ROW, "i": 3}}])
    return table


@pytest.mark.parametrize(
    ("where", "facts", "bounds"),
    [
        ("d > DATE'2021-01-01'", "d is 2020-01-01", ["2020-01-01"] * 2),
        (
            "t > TIMESTAMP'2021-01-01'", "t is between 2020-01-01T01:02:03Z and 2020-01-01T01:02:03.001Z",
            ["2020-01-01T01:02:03Z", "2020-01-01T01:02:03.001Z"],
        ),
        (
            "n > TIMESTAMP_NTZ'2021-01-01 00:00:00'", "n is between 2020-01-01T01:02:03 and 2020-01-01T01:02:03.001",
            ["2020-01-01T01:02:03", "2020-01-01T01:02:03.001"],
        ),
        ("m > 6", "m is 1.25", ["1.25"] * 2),
        ("s > 'x7'", "s is 'x1'", ["x1"] * 2),
        ("i > 7", "i is between 1 and 3", [1, 3]),
        ("i IS NULL", "i is between 1 and 3", [1, 3]),
        ("e = 'x'", "e is null in every row", [None, None]),
        ("v:d::date > DATE'2021-01-01'", "v:d::date is 2020-01-01", ["2020-01-01"] * 2),
        ("v:m::decimal(10,2) > 6", "v:m::decimal(10,2) is 1.25", ["1.25"] * 2),
        ("v:i::int > 7", "v:i::int is between 1 and 3", [1, 3]),
    ],
)  # fmt: skip
def test_the_reason_has_the_bounds(table: mica.Table, where: str, facts: str, bounds: list[object]) -> None:
    (dropped,) = table.scan(where).explain().to_dict()["files"]["dropped"]
    assert dropped["reason"].endswith(f": {facts}")
    (known,) = dropped["bounds"].values()
    assert [known.get("min"), known.get("max")] == bounds
