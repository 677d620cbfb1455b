"""deltalake keeps bounds of decimals as doubles: mica finds the rows of its files none the less."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import mica


@pytest.mark.parametrize(
    ("type_", "numbers"),
    [
        (
            pa.decimal128(38, 10),
            ["-1234567890123456789012345678.1234567891", "1234567890123456789012345678.1234567891"],
        ),
        (pa.decimal128(18, 2), ["-1234567890123456.78", "9999999999999999.99"]),
        (pa.decimal128(38, 0), ["-99999999999999999999999999999999999999", "12345678901234567890"]),
    ],
)
def test_the_rows_of_deltalake_s_files_are_found(tmp_path: Path, type_: pa.DataType, numbers: list[str]) -> None:
    deltalake = pytest.importorskip("deltalake")
    for at, number in enumerate(numbers):
        rows = pa.table({"id": pa.array([at], pa.int64()), "n": pa.array([Decimal(number)], type_)})
        deltalake.write_deltalake(str(tmp_path), rows, mode="append")
    table = mica.Table.open(tmp_path)
    for at, number in enumerate(numbers):
        for where in (f"n = {number}BD", f"n <= {number}BD AND n >= {number}BD"):
            assert table.scan(where=where).to_arrow().column("id").to_pylist() == [at]
    assert {one.kind for one in mica.check(tmp_path)} <= {"bound"}
    assert table.delete(f"n = {numbers[0]}BD").metrics["numDeletedRows"] == 1
