"""Arrays made without `pyarrow.array` are those that it makes; a plain read of a new process imports no pandas."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mica
from mica.arrays import FALSE, TRUE, from_list, from_numpy, no_rows, scalar, to_numpy


@pytest.mark.parametrize(
    "values",
    [
        np.arange(20, dtype=np.int64), np.arange(5, dtype=np.int32)[1:4], np.arange(20, dtype=np.uint8)[::2],
        np.array([0.5, np.nan, -0.0]), np.array([True, False] * 9), np.zeros(0, np.int64), np.zeros(0, bool),
    ],
)  # fmt: skip
def test_numbers_and_booleans_go_there_and_back(values: np.ndarray) -> None:
    array = from_numpy(values)
    array.validate(full=True)
    assert array.equals(pa.array(values)) or np.isnan(values.astype(float)).any()
    np.testing.assert_array_equal(to_numpy(array), values)
    np.testing.assert_array_equal(to_numpy(array[1:]), values[1:])
    null = np.arange(len(values)) % 3 == 1
    assert str(from_numpy(values, null)) == str(pa.array(values, mask=null))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, pa.string()), (None, pa.int32()), (5, pa.int8()), (-(2**63), pa.int64()), (True, pa.bool_()),
        (1.5, pa.float64()), ("", pa.string()), ("a\x00é😀", pa.string()), (b"x", pa.binary()), (7, pa.float64()),
        (Decimal("1.50"), pa.decimal128(5, 2)), (1.5, pa.float32()), (2**64 - 1, pa.uint64()), (3, pa.date32()),
    ],
)  # fmt: skip
def test_a_scalar_is_that_of_pyarrow(value: Any, kind: pa.DataType) -> None:
    assert scalar(value, kind).equals(pa.scalar(value, kind))
    assert from_list([value], kind).equals(pa.array([value], kind))
    assert from_list([value, None], kind).equals(pa.array([value, None], kind))


@pytest.mark.parametrize(("value", "kind"), [(500, pa.int8()), ("x", pa.int64())])
def test_what_pyarrow_refuses_is_refused(value: Any, kind: pa.DataType) -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        scalar(value, kind)


def test_constants() -> None:
    assert TRUE.as_py() is True
    assert FALSE.as_py() is False
    schema = pa.schema([("a", pa.int8())])
    assert no_rows(schema).equals(schema.empty_table())


_READ = """
import sys
import mica

heavy = ["pandas", "pyarrow.parquet", "pyarrow.compute", "pyarrow.dataset", "pyspark", "obstore", "mica.write.merge"]
heavy += ["mica.maintain", "mica.tasks.write", "mica.checking", "mica.expressions.functions"]
heavy += ["logging", "urllib", "hashlib", "difflib", "numpy.typing"]
table = mica.Table.open(sys.argv[1])
late = ["expressions.binder", "expressions.parse", "expressions.casts", "skipping.plan", "skipping.judge"]
late += ["skipping.collated", "log.checkpoint", "log.deletion_vectors", "log.feed", "log.time_travel", "errors.codes"]
assert len(table.scan().to_arrow().to_pylist()) == 5
print([name for name in late if "mica." + name in sys.modules])
assert table.scan("v:n::bigint = 3").to_arrow().num_rows == 1
print([name for name in sys.modules if name.startswith(tuple(heavy))])
"""


def test_a_plain_read_of_a_new_process_imports_what_it_needs(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    lines = tmp_path / "events.ndjson"
    lines.write_text("".join(json.dumps({"n": n, "kind": f"k{n}"}) + "\n" for n in range(5)))
    mica.ingest_json(lines, tmp_path / "t")
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n") == ["[]", "[]", ""], done.stdout + done.stderr
