"""Any choice of rows is read, whatever the codec and however the pages lie: dense ones as masks, few ones by page."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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


@pytest.mark.parametrize("pages", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "none"])
def test_the_chosen_rows_are_read(tmp_path: Path, seed: int, codec: str, pages: str) -> None:
    rng = np.random.default_rng(seed)
    written, path = table(rng), str(tmp_path / "file.parquet")
    pq.write_table(
        written, path, compression=codec, data_page_version=pages, data_page_size=4000, write_page_index=True,
        row_group_size=GROUP,
    )  # fmt: skip
    dense, part, few = rng.random(ROWS) < 0.5, np.zeros(ROWS, bool), rng.random(ROWS) < 0.002
    part[1000:3000] = rng.random(2000) < 0.5
    part[-3:] = few[0] = True
    for chosen in (dense, part, few):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]]))).reshape(-1, 2)
        reader = kernel.FileReader(name="file", path=path, size=None, fetch=None, early=False, variants=[])
        items = [kernel.Request((name,), name=name) for name in written.column_names]
        found = pa.Table.from_batches(reader.scan(items, ranges=list(map(tuple, edges.tolist())), max_rows=500))
        assert found.to_pylist() == written.filter(pa.array(chosen)).to_pylist()
