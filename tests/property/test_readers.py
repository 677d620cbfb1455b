"""What is pushed into a scan changes nothing: filters of pyarrow and polars give the rows that they give by themselves.

The table has what the libraries treat differently: NaN, two zeros, nulls, collated strings, times and integers at their
limits. A share of the filters must be pushed, and must skip files.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mica
from mica.readers import arrow_filters, polars_filters
from mica.readers.terms import Terms

pl = pytest.importorskip("polars")

DDL = (
    "id BIGINT, i INT, f FLOAT, x DOUBLE, n DECIMAL(10,2), s STRING, c STRING COLLATE UTF8_LCASE, d DATE, t TIMESTAMP, "
    "z TIMESTAMP_NTZ, b BOOLEAN, bin BINARY, st STRUCT<k: INT>, v VARIANT, p INT"
)
UTC = dt.UTC
VALUES: dict[str, list[Any]] = {
    "id": [0, 1, -5, 2**53 + 1, 2**63 - 1, None],
    "i": [0, 1, 2, -(2**31), None, 7],
    "f": [0.5, -0.0, math.nan, None, 0.10000000149011612, math.inf],
    "x": [0.5, 0.0, math.nan, None, 0.1, -math.inf],
    "n": [Decimal("1.50"), Decimal(0), None, Decimal("-2.25"), Decimal("99999999.99"), Decimal(1)],
    "s": ["a", "A", "", None, "é", "ab"],
    "c": ["a", "A", "b", None, "B", "ab"],
    "d": [
        dt.date(2020, 1, 1),
        dt.date(1969, 12, 31),
        None,
        dt.date(2020, 1, 2),
        dt.date(9999, 12, 31),
        dt.date(1, 1, 1),
    ],
    "t": [dt.datetime(2020, 1, 1, tzinfo=UTC), None, dt.datetime(2020, 1, 1, 0, 0, 0, 1, UTC)] * 2,
    "z": [dt.datetime.fromisoformat("2020-01-01"), None, dt.datetime.fromisoformat("2020-01-01T00:00:00.000001")] * 2,
    "b": [True, False, None] * 2,
    "bin": [b"a", b"", None, b"\xff", b"ab", b"a"],
    "st": [{"k": 1}, {"k": None}, None, {"k": 5}, {"k": 7}, {"k": 1}],
    "v": ['{"a": 1}', '{"a": 2.5}', '{"a": null}', None, "[1]", '{"a": 9}'],
}
ARROW = {
    "id": pa.int64(), "i": pa.int32(), "f": pa.float32(), "x": pa.float64(), "n": pa.decimal128(10, 2),
    "s": pa.string(),
    "c": pa.string(), "d": pa.date32(), "t": pa.timestamp("us", "UTC"), "z": pa.timestamp("us"), "b": pa.bool_(),
    "bin": pa.binary(), "st": pa.struct([("k", pa.int32())]), "v": pa.string(), "p": pa.int32(),
}  # fmt: skip
COLUMNS = {name: name for name in ARROW if name != "v"} | {"a": "try_variant_get(v, '$.a', 'bigint')"}
NAMES = ["id", "i", "f", "x", "n", "s", "c", "d", "t", "z", "b", "bin", "st.k", "p", "a"]
CONSTANTS: dict[str, list[Any]] = {name: [v for v in VALUES[name] if v is not None] for name in VALUES if name != "v"}
CONSTANTS |= {"st.k": [1, 5, 6], "p": [0, 1], "a": [1, 2, 9]}
SPELLED = {"st.k": pa.int32(), "a": pa.int64()} | ARROW


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = mica.Table.create(tmp_path_factory.mktemp("readers") / "table", DDL, partition_by=["p"])
    for number in range(3):
        # Each file has its own two rows, so that bounds differ.
        rows = {name: pa.array(values[2 * number : 2 * number + 2], ARROW[name]) for name, values in VALUES.items()}
        table.append(pa.table({**rows, "p": pa.array([number % 2] * 2, pa.int32())}))
    return Path(table.path)


@pytest.fixture(scope="module")
def reader(path: Path) -> mica.Dataset:
    return mica.dataset(path, columns=COLUMNS)


@pytest.fixture(scope="module")
def rows(reader: mica.Dataset) -> pa.Table:
    return reader.scan.to_arrow()


Leaf = tuple[str, str, Any]
LEAVES = st.sampled_from(NAMES).flatmap(
    lambda name: st.tuples(
        st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "null", "valid", "prefix", "true", "between"]),
        st.just(name),
        st.lists(st.sampled_from(CONSTANTS[name]), min_size=2, max_size=3),
    )
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.tuples(st.sampled_from("&|"), inner, inner), st.tuples(st.just("~"), inner)),
    max_leaves=6,
)


def field(library: Any, name: str) -> Any:
    if library is pl:
        return pl.col("st").struct.field("k") if name == "st.k" else pl.col(name)
    return pc.field("st", "k") if name == "st.k" else pc.field(name)


def built(library: Any, tree: Any) -> Any:
    match tree:
        case "&", left, right:
            return built(library, left) & built(library, right)
        case "|", left, right:
            return built(library, left) | built(library, right)
        case "~", inner:
            return ~built(library, inner)
    op, name, values = tree
    own = field(library, name)
    value = values[0] if library is pl else pa.scalar(values[0], SPELLED[name])
    match op:
        case "in" if library is pl:
            return own.is_in(values)
        case "in":
            return own.isin(pa.array(values, SPELLED[name]))
        case "null":
            return own.is_null()
        case "valid":
            return own.is_not_null() if library is pl else own.is_valid()
        case "prefix" if name in ("s", "c"):
            return own.str.starts_with(values[0]) if library is pl else pc.starts_with(own, values[0])
        case "true" if name == "b":
            return own
        case "between" if library is pl:
            return own.is_between(values[0], values[1], closed=["both", "left", "right", "none"][len(repr(values)) % 4])
    return {
        "==": own.__eq__, "!=": own.__ne__, "<": own.__lt__, "<=": own.__le__, ">": own.__gt__, ">=": own.__ge__,
    }.get(op, own.__le__)(value)  # fmt: skip


@given(TREES)
def test_filters_of_pyarrow(reader: mica.Dataset, rows: pa.Table, tree: Any) -> None:
    expression = built(pc, tree)
    try:
        expected = ds.dataset(rows).to_table(columns=["id", "s"], filter=expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refused:
        with pytest.raises(type(refused)):
            reader.to_table(columns=["id", "s"], filter=expression)
        return
    assert reader.to_table(columns=["id", "s"], filter=expression).to_pylist() == expected.to_pylist()
    assert reader.count_rows(expression) == expected.num_rows


@given(TREES, st.one_of(st.none(), st.integers(0, 4)))
def test_filters_of_polars(path: Path, rows: pa.Table, tree: Any, count: int | None) -> None:
    lazy, eager = mica.scan_polars(path, columns=COLUMNS), pl.from_arrow(rows).lazy()
    expression = built(pl, tree)
    if count is not None:
        lazy, eager = lazy.head(count), eager.head(count)
    try:
        expected = eager.filter(expression).select("id", "s").collect()
    except pl.exceptions.PolarsError as refused:
        with pytest.raises(type(refused)):
            lazy.filter(expression).select("id", "s").collect()
        return
    assert lazy.filter(expression).select("id", "s").collect().equals(expected)


@pytest.mark.parametrize("tree", [
    ("==", "id", [1]), ("in", "s", ["a", "A"]), ("&", ("<", "d", [dt.date(2020, 1, 2)]), ("~", (">", "f", [0.5]))),
    ("~", ("|", ("==", "s", ["a"]), ("==", "x", [0.5]))), ("==", "st.k", [5]), ("prefix", "s", ["a"]), ("==", "a", [9]),
    ("~", ("in", "i", [1, 2])), (">=", "n", [Decimal("99999999.99")]), ("true", "b", [True]), ("==", "p", [1]),
    ("==", "bin", [b"a"]), (">", "t", [VALUES["t"][0]]), ("<=", "z", [VALUES["z"][0]]), ("<", "f", [0.5]),
])  # fmt: skip
def test_what_is_certain_is_pushed(reader: mica.Dataset, tree: Any) -> None:
    terms = Terms(reader.scan)
    assert arrow_filters.pushed(built(pc, tree), terms)
    seen: list[Any] = []
    bare = pl.io.plugins.register_io_source(
        lambda columns, predicate, *_: seen.append(predicate) or iter([]),
        schema=pl.from_arrow(reader.schema.empty_table()).schema,
    )
    bare.filter(built(pl, tree)).collect()
    assert polars_filters.pushed(seen[0], terms)


@pytest.mark.parametrize("tree", [
    ("==", "c", ["a"]), ("~", (">", "x", [0.5])), ("==", "x", [math.nan]), ("|", ("==", "id", [1]), ("==", "c", ["a"])),
    ("~", ("&", ("==", "id", [1]), ("<", "f", [0.5]))),
])  # fmt: skip
def test_what_is_not_certain_is_not_pushed(reader: mica.Dataset, tree: Any) -> None:
    assert arrow_filters.pushed(built(pc, tree), Terms(reader.scan)) == []
    assert polars_filters.pushed(built(pl, tree), Terms(reader.scan)) == []
