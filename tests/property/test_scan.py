"""A scan that skips gives the rows of one that reads everything: random tables, shredded or not, random predicates.

Every file is written by mica with the statistics that it writes; rows carry a number of their own.
"""

from __future__ import annotations

import json
import tempfile
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from mica.errors import UserError
from mica.expressions.bind import bind
from mica.expressions.evaluate import filter_rows
from mica.schema.arrow import variant_field
from mica.schema.ddl import parse_ddl
from mica.table import Table
from mica.variant import from_json, kernel
from tests.property.test_skipping import OPS

SCHEMA = "row BIGINT, id BIGINT, s STRING, x DOUBLE, v VARIANT, p STRING"
COLUMNS = pa.schema(
    [
        ("row", pa.int64()),
        ("id", pa.int64()),
        ("s", pa.string()),
        ("x", pa.float64()),
        variant_field("v"),
        ("p", pa.string()),
    ]
)
SCALARS: list[st.SearchStrategy[Any]] = [
    st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.decimals(-9, 9, places=2),
    st.floats(allow_nan=False, width=32),
    st.sampled_from(["5", " 5", "a", "abc" * 15, "\U0010ffff" * 40, "2020-01-01", ""]), st.booleans(), st.none(),
]  # fmt: skip
PATHS = ["a", "o.b", "o['c d']", "l[0]"]


@st.composite
def documents(draw: st.DrawFn) -> list[Any]:
    """The rows of one file: mostly one type a path, now and then another."""
    kinds = {path: draw(st.sampled_from(SCALARS)) for path in PATHS}

    def value(path: str) -> Any:
        kind = kinds[path] if draw(st.integers(0, 15)) else draw(st.sampled_from(SCALARS))
        return draw(kind)

    rows: list[Any] = []
    for _ in range(draw(st.integers(1, 8))):
        row: dict[str, Any] = {}
        if draw(st.integers(0, 5)):
            row["a"] = value("a")
        if draw(st.integers(0, 5)):
            row["o"] = {"b": value("o.b"), "c d": value("o['c d']")} if draw(st.integers(0, 7)) else value("a")
        if draw(st.integers(0, 3)) == 0:
            row["l"] = [value("l[0]")]
        rows.append(draw(st.sampled_from([row, row, row, row, None, 7])))
    return rows


class Encoder(json.JSONEncoder):
    def default(self, o: Any) -> Any:
        return float(o) if isinstance(o, Decimal) else super().default(o)


def text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, cls=Encoder).replace("-Infinity", "0").replace("Infinity", "0")


PLAIN = st.sampled_from(["id", "s", "x", "p"]).flatmap(
    lambda c: {
        "id": st.integers(-3, 12).map(str), "s": st.sampled_from(["'a'", "'b'", "'5'"]),
        "p": st.sampled_from(["'x'", "'y z'"]),
        "x": st.sampled_from(["0.5", "1e0", "-0.0", "cast('nan' as double)"]),
    }[c].flatmap(lambda lit, c=c: OPS.map(lambda op: f"{c} {op} {lit}"))
)  # fmt: skip
LITERALS = {
    "bigint": ["0", "5", "-5", "3.5"], "double": ["0", "0.5", "5e0",
    "cast('nan' as double)"], "decimal(5,1)": ["1.5", "5"],
    "string": ["'5'", "'a'", "''", "'abcabc'"], "date": ["DATE'2020-01-01'"], "boolean": ["true"],
}  # fmt: skip
ON_PATHS = st.tuples(st.sampled_from(PATHS), st.sampled_from(sorted(LITERALS))).flatmap(
    lambda t: st.tuples(st.sampled_from(LITERALS[t[1]]), OPS).map(
        lambda u: f"try_cast(v:{t[0]} AS {t[1]}) {u[1]} {u[0]}"
    )
)
TESTS = st.one_of(
    PLAIN, ON_PATHS, ON_PATHS, st.sampled_from(["v IS NULL", "v:a IS NOT NULL", "v:o.b IS NULL", "p IS NULL"])
)
PREDICATES = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" AND ", " OR "]), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        inner.map(lambda t: f"NOT ({t})"),
    ),
    max_leaves=4,
)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore:.*does not allow shredding")
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(documents(), st.sampled_from([None, "x", "y z"])), min_size=1, max_size=4),
    st.lists(PREDICATES, min_size=1, max_size=4),
    st.sampled_from(["true", "false"]),
)
def test_skipping_loses_and_adds_no_row(
    found: list[tuple[list[Any], str | None]], predicates: list[str], shredded: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = Table.create(
            f"{folder}/t", SCHEMA, partition_by=["p"], properties={"delta.enableVariantShredding": shredded}
        )
        written = []
        for rows, p in found:
            batch = rows_of(rows, p, sum(b.num_rows for b in written))
            table.append(pa.Table.from_batches([batch]))
            written.append(batch)
        whole = pa.Table.from_batches(written).combine_chunks().to_batches()[0]
        note(f"{[[text(r) for r in rows] for rows, _ in found]}")
        for where in predicates:
            note(where)
            scan = table.scan(where=where, columns=["row"])
            assert sorted(scan.to_arrow()["row"].to_pylist()) == matching(whole, where)
            assert scan.count() == len(matching(whole, where))


def rows_of(rows: list[Any], p: str | None, first: int) -> pa.RecordBatch:
    count = len(rows)
    numbers = range(first, first + count)
    arrays = [
        pa.array(numbers, pa.int64()),
        pa.array([None if n % 5 == 4 else n for n in numbers], pa.int64()),
        pa.array([["a", "b", None, "5"][n % 4] for n in numbers], pa.string()),
        pa.array([[0.5, -0.0, float("nan"), None, 1.0][n % 5] for n in numbers], pa.float64()),
        from_json(pa.array([text(r) for r in rows], pa.string())),
        pa.array([p] * count, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


def matching(whole: pa.RecordBatch, where: str) -> list[int]:
    bound = bind(where, parse_ddl(SCHEMA))
    leaves = kernel.extract(whole, [leaf.request() for leaf in bound.leaves]).columns
    try:
        mask = filter_rows(bound, leaves, num_rows=whole.num_rows)
    except UserError as e:  # strict casts stand in no predicate here
        raise AssertionError(where) from e
    found: list[int] = whole.column("row").filter(mask).to_pylist()
    return found
