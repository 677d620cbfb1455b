"""No matching row lies outside the ranges that footers and page indexes leave, whatever the data and the predicate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, note, reject
from hypothesis import strategies as st

from mica.expressions.bind import bind
from mica.expressions.evaluate import RowError, filter_rows
from mica.expressions.plain_values import from_values
from mica.skipping.within_files import verdicts
from mica.variant.kernel import FileReader
from tests.property.test_skipping import PLAIN, PREDICATES, SCHEMA, files

COLUMNS = [name for name in PLAIN if name != "st.k"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("footers")


PLAIN_ONLY = PREDICATES.filter(lambda where: "variant_get" not in where)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(st.lists(files(), min_size=1, max_size=4), PLAIN_ONLY, st.integers(1, 4), st.booleans())
def test_no_matching_row_is_outside(
    folder: Path, found: list[dict[str, Any]], where: str, group: int, pages: bool
) -> None:
    bound = bind(where, SCHEMA, ansi=False, partition_columns=["p", "q"])
    columns: dict[str, list[Any]] = {name: [v for f in found for v in f["columns"][name]] for name in PLAIN}
    count = len(columns["id"])
    arrays = {name: from_values(columns[name], PLAIN[name]) for name in COLUMNS}
    k = from_values(columns["st.k"], PLAIN["st.k"])
    arrays["st"] = pa.StructArray.from_arrays([k], ["k"])
    path = str(folder / "rows.parquet")
    pq.write_table(
        pa.table(arrays), path, row_group_size=group, data_page_size=8, write_batch_size=1, write_page_index=True
    )
    numbered = list(enumerate(bound.leaves))
    constants = {i: pa.scalar(None, _arrow(leaf.column[0])) for i, leaf in numbered if leaf.partition}
    names = {i: str(i) for i, leaf in numbered if not leaf.partition and leaf.column != ("v",)}
    items = [replace(bound.leaves[i].request(), name=name) for i, name in names.items()]
    found = FileReader(path=path, name=path).bounds(items, pages=pages)
    ranges = verdicts(bound, found, names, constants).kept
    leaves = []
    for leaf in bound.leaves:
        if leaf.partition:
            leaves.append(pa.nulls(count, _arrow(leaf.column[0])))
        elif leaf.column == ("v",):
            leaves.append(pa.nulls(count, pa.struct([("metadata", pa.binary()), ("value", pa.binary())])))
        else:
            leaves.append(k if leaf.column[0] == "st" else arrays[leaf.column[0]])
    try:
        hits = filter_rows(bound, leaves, num_rows=count)
    except RowError:  # such as the first instant cut to its second: there is no answer
        reject()
    matches = [i for i, hit in enumerate(hits.to_pylist()) if hit]
    note(f"{where}: {columns}: {ranges}")
    assert all(any(start <= row < end for start, end in ranges) for row in matches)


def _arrow(partition: str) -> pa.DataType:
    return pa.int32() if partition == "p" else pa.string()
