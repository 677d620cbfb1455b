"""Rows that stay in the kernel."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from mica.variant import Limits, kernel

TEXTS = b"\n".join(
    b'{"id": %d, "name": "\xc3\xa4%d", "odd": %s}' % (i, i % 7, [b"1", b'"x"', b"[]"][i % 3]) for i in range(500)
)


@pytest.mark.parametrize("views", [False, True])
def test_rows_of_the_kernel_are_written_as_those_that_pyarrow_gives_back(tmp_path: Path, views: bool) -> None:
    reader = kernel.JsonReader(column="v", views=views)
    reader.feed(TEXTS)
    reader.finish()
    tree = reader.infer(Limits()).tree
    rows = reader.next_batch(tree, 1 << 20, 1 << 30)
    assert rows is not None
    batch = kernel.arrow(rows)
    assert (batch.num_rows, batch.schema, rows.num_rows) == (500, rows.schema, 500)
    assert kernel.arrow(batch) is batch
    for made, given in ((rows, batch), (rows.slice(3, 100), batch.slice(3, 100)), (rows.slice(490), batch.slice(490))):
        assert 0 < made.nbytes < 1 << 20
        files = []
        for name, some in (("kernel", made), ("pyarrow", given)):
            path = tmp_path / f"{name}-{given.num_rows}.parquet"
            writer = kernel.FileWriter(some.schema, path=str(path))
            writer.write(some)
            assert writer.close()["rows"] == given.num_rows
            files.append(path.read_bytes())
        assert files[0] == files[1]


def test_slices_end_with_the_rows() -> None:
    reader = kernel.JsonReader(column="v")
    reader.feed(b"[1]\n[2]\n")
    reader.finish()
    rows = reader.next_batch(pa.null(), 10, 1 << 20)
    assert rows is not None
    assert [rows.slice(*at).num_rows for at in ((), (1,), (1, 9), (2,), (5, 5))] == [2, 1, 1, 0, 0]
