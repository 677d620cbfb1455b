"""Any choice of rows is read, whatever the codec and however the pages lie: dense ones as masks, few ones by page."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica import _native
from mica.variant import kernel

ROWS, GROUP = 12_000, 7_000


def table(rng: np.random.Generator) -> pa.Table:
    rows = range(ROWS)
    return pa.table(
        {
            "number": rng.integers(0, 50, ROWS),
            "text": [None if row % 7 == 0 else f"text-{row % 977}" for row in rows],
            "list": [[row, row + 1] if row % 3 else [] for row in rows],
            "real": rng.random(ROWS),
        }
    )


def document(row: int) -> Any:
    """What may be null above a leaf: the Variant, its object, a field, the object in a field."""
    if row % 11 == 0 or row % 13 == 0:
        return None if row % 11 == 0 else row
    inner = [{"b": f"text-{row % 977}"}, {}, {"b": None}, 5][row % 4]
    return ({} if row % 5 == 0 else {"a": f"odd {row}" if row % 17 == 0 else row}) | {"o": inner}


PATHS = {
    "v": kernel.Request(("v",), there=True, name="v"),
    "a": kernel.Request(("v",), ("a",), pa.int64(), "a"),
    "b": kernel.Request(("v",), ("o", "b"), pa.string(), "b"),
}


def answers(row: int) -> dict[str, Any]:
    found = document(row)
    fields = found if isinstance(found, dict) else {}
    a, o = fields.get("a"), fields.get("o")
    b = o.get("b") if isinstance(o, dict) else None
    there = None if found is None else True
    return {"v": there, "a": a if isinstance(a, int) else None, "a!": isinstance(a, str), "b": b, "b!": False}


@pytest.mark.parametrize("pages", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "none"])
def test_the_chosen_rows_are_read(tmp_path: Path, seed: int, codec: str, pages: str) -> None:
    rng = np.random.default_rng(seed)
    written, path = table(rng), str(tmp_path / "file.parquet")
    known = [answers(row) for row in range(ROWS)]
    texts = [None if document(row) is None else json.dumps(document(row)) for row in range(ROWS)]
    tree = pa.struct({"a": pa.int64(), "o": pa.struct({"b": pa.string()})})
    variants = _native.json_to_variant(pa.record_batch([pa.array(texts)], ["v"]))
    variants = _native.shred(variants, {("v",): tree})
    stored = written.append_column(variants.schema.field(0), variants.column(0))
    pq.write_table(
        stored, path, compression=codec, data_page_version=pages, data_page_size=4000, write_page_index=True,
        row_group_size=GROUP,
    )  # fmt: skip
    dense, part, few = rng.random(ROWS) < 0.5, np.zeros(ROWS, bool), rng.random(ROWS) < 0.002
    part[1000:3000] = rng.random(2000) < 0.5
    part[-3:] = few[0] = True
    for chosen in (dense, part, few):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]]))).reshape(-1, 2)
        reader = kernel.FileReader(name="file", path=path, size=None, fetch=None, early=False, variants=[["v"]])
        items = [kernel.Request((name,), name=name) for name in written.column_names]
        ranges, rows = [(int(first), int(end)) for first, end in edges], np.flatnonzero(chosen).tolist()
        found = pa.Table.from_batches(reader.scan(items, ranges=ranges, max_rows=500)).to_pylist()
        assert found == written.filter(pa.array(chosen)).to_pylist()
        # Leaves alone, with a list beside them, and some that a filter read.
        paths, beside = [*PATHS.values(), items[0]], [*PATHS.values(), items[0], items[2]]
        for asked, judged in ((paths, []), (beside, []), (paths, ["b"]), (paths, ["v", "a"]), (beside, ["a"])):
            plain = written.select([item.name for item in asked if item.path is None and not item.there]).to_pylist()
            expected = [known[row] | plain[row] for row in rows if not judged or known[row][judged[0]] is not None]
            judges = [PATHS[name] for name in judged]
            scan = reader.scan(
                asked, ranges=ranges, max_rows=500, filter=judges, judge=lambda b: b.column(0).is_valid()
            )
            assert [row for batch in scan for row in batch.to_pylist()] == expected
