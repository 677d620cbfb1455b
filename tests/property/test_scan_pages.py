"""One pass over tiny row groups and pages gives the rows of one that reads everything and judges afterwards: random
documents, shredded by another file's schema too, random predicates, limits and outputs that share columns with them.
"""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import mica
from mica.expressions.bind import bind
from mica.expressions.evaluate import filter_rows
from mica.schema.ddl import parse_ddl
from mica.variant import kernel, to_json
from mica.variant.shredding import Limits
from tests.property.test_scan import PREDICATES, SCHEMA, documents, rows_of, text

OUTPUTS: list[dict[str, str]] = [
    {"row": "row"},
    {"row": "row", "v": "v"},
    {"row": "row", "a": "try_cast(v:a AS bigint)", "b": "try_cast(v:o.b AS string)"},
    {"row": "row", "a": "v:a", "v": "v", "x": "x"},
    {"v": "v", "s": "s", "row": "row", "l": "try_cast(v:l[0] AS string)"},
]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(documents(), min_size=1, max_size=4),
    st.lists(st.tuples(PREDICATES, st.sampled_from(OUTPUTS)), min_size=1, max_size=4),
    st.integers(1, 5),
    st.integers(1, 3),
    st.one_of(st.none(), st.integers(0, 6)),
    st.booleans(),
)
def test_one_pass_gives_the_rows_that_match(
    found: list[list[Any]],
    asked: list[tuple[str, dict[str, str]]],
    group: int,
    page: int,
    limit: int | None,
    shredded: bool,
) -> None:
    rows = [row for part in found for row in part]
    whole = rows_of(rows, "x", 0)
    note(f"{[text(r) for r in rows]}")
    tree = kernel.infer(rows_of(found[0], "x", 0), ["v"], Limits()).tree
    stored = kernel.shred(whole, {("v",): tree}) if shredded else whole
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/f.parquet"
        blooms = [["v", "typed_value", "a", "typed_value"], ["id"], ["s"]]
        writer = kernel.FileWriter(
            stored.schema, path=path, row_group_rows=group, page_rows=page, bloom_filters=blooms, compression="none"
        )
        for at in range(len(rows)):
            writer.write(stored.slice(at, 1))
        writer.close()
        for where, columns in asked:
            note(f"{where} → {columns}")
            matches = whole.filter(mask(whole, where))
            wanted = answers(matches, columns)
            scan = mica.read_parquet(path, where=where, columns=columns, limit=limit)
            assert shown(scan.to_arrow()) == wanted[:limit]
            assert scan.count() == len(wanted[:limit])


def mask(whole: pa.RecordBatch, where: str) -> pa.BooleanArray:
    bound = bind(where, parse_ddl(SCHEMA))
    leaves = kernel.extract(whole, [leaf.request() for leaf in bound.leaves]).columns
    return filter_rows(bound, leaves, num_rows=whole.num_rows)


def answers(rows: pa.RecordBatch, columns: dict[str, str]) -> list[list[Any]]:
    from mica.expressions.bind import bind_columns
    from mica.expressions.evaluate import evaluate

    arrays = []
    for value in bind_columns(columns, parse_ddl(SCHEMA)).values():
        leaves = kernel.extract(rows, [leaf.request() for leaf in value.leaves]).columns
        arrays.append(evaluate(value, leaves, num_rows=rows.num_rows))
    return shown(pa.table(arrays, names=list(columns)))


def shown(table: pa.Table) -> list[list[Any]]:
    columns = []
    for column in table.columns:
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        if isinstance(array, pa.ExtensionArray) or pa.types.is_struct(array.type):
            columns.append(to_json(array).to_pylist())
        else:
            columns.append([repr(v) for v in array.to_pylist()])
    return [list(row) for row in zip(*columns, strict=True)]
