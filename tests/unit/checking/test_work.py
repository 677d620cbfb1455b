"""A check takes time in proportion to the rows: 16 times the rows take 16 times as long, 256 times if quadratic."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

import mica

DOCUMENTS = {
    "arrays": '{"l":[{"a":%d,"b":[1,2,"x"]},{"a":null},7]}',
    "objects": '{"a":%d,"b":{"c":{"d":"x","e":[]}},"f":1.5}',
}


@pytest.mark.parametrize("layout", ["standard", "early"])
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_check_takes_time_in_proportion_to_the_rows(tmp_path: Path, layout: str, document: str) -> None:
    def best(rows: int) -> float:
        path = tmp_path / f"{rows}.parquet"
        if not path.exists():
            texts = pa.array([document % i for i in range(rows)])
            mica.write_parquet(pa.table({"v": mica.variant.from_json(texts)}), path, layout=layout)
        taken = []
        for _ in range(3):
            began = time.process_time()
            assert mica.check(path).ok
            taken.append(time.process_time() - began)
        return min(taken)

    # Between the two, for the machine's caches and its other work.
    ratios = [best(80_000) / best(5_000) for _ in range(2)]
    assert min(ratios) <= 64, ratios
