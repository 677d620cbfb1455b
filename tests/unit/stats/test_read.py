"""Statistics of many files by leaf: in the order of the files, and unknown where they are wrong."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from mica.schema.ddl import parse_type
from mica.stats.read import Wanted, read_shares, read_stats
from mica.stats.variant import encode_bounds
from mica.variant.encode import encode
from mica.variant.path import VariantPath

WANTED = [Wanted(("i",), parse_type("int")), Wanted(("v",), parse_type("int"), VariantPath(("a",)))]


def _text(number: int) -> str:
    bounds = {"i": number, "v": encode_bounds({"$['a']": encode(number)[1]})}
    return orjson.dumps(
        {"numRecords": 9, "minValues": bounds, "maxValues": bounds, "nullCount": {"i": number}}
    ).decode()


def test_shares_are_put_together_in_the_order_of_the_files() -> None:
    every = [np.array(some) for some in ([4, 0], [], [1, 5], [2, 3])]
    shares = [(rows, lambda rows=rows: [pa.array([_text(int(n)) for n in rows], pa.string())]) for rows in every]
    plain, path = read_shares(shares, WANTED)
    assert plain.min.to_pylist() == plain.max.to_pylist() == plain.null_count.to_pylist() == [*range(6)]
    assert path.min.ints.tolist() == path.max.ints.tolist() == [*range(6)]
    assert [leaf.num_rows.to_pylist() for leaf in read_shares([], WANTED)] == [[], []]


def _one(type_: str, **document: Any) -> tuple[list[Any], list[Any], list[Any]]:
    [found] = read_stats(pa.array([orjson.dumps(document).decode()]), [Wanted(("c",), parse_type(type_))])
    return found.min.to_pylist(), found.max.to_pylist(), found.null_count.to_pylist()


def test_what_cannot_be_is_unknown() -> None:
    for low, high, nulls, expected in [
        (1, 2, 3, (1, 2, 3)), (2, 2, 5, (2, 2, 5)), (3, 2, 0, (None, None, 0)), (1, 2, 6, (1, 2, None)),
        (1, 2, -1, (1, 2, None)), ("x", 2, 0, (None, 2, 0)),
    ]:  # fmt: skip
        found = _one("int", numRecords=5, minValues={"c": low}, maxValues={"c": high}, nullCount={"c": nulls})
        assert found == tuple([value] for value in expected)


def test_a_maximum_in_milliseconds_holds_for_the_microseconds_that_were_cut() -> None:
    text = "2020-01-01T00:00:00.123Z"
    low, high, _ = _one("timestamp", numRecords=5, minValues={"c": text}, maxValues={"c": text}, nullCount={})
    moment = dt.datetime(2020, 1, 1, 0, 0, 0, 123_000, dt.UTC)
    assert (low, high) == ([moment], [moment + dt.timedelta(milliseconds=1)])
